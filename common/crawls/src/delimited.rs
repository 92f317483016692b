//! Reads pages from CSV and TSV (RFC 4180): a row of names, then one record per row.
//!
//! The reader takes the separator of the cells from the first of these that exists:
//!
//! 1. the user's choice;
//! 2. a first line that declares it, such as `sep=;`;
//! 3. the format, which is a tab for TSV;
//! 4. the most frequent of [`SEPARATORS`] in the row of names.
//!
//! Quoted cells may contain line ends and doubled quotes. The reader inspects the first rows to find which
//! column holds what. It never guesses types: every cell is text.

mod rows;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::Item;
use super::format::BYTE_ORDER_MARK;
use super::record::{Guess, IdRows, Records, Row, SAMPLE_BYTES, SAMPLE_RECORDS, Setup, Value, id_of};
use doppel_streams::{InputError, InputPosition, Reason, Stream};
use rows::{BadRow, Cells, Rows};

/// The separators that are recognised. If several are equally frequent, the first one wins.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// How much of the row of names is inspected for the separator, in bytes.
const NAMES_INSPECTED_BYTES: usize = 8 << 10;

/// Reader of the pages of a CSV or TSV file. Blank lines are ignored and do not count as rows.
pub(super) struct Delimited {
    path: Arc<Path>,
    setup: Setup,
    rows: Rows,
    names: Vec<String>,
    /// Everything up to the end of the row of names, as it is in the file, including the byte order mark.
    head: Vec<u8>,
    records: Option<Records>,
    /// The sampled first rows that were not returned yet.
    sample: VecDeque<Result<Cells, BadRow>>,
    /// The last row that was returned, and its number.
    last_row: Cells,
    number: u64,
}

impl Delimited {
    /// Opens a table and reads its row of names. `separator` is the separator that the format implies, if
    /// any.
    ///
    /// # Errors
    /// If the row of names cannot be read, or is a comment.
    pub(super) fn new(
        path: &Arc<Path>,
        mut stream: Stream,
        separator: Option<u8>,
        setup: Setup,
    ) -> Result<Self, Reason> {
        if stream.data()?.is_empty() {
            stream.next_member()?;
        }
        let beginning = stream.peek(NAMES_INSPECTED_BYTES)?;
        let mark = if beginning.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let (declared, declaration_end) = match declared_separator(&beginning[mark..]) {
            Some((separator, length)) => (Some(separator), mark + length),
            None => (None, mark),
        };
        let separator = setup.options.separator.or(declared).or(separator);
        let separator = separator.unwrap_or_else(|| most_frequent_separator(&beginning[declaration_end..]));
        let mut head = beginning[..declaration_end].to_vec();
        stream.consume(declaration_end);
        let mut rows =
            Rows::new(stream, separator, setup.options.limits, if declared.is_some() { 2 } else { 1 });
        let mut sample = VecDeque::new();
        let names = match rows.next() {
            Some(Ok(names)) => {
                if names.row().starts_with(b"#") {
                    sample.extend(rows.next());
                    if is_comment(&names, sample.front().and_then(|row| row.as_ref().ok())) {
                        return Err(Reason::Comments);
                    }
                }
                head.extend_from_slice(names.row());
                (0..names.len()).map(|cell| names.text(cell).into_owned()).collect()
            }
            Some(Err(bad)) => return Err(bad.reason),
            None => Vec::new(),
        };
        Ok(Self {
            path: Arc::clone(path),
            setup,
            rows,
            names,
            head,
            records: None,
            sample,
            last_row: Cells::default(),
            number: 0,
        })
    }

    /// The row of names as it is in the file, with its line end, the byte order mark, and the line that
    /// declares the separator.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Names of the columns.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Separator of the cells.
    pub(super) fn separator(&self) -> u8 {
        self.rows.separator
    }

    /// The row of the last item as it is in the file, with its line end.
    pub(super) fn original(&self) -> &[u8] {
        self.last_row.row()
    }

    pub(super) fn broke_off(&self) -> bool {
        self.rows.broke_off
    }

    /// Position of the last item: its row.
    pub(super) fn input_position(&self) -> InputPosition {
        InputPosition::Row(self.number)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.rows.stream.bytes_read()
    }

    /// Line of the first quoted cell so far that spans more than 1,000 lines.
    pub(super) fn long_quote(&self) -> Option<u64> {
        self.rows.long_quote
    }

    /// The record mapper. `None` before the first rows were inspected.
    pub(super) fn records(&self) -> Option<&Records> {
        self.records.as_ref()
    }

    /// Samples the first rows and creates the record mapper for their columns.
    fn read_sample(&mut self) -> Result<Records, Reason> {
        let mut guess = Guess::new(&self.setup.options);
        let mut pages = Records::in_page_form(&self.setup.options);
        let mut bytes = 0;
        // If the row of names looked like a comment, one row was already read after it.
        let mut read_ahead = std::mem::take(&mut self.sample);
        while self.sample.len() < SAMPLE_RECORDS && bytes < SAMPLE_BYTES {
            let Some(row) = read_ahead.pop_front().or_else(|| self.rows.next()) else { break };
            if let Ok(cells) = &row {
                bytes += cells.row().len();
                if cells.len() == self.names.len() {
                    let row = || NamedCells { names: &self.names, cells };
                    guess.note(&mut row(), || pages.reads(&mut row()));
                }
            }
            self.sample.push_back(row);
        }
        let map = guess.finish().with_other_separator(self.other_separator());
        Records::new(map, &self.path, &self.setup)
    }

