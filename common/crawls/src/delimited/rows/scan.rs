//! One row as it is read, byte by byte.

use super::{BadRow, CELLS_MAX, Cells, LINES_MAX, LINES_TOLD};
use crate::error::Reason;
use crate::limits::{Limits, too_large};

/// What some bytes are for a row.
pub(super) enum Step {
    More,
    /// The row ends.
    Row,
    Fault(Reason),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of a cell.
    Begin,
    /// In a cell without quotes.
    Plain,
    /// In a cell in quotes.
    Quoted,
    /// Behind a quote that closes a cell, unless it is doubled.
    Quote,
    /// Behind a cell in quotes and a blank.
    Blank,
}

/// A row that is read.
pub(super) struct Scan {
    pub(super) raw: Vec<u8>,
    text: Vec<u8>,
    ends: Vec<usize>,
    state: State,
    /// The line of the next byte.
    pub(super) line: u64,
    /// The line of the last opening quote, and its place in the row.
    pub(super) quote_line: u64,
    quote_at: usize,
    /// The line of the first quote of the row that is open over more than [`LINES_TOLD`] lines.
    pub(super) long_quote: Option<u64>,
    /// The bytes and cells of the row, also of what is not kept.
    pub(super) length: u64,
    cells: usize,
    /// Whether all of the row is kept.
    pub(super) is_whole: bool,
    /// Whether a fault is at the end of a line.
    pub(super) is_at_line_end: bool,
    /// Whether the last byte of a cell in quotes is a carriage return, so that a line feed behind it begins no line.
    after_return: bool,
    pub(super) ends_with_return: bool,
}

impl Scan {
    pub(super) fn new(line: u64) -> Self {
        Self {
            raw: Vec::new(),
            text: Vec::new(),
            ends: Vec::new(),
            state: State::Begin,
            line,
            quote_line: line,
            quote_at: 0,
            long_quote: None,
            length: 0,
            cells: 0,
            is_whole: true,
            is_at_line_end: false,
            after_return: false,
            ends_with_return: false,
        }
    }

    /// Reads bytes up to the end of the row, and returns how many.
    pub(super) fn read(&mut self, data: &[u8], separator: u8, limits: &Limits) -> (usize, Step) {
        let mut at = 0;
        while at < data.len() {
            let byte = data[at];
            match self.state {
                State::Begin if byte == b'"' => {
                    (self.quote_line, self.quote_at) = (self.line, self.raw.len() + at);
                    (self.state, self.after_return) = (State::Quoted, false);
                    at += 1;
                }
                State::Quoted => {
                    let rest = &data[at..];
                    let length = memchr::memchr3(b'"', b'\n', b'\r', rest).unwrap_or(rest.len());
                    self.take(&rest[..length]);
                    self.after_return &= length == 0;
                    at += length;
                    match rest.get(length) {
                        None => {}
                        Some(b'"') => {
                            self.state = State::Quote;
                            at += 1;
                        }
                        Some(end) => {
                            self.take(&[*end]);
                            at += 1;
                            // A carriage return and a line feed are one line end.
                            self.line += u64::from(*end == b'\r' || !self.after_return);
                            self.after_return = *end == b'\r';
                            let lines = self.line - self.quote_line;
                            if lines > LINES_TOLD {
                                self.long_quote.get_or_insert(self.quote_line);
                            }
                            let is_long = lines > LINES_MAX;
                            if is_long || self.is_too_large_with(at, limits) {
                                self.is_at_line_end = true;
                                return (at, self.long_quote(&data[..at], limits));
                            }
                        }
                    }
                }
                State::Quote if byte == b'"' => {
                    self.take(b"\"");
                    (self.state, self.after_return) = (State::Quoted, false);
                    at += 1;
                }
                _ if byte == separator => {
                    self.end_cell();
                    self.state = State::Begin;
                    at += 1;
                }
                _ if matches!(byte, b'\n' | b'\r') => {
                    self.end_cell();
                    at += 1;
                    self.line += 1;
                    self.ends_with_return = byte == b'\r';
                    self.keep(&data[..at], limits);
                    return (at, Step::Row);
                }
                State::Quote | State::Blank if byte == b' ' => {
                    self.state = State::Blank;
                    at += 1;
                }
                State::Quote | State::Blank => {
                    self.keep_all(&data[..at]);
                    let escaped = self.state == State::Quote && self.raw.ends_with(b"\\\"");
                    return (at, Step::Fault(Reason::BehindQuote { line: self.quote_line, escaped }));
                }
                State::Begin | State::Plain => {
                    let rest = &data[at..];
                    let length = memchr::memchr3(separator, b'\n', b'\r', rest).unwrap_or(rest.len());
                    self.take(&rest[..length]);
                    self.state = State::Plain;
                    at += length;
                }
            }
        }
        if self.is_in_quote() && self.has_lines_behind_quote() && self.is_too_large_with(at, limits) {
            return (at, self.long_quote(data, limits));
        }
        self.keep(data, limits);
        (at, Step::More)
    }

