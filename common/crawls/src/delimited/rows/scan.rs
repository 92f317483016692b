//! [`Scan`]: the state machine that parses one row, piece by piece.
//!
//! The scan counts every byte of a row. It stores at most the size limit of a row, plus the last piece of a
//! faulty row.

use super::{BadRow, CELLS_MAX, Cells, LINES_MAX, LONG_QUOTE_LINES};
use doppel_streams::{Limits, Reason, too_large};

/// Result of scanning a piece of data.
pub(super) enum Step {
    /// The row continues behind the piece.
    More,
    /// The row is complete.
    Row,
    /// The row is faulty.
    Fault(Reason),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of a cell.
    Begin,
    /// In an unquoted cell.
    Plain,
    /// In a quoted cell.
    Quoted,
    /// Behind a quote in a quoted cell. It closes the cell unless another quote follows.
    Quote,
    /// Behind a quoted cell and a blank.
    Blank,
}

/// A row that is being parsed.
pub(super) struct Scan {
    /// The row as it is in the file, as far as it was stored.
    pub(super) raw: Vec<u8>,
    /// The texts of the cells, one after the other.
    text: Vec<u8>,
    ends: Vec<usize>,
    state: State,
    /// Line of the next byte.
    pub(super) line: u64,
    /// Line of the last opening quote, and its offset in the row.
    pub(super) quote_line: u64,
    quote_at: usize,
    /// Line of the first quote of the row that is open over more than [`LONG_QUOTE_LINES`] lines.
    pub(super) long_quote: Option<u64>,
    /// Number of bytes and cells of the row, including those that were not stored.
    pub(super) length: u64,
    cells: usize,
    /// Whether the whole row is stored.
    pub(super) is_whole: bool,
    /// Whether the scan stopped at a fault at the end of a line.
    pub(super) is_at_line_end: bool,
    /// Whether the last byte of a quoted cell is a carriage return. A line feed behind it then begins no
    /// line.
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

    /// Scans `data` up to the end of the row. Returns how many bytes were scanned, and the result.
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
                    self.append_to_cell(&rest[..length]);
                    self.after_return &= length == 0;
                    at += length;
                    match rest.get(length) {
                        None => {}
                        Some(b'"') => {
                            self.state = State::Quote;
                            at += 1;
                        }
                        Some(end) => {
                            self.append_to_cell(&[*end]);
                            at += 1;
                            // A carriage return with a line feed is one line end.
                            self.line += u64::from(*end == b'\r' || !self.after_return);
                            self.after_return = *end == b'\r';
                            let lines = self.line - self.quote_line;
                            if lines > LONG_QUOTE_LINES {
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
                    self.append_to_cell(b"\"");
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
                    self.keep_raw(&data[..at], limits);
                    return (at, Step::Row);
                }
                State::Quote | State::Blank if byte == b' ' => {
                    self.state = State::Blank;
                    at += 1;
                }
                State::Quote | State::Blank => {
                    self.keep_faulty_end(&data[..at]);
                    let escaped = self.state == State::Quote && self.raw.ends_with(b"\\\"");
                    return (at, Step::Fault(Reason::BehindQuote { line: self.quote_line, escaped }));
                }
                State::Begin | State::Plain => {
                    let rest = &data[at..];
                    let length = memchr::memchr3(separator, b'\n', b'\r', rest).unwrap_or(rest.len());
                    self.append_to_cell(&rest[..length]);
                    self.state = State::Plain;
                    at += length;
                }
            }
        }
        if self.is_in_quote() && self.has_lines_behind_quote() && self.is_too_large_with(at, limits) {
            return (at, self.long_quote(data, limits));
        }
        self.keep_raw(data, limits);
        (at, Step::More)
    }

    /// Whether the row exceeds the size limit with this number of further bytes.
    fn is_too_large_with(&self, bytes: usize, limits: &Limits) -> bool {
        self.length + bytes as u64 > limits.line_bytes_max as u64
    }

    /// Creates the fault of a quote that is open for too long. `last` are the last bytes of the row.
    fn long_quote(&mut self, last: &[u8], limits: &Limits) -> Step {
        self.keep_faulty_end(last);
        let (line, bytes) = (self.quote_line, limits.line_bytes_max);
        Step::Fault(Reason::LongQuote { line, lines: LINES_MAX, bytes })
    }

    /// Appends bytes to the current cell.
    fn append_to_cell(&mut self, bytes: &[u8]) {
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

    /// Counts bytes of the row, and stores them unless the row is too large.
    pub(super) fn keep_raw(&mut self, bytes: &[u8], limits: &Limits) {
        self.length += bytes.len() as u64;
        self.is_whole &= self.length <= limits.line_bytes_max as u64 && self.cells <= CELLS_MAX;
        if self.is_whole {
            self.raw.extend_from_slice(bytes);
        }
    }

    /// Counts and stores the last bytes of a faulty row. They may exceed the size limit of a row.
    fn keep_faulty_end(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if self.is_whole {
            self.raw.extend_from_slice(bytes);
        }
    }

    pub(super) fn is_in_quote(&self) -> bool {
        self.state == State::Quoted
    }

    /// Whether the row consists of a line end only.
    pub(super) fn is_blank(&self) -> bool {
        self.cells <= 1 && self.raw.iter().all(|byte| matches!(byte, b'\n' | b'\r')) && self.is_whole
    }

    /// End of the line with the last opening quote, as an offset in the stored row.
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

    /// Whether the row continues behind the line with the last opening quote.
    pub(super) fn has_lines_behind_quote(&self) -> bool {
        self.is_whole && self.line > self.quote_line
    }

    pub(super) fn finish(mut self, limits: &Limits) -> Result<Cells, BadRow> {
        // The last line of a file may lack a line end.
        if !matches!(self.raw.last(), Some(b'\n' | b'\r')) && self.is_whole {
            self.end_cell();
        }
        too_large("a row", self.length, limits.line_bytes_max)?;
        too_large("a row of cells", self.cells as u64, CELLS_MAX)?;
        Ok(Cells { text: self.text, ends: self.ends, raw: self.raw })
    }
}
