//! Reads the records of a WARC file in order, and finds the next record after a broken one.
//!
//! If every record is a gzip member, a broken record costs only that record. In one long member, or in a plain
//! file, the reader continues at the next version line that follows a blank line. In a plain file this search
//! begins one byte after the beginning of the broken record.

use std::io::Read;

use super::head::{HEAD_BYTES_MAX, Head, VERSION, shown};
use crate::error::{HeadError, Reason};
use crate::limits::Limits;
use crate::stream::Stream;

/// How many bytes of a record that is too large are kept: enough for the head of the HTTP response in it.
const KEPT_OF_TOO_LARGE: usize = 64 << 10;

/// A WARC file with a position at some record.
pub(crate) struct Records {
    stream: Stream,
    limits: Limits,
    head_bytes: Vec<u8>,
    head: Head,
    block: Vec<u8>,
    offset: u64,
    mark: Option<u64>,
    state: State,
    /// Whether the bytes of each record are wanted.
    is_tapped: bool,
    /// Whether damage or an I/O failure came after the last valid record, as opposed to data that are just not
    /// a record.
    damaged: bool,
}

/// The position of the stream.
enum State {
    /// Between two records.
    Between,
    /// Somewhere in a broken record. In a plain file, the search for the next one begins at this offset.
    Lost(Option<u64>),
    /// At a place after which nothing can be read.
    Ended,
}

/// One record.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(super) head: &'a Head,
    /// The bytes that `head` was parsed from.
    pub(crate) head_bytes: &'a [u8],
    /// The block, or its beginning if it is larger than the limit.
    pub(super) block: &'a [u8],
    /// The mark with which the record can be [read again](Records::read_at), if possible.
    pub(super) mark: Option<u64>,
}

impl Records {
    pub(super) fn new(stream: Stream, limits: Limits) -> Self {
        Self {
            stream,
            limits,
            head_bytes: Vec::new(),
            head: Head::default(),
            block: Vec::new(),
            offset: 0,
            mark: None,
            state: State::Between,
            is_tapped: false,
            damaged: false,
        }
    }

    /// The same, with the [original](Self::original) bytes of each record.
    pub(crate) fn tapped(stream: Stream, limits: Limits) -> Self {
        Self { is_tapped: true, ..Self::new(stream, limits) }
    }

    /// The bytes of the record, from its head to the line ends behind its block.
    pub(crate) fn original(&mut self) -> Result<impl Read, Reason> {
        self.stream.tapped()
    }

    /// Whether there was damage or a failure, and nothing behind it could be read.
    pub(super) fn broke_off(&self) -> bool {
        self.damaged && matches!(self.state, State::Ended)
    }

    /// Number of stored bytes read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }

