//! [`Rows`]: splits a stream of bytes into rows and cells by RFC 4180. A quoted cell may contain separators,
//! line ends and doubled quotes. A quote inside an unquoted cell is an ordinary character. Line ends are line
//! feeds, carriage returns, or both.
//!
//! A stray quote must cost one row, not all rows up to the next quote. The reader recognises two faults:
//!
//! - Text other than blanks behind the closing quote of a cell. It is never taken as more of the cell.
//! - A quote that is not closed within [`LINES_MAX`] lines, or within the size limit of a row, or before the
//!   end of the file. It is taken for a stray quote.
//!
//! In both cases, the reader reports the row up to the end of the line with the opening quote as bad. It
//! continues with the line after that.

mod scan;

use std::borrow::Cow;

use crate::charset;
use doppel_streams::{Limits, Reason, Stream};
use scan::{Scan, Step};

/// Largest number of cells in a row.
pub(super) const CELLS_MAX: usize = 16 << 10;

/// Largest number of lines in a cell.
pub(super) const LINES_MAX: u64 = 100_000;

/// The reader reports a quoted cell that spans more lines than this. Its opening quote may be a stray one
/// that a later row has closed.
pub(super) const LONG_QUOTE_LINES: u64 = 1_000;

/// A row with its cells.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// The texts of all cells, one after the other, without quotes.
    text: Vec<u8>,
    /// End of each cell in `text`.
    ends: Vec<usize>,
    /// The row as it is in the file.
    raw: Vec<u8>,
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self, cell: usize) -> &[u8] {
        let begin = if cell == 0 { 0 } else { self.ends[cell - 1] };
        &self.text[begin..self.ends[cell]]
    }

    /// The row as it is in the file, with its line end.
    pub(super) fn row(&self) -> &[u8] {
        &self.raw
    }

    /// The row as it is in the file, without its line end.
    pub(super) fn line(&self) -> &[u8] {
        without_end(&self.raw)
    }

    pub(super) fn text(&self, cell: usize) -> Cow<'_, str> {
        let bytes = self.bytes(cell);
        match str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => charset::decode(bytes, None).into(),
        }
    }
}

/// A row that cannot be read.
#[derive(Debug)]
pub(super) struct BadRow {
    pub(super) reason: Reason,
    /// The row as it is in the file, up to the end of the faulty line. `None` if it is too long to keep.
    pub(super) line: Option<Vec<u8>>,
}

impl From<Reason> for BadRow {
    fn from(reason: Reason) -> Self {
        Self { reason, line: None }
    }
}

/// Reads the rows of a stream, each up to a size limit.
pub(super) struct Rows {
    pub(super) stream: Stream,
    pub(super) separator: u8,
    limits: Limits,
    /// Bytes to read again before the next bytes of the stream, and the index of the first unread one.
    pushed_back: (Vec<u8>, usize),
    /// Line of the next byte, counted from 1.
    line: u64,
    ended: bool,
    pub(super) broke_off: bool,
    /// Line of the first quoted cell so far that spans more than [`LONG_QUOTE_LINES`] lines.
    pub(super) long_quote: Option<u64>,
}

impl Rows {
    /// Creates a reader of a stream whose next byte is in this line.
    pub(super) fn new(stream: Stream, separator: u8, limits: Limits, line: u64) -> Self {
        Self {
            stream,
            separator,
            limits,
            pushed_back: (Vec::new(), 0),
            line,
            ended: false,
            broke_off: false,
            long_quote: None,
        }
    }

    /// Stops reading, because the caller cannot use the file.
    pub(super) fn break_off(&mut self) {
        (self.ended, self.broke_off) = (true, true);
    }

    /// Returns the next row. Skips blank lines.
    pub(super) fn next(&mut self) -> Option<Result<Cells, BadRow>> {
        while !self.ended {
            let mut scan = Scan::new(self.line);
            let end = loop {
                let (separator, limits) = (self.separator, self.limits);
                let data = match self.data() {
                    Ok([]) => break self.end(&scan, None),
                    Ok(data) => data,
                    Err(damage) => break self.end(&scan, Some(damage)),
                };
                let (read, step) = scan.read(data, separator, &limits);
                self.consume(read);
                match step {
                    Step::More => {}
                    Step::Row => {
                        self.take_line_feed(&mut scan);
                        break RowEnd::Row;
                    }
                    Step::Fault(reason) => break RowEnd::Fault(reason),
                }
            };
            match end {
                RowEnd::Row if scan.is_blank() => self.line = scan.line,
                RowEnd::Row => {
                    self.line = scan.line;
                    self.long_quote = self.long_quote.or(scan.long_quote);
                    return Some(scan.finish(&self.limits));
                }
                RowEnd::Fault(reason) => return Some(Err(self.resume_behind_quote(&scan, reason))),
                RowEnd::Damage(damage) => {
                    self.break_off();
                    return Some(Err(damage.into()));
                }
                RowEnd::File => self.ended = true,
            }
        }
        None
    }