    /// A separator that occurs in the only column name but differs from the separator in use. A hint that the
    /// wrong separator is in use.
    fn other_separator(&self) -> Option<char> {
        let [name] = &*self.names else { return None };
        let other = most_frequent_separator(name.as_bytes());
        (other != self.separator() && name.contains(char::from(other))).then(|| char::from(other))
    }
}

impl Iterator for Delimited {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.records.is_none() {
            let records = match self.read_sample() {
                Ok(records) => records,
                Err(reason) => {
                    self.rows.break_off();
                    self.sample.clear();
                    return Some(Item::Bad(InputError::new(&self.path, InputPosition::File, reason)));
                }
            };
            let map = records.map().clone();
            self.records = Some(records);
            if !map.is_page_form() {
                return Some(Item::Fields(Arc::new(map)));
            }
        }
        let records = self.records.as_mut()?;
        let row = self.sample.pop_front().or_else(|| self.rows.next())?;
        self.number += 1;
        let position = InputPosition::Row(self.number);
        let cells = match row {
            Ok(cells) => {
                self.last_row = cells;
                &self.last_row
            }
            Err(BadRow { reason, line }) => {
                let line = line.map(Vec::into_boxed_slice);
                return Some(Item::Bad(InputError { line, ..InputError::new(&self.path, position, reason) }));
            }
        };
        let reason = if cells.len() == self.names.len() {
            match records.item(&mut NamedCells { names: &self.names, cells }, self.number) {
                Ok(item) => return Some(item),
                Err(reason) => reason,
            }
        } else {
            Reason::Cells { cells: cells.len(), names: self.names.len() }
        };
        let line = Some(cells.line().into());
        Some(Item::Bad(InputError { line, ..InputError::new(&self.path, position, reason) }))
    }
}

impl IdRows for Delimited {
    fn next_id(&mut self, path: &[String]) -> Option<(u64, Option<String>)> {
        let row = self.sample.pop_front().or_else(|| self.rows.next())?;
        self.number += 1;
        let cells = row.ok().filter(|cells| cells.len() == self.names.len());
        let id = cells.and_then(|cells| {
            let mut row = NamedCells { names: &self.names, cells: &cells };
            id_of(path.first().and_then(|path| row.take(path)))
        });
        Some((self.number, id))
    }
}

/// Parses a line that declares the separator, such as `sep=;`. Returns the separator and the length of the
/// line with its end.
fn declared_separator(beginning: &[u8]) -> Option<(u8, usize)> {
    let end = memchr::memchr2(b'\n', b'\r', beginning)?;
    let line = beginning[..end].trim_ascii();
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let name = line.get(..4).filter(|name| name.eq_ignore_ascii_case(b"sep="))?;
    let length = if beginning[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
    // The trimming above has removed a tab.
    let separator = match &line[name.len()..] {
        [] if beginning[..end].ends_with(b"\t") => b'\t',
        [separator] if is_separator(*separator) => *separator,
        b"\\t" => b'\t',
        _ => return None,
    };
    Some((separator, length))
}

/// Whether a byte may separate cells. Any ASCII character may, except quotes, line ends and NUL.
#[must_use]
pub fn is_separator(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | 0)
}

/// Whether the first row, which begins with `#`, is a comment instead of a row of names. A comment is a
/// sentence, or the next row is a comment too, or the next row has another number of cells.
fn is_comment(first: &Cells, second: Option<&Cells>) -> bool {
    let is_sentence = first.len() == 1 && first.line().get(1).is_some_and(u8::is_ascii_whitespace);
    is_sentence || second.is_some_and(|second| second.row().starts_with(b"#") || second.len() != first.len())
}

/// Returns the separator that occurs most often in the first line, outside quotes.
fn most_frequent_separator(beginning: &[u8]) -> u8 {
    let mut quoted = false;
    let mut numbers = [0; SEPARATORS.len()];
    for byte in beginning {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            _ if quoted => {}
            byte => {
                if let Some(which) = SEPARATORS.iter().position(|separator| separator == byte) {
                    numbers[which] += 1;
                }
            }
        }
    }
    let most = numbers.iter().max().copied().unwrap_or_default();
    let which = numbers.iter().position(|number| *number == most).unwrap_or_default();
    SEPARATORS[which]
}

/// A row together with the names of its columns.
struct NamedCells<'a> {
    names: &'a [String],
    cells: &'a Cells,
}

impl<'a> Row<'a> for NamedCells<'a> {
    fn take(&mut self, path: &str) -> Option<Value<'a>> {
        let cell = self.names.iter().position(|name| name == path)?;
        // An empty cell stands for the null of other formats.
        Some(Value::Text(self.cells.text(cell))).filter(|value| !value.is_empty())
    }

    fn names(&self, each: &mut dyn FnMut(&str)) {
        self.names.iter().for_each(|name| each(name));
    }

    fn has_types(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