    /// The file offset of the current record, or of the broken one.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The record that [`advance`](Self::advance) reached.
    pub(crate) fn record(&self) -> Record<'_> {
        Record { head: &self.head, head_bytes: &self.head_bytes, block: &self.block, mark: self.mark }
    }

    /// Reads the next record. Returns false at the end. After an error it can be called again.
    pub(crate) fn advance(&mut self) -> Result<bool, Reason> {
        let found = match std::mem::replace(&mut self.state, State::Ended) {
            State::Between => Ok(true),
            State::Lost(from) => self.find_record(from),
            State::Ended => Ok(false),
        };
        let read = match found {
            Ok(true) => self.read(),
            other => other,
        };
        match &read {
            Ok(true) => (self.state, self.damaged) = (State::Between, false),
            Ok(false) => {}
            Err(Reason::Io(_) | Reason::Expansion { .. }) => self.damaged = true,
            Err(reason) => {
                self.damaged = matches!(reason, Reason::Truncated | Reason::Corrupt(_));
                // Do not read from the same offset twice.
                let plain = !self.stream.is_compressed();
                self.state = State::Lost(self.mark.filter(|_| plain).map(|at| at + 1));
            }
        }
        read
    }

    /// Reads the record at a [mark](Record::mark). Returns false if there is none.
    pub(super) fn read_at(&mut self, mark: u64) -> Result<bool, Reason> {
        self.stream.reread(mark)?;
        self.state = State::Between;
        self.advance()
    }

    fn read(&mut self) -> Result<bool, Reason> {
        self.mark = None;
        // The position to report for an error before a record is found.
        self.offset = self.stream.offset();
        loop {
            self.skip_line_ends()?;
            if !self.stream.data()?.is_empty() {
                break;
            }
            let next = self.stream.next_member();
            self.offset = self.stream.offset();
            if !next? {
                return Ok(false);
            }
        }
        self.offset = self.stream.offset();
        self.mark = self.stream.mark();
        if self.is_tapped {
            self.stream.tap();
        }
        self.read_head()?;
        self.head = Head::parse(&self.head_bytes)?;
        self.read_block()?;
        self.check_end()?;
        Ok(true)
    }

    fn read_head(&mut self) -> Result<(), Reason> {
        self.head_bytes.clear();
        if !self.stream.peek(VERSION.len())?.starts_with(VERSION) {
            return Err(HeadError::Version(shown(self.stream.data()?)).into());
        }
        loop {
            let data = self.stream.data()?;
            if data.is_empty() {
                return Err(Reason::Truncated);
            }
            let line = memchr::memchr(b'\n', data).map_or(data.len(), |at| at + 1);
            if self.head_bytes.len() + line > HEAD_BYTES_MAX {
                return Err(HeadError::TooLong(HEAD_BYTES_MAX).into());
            }
            self.head_bytes.extend_from_slice(&data[..line]);
            self.stream.consume(line);
            if self.head_bytes.ends_with(b"\n\r\n") || self.head_bytes.ends_with(b"\n\n") {
                return Ok(());
            }
        }
    }

    fn read_block(&mut self) -> Result<(), Reason> {
        self.block.clear();
        let length = self.head.length;
        let kept = usize::try_from(length).ok().filter(|length| *length <= self.limits.record_bytes_max);
        let kept = kept.unwrap_or(KEPT_OF_TOO_LARGE);
        let mut left = length;
        while left > 0 {
            let data = self.stream.data()?;
            if data.is_empty() {
                return Err(Reason::Truncated);
            }
            let bytes = usize::try_from(left).map_or(data.len(), |left| left.min(data.len()));
            self.block.extend_from_slice(&data[..bytes.min(kept - self.block.len())]);
            self.stream.consume(bytes);
            left -= bytes as u64;
        }
        Ok(())
    }

    /// A record is followed by two line ends. Some writers omit one or both of them before the end of a member
    /// or file.
    fn check_end(&mut self) -> Result<(), Reason> {
        let line_ends = self.skip_line_ends()?;
        let next = self.stream.peek(VERSION.len())?;
        if next.is_empty() || line_ends >= 4 || next.starts_with(VERSION) {
            Ok(())
        } else {
            Err(Reason::Length)
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

    /// After a broken record, goes to the next version line that follows a blank line, or else to the next gzip
    /// member that begins with a version line. Returns false if there is neither.
    fn find_record(&mut self, from: Option<u64>) -> Result<bool, Reason> {
        if let Some(from) = from {
            self.stream.seek(from)?;
        }
        match self.find_in_member() {
            Ok(true) => Ok(true),
            Err(error @ (Reason::Io(_) | Reason::Expansion { .. })) => Err(error),
            // A member that is already known to be broken fails here again.
            Ok(false) | Err(_) => self.stream.find_member(VERSION),
        }
    }

    fn find_in_member(&mut self) -> Result<bool, Reason> {
        // If a head was read, it ended with a blank line.
        let mut after_blank = true;
        loop {
            if after_blank && self.stream.peek(VERSION.len())?.starts_with(VERSION) {
                return Ok(true);
            }
            after_blank =
                self.stream.peek(2)?.starts_with(b"\r\n") || self.stream.peek(1)?.starts_with(b"\n");
            // Skip to the end of this line.
            loop {
                let data = self.stream.data()?;
                if data.is_empty() {
                    return Ok(false);
                }
                let line = memchr::memchr(b'\n', data);
                let bytes = line.map_or(data.len(), |at| at + 1);
                self.stream.consume(bytes);
                if line.is_some() {
                    break;
                }
            }
        }
    }
}