    /// Decides how the end of the file, or damage, ends the current row.
    fn end(&mut self, scan: &Scan, damage: Option<Reason>) -> RowEnd {
        let is_torn = !matches!(scan.raw.last(), None | Some(b'\n' | b'\r'));
        match damage {
            // Ignore damage here. A later read meets it again and reports it.
            _ if scan.is_in_quote() && scan.has_lines_behind_quote() => {
                self.broke_off |= is_torn && damage.is_none();
                RowEnd::Fault(Reason::OpenQuote { line: scan.quote_line })
            }
            Some(damage) => RowEnd::Damage(damage),
            None if scan.is_in_quote() && scan.is_whole => {
                (self.ended, self.broke_off) = (true, true);
                RowEnd::Fault(Reason::OpenQuote { line: scan.quote_line })
            }
            None if scan.length == 0 => RowEnd::File,
            None => {
                self.ended = true;
                RowEnd::Row
            }
        }
    }

    /// Continues at the line after the opening quote of a faulty row, of which further lines may already be
    /// read. Returns the bad row up to the end of the quote's line.
    fn resume_behind_quote(&mut self, scan: &Scan, reason: Reason) -> BadRow {
        self.line = scan.quote_line + 1;
        if !scan.is_whole {
            if !scan.is_at_line_end {
                self.skip_line(&mut Vec::new());
            }
            return reason.into();
        }
        let (row, rest) = scan.raw.split_at(scan.behind_quote_line());
        let mut line = row.to_vec();
        if matches!(row.last(), Some(b'\n' | b'\r')) {
            self.push_back(rest);
        } else {
            self.skip_line(&mut line);
        }
        line.truncate(without_end(&line).len());
        BadRow { reason, line: (line.len() <= self.limits.line_bytes_max).then_some(line) }
    }

    /// Pushes back the bytes that were read last, so that they are read again.
    fn push_back(&mut self, bytes: &[u8]) {
        let (pushed_back, next) = &mut self.pushed_back;
        if !pushed_back.is_empty() && bytes.len() <= *next {
            // The bytes are still in the buffer.
            *next -= bytes.len();
        } else {
            let behind = pushed_back.split_off((*next).min(pushed_back.len()));
            *pushed_back = [bytes, &behind].concat();
            *next = 0;
        }
    }

    /// Skips the rest of a line and appends it to `line`, up to the size limit of a row. Ignores damage,
    /// because a later read meets it again.
    fn skip_line(&mut self, line: &mut Vec<u8>) {
        let max = self.limits.line_bytes_max;
        while let Ok(data) = self.data() {
            if data.is_empty() {
                return;
            }
            let end = memchr::memchr2(b'\n', b'\r', data);
            let is_return = end.is_some_and(|at| data[at] == b'\r');
            let bytes = end.map_or(data.len(), |at| at + 1);
            if line.len() <= max {
                line.extend_from_slice(&data[..bytes]);
            }
            self.consume(bytes);
            if end.is_some() {
                if is_return && self.data().is_ok_and(|next| next.starts_with(b"\n")) {
                    self.consume(1);
                }
                return;
            }
        }
    }

    /// Consumes the line feed behind a row that ends with a carriage return.
    fn take_line_feed(&mut self, scan: &mut Scan) {
        // Ignore damage here. A later read meets it again and reports it.
        if scan.ends_with_return && self.data().is_ok_and(|next| next.starts_with(b"\n")) {
            self.consume(1);
            scan.keep_raw(b"\n", &self.limits);
        }
    }

    /// Returns the next bytes. Empty at the end of the file.
    fn data(&mut self) -> Result<&[u8], Reason> {
        if self.pushed_back.1 < self.pushed_back.0.len() {
            return Ok(&self.pushed_back.0[self.pushed_back.1..]);
        }
        while self.stream.data()?.is_empty() {
            if !self.stream.next_member()? {
                return Ok(&[]);
            }
        }
        self.stream.data()
    }

    fn consume(&mut self, bytes: usize) {
        let (pushed_back, next) = &mut self.pushed_back;
        if *next < pushed_back.len() {
            *next += bytes;
            return;
        }
        pushed_back.clear();
        *next = 0;
        self.stream.consume(bytes);
    }
}

/// How the reading of a row ends.
enum RowEnd {
    Row,
    Fault(Reason),
    Damage(Reason),
    /// The file ends before a row begins.
    File,
}

fn without_end(row: &[u8]) -> &[u8] {
    let end = row.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    &row[..row.len() - end]
}
