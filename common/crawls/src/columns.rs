//! Reads pages from files that store their records by columns: Parquet files, Arrow files and Arrow streams.
//!
//! [`Rows`] reads a file in batches of bounded size and makes an item of each row. It first reads a sample of
//! the rows, from which [`Guess`] finds out which column holds which field. Then it decodes only the columns
//! that it needs. If rows are to be copied ([`InputOptions::all_columns`](crate::InputOptions::all_columns)),
//! it decodes all columns.
//!
//! The files are untrusted. A reader must never take memory because of a size or a count that a file merely
//! declares, so it checks the numbers first. All decoded bytes count towards the limit on expansion.
//!
//! | module | what it does |
//! |---|---|
//! | `parquet_file` | decodes the row groups of a Parquet file |
//! | `parquet_schema`, `page_headers`, `pages`, `delta_lengths` | check what a Parquet file declares before its decoder runs |
//! | `compact` | reads Thrift's compact protocol, in which a Parquet file describes itself |
//! | `ipc` | decodes Arrow files and streams |
//! | `cells` | finds the values of a row in a decoded batch |

mod cells;
mod compact;
mod delta_lengths;
pub(crate) mod guard;
pub(crate) mod ipc;
mod page_headers;
mod pages;
pub(crate) mod parquet_file;
mod parquet_schema;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use doppel_streams::{InputError, InputPosition, Reason, Stream};
use parquet::schema::types::SchemaDescriptor;

use super::record::{Guess, IdRows, Records, Row, SAMPLE_BYTES, SAMPLE_RECORDS, Setup, id_of};
use super::{FetchedPage, Item};
use cells::{BatchRow, Columns};
use ipc::{FileBatches, StreamBatches};
use parquet_file::ParquetBatches;

/// The bytes that a row counts for the limit on expansion, in addition to the bytes of its content.
const ROW_BYTES: u64 = 16;

/// The rows of a Parquet or Arrow file, as an iterator over items.
pub(super) struct Rows {
    path: Arc<Path>,
    setup: Setup,
    batches: Batches,
    records: Option<Records>,
    paths: Vec<String>,
    cursor: Option<BatchCursor>,
    /// The number of the last row that the iterator returned, counted from 1.
    number: u64,
    /// The bytes that all rows so far count for the limit on expansion.
    unpacked: u64,
    ended: bool,
    broke_off: bool,
    /// How many rows after the damage the iterator still has to report as bad.
    unread_rows: u64,
}

/// A decoded batch, and the row of the batch that is being read.
struct BatchCursor {
    columns: Columns,
    row: usize,
}

enum Batches {
    Parquet(Box<ParquetBatches>),
    File(Box<FileBatches>),
    Stream(Box<StreamBatches>),
}

/// A file format that stores records by columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnFormat {
    Parquet,
    ArrowFile,
    ArrowStream,
}

impl Rows {
    /// Opens a Parquet file.
    pub(super) fn parquet(path: &Arc<Path>, file: File, setup: Setup) -> Result<Self, Reason> {
        let batches = ParquetBatches::open(file, setup.options.limits)?;
        Ok(Self::new(path, Batches::Parquet(Box::new(batches)), setup))
    }

    /// Opens an Arrow file.
    pub(super) fn arrow_file(path: &Arc<Path>, file: File, setup: Setup) -> Result<Self, Reason> {
        let batches = FileBatches::open(file, setup.options.limits)?;
        Ok(Self::new(path, Batches::File(Box::new(batches)), setup))
    }

    /// Opens an Arrow stream. `stream` undoes any compression of the whole stream.
    pub(super) fn arrow_stream(path: &Arc<Path>, stream: Stream, setup: Setup) -> Result<Self, Reason> {
        let batches = StreamBatches::open(stream, setup.options.limits)?;
        Ok(Self::new(path, Batches::Stream(Box::new(batches)), setup))
    }

    fn new(path: &Arc<Path>, batches: Batches, setup: Setup) -> Self {
        Self {
            path: Arc::clone(path),
            setup,
            batches,
            records: None,
            paths: Vec::new(),
            cursor: None,
            number: 0,
            unpacked: 0,
            ended: false,
            broke_off: false,
            unread_rows: 0,
        }
    }

    /// The format of the file.
    pub(super) fn format(&self) -> ColumnFormat {
        match self.batches {
            Batches::Parquet(_) => ColumnFormat::Parquet,
            Batches::File(_) => ColumnFormat::ArrowFile,
            Batches::Stream(_) => ColumnFormat::ArrowStream,
        }
    }

