//! The two forms of files of records, WARC and ARC, and how records of each are recognised.

use super::arc;
use super::head::{self, HEAD_BYTES_MAX, Head};
use crate::arc_line;
use crate::error::{HeadError, Reason};
use crate::stream::Stream;
use crate::warc_version::{self, MAGIC, VERSION_BYTES};

/// The form of the records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Warc,
    Arc,
}

/// What follows a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// The end of the file, or of the compressed member.
    End,
    /// Another record.
    Head,
    /// Something that is no record.
    Other,
}

impl Form {
    pub(super) fn parse(self, bytes: &[u8]) -> Result<Head, HeadError> {
        match self {
            Self::Warc => Head::parse(bytes),
            Self::Arc => arc::parse(bytes),
        }
    }

    /// The fewest line ends that separate two records.
    pub(super) fn separator(self) -> usize {
        match self {
            Self::Warc => 2,
            Self::Arc => 1,
        }
    }

    /// Whether a record begins here, as far as the first bytes tell.
    pub(super) fn begins(self, bytes: &[u8]) -> bool {
        match self {
            Self::Warc => warc_version::begins_here(bytes),
            Self::Arc => arc_line::is_arc(bytes),
        }
    }

    /// What the bytes behind the line ends of a record are.
    pub(super) fn follows(self, bytes: &[u8]) -> Follows {
        match bytes {
            [] => Follows::End,
            bytes if self.begins(bytes) || self.is_cut(bytes) || self.is_damaged(bytes) => Follows::Head,
            _ => Follows::Other,
        }
    }

    /// Whether these bytes, which nothing follows, may be the first ones of a record that is cut off.
    pub(super) fn is_cut(self, bytes: &[u8]) -> bool {
        match self {
            Self::Warc => warc_version::is_cut(bytes),
            Self::Arc => arc_line::is_cut(bytes),
        }
    }

    /// Whether a record begins here whose head is damaged. Behind the line ends of a record of WARC anything may be one.
    fn is_damaged(self, bytes: &[u8]) -> bool {
        self == Self::Arc && arc_line::is_damaged(bytes)
    }

    /// Whether these bytes suffice to tell what [follows](Self::follows).
    pub(super) fn is_told_by(self, bytes: &[u8]) -> bool {
        match self {
            Self::Warc => bytes.len() >= VERSION_BYTES,
            Self::Arc => bytes.contains(&b'\n'),
        }
    }

    /// Whether a line of `block` begins with the head of a record.
    pub(super) fn is_in(self, block: &[u8]) -> bool {
        match self {
            Self::Warc => memchr::memmem::find_iter(block, MAGIC)
                .any(|at| head::is_head(&block[at..], at == 0 || block[at - 1] == b'\n')),
            Self::Arc => {
                let starts = memchr::memchr_iter(b'\n', block).map(|end| end + 1);
                [0].into_iter().chain(starts).any(|at| arc_line::begins_here(&block[at..]))
            }
        }
    }

    /// Goes to the next head of a record in the current member. Returns false if there is none; the stream is at the end of the
    /// member then. Within a record a head of WARC begins a line, as text that only names WARC does not; what is between
    /// records has no such text.
    pub(super) fn find_in(self, stream: &mut Stream, is_between: bool) -> Result<bool, Reason> {
        match self {
            Self::Warc => find_warc(stream, is_between),
            Self::Arc => find_arc(stream),
        }
    }
}

fn find_warc(stream: &mut Stream, is_between: bool) -> Result<bool, Reason> {
    // Nothing is known of the byte in front of the first one.
    let mut before = 0;
    loop {
        let data = stream.peek(MAGIC.len())?;
        let hit = memchr::memmem::find(data, MAGIC);
        // The last bytes may be the first of a head.
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
    // What comes first is the rest of a line.
    let mut at_line_start = false;
    loop {
        if at_line_start {
            let mut wanted = 1 << 10;
            while !stream.peek_available(wanted)?[..].contains(&b'\n') && wanted < HEAD_BYTES_MAX {
                wanted *= 2;
            }
            if arc_line::begins_here(stream.peek_available(wanted)?) {
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
