//! Reads the records of a WARC or ARC file in order, and finds the next record after a broken one.
//!
//! A record whose end is not where its length says is bad. The reader then goes back into the record and continues at the next
//! head of a record: a version line with the fields of a head, at the beginning of a line. So a wrong length costs one record, also in a
//! file that is one compressed member. A record that ends where its length says is never cut, whatever its content is.

mod progress;

use std::io::{Read, Seek};

use super::form::{Follows, Form};
use super::head::{HEAD_BYTES_MAX, Head};
use super::{arc, end};
use crate::arc_line::ABOUT;
use crate::error::{HeadError, Reason};
use crate::limits::Limits;
use crate::stream::{Spot, Stream};
use crate::warc_version::{self, VERSION_BYTES, shown};

/// How many line ends behind a record are looked at to see what follows them, in bytes.
const LINE_ENDS_MAX: usize = 4 << 10;

/// How many bytes of a record that is too large are kept: enough for the head of the HTTP response in it.
const KEPT_OF_TOO_LARGE: usize = 64 << 10;

/// A WARC or ARC file with a position at some record.
pub(crate) struct Records {
    stream: Stream,
    form: Form,
    limits: Limits,
    head_bytes: Vec<u8>,
    head: Head,
    block: Vec<u8>,
    offset: u64,
    mark: Option<u64>,
    /// Where the current record begins: a place to return to, and how many bytes were consumed in front of it.
    spot: Option<Spot>,
    begun: u64,
    /// The offset of the compressed member of the last record, and how many bytes were consumed in front of its first record. Without
    /// compression each record is a member.
    member: Option<(u64, u64)>,
    state: State,
    /// How many bytes were skipped behind the beginning of the last broken record.
    skipped: u64,
    /// Whether the bytes of each record are wanted.
    is_tapped: bool,
    /// Whether damage or an I/O failure came after the last valid record, as opposed to data that are just not
    /// a record.
    damaged: bool,
    /// Whether a record was ever found.
    has_found: bool,
}

/// The position of the stream.
enum State {
    /// Between two records, or at the head of the record that was found behind a broken one.
    Between,
    /// The search for the next record has failed.
    Failed(Reason),
    /// At a place after which nothing can be read.
    Ended,
}