    /// The Parquet schema of the file. `None` for an Arrow file or stream.
    pub(super) fn parquet_types(&self) -> Option<&SchemaDescriptor> {
        match &self.batches {
            Batches::Parquet(batches) => Some(batches.metadata().parquet_schema()),
            Batches::File(_) | Batches::Stream(_) => None,
        }
    }

    pub(super) fn broke_off(&self) -> bool {
        self.broke_off
    }

    /// The row of the last item.
    pub(super) fn input_position(&self) -> InputPosition {
        InputPosition::Row(self.number)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.batches.bytes_read()
    }

    /// The interpretation of the rows as records. `None` until the sample of rows has been read.
    pub(super) fn records(&self) -> Option<&Records> {
        self.records.as_ref()
    }

    /// Reads a sample of the first rows to find out which column holds which field, then goes back to the
    /// first row.
    fn read_sample(&mut self) -> Result<Records, Reason> {
        let mut guess = Guess::new(&self.setup.options);
        let mut pages = Records::in_page_form(&self.setup.options);
        let (paths, own_paths) = (guess.paths(), pages.map().paths());
        let all_columns = self.setup.options.all_columns;
        // A stream cannot be rewound, so the batches of the sample are used again as they are and need all
        // columns now. A file decodes its first batches a second time.
        let samples_all = all_columns && matches!(self.batches, Batches::Stream(_));
        self.batches.project((!samples_all).then_some(&*paths))?;
        let (mut sample, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < SAMPLE_RECORDS && bytes < SAMPLE_BYTES {
            let Some(batch) = self.batches.next() else { break };
            let batch = match batch {
                Ok(batch) => batch,
                // The error is reported after the rows before it.
                Err(reason) => {
                    sample.push(Err(reason));
                    break;
                }
            };
            let (columns, own) = (Columns::new(&batch, &paths), Columns::new(&batch, &own_paths));
            for row in 0..batch.num_rows().min(SAMPLE_RECORDS - rows) {
                let of = |columns| BatchRow::new(columns, row, self.batches.names());
                guess.note(&mut of(&columns), || pages.reads(&mut of(&own)));
            }
            rows += batch.num_rows();
            bytes += batch.get_array_memory_size();
            sample.push(Ok(batch));
        }
        let map = guess.finish();
        let records = Records::new(map, &self.path, &self.setup)?;
        self.paths = records.map().paths();
        self.batches.restart(sample, (!all_columns).then_some(&*self.paths))?;
        Ok(records)
    }

    fn bad_item(&mut self, reason: Reason) -> Item {
        Item::Bad(InputError::new(&self.path, self.input_position(), reason))
    }

    /// Ends the file because of damage. If the file declares its number of rows, the iterator will report
    /// each row after the damage as bad.
    fn break_off(&mut self, reason: Reason) -> Option<Item> {
        (self.ended, self.broke_off, self.cursor) = (true, true, None);
        self.number += 1;
        let unread_rows = self.batches.rows().unwrap_or_default().saturating_sub(self.number);
        // A damaged file may declare any number of rows, so an implausible number is not believed.
        let unpacked = self.unpacked.saturating_add(unread_rows.saturating_mul(ROW_BYTES));
        let is_plausible =
            self.setup.options.limits.check_expansion(self.batches.bytes_stored(), unpacked).is_ok();
        self.unread_rows = if is_plausible { unread_rows } else { 0 };
        Some(self.bad_item(reason))
    }

    /// Reports the next row that was not read because the file is damaged before it. `None` if there is no
    /// such row.
    fn next_unread(&mut self) -> Option<Item> {
        self.unread_rows = self.unread_rows.checked_sub(1)?;
        self.number += 1;
        Some(self.bad_item(Reason::BehindDamage))
    }

    /// Goes to the next row. Returns false at the end of the file.
    fn advance(&mut self) -> Result<bool, Reason> {
        loop {
            if let Some(cursor) = &mut self.cursor {
                cursor.row += 1;
                if cursor.row < cursor.columns.rows() {
                    return Ok(true);
                }
                self.cursor = None;
            }
            let Some(batch) = self.batches.next() else { return Ok(false) };
            let columns = Columns::new(&batch?, &self.paths);
            if columns.rows() > 0 {
                self.cursor = Some(BatchCursor { columns, row: 0 });
                return Ok(true);
            }
        }
    }

    /// Makes an item of the row at the cursor.
    fn item(&mut self) -> Result<Item, Reason> {
        let (Some(cursor), Some(records)) = (&self.cursor, &mut self.records) else {
            return Err(Reason::Truncated);
        };
        let mut row = BatchRow::new(&cursor.columns, cursor.row, self.batches.names());
        records.item(&mut row, self.number)
    }
}

impl Iterator for Rows {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.ended {
            return self.next_unread();
        }
        if self.records.is_none() {
            match self.read_sample() {
                Ok(records) => {
                    let map = records.map().clone();
                    self.records = Some(records);
                    if !map.is_page_form() {
                        return Some(Item::Fields(Arc::new(map)));
                    }
                }
                Err(reason) => return self.break_off(reason),
            }
        }
        match self.advance() {
            Ok(true) => {}
            Ok(false) => {
                self.ended = true;
                return None;
            }
            Err(reason) => return self.break_off(reason),
        }
        self.number += 1;
        let item = self.item();
        self.unpacked += ROW_BYTES;
        if let Ok(Item::Page(FetchedPage { body, .. })) = &item {
            self.unpacked += body.raw_content().map_or(0, |content| content.size() as u64);
        }
        // The encodings of columns can repeat a value for almost no stored bytes, so a small file can expand
        // without end.
        if let Err(reason) =
            self.setup.options.limits.check_expansion(self.batches.bytes_stored(), self.unpacked)
        {
            self.number -= 1;
            return self.break_off(reason);
        }
        Some(item.unwrap_or_else(|reason| self.bad_item(reason)))
    }
}

