//! [`RecordReader`]: reads the records of a WARC or ARC file, and finds the next record after a broken one.
//!
//! A record that does not end where its length says is bad. The reader then goes back into the record and
//! continues at the next head. So a wrong length costs one record, even in a file of one compressed member.
//!
//! Invariant: the reader never cuts a record that ends where its length says, whatever its content is.

mod progress;

use std::io::{Read, Seek};

use super::arc_line::FILE_DESCRIPTION_SCHEME;
use super::archive_format::{AfterRecord, ArchiveFormat};
use super::head::{HEAD_BYTES_MAX, Head};
use super::version_line::{self, VERSION_BYTES, excerpt};
use super::{arc, record_end};
use doppel_streams::{HeadError, Limits, Reason, ReturnPoint, Stream};

/// How far behind a record the reader looks through line ends to see what follows, in bytes.
const LINE_ENDS_MAX: usize = 4 << 10;

/// Kept bytes of an oversized block: enough for the head of the HTTP response in it.
const OVERSIZED_BLOCK_KEPT_BYTES: usize = 64 << 10;

/// Reader of a WARC or ARC file, positioned at a record.
pub(crate) struct RecordReader {
    stream: Stream,
    format: ArchiveFormat,
    limits: Limits,
    head_bytes: Vec<u8>,
    head: Head,
    block: Vec<u8>,
    /// File offset of the current record, or of its compressed member.
    offset: u64,
    /// Mark of the stream at the current record, if it has one.
    mark: Option<u64>,
    /// Beginning of the current record: where to return, and how many unpacked bytes precede it.
    return_point: Option<ReturnPoint>,
    consumed_before: u64,
    /// File offset of the compressed member of the last record, and the number of unpacked bytes consumed
    /// before the first record of the member. Without compression, each record is a member.
    member: Option<(u64, u64)>,
    state: State,
    /// Number of unpacked bytes skipped from the beginning of the last broken record on.
    skipped: u64,
    /// Whether the reader copies the bytes of each record for [`original`](Self::original).
    is_tapped: bool,
    /// Whether damage or an I/O failure, rather than data that are no record, followed the last valid record.
    is_damaged: bool,
    /// Whether the reader has found a record so far.
    has_found_record: bool,
}

/// What the reader does at its next call.
enum State {
    /// The stream is between two records, or at the head of a record found behind a broken one. Read it.
    Between,
    /// The search for the next record has failed. Report the failure.
    Failed(Reason),
    /// No further record can be read.
    Ended,
}

/// Whether an error implies that the data behind it are lost, unless the reader finds a record there.
fn is_data_loss(reason: &Reason) -> bool {
    matches!(reason, Reason::Truncated | Reason::Corrupt(_) | Reason::ZstdWindow { .. })
}

/// A record of a WARC or ARC file, borrowed from its reader.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(super) head: &'a Head,
    /// The bytes that `head` was parsed from.
    pub(crate) head_bytes: &'a [u8],
    /// The block of the record, or its beginning if it exceeds the limit.
    pub(super) block: &'a [u8],
    /// The mark with which [`read_at`](RecordReader::read_at) can read the record again, if there is one.
    pub(super) mark: Option<u64>,
}

impl RecordReader {
    pub(super) fn new(format: ArchiveFormat, stream: Stream, limits: Limits) -> Self {
        Self {
            stream,
            format,
            limits,
            head_bytes: Vec::new(),
            head: Head::default(),
            block: Vec::new(),
            offset: 0,
            mark: None,
            return_point: None,
            consumed_before: 0,
            member: None,
            state: State::Between,
            skipped: 0,
            is_tapped: false,
            is_damaged: false,
            has_found_record: false,
        }
    }

    /// Creates a reader that also copies the bytes of each record for [`original`](Self::original).
    pub(crate) fn new_tapped(format: ArchiveFormat, stream: Stream, limits: Limits) -> Self {
        Self { is_tapped: true, ..Self::new(format, stream, limits) }
    }

    /// Archive format of the file.
    pub(crate) fn format(&self) -> ArchiveFormat {
        self.format
    }

    /// Whether the current record is the description of an ARC file.
    pub(crate) fn is_about_file(&self) -> bool {
        self.format == ArchiveFormat::Arc && self.head_bytes.starts_with(FILE_DESCRIPTION_SCHEME)
    }

    /// Takes the bytes of the current record, with the line ends behind it. Requires
    /// [`new_tapped`](Self::new_tapped).
    pub(crate) fn original(&mut self) -> Result<impl Read + Seek, Reason> {
        self.stream.take_tapped()
    }

