//! Reads pages from files of columns: Parquet and Arrow. Only the columns that are needed are decoded, unless rows are to
//! be copied. Batches are of bounded size.

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
use parquet::schema::types::SchemaDescriptor;

use super::error::{InputError, Place, Reason};
use super::record::{Guess, IdRows, Records, Row, SAMPLE_BYTES, SAMPLE_RECORDS, Setup, id_of};
use super::stream::Stream;
use super::{Fetched, Item};
use cells::{BatchRow, Columns};
use ipc::{FileBatches, StreamBatches};
use parquet_file::ParquetBatches;

/// What a row counts as for the bound on expansion, in addition to its content, in bytes.
const ROW_BYTES: u64 = 16;

/// The pages of a file of columns.
pub(super) struct Rows {
    path: Arc<Path>,
    setup: Setup,
    batches: Batches,
    records: Option<Records>,
    paths: Vec<String>,
    current: Option<Current>,
    /// The number of the last row that was handed over.
    number: u64,
    /// The bytes of the rows so far.
    unpacked: u64,
    ended: bool,
    broke_off: bool,
    /// How many rows behind the damage are still to be counted.
    behind: u64,
}

/// A batch, and the next row of it.
struct Current {
    columns: Columns,
    row: usize,
}

enum Batches {
    Parquet(Box<ParquetBatches>),
    File(Box<FileBatches>),
    Stream(Box<StreamBatches>),
}

/// A kind of files of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Parquet,
    ArrowFile,
    ArrowStream,
}

impl Rows {
    /// A Parquet file.
    pub(super) fn parquet(path: &Arc<Path>, file: File, setup: Setup) -> Result<Self, Reason> {
        let batches = ParquetBatches::open(file, setup.options.limits)?;
        Ok(Self::new(path, Batches::Parquet(Box::new(batches)), setup))
    }

    /// An Arrow file.
    pub(super) fn arrow_file(path: &Arc<Path>, file: File, setup: Setup) -> Result<Self, Reason> {
        let batches = FileBatches::open(file, setup.options.limits)?;
        Ok(Self::new(path, Batches::File(Box::new(batches)), setup))
    }

