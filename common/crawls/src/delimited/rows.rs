//! The rows of a table in a stream of bytes, by RFC 4180: cells in quotes may have separators, line ends and doubled quotes.
//!
//! Two faults cost one row, and not all rows up to the next quote:
//! - text behind the closing quote of a cell, other than blanks, is not taken for more of the cell;
//! - a quote that is not closed within [`LINES_MAX`] lines, or before the limit of a row or the end of the file, is taken for a stray one.
//!
//! In both cases the row is told as bad with the line of the opening quote, and reading goes on at the line behind that.
//!
//! A quote inside a cell that does not begin with one is a character like any other. Line ends are line feeds, carriage returns or both.

mod scan;

use std::borrow::Cow;

use crate::charset;
use crate::error::Reason;
use crate::limits::Limits;
use crate::stream::Stream;
use scan::{Scan, Step};

/// The most cells that a row may have.
pub(super) const CELLS_MAX: usize = 16 << 10;

/// How many lines a cell may be over.
pub(super) const LINES_MAX: u64 = 100_000;

/// A cell over more lines is told, because its quote may be a stray one that a later row has closed.
pub(super) const LINES_TOLD: u64 = 1_000;

/// The cells of a row.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// All cells, one after the other.
    text: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// The row as it was.
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

    /// The row as it was, with its line end.
    pub(super) fn row(&self) -> &[u8] {
        &self.raw
    }

    /// The same without the line end.
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
    /// The row as it was, up to the end of the line at fault, where it is known.
    pub(super) line: Option<Vec<u8>>,
}

impl From<Reason> for BadRow {
    fn from(reason: Reason) -> Self {
        Self { reason, line: None }
    }
}

/// The rows of a stream, each up to its limit.
pub(super) struct Rows {
    pub(super) stream: Stream,
    pub(super) separator: u8,
    limits: Limits,
    /// Bytes that are read again before those of the stream, and the place of the next one.
    again: (Vec<u8>, usize),
    /// The line of the next byte, counted from 1.
    line: u64,
    ended: bool,
    pub(super) broke_off: bool,
    /// The line of the first quote that was closed after more than [`LINES_TOLD`] lines.
    pub(super) long_quote: Option<u64>,
}

impl Rows {
    /// The rows of a stream whose next byte is in this line.
    pub(super) fn new(stream: Stream, separator: u8, limits: Limits, line: u64) -> Self {
        Self {
            stream,
            separator,
            limits,
            again: (Vec::new(), 0),
            line,
            ended: false,
            broke_off: false,
            long_quote: None,
        }
    }

    /// Ends here, because nothing can be read.
    pub(super) fn break_off(&mut self) {
        (self.ended, self.broke_off) = (true, true);
    }

    /// The next row. Blank lines are passed over.
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
                        break End::Row;
                    }
                    Step::Fault(reason) => break End::Fault(reason),
                }
            };
            match end {
                End::Row if scan.is_blank() => self.line = scan.line,
                End::Row => {
                    self.line = scan.line;
                    self.long_quote = self.long_quote.or(scan.long_quote);
                    return Some(scan.finish(&self.limits));
                }
                End::Fault(reason) => return Some(Err(self.go_behind(&scan, reason))),
                End::Damage(damage) => {
                    self.break_off();
                    return Some(Err(damage.into()));
                }
                End::File => self.ended = true,
            }
        }
        None
    }

    /// What the end of the file, or damage, is for the row that is read.
    fn end(&mut self, scan: &Scan, damage: Option<Reason>) -> End {
        let is_torn = !matches!(scan.raw.last(), None | Some(b'\n' | b'\r'));
        match damage {
            // Damage is met again, and told then.
            _ if scan.is_in_quote() && scan.has_lines_behind_quote() => {
                self.broke_off |= is_torn && damage.is_none();
                End::Fault(Reason::OpenQuote { line: scan.quote_line })
            }
            Some(damage) => End::Damage(damage),
            None if scan.is_in_quote() && scan.is_whole => {
                (self.ended, self.broke_off) = (true, true);
                End::Fault(Reason::OpenQuote { line: scan.quote_line })
            }
            None if scan.length == 0 => End::File,
            None => {
                self.ended = true;
                End::Row
            }
        }
    }

    /// Goes to the line behind that of a quote, of which some may have been read.
    fn go_behind(&mut self, scan: &Scan, reason: Reason) -> BadRow {
        self.line = scan.quote_line + 1;
        if !scan.is_whole {
            if !scan.is_at_line_end {
                self.pass_line(&mut Vec::new());
            }
            return reason.into();
        }
        let (row, rest) = scan.raw.split_at(scan.behind_quote_line());
        let mut line = row.to_vec();
        if matches!(row.last(), Some(b'\n' | b'\r')) {
            self.read_again(rest);
        } else {
            self.pass_line(&mut line);
        }
        line.truncate(without_end(&line).len());
        BadRow { reason, line: (line.len() <= self.limits.line_bytes_max).then_some(line) }
    }

    /// Has bytes be read again that were read last.
    fn read_again(&mut self, bytes: &[u8]) {
        let (again, next) = &mut self.again;
        if !again.is_empty() && bytes.len() <= *next {
            // They are there still.
            *next -= bytes.len();
        } else {
            let behind = again.split_off((*next).min(again.len()));
            *again = [bytes, &behind].concat();
            *next = 0;
        }
    }

    /// Passes over what is left of a line, and adds as much of it to what is there as a row may have. Damage is met again.
    fn pass_line(&mut self, line: &mut Vec<u8>) {
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

    /// Takes the line feed of a row that ends with a carriage return.
    fn take_line_feed(&mut self, scan: &mut Scan) {
        // Damage is met again, and told then.
        if scan.ends_with_return && self.data().is_ok_and(|next| next.starts_with(b"\n")) {
            self.consume(1);
            scan.keep(b"\n", &self.limits);
        }
    }

    /// The next bytes; none at the end of the file.
    fn data(&mut self) -> Result<&[u8], Reason> {
        if self.again.1 < self.again.0.len() {
            return Ok(&self.again.0[self.again.1..]);
        }
        while self.stream.data()?.is_empty() {
            if !self.stream.next_member()? {
                return Ok(&[]);
            }
        }
        self.stream.data()
    }

    fn consume(&mut self, bytes: usize) {
        let (again, next) = &mut self.again;
        if *next < again.len() {
            *next += bytes;
            return;
        }
        again.clear();
        *next = 0;
        self.stream.consume(bytes);
    }
}

/// How the reading of a row ends.
enum End {
    Row,
    Fault(Reason),
    Damage(Reason),
    /// There is no row.
    File,
}

fn without_end(row: &[u8]) -> &[u8] {
    let end = row.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    &row[..row.len() - end]
}
