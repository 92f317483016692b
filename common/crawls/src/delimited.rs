//! Reads pages from CSV and TSV (RFC 4180): a row of names, and then a record a row. Cells are separated by commas, semicolons or
//! tabs, whichever the row of names has most of; in quotes, they may have line ends and doubled quotes.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::charset;
use super::error::{InputError, Place, Reason};
use super::format::BYTE_ORDER_MARK;
use super::limits::{Limits, too_large};
use super::record::{Guess, Ignored, RecordFile, Records, Row, SAMPLE_BYTES, SAMPLE_RECORDS, Value};
use super::stream::Stream;
use super::{InputOptions, Item};

/// The separators that are recognised; the first wins where they are as many.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// The most cells that a row may have.
const CELLS_MAX: usize = 16 << 10;

/// How much of the row of names is looked at for the separator, in bytes.
const NAMES_LOOKED_AT: usize = 8 << 10;

/// The pages of a CSV file. Blank lines are ignored and do not count.
pub(super) struct Delimited {
    path: Arc<Path>,
    file: RecordFile,
    options: InputOptions,
    rows: Rows,
    names: Vec<String>,
    /// The row of names as it is in the file, with the byte order mark.
    head: Vec<u8>,
    records: Option<Records>,
    /// The first rows, which were read ahead.
    sample: VecDeque<Result<Cells, Reason>>,
    /// The last row that was handed over, and its number.
    last: Cells,
    number: u64,
}

impl Delimited {
    /// A file with this separator, or with the one that its first row has most of.
    pub(super) fn new(
        path: &Arc<Path>,
        mut stream: Stream,
        separator: Option<u8>,
        (file, options): (RecordFile, InputOptions),
    ) -> Result<Self, Reason> {
        if stream.data()?.is_empty() {
            stream.next_member()?;
        }
        let beginning = stream.peek(NAMES_LOOKED_AT)?;
        let mark = if beginning.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let separator = separator.unwrap_or_else(|| separator_of(&beginning[mark..]));
        stream.consume(mark);
        let mut rows = Rows::new(stream, separator, options.limits);
        let mut head = BYTE_ORDER_MARK[..mark].to_vec();
        let names = match rows.next() {
            Some(Ok(names)) => {
                head.extend_from_slice(names.row());
                (0..names.len()).map(|cell| names.text(cell).into_owned()).collect()
            }
            Some(Err(reason)) => return Err(reason),
            None => Vec::new(),
        };
        Ok(Self {
            path: Arc::clone(path),
            file,
            options,
            rows,
            names,
            head,
            records: None,
            sample: VecDeque::new(),
            last: Cells::default(),
            number: 0,
        })
    }

    /// The row of names as it is in the file, with its line end and the byte order mark in front.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The separator of the cells.
    pub(super) fn separator(&self) -> u8 {
        self.rows.separator
    }

    /// The row of the last item as it is in the file, with its line end.
    pub(super) fn original(&self) -> &[u8] {
        self.last.row()
    }

    pub(super) fn broke_off(&self) -> bool {
        self.rows.broke_off
    }

    /// The row of the last item.
    pub(super) fn place(&self) -> Place {
        Place::Row(self.number)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.rows.stream.bytes_read()
    }

    pub(super) fn ignored(&self) -> Ignored {
        self.records.as_ref().map(|records| records.ignored().clone()).unwrap_or_default()
    }

    pub(super) fn unremembered_ids(&self) -> u64 {
        self.records.as_ref().map_or(0, Records::unremembered_ids)
    }

    /// Reads the first rows, to see which column holds what.
    fn look(&mut self) -> Records {
        let mut guess = Guess::new(&self.options);
        let mut pages = Records::in_page_form(&self.options);
        let mut bytes = 0;
        while self.sample.len() < SAMPLE_RECORDS && bytes < SAMPLE_BYTES {
            let Some(row) = self.rows.next() else { break };
            if let Ok(cells) = &row {
                bytes += cells.raw.len();
                if cells.len() == self.names.len() {
                    let row = || NamedCells { names: &self.names, cells };
                    guess.note(&mut row(), || pages.reads(&mut row()));
                }
            }
            self.sample.push_back(row);
        }
        Records::new(guess.finish(), self.file.clone(), &self.options)
    }
}

impl Iterator for Delimited {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.records.is_none() {
            let records = self.look();
            let map = records.map().clone();
            self.records = Some(records);
            if !map.is_page_form() || self.options.each_row {
                return Some(Item::Fields(Arc::new(map)));
            }
        }
        let records = self.records.as_mut()?;
        let row = self.sample.pop_front().or_else(|| self.rows.next())?;
        self.number += 1;
        let place = Place::Row(self.number);
        let cells = match row {
            Ok(cells) => {
                self.last = cells;
                &self.last
            }
            Err(reason) => return Some(Item::Bad(InputError::new(&self.path, place, reason))),
        };
        let reason = if cells.len() == self.names.len() {
            match records.item(&mut NamedCells { names: &self.names, cells }, self.number) {
                Ok(item) => return Some(item),
                Err(reason) => reason,
            }
        } else {
            Reason::Cells { cells: cells.len(), names: self.names.len() }
        };
        let line = Some(cells.line().to_owned());
        Some(Item::Bad(InputError { line, ..InputError::new(&self.path, place, reason) }))
    }
}