    /// An Arrow stream of any compression.
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
            current: None,
            number: 0,
            unpacked: 0,
            ended: false,
            broke_off: false,
            behind: 0,
        }
    }

    /// Which kind of file it is.
    pub(super) fn kind(&self) -> Kind {
        match self.batches {
            Batches::Parquet(_) => Kind::Parquet,
            Batches::File(_) => Kind::ArrowFile,
            Batches::Stream(_) => Kind::ArrowStream,
        }
    }

    /// The types of its columns in Parquet.
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
    pub(super) fn place(&self) -> Place {
        Place::Row(self.number)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.batches.bytes_read()
    }

    /// The records, once the first rows were looked at.
    pub(super) fn records(&self) -> Option<&Records> {
        self.records.as_ref()
    }

    /// Reads the first rows, to see which column holds what.
    fn look(&mut self) -> Result<Records, Reason> {
        let mut guess = Guess::new(&self.setup.options);
        let mut pages = Records::in_page_form(&self.setup.options);
        let (paths, own_paths) = (guess.paths(), pages.map().paths());
        let all_columns = self.setup.options.all_columns;
        // The first batches of a stream are handed over again as they are. Of a file they are decoded again.
        let has_all = all_columns && matches!(self.batches, Batches::Stream(_));
        self.batches.project((!has_all).then_some(&*paths))?;
        let (mut sample, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < SAMPLE_RECORDS && bytes < SAMPLE_BYTES {
            let Some(batch) = self.batches.next() else { break };
            let batch = match batch {
                Ok(batch) => batch,
                // It is told when the rows in front of it were.
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
        self.batches.begin_again(sample, (!all_columns).then_some(&*self.paths))?;
        Ok(records)
    }

    fn bad(&mut self, reason: Reason) -> Item {
        Item::Bad(InputError::new(&self.path, self.place(), reason))
    }

    /// Ends with damage, behind which nothing is read. Rows that are known to be there are counted.
    fn break_off(&mut self, reason: Reason) -> Option<Item> {
        (self.ended, self.broke_off, self.current) = (true, true, None);
        self.number += 1;
        let behind = self.batches.rows().unwrap_or_default().saturating_sub(self.number);
        // Damaged files name any number.
        let unpacked = self.unpacked.saturating_add(behind.saturating_mul(ROW_BYTES));
        let is_plausible =
            self.setup.options.limits.check_expansion(self.batches.bytes_stored(), unpacked).is_ok();
        self.behind = if is_plausible { behind } else { 0 };
        Some(self.bad(reason))
    }

    /// The next row that was not read because of damage in front of it.
    fn unread(&mut self) -> Option<Item> {
        self.behind = self.behind.checked_sub(1)?;
        self.number += 1;
        Some(self.bad(Reason::BehindDamage))
    }

    /// Goes to the next row, and returns false at the end.
    fn advance(&mut self) -> Result<bool, Reason> {
        loop {
            if let Some(current) = &mut self.current {
                current.row += 1;
                if current.row < current.columns.rows() {
                    return Ok(true);
                }
                self.current = None;
            }
            let Some(batch) = self.batches.next() else { return Ok(false) };
            let columns = Columns::new(&batch?, &self.paths);
            if columns.rows() > 0 {
                self.current = Some(Current { columns, row: 0 });
                return Ok(true);
            }
        }
    }

    /// The page of the current row.
    fn item(&mut self) -> Result<Item, Reason> {
        let (Some(current), Some(records)) = (&self.current, &mut self.records) else {
            return Err(Reason::Truncated);
        };
        let mut row = BatchRow::new(&current.columns, current.row, self.batches.names());
        records.item(&mut row, self.number)
    }
}

impl Iterator for Rows {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.ended {
            return self.unread();
        }
        if self.records.is_none() {
            match self.look() {
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
        if let Ok(Item::Page(Fetched { body, .. })) = &item {
            self.unpacked += body.raw_content().map_or(0, |content| content.size() as u64);
        }
        // Encodings of columns repeat a value at next to no cost.
        if let Err(reason) =
            self.setup.options.limits.check_expansion(self.batches.bytes_stored(), self.unpacked)
        {
            self.number -= 1;
            return self.break_off(reason);
        }
        Some(item.unwrap_or_else(|reason| self.bad(reason)))
    }
}

impl IdRows for Rows {
    fn next_id(&mut self, path: &[String]) -> Option<(u64, Option<String>)> {
        if self.number == 0 && self.current.is_none() {
            self.paths = path.to_vec();
            self.batches.project(Some(path)).ok()?;
        }
        if !self.advance().ok()? {
            return None;
        }
        self.number += 1;
        let current = self.current.as_ref()?;
        let mut row = BatchRow::new(&current.columns, current.row, &[]);
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

    /// The paths of all columns, outermost and inside structures.
    fn names(&self) -> &[String] {
        match self {
            Self::Parquet(batches) => batches.names(),
            Self::File(batches) => batches.names(),
            Self::Stream(batches) => batches.names(),
        }
    }

    /// The number of all rows, where the file says it in one place.
    fn rows(&self) -> Option<u64> {
        match self {
            Self::Parquet(batches) => Some(batches.rows()),
            Self::File(_) | Self::Stream(_) => None,
        }
    }

    /// Has the next batches have what is at these paths, or all columns where there are none.
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

    /// Goes back to the first batch, with what is at these paths, of which the `sample` that was read has more.
    fn begin_again(
        &mut self,
        sample: Vec<Result<RecordBatch, Reason>>,
        paths: Option<&[String]>,
    ) -> Result<(), Reason> {
        if let Self::Stream(batches) = self {
            batches.give_back(sample);
        }
        self.project(paths)
    }

    /// The number of stored bytes read, about.
    fn bytes_read(&self) -> u64 {
        match self {
            Self::Parquet(batches) => batches.bytes_read(),
            Self::File(batches) => batches.bytes_read(),
            Self::Stream(batches) => batches.bytes_read(),
        }
    }

    /// The number of stored bytes that may have made the rows so far.
    fn bytes_stored(&self) -> u64 {
        match self {
            Self::Parquet(batches) => batches.bytes_stored(),
            Self::File(batches) => batches.bytes_stored(),
            Self::Stream(batches) => batches.bytes_read(),
        }
    }
}

/// Whether a file is Parquet by its first bytes.
pub(super) fn is_parquet(beginning: &[u8]) -> bool {
    beginning.starts_with(b"PAR1") || beginning.starts_with(b"PARE")
}

/// Whether a file is an Arrow file by its first bytes.
pub(super) fn is_arrow_file(beginning: &[u8]) -> bool {
    beginning.starts_with(ipc::MAGIC)
}

/// Whether a file is an Arrow stream by its first bytes: a mark, and a length that is divisible by 8.
pub(super) fn is_arrow_stream(beginning: &[u8]) -> bool {
    matches!(beginning, [0xff, 0xff, 0xff, 0xff, low, _, _, high, ..] if low % 8 == 0 && *high < 4)
}

#[cfg(test)]
mod tests;