    /// Whether the row is too large with so many more bytes.
    fn is_too_large_with(&self, bytes: usize, limits: &Limits) -> bool {
        self.length + bytes as u64 > limits.line_bytes_max as u64
    }

    /// A quote that is open for too long, with the last bytes of its row.
    fn long_quote(&mut self, last: &[u8], limits: &Limits) -> Step {
        self.keep_all(last);
        let (line, bytes) = (self.quote_line, limits.line_bytes_max);
        Step::Fault(Reason::LongQuote { line, lines: LINES_MAX, bytes })
    }

    /// Takes bytes of a cell.
    fn take(&mut self, bytes: &[u8]) {
        if self.is_whole {
            self.text.extend_from_slice(bytes);
        }
    }

    fn end_cell(&mut self) {
        self.cells += 1;
        if self.is_whole && self.cells <= CELLS_MAX {
            self.ends.push(self.text.len());
        }
    }

    /// Keeps bytes of the row, as long as it is not too large.
    pub(super) fn keep(&mut self, bytes: &[u8], limits: &Limits) {
        self.length += bytes.len() as u64;
        self.is_whole &= self.length <= limits.line_bytes_max as u64 && self.cells <= CELLS_MAX;
        if self.is_whole {
            self.raw.extend_from_slice(bytes);
        }
    }

    /// Keeps the last bytes of a row at fault, which may be some more than a row may have.
    fn keep_all(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if self.is_whole {
            self.raw.extend_from_slice(bytes);
        }
    }

    pub(super) fn is_in_quote(&self) -> bool {
        self.state == State::Quoted
    }

    /// Whether it is a line end alone.
    pub(super) fn is_blank(&self) -> bool {
        self.cells <= 1 && self.raw.iter().all(|byte| matches!(byte, b'\n' | b'\r')) && self.is_whole
    }

    /// Where the line of the last opening quote ends in what is kept of the row.
    pub(super) fn behind_quote_line(&self) -> usize {
        let quoted = &self.raw[self.quote_at.min(self.raw.len())..];
        match memchr::memchr2(b'\n', b'\r', quoted) {
            None => self.raw.len(),
            Some(at) => {
                let is_both = quoted[at..].starts_with(b"\r\n");
                self.quote_at + at + if is_both { 2 } else { 1 }
            }
        }
    }

    /// Whether lines follow that of the last opening quote.
    pub(super) fn has_lines_behind_quote(&self) -> bool {
        self.is_whole && self.line > self.quote_line
    }

    pub(super) fn finish(mut self, limits: &Limits) -> Result<Cells, BadRow> {
        // The last line of a file need not have an end.
        if !matches!(self.raw.last(), Some(b'\n' | b'\r')) && self.is_whole {
            self.end_cell();
        }
        too_large("a row", self.length, limits.line_bytes_max)?;
        too_large("a row of cells", self.cells as u64, CELLS_MAX)?;
        Ok(Cells { text: self.text, ends: self.ends, raw: self.raw })
    }
}