/// The separator that the first line has most of, outside quotes.
fn separator_of(beginning: &[u8]) -> u8 {
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

/// The cells of a row.
#[derive(Debug, Default)]
struct Cells {
    /// All cells, one after the other.
    text: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// The row as it was.
    raw: Vec<u8>,
}

impl Cells {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self, cell: usize) -> &[u8] {
        let begin = if cell == 0 { 0 } else { self.ends[cell - 1] };
        &self.text[begin..self.ends[cell]]
    }

    /// The row as it was, with its line end. Blank lines in front of it are read with it, and are left out.
    fn row(&self) -> &[u8] {
        let begin = self.raw.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        &self.raw[begin..]
    }

    /// The same without the line end.
    fn line(&self) -> &[u8] {
        let row = self.row();
        let end = row.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        &row[..row.len() - end]
    }

    fn text(&self, cell: usize) -> std::borrow::Cow<'_, str> {
        let bytes = self.bytes(cell);
        match str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => charset::decode(bytes, None).into(),
        }
    }
}

/// A row with the names of its columns.
struct NamedCells<'a> {
    names: &'a [String],
    cells: &'a Cells,
}

impl<'a> Row<'a> for NamedCells<'a> {
    fn take(&mut self, path: &str) -> Option<Value<'a>> {
        let cell = self.names.iter().position(|name| name == path)?;
        // Other formats have null where this one has nothing.
        Some(Value::Text(self.cells.text(cell))).filter(|value| !value.is_empty())
    }

    fn names(&self, each: &mut dyn FnMut(&str)) {
        self.names.iter().for_each(|name| each(name));
    }

    fn has_types(&self) -> bool {
        false
    }
}

/// The rows of a stream, each up to its limit.
struct Rows {
    stream: Stream,
    separator: u8,
    parser: Reader,
    limits: Limits,
    /// Buffers of the parser.
    text: Box<[u8]>,
    ends: Box<[usize]>,
    ended: bool,
    broke_off: bool,
}

/// How many bytes and cells the parser gives at a time.
const TEXT_PIECE: usize = 64 << 10;
const ENDS_PIECE: usize = 256;

impl Rows {
    fn new(stream: Stream, separator: u8, limits: Limits) -> Self {
        let parser = ReaderBuilder::new().delimiter(separator).build();
        let text = vec![0; TEXT_PIECE].into_boxed_slice();
        let ends = vec![0; ENDS_PIECE].into_boxed_slice();
        Self { stream, separator, parser, limits, text, ends, ended: false, broke_off: false }
    }

    /// The next row; an error where it is too large, or damage ends the file.
    fn next(&mut self) -> Option<Result<Cells, Reason>> {
        let mut cells = Cells::default();
        // The cells and all bytes of the row, also of what is not kept.
        let (mut number, mut length) = (0_usize, 0_u64);
        while !self.ended {
            let data = match self.stream.data() {
                Ok([]) => match self.stream.next_member() {
                    Ok(true) => continue,
                    Ok(false) => &[],
                    Err(damage) => return self.break_off(damage),
                },
                Ok(data) => data,
                Err(damage) => return self.break_off(damage),
            };
            let (result, read, text, ends) = self.parser.read_record(data, &mut self.text, &mut self.ends);
            length += read as u64;
            number += ends;
            let fits = length <= self.limits.line_bytes_max as u64 && number <= CELLS_MAX;
            if fits {
                cells.raw.extend_from_slice(&data[..read]);
                cells.text.extend_from_slice(&self.text[..text]);
                cells.ends.extend_from_slice(&self.ends[..ends]);
            }
            self.stream.consume(read);
            match result {
                ReadRecordResult::InputEmpty
                | ReadRecordResult::OutputFull
                | ReadRecordResult::OutputEndsFull => {}
                ReadRecordResult::Record if fits => {
                    self.take_line_feed(&mut cells.raw);
                    return Some(Ok(cells));
                }
                ReadRecordResult::Record => {
                    let large = too_large("a row", length, self.limits.line_bytes_max);
                    let many = too_large("a row of cells", number as u64, CELLS_MAX);
                    return large.and(many).err().map(Err);
                }
                ReadRecordResult::End => self.ended = true,
            }
        }
        None
    }

    /// Takes the line feed of a row that ends with a carriage return. The parser would take it with the row behind it.
    fn take_line_feed(&mut self, raw: &mut Vec<u8>) {
        if !raw.ends_with(b"\r") {
            return;
        }
        // Damage is met again, and told then.
        while self.stream.data().is_ok_and(<[u8]>::is_empty) && self.stream.next_member().unwrap_or(false) {}
        if self.stream.data().is_ok_and(|next| next.starts_with(b"\n")) {
            raw.push(b'\n');
            self.stream.consume(1);
        }
    }

    /// Ends with damage. What came before it of the last row is not told: its last cell may be cut.
    fn break_off(&mut self, damage: Reason) -> Option<Result<Cells, Reason>> {
        (self.ended, self.broke_off) = (true, true);
        Some(Err(damage))
    }
}

#[cfg(test)]
mod tests;