impl IdRows for Rows {
    fn next_id(&mut self, path: &[String]) -> Option<(u64, Option<String>)> {
        if self.number == 0 && self.cursor.is_none() {
            self.paths = path.to_vec();
            self.batches.project(Some(path)).ok()?;
        }
        if !self.advance().ok()? {
            return None;
        }
        self.number += 1;
        let cursor = self.cursor.as_ref()?;
        let mut row = BatchRow::new(&cursor.columns, cursor.row, &[]);
        Some((self.number, id_of(path.first().and_then(|path| row.take(path)))))
    }
}

impl Batches {
    fn next(&mut self) -> Option<Result<RecordBatch, Reason>> {
        match self {
            Self::Parquet(batches) => batches.next(),
            Self::File(batches) => batches.next(),
            Self::Stream(batches) => batches.next(),
        }
    }

    /// The paths of all columns, both top-level columns and columns inside structures.
    fn names(&self) -> &[String] {
        match self {
            Self::Parquet(batches) => batches.names(),
            Self::File(batches) => batches.names(),
            Self::Stream(batches) => batches.names(),
        }
    }

    /// The number of rows that the file declares. `None` for Arrow, which does not store the number in one
    /// place.
    fn rows(&self) -> Option<u64> {
        match self {
            Self::Parquet(batches) => Some(batches.rows()),
            Self::File(_) | Self::Stream(_) => None,
        }
    }

    /// Sets which columns the following batches contain: the columns at `paths`, or all columns if `paths` is
    /// `None`. A file also goes back to its first batch.
    fn project(&mut self, paths: Option<&[String]>) -> Result<(), Reason> {
        match self {
            Self::Parquet(batches) => batches.begin(paths),
            Self::File(batches) => batches.begin(paths),
            Self::Stream(batches) => {
                batches.project(paths);
                Ok(())
            }
        }
    }

    /// Goes back to the first batch and sets the columns as [`project`](Self::project) does. A stream cannot
    /// go back, so it returns the batches of `sample` again, although these may contain more columns.
    fn restart(
        &mut self,
        sample: Vec<Result<RecordBatch, Reason>>,
        paths: Option<&[String]>,
    ) -> Result<(), Reason> {
        if let Self::Stream(batches) = self {
            batches.give_back(sample);
        }
        self.project(paths)
    }

    /// The approximate number of stored bytes read, for a progress bar.
    fn bytes_read(&self) -> u64 {
        match self {
            Self::Parquet(batches) => batches.bytes_read(),
            Self::File(batches) => batches.bytes_read(),
            Self::Stream(batches) => batches.bytes_read(),
        }
    }

    /// The stored bytes from which the rows so far may have been decoded: the whole file, or what was read of
    /// a stream.
    fn bytes_stored(&self) -> u64 {
        match self {
            Self::Parquet(batches) => batches.bytes_stored(),
            Self::File(batches) => batches.bytes_stored(),
            Self::Stream(batches) => batches.bytes_read(),
        }
    }
}

#[cfg(test)]
mod tests;