/// Whether the data behind this are lost, unless a record is found there.
fn is_damage(reason: &Reason) -> bool {
    matches!(reason, Reason::Truncated | Reason::Corrupt(_) | Reason::ZstdWindow { .. })
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
    pub(super) fn new(form: Form, stream: Stream, limits: Limits) -> Self {
        Self {
            stream,
            form,
            limits,
            head_bytes: Vec::new(),
            head: Head::default(),
            block: Vec::new(),
            offset: 0,
            mark: None,
            spot: None,
            begun: 0,
            member: None,
            state: State::Between,
            skipped: 0,
            is_tapped: false,
            damaged: false,
            has_found: false,
        }
    }

    /// The same, with the [original](Self::original) bytes of each record.
    pub(crate) fn tapped(form: Form, stream: Stream, limits: Limits) -> Self {
        Self { is_tapped: true, ..Self::new(form, stream, limits) }
    }

    /// The form of the records.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Whether the record describes a file of ARC.
    pub(crate) fn is_about_file(&self) -> bool {
        self.form == Form::Arc && self.head_bytes.starts_with(ABOUT)
    }

    /// The bytes of the record, from its head to the line ends behind its block.
    pub(crate) fn original(&mut self) -> Result<impl Read + Seek, Reason> {
        self.stream.tapped()
    }

    /// The record that [`advance`](Self::advance) reached.
    pub(crate) fn record(&self) -> Record<'_> {
        Record { head: &self.head, head_bytes: &self.head_bytes, block: &self.block, mark: self.mark }
    }

    /// Reads the next record. Returns false at the end. After an error it can be called again.
    pub(crate) fn advance(&mut self) -> Result<bool, Reason> {
        let read = match std::mem::replace(&mut self.state, State::Ended) {
            State::Between => self.read(),
            State::Failed(reason) => Err(reason),
            State::Ended => Ok(false),
        };
        match read {
            Ok(true) => {
                (self.state, self.damaged, self.has_found) = (State::Between, false, true);
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(reason @ (Reason::Io(_) | Reason::Expansion { .. })) => {
                (self.damaged, self.skipped) = (true, 0);
                Err(reason)
            }
            Err(reason) => {
                // A record that runs on to the end over others is not cut off: its length is wrong.
                let runs_over = matches!(reason, Reason::Truncated) && self.form.is_in(&self.block);
                let reason = if runs_over { Reason::Length } else { reason };
                // Data of which nothing is a whole record have lost their beginning, or are none.
                self.damaged = is_damage(&reason) || !self.has_found;
                self.state = match self.find_record(&reason) {
                    Ok(true) => State::Between,
                    Ok(false) => State::Ended,
                    Err(failure) => State::Failed(failure),
                };
                self.skipped = self.stream.consumed().saturating_sub(self.begun);
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
        (self.mark, self.spot) = (None, None);
        self.head_bytes.clear();
        self.block.clear();
        // The position to report for an error before a record is found.
        (self.offset, self.begun) = (self.stream.offset(), self.stream.consumed());
        loop {
            self.skip_line_ends()?;
            self.begun = self.stream.consumed();
            if !self.stream.data()?.is_empty() {
                break;
            }
            let next = self.stream.next_member();
            self.offset = self.stream.offset();
            if !next? {
                return Ok(false);
            }
        }
        (self.offset, self.spot) = (self.stream.offset(), self.stream.spot());
        if self.member.is_none_or(|(member, _)| member != self.offset) {
            self.member = Some((self.offset, self.begun));
        }
        self.mark = self.stream.mark();
        if self.is_tapped {
            self.stream.tap();
        }
        match self.form {
            Form::Warc => self.read_head()?,
            Form::Arc => self.read_line()?,
        }
        match self.read_by_length() {
            Err(Reason::Head(_) | Reason::Length | Reason::Truncated) if self.is_about_file() => {
                self.read_lines()?;
            }
            read => read?,
        }
        // Of a record that is too large the beginning is enough.
        if self.block.len() as u64 != self.head.length {
            self.block.truncate(KEPT_OF_TOO_LARGE);
        }
        Ok(true)
    }

    fn read_by_length(&mut self) -> Result<(), Reason> {
        self.head = self.form.parse(&self.head_bytes)?;
        self.read_block()?;
        self.check_end()
    }

    /// Reads the description of a file of ARC whose length is wrong, up to the next record. It is no page, and ends where that
    /// begins.
    fn read_lines(&mut self) -> Result<(), Reason> {
        self.rewind()?;
        if self.is_tapped {
            self.stream.tap();
        }
        self.read_line()?;
        let head = self.head_bytes.len();
        while !self.stream.data()?.is_empty() && !self.form.begins(self.stream.peek(HEAD_BYTES_MAX)?) {
            self.read_line()?;
        }
        self.head = arc::about(self.head_bytes.len() - head);
        self.block.extend(self.head_bytes.drain(head..));
        Ok(())
    }

    /// Reads a head of WARC, up to its blank line.
    fn read_head(&mut self) -> Result<(), Reason> {
        let beginning = self.stream.peek(VERSION_BYTES)?;
        if beginning.len() < VERSION_BYTES && warc_version::is_cut(beginning) {
            return Err(Reason::Truncated);
        }
        warc_version::check_version(beginning).map_err(|error| match error {
            HeadError::Version(_) => HeadError::Version(shown(self.stream.available())),
            error => error,
        })?;
        loop {
            self.read_line()?;
            if (self.head_bytes.ends_with(b"\n\r\n") || self.head_bytes.ends_with(b"\n\n"))
                && !self.is_torn()?
            {
                return Ok(());
            }
        }
    }

    /// Whether a head goes on behind a blank line, as in drafts before WARC 1.0, where a value may have blank lines in it.
    fn is_torn(&mut self) -> Result<bool, Reason> {
        let has_length = || {
            let mut lines = self.head_bytes.split(|b| *b == b'\n');
            lines.any(|line| line.get(..15).is_some_and(|name| name.eq_ignore_ascii_case(b"Content-Length:")))
        };
        if !warc_version::is_draft(&self.head_bytes) || has_length() {
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

    /// Reads the block. What is above the limit is consumed, and not kept.
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
        let (line_ends, follows) = self.what_follows()?;
        if !end::fits(self.form, &self.block, line_ends, follows) {
            return Err(Reason::Length);
        }
        self.skip_line_ends()?;
        Ok(())
    }

    /// The number of line ends behind the block, and what is behind these. Nothing is consumed.
    fn what_follows(&mut self) -> Result<(usize, Follows), Reason> {
        let mut wanted = 4 + VERSION_BYTES;
        loop {
            let next = self.stream.peek(wanted)?;
            let line_ends = next.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            let rest = &next[line_ends..];
            let max = if rest.is_empty() { LINE_ENDS_MAX } else { HEAD_BYTES_MAX };
            if next.len() < wanted || wanted >= max || self.form.is_told_by(rest) {
                return Ok((line_ends, self.form.follows(rest)));
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

    /// After a broken record, goes to the next head in this member, or else to the next member that begins with a record. Returns
    /// false if there is neither.
    fn find_record(&mut self, reason: &Reason) -> Result<bool, Reason> {
        let form = self.form;
        let is_between = matches!(reason, Reason::Head(HeadError::Version(_)));
        let mut found = self.go_back(reason).and_then(|()| form.find_in(&mut self.stream, is_between));
        if matches!(found, Ok(false)) && self.stream.pass_gap() {
            found = form.find_in(&mut self.stream, false);
        }
        match found {
            Ok(true) => Ok(true),
            Err(error @ (Reason::Io(_) | Reason::Expansion { .. })) => Err(error),
            // A member that is already known to be broken fails here again.
            Ok(false) => self.find_member(),
            Err(error) => {
                self.damaged |= is_damage(&error);
                self.find_member()
            }
        }
    }

    fn find_member(&mut self) -> Result<bool, Reason> {
        let form = self.form;
        self.stream.find_member(&|bytes| form.begins(bytes))
    }

    /// Goes back to the second byte of a record whose length is wrong, as far as possible: in a pipe what is above the limit of a record
    /// is left out.
    fn go_back(&mut self, reason: &Reason) -> Result<(), Reason> {
        if matches!(reason, Reason::Corrupt(_) | Reason::ZstdWindow { .. }) {
            return Ok(());
        }
        self.rewind()?;
        let first = self.stream.data()?.len().min(1);
        self.stream.consume(first);
        Ok(())
    }

    /// Goes back to the beginning of a record.
    fn rewind(&mut self) -> Result<(), Reason> {
        let consumed = self.stream.consumed() - self.begun;
        let mut bytes = std::mem::take(&mut self.head_bytes);
        let is_in_memory = (bytes.len() + self.block.len()) as u64 == consumed;
        bytes.append(&mut self.block);
        match &self.spot {
            _ if is_in_memory => self.stream.put_back(bytes),
            Some(spot) => self.stream.return_to(spot),
            // Of a pipe what is not in memory is gone, and counts as skipped.
            None => self.stream.put_back_before_gap(bytes),
        }
    }
}
