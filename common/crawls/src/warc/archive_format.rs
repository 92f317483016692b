//! The two archive formats of crawl records, WARC and ARC, and how records of each are recognised.
//!
//! The reader of records asks [`ArchiveFormat`] whenever the two formats differ. The predicates only judge
//! bytes that the caller passes; [`ArchiveFormat::find_head`] alone reads from the stream.

use super::arc;
use super::arc_line;
use super::head::{self, HEAD_BYTES_MAX, Head};
use super::version_line::{self, MAGIC, VERSION_BYTES};
use doppel_streams::{HeadError, Reason, Stream};

/// The archive format of a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArchiveFormat {
    Warc,
    Arc,
}

/// What follows a record in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterRecord {
    /// The end of the file, or of the compressed member.
    End,
    /// Another record.
    Head,
    /// Other data than a record.
    Other,
}

impl ArchiveFormat {
    /// Parses a whole head.
    pub(super) fn parse(self, bytes: &[u8]) -> Result<Head, HeadError> {
        match self {
            Self::Warc => Head::parse(bytes),
            Self::Arc => arc::parse(bytes),
        }
    }

    /// The smallest number of line ends between two records.
    pub(super) fn separator_line_ends(self) -> usize {
        match self {
            Self::Warc => 2,
            Self::Arc => 1,
        }
    }

    /// Whether `bytes` look like the beginning of a record.
    pub(super) fn is_record_start(self, bytes: &[u8]) -> bool {
        match self {
            Self::Warc => version_line::is_record_start(bytes),
            Self::Arc => arc_line::is_arc(bytes),
        }
    }

    /// Classifies the bytes that follow a record and its line ends.
    pub(super) fn classify_after_record(self, bytes: &[u8]) -> AfterRecord {
        match bytes {
            [] => AfterRecord::End,
            bytes
                if self.is_record_start(bytes)
                    || self.is_partial_record_start(bytes)
                    || self.is_damaged_record_start(bytes) =>
            {
                AfterRecord::Head
            }
            _ => AfterRecord::Other,
        }
    }

    /// Whether `bytes`, which are the last bytes of the data, may be the beginning of a record that is cut
    /// off.
    pub(super) fn is_partial_record_start(self, bytes: &[u8]) -> bool {
        match self {
            Self::Warc => version_line::is_partial_record_start(bytes),
            Self::Arc => arc_line::is_partial_record_start(bytes),
        }
    }

    /// Whether `bytes` begin with a damaged record head. Always false for WARC, where any bytes behind the
    /// line ends of a record may be a damaged head.
    fn is_damaged_record_start(self, bytes: &[u8]) -> bool {
        self == Self::Arc && arc_line::is_damaged_record_start(bytes)
    }

    /// Whether `bytes` suffice for [`classify_after_record`](Self::classify_after_record).
    pub(super) fn can_classify(self, bytes: &[u8]) -> bool {
        match self {
            Self::Warc => bytes.len() >= VERSION_BYTES,
            Self::Arc => bytes.contains(&b'\n'),
        }
    }

    /// Whether `block` contains the head of a record. A head in the middle of a line counts only if it has
    /// all required fields.
    pub(super) fn has_head_in(self, block: &[u8]) -> bool {
        match self {
            Self::Warc => memchr::memmem::find_iter(block, MAGIC)
                .any(|at| head::is_head(&block[at..], at == 0 || block[at - 1] == b'\n')),
            Self::Arc => {
                let starts = memchr::memchr_iter(b'\n', block).map(|end| end + 1);
                [0].into_iter().chain(starts).any(|at| arc_line::is_record_start(&block[at..]))
            }
        }
    }

    /// Moves the stream to the next head of a record in the current member. Returns false if there is no
    /// head; the stream is at the end of the member then.
    ///
    /// `is_between` states that the search begins between records. Text within a record may quote a WARC
    /// head. Within a record, a WARC head therefore counts only at the beginning of a line, or if it has all
    /// required fields. Data between records contain no such text.
    pub(super) fn find_head(self, stream: &mut Stream, is_between: bool) -> Result<bool, Reason> {
        match self {
            Self::Warc => find_warc(stream, is_between),
            Self::Arc => find_arc(stream),
        }
    }
}

fn find_warc(stream: &mut Stream, is_between: bool) -> Result<bool, Reason> {
    // The byte before the first one is unknown.
    let mut before = 0;
    loop {
        let data = stream.peek(MAGIC.len())?;
        let hit = memchr::memmem::find(data, MAGIC);
        // The last bytes may be the beginning of a head.
        let is_last = data.len() < MAGIC.len();
        let skipped = hit.unwrap_or(if is_last { data.len() } else { data.len() - (MAGIC.len() - 1) });
        if let Some(last) = data[..skipped].last() {
            before = *last;
        }
        stream.consume(skipped);
        if hit.is_some() {
            let at_line_start = is_between || before == b'\n';
            if head::is_head(stream.peek_available(HEAD_BYTES_MAX)?, at_line_start) {
                return Ok(true);
            }
            before = MAGIC[0];
            stream.consume(1);
        } else if is_last {
            return Ok(false);
        }
    }
}

fn find_arc(stream: &mut Stream) -> Result<bool, Reason> {
    // The search begins in the middle of a line.
    let mut at_line_start = false;
    loop {
        if at_line_start {
            let mut wanted = 1 << 10;
            while !stream.peek_available(wanted)?[..].contains(&b'\n') && wanted < HEAD_BYTES_MAX {
                wanted *= 2;
            }
            if arc_line::is_record_start(stream.peek_available(wanted)?) {
                return Ok(true);
            }
        }
        let data = stream.data()?;
        if data.is_empty() {
            return Ok(false);
        }
        let end = memchr::memchr(b'\n', data);
        at_line_start = end.is_some();
        let bytes = end.map_or(data.len(), |end| end + 1);
        stream.consume(bytes);
    }
}