    /// The record that [`advance`](Self::advance) reached.
    pub(crate) fn record(&self) -> Record<'_> {
        Record { head: &self.head, head_bytes: &self.head_bytes, block: &self.block, mark: self.mark }
    }

    /// Reads the next record. Returns false at the end. After an error, the caller may call it again.
    pub(crate) fn advance(&mut self) -> Result<bool, Reason> {
        let read = match std::mem::replace(&mut self.state, State::Ended) {
            State::Between => self.read(),
            State::Failed(reason) => Err(reason),
            State::Ended => Ok(false),
        };
        match read {
            Ok(true) => {
                (self.state, self.is_damaged, self.has_found_record) = (State::Between, false, true);
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(reason @ (Reason::Io(_) | Reason::Expansion { .. })) => {
                (self.is_damaged, self.skipped) = (true, 0);
                Err(reason)
            }
            Err(reason) => {
                // A record that runs over others to the end of the data is not cut off. Its length is wrong.
                let runs_over = matches!(reason, Reason::Truncated) && self.format.has_head_in(&self.block);
                let reason = if runs_over { Reason::Length } else { reason };
                // Data without any complete record have lost their beginning, or are not an archive.
                self.is_damaged = is_data_loss(&reason) || !self.has_found_record;
                self.state = match self.find_record(&reason) {
                    Ok(true) => State::Between,
                    Ok(false) => State::Ended,
                    Err(failure) => State::Failed(failure),
                };
                self.skipped = self.stream.consumed().saturating_sub(self.consumed_before);
                Err(reason)
            }
        }
    }

    /// Reads the record at a [mark](Record::mark). Returns false if there is none.
    pub(super) fn read_at(&mut self, mark: u64) -> Result<bool, Reason> {
        self.stream.reread(mark)?;
        self.state = State::Between;
        self.advance()
    }

    fn read(&mut self) -> Result<bool, Reason> {
        (self.mark, self.return_point) = (None, None);
        self.head_bytes.clear();
        self.block.clear();
        (self.offset, self.consumed_before) = (self.stream.offset(), self.stream.consumed());
        loop {
            self.skip_line_ends()?;
            self.consumed_before = self.stream.consumed();
            if !self.stream.data()?.is_empty() {
                break;
            }
            let next = self.stream.next_member();
            self.offset = self.stream.offset();
            if !next? {
                return Ok(false);
            }
        }
        (self.offset, self.return_point) = (self.stream.offset(), self.stream.return_point());
        if self.member.is_none_or(|(member, _)| member != self.offset) {
            self.member = Some((self.offset, self.consumed_before));
        }
        self.mark = self.stream.mark();
        if self.is_tapped {
            self.stream.tap();
        }
        match self.format {
            ArchiveFormat::Warc => self.read_head()?,
            ArchiveFormat::Arc => self.read_line()?,
        }
        match self.read_by_length() {
            Err(Reason::Head(_) | Reason::Length | Reason::Truncated) if self.is_about_file() => {
                self.read_file_description()?;
            }
            read => read?,
        }
        if self.block.len() as u64 != self.head.length {
            self.block.truncate(OVERSIZED_BLOCK_KEPT_BYTES);
        }
        Ok(true)
    }

    /// Reads the rest of a record according to the length in its head.
    fn read_by_length(&mut self) -> Result<(), Reason> {
        self.head = self.format.parse(&self.head_bytes)?;
        self.read_block()?;
        self.check_end()
    }

    /// Reads the description of an ARC file whose length is wrong, up to the next record. It is not a page.
    fn read_file_description(&mut self) -> Result<(), Reason> {
        self.rewind()?;
        if self.is_tapped {
            self.stream.tap();
        }
        self.read_line()?;
        let head = self.head_bytes.len();
        while !self.stream.data()?.is_empty()
            && !self.format.is_record_start(self.stream.peek(HEAD_BYTES_MAX)?)
        {
            self.read_line()?;
        }
        self.head = arc::file_description_head(self.head_bytes.len() - head);
        self.block.extend(self.head_bytes.drain(head..));
        Ok(())
    }

    /// Reads a WARC head up to its blank line.
    fn read_head(&mut self) -> Result<(), Reason> {
        let beginning = self.stream.peek(VERSION_BYTES)?;
        if beginning.len() < VERSION_BYTES && version_line::is_partial_record_start(beginning) {
            return Err(Reason::Truncated);
        }
        version_line::check_version(beginning).map_err(|error| match error {
            HeadError::Version(_) => HeadError::Version(excerpt(self.stream.available())),
            error => error,
        })?;
        loop {
            self.read_line()?;
            if (self.head_bytes.ends_with(b"\n\r\n") || self.head_bytes.ends_with(b"\n\n"))
                && !self.has_more_head()?
            {
                return Ok(());
            }
        }
    }

    /// Whether a head continues behind a blank line, as values in drafts before WARC 1.0 may.
    fn has_more_head(&mut self) -> Result<bool, Reason> {
        let has_length = || {
            let mut lines = self.head_bytes.split(|b| *b == b'\n');
            lines.any(|line| line.get(..15).is_some_and(|name| name.eq_ignore_ascii_case(b"Content-Length:")))
        };
        if !version_line::is_draft(&self.head_bytes) || has_length() {
            return Ok(false);
        }
        let next = self.stream.peek(VERSION_BYTES)?.trim_ascii_start();
        Ok(next.starts_with(b"WARC-") || next.starts_with(b"Content-"))
    }

    /// Appends a line to the bytes of the head.
    fn read_line(&mut self) -> Result<(), Reason> {
        loop {
            let data = self.stream.data()?;
            if data.is_empty() {
                return Err(Reason::Truncated);
            }
            let end = memchr::memchr(b'\n', data);
            let bytes = end.map_or(data.len(), |at| at + 1);
            if self.head_bytes.len() + bytes > HEAD_BYTES_MAX {
                return Err(HeadError::TooLong(HEAD_BYTES_MAX).into());
            }
            self.head_bytes.extend_from_slice(&data[..bytes]);
            self.stream.consume(bytes);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Reads the block. Consumes the bytes above the limit without storing them.
    fn read_block(&mut self) -> Result<(), Reason> {
        let mut left = self.head.length;
        while left > 0 {
            let data = self.stream.data()?;
            if data.is_empty() {
                return Err(Reason::Truncated);
            }
            let bytes = usize::try_from(left).map_or(data.len(), |left| left.min(data.len()));
            let kept = bytes.min(self.limits.record_bytes_max - self.block.len());
            self.block.extend_from_slice(&data[..kept]);
            self.stream.consume(bytes);
            left -= bytes as u64;
        }
        Ok(())
    }

    /// Checks that the record ends where its length says, and consumes the line ends behind it.
    fn check_end(&mut self) -> Result<(), Reason> {
        let (line_ends, after_record) = self.peek_after_record()?;
        if !record_end::is_length_plausible(self.format, &self.block, line_ends, after_record) {
            return Err(Reason::Length);
        }
        // In a member of its own, a damaged record may end at a blank line by chance. The damage shows behind it.
        let is_first = self.member.is_some_and(|(_, before)| before == self.consumed_before);
        let is_suspect = is_first && after_record == AfterRecord::Other;
        self.stream.peek(if is_suspect { HEAD_BYTES_MAX } else { 0 })?;
        self.skip_line_ends().map(drop)
    }

    /// Returns the number of line ends behind the block, and what follows them. Consumes nothing.
    fn peek_after_record(&mut self) -> Result<(usize, AfterRecord), Reason> {
        let mut wanted = 4 + VERSION_BYTES;
        loop {
            let next = self.stream.peek(wanted)?;
            let line_ends = next.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            let rest = &next[line_ends..];
            let max = if rest.is_empty() { LINE_ENDS_MAX } else { HEAD_BYTES_MAX };
            if next.len() < wanted || wanted >= max || self.format.can_classify(rest) {
                return Ok((line_ends, self.format.classify_after_record(rest)));
            }
            wanted = (wanted * 2).min(HEAD_BYTES_MAX);
        }
    }

    fn skip_line_ends(&mut self) -> Result<usize, Reason> {
        let mut skipped = 0;
        loop {
            let data = self.stream.data()?;
            let line_ends = data.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            let all = !data.is_empty() && line_ends == data.len();
            skipped += line_ends;
            self.stream.consume(line_ends);
            if !all {
                return Ok(skipped);
            }
        }
    }

    /// After a broken record, moves to the next head in this member, or else to the next member that begins
    /// with a record. Returns false if there is neither.
    fn find_record(&mut self, reason: &Reason) -> Result<bool, Reason> {
        let format = self.format;
        let is_between = matches!(reason, Reason::Head(HeadError::Version(_)));
        let mut found = self.go_back(reason).and_then(|()| format.find_head(&mut self.stream, is_between));
        if matches!(found, Ok(false)) && self.stream.skip_gap() {
            found = format.find_head(&mut self.stream, false);
        }
        match found {
            Ok(true) => Ok(true),
            Err(error @ (Reason::Io(_) | Reason::Expansion { .. })) => Err(error),
            // The search in a member that is known to be broken fails here again.
            Ok(false) => self.find_member(),
            Err(error) => {
                self.is_damaged |= is_data_loss(&error);
                self.find_member()
            }
        }
    }

    fn find_member(&mut self) -> Result<bool, Reason> {
        let format = self.format;
        self.stream.find_member(&|bytes| format.is_record_start(bytes))
    }

    /// Goes back to the second byte of a record with a wrong length. A pipe loses the bytes above the limit.
    fn go_back(&mut self, reason: &Reason) -> Result<(), Reason> {
        if matches!(reason, Reason::Corrupt(_) | Reason::ZstdWindow { .. }) {
            return Ok(());
        }
        self.rewind()?;
        let first = self.stream.data()?.len().min(1);
        self.stream.consume(first);
        Ok(())
    }

    /// Goes back to the beginning of the current record.
    fn rewind(&mut self) -> Result<(), Reason> {
        let consumed = self.stream.consumed() - self.consumed_before;
        let mut bytes = std::mem::take(&mut self.head_bytes);
        let is_in_memory = (bytes.len() + self.block.len()) as u64 == consumed;
        bytes.append(&mut self.block);
        match &self.return_point {
            _ if is_in_memory => self.stream.put_back(bytes),
            Some(return_point) => self.stream.return_to(return_point),
            // Bytes of a pipe that are not in memory are lost, and count as skipped.
            None => self.stream.put_back_before_gap(bytes),
        }
    }
}
