//! Batches of a Parquet file: one row group after the other, in pieces of bounded size.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::cells;
use super::guard::guarded;
use super::pages::{CheckedGroup, check_headers};
use super::parquet_schema::check_schema;
use crate::Limits;
use crate::error::Reason;

/// The bytes of a batch that are aimed at, by the average row of its row group.
const BATCH_BYTES: u64 = 8 << 20;

/// The rows of a batch at most.
const BATCH_ROWS: u64 = 1_024;

/// The bytes that a batch may have at most where each value can be as long as a page.
const SHARED_BYTES_MAX: u64 = 256 << 20;

/// The longest description of a file that is read, in bytes. Writers make some kilobytes for each row group.
const FOOTER_BYTES_MAX: u64 = 256 << 20;

/// The row groups of a file.
pub(crate) struct ParquetBatches {
    file: Arc<File>,
    limits: Limits,
    metadata: ArrowReaderMetadata,
    names: Vec<String>,
    mask: ProjectionMask,
    /// The next row group.
    next: usize,
    reader: Option<ParquetRecordBatchReader>,
    bytes: u64,
    rows_read: u64,
    /// The rows of the current row group that were not read.
    rows_left: u64,
    rows: u64,
    /// The bytes that the pages of all row groups so far unpack to.
    unpacked: u64,
}

impl ParquetBatches {
    /// Columns as they are easiest to read.
    pub(super) fn open(file: File, limits: Limits) -> Result<Self, Reason> {
        let mut this = Self::open_as_stored(file, limits)?;
        let plain = &this.metadata;
        // Views are of the pages themselves, so that text is not copied, and a value that is repeated by its number takes no room.
        let viewed =
            Schema::new(plain.schema().fields().iter().map(|field| viewed(field)).collect::<Fields>());
        let parsed = Arc::clone(plain.metadata());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(viewed));
        if let Ok(viewed) = guarded(|| ArrowReaderMetadata::try_new(parsed, options))? {
            this.metadata = viewed;
        }
        Ok(this)
    }

    /// Columns of the types that the file says.
    pub(crate) fn open_as_stored(mut file: File, limits: Limits) -> Result<Self, Reason> {
        let bytes = check_footer(&mut file)?;
        let options = ArrowReaderOptions::new();
        let metadata = guarded(|| ArrowReaderMetadata::load(&file, options))?.map_err(corrupt)?;
        check_places(metadata.metadata(), bytes)?;
        let names = cells::paths(metadata.schema().fields());
        let rows = metadata.metadata().file_metadata().num_rows();
        let rows = u64::try_from(rows).unwrap_or_default();
        Ok(Self {
            file: Arc::new(file),
            limits,
            metadata,
            names,
            mask: ProjectionMask::all(),
            next: 0,
            reader: None,
            bytes,
            rows_read: 0,
            rows_left: 0,
            rows,
            unpacked: 0,
        })
    }

    /// Goes to the first row, and has the batches have what is at these paths, or all columns where there are none.
    pub(super) fn begin(&mut self, paths: Option<&[String]>) -> Result<(), Reason> {
        let schema = self.metadata.parquet_schema();
        let leaves: Vec<_> = schema.columns().iter().map(|column| column.path().string()).collect();
        let is_inside = |leaf: &str, path: &str| {
            leaf.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        // Of a list or an object, one leaf shows that it is there.
        let first = |path: &String| {
            let leaf = leaves.iter().position(|leaf| is_inside(leaf, path));
            leaf.or_else(|| cells::lists::leaf_at(self.metadata.schema().fields(), path))
        };
        self.mask = match paths {
            Some(paths) => ProjectionMask::leaves(schema, paths.iter().filter_map(first)),
            None => ProjectionMask::all(),
        };
        (self.next, self.reader, self.rows_read, self.rows_left, self.unpacked) = (0, None, 0, 0, 0);
        Ok(())
    }

    /// What the file says of itself.
    pub(crate) fn metadata(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    /// The number of the row group that the last batch is of.
    pub(crate) fn group(&self) -> usize {
        self.next.saturating_sub(1)
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of all rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// By the share of rows that were read.
    pub(super) fn bytes_read(&self) -> u64 {
        let share = u128::from(self.bytes) * u128::from(self.rows_read.min(self.rows));
        u64::try_from(share / u128::from(self.rows.max(1))).unwrap_or(self.bytes)
    }

    pub(super) fn bytes_stored(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn next(&mut self) -> Option<Result<RecordBatch, Reason>> {
        loop {
            if let Some(reader) = &mut self.reader {
                match guarded(|| reader.next()) {
                    Ok(Some(Ok(batch))) => {
                        let rows = batch.num_rows() as u64;
                        self.rows_read += rows;
                        self.rows_left = self.rows_left.saturating_sub(rows);
                        return Some(Ok(batch));
                    }
                    Ok(Some(Err(error))) => return Some(Err(Reason::columns(error))),
                    Ok(None) => {
                        self.reader = None;
                        if self.rows_left > 0 {
                            return Some(Err(Reason::Columns(format!(
                                "{} rows of a row group are missing",
                                self.rows_left
                            ))));
                        }
                    }
                    Err(reason) => return Some(Err(reason)),
                }
            }
            let groups = self.metadata.metadata().num_row_groups();
            if self.next >= groups {
                let is_first = self.next == groups;
                self.next = groups + 1;
                let missing = self.rows.saturating_sub(self.rows_read);
                return (is_first && missing > 0)
                    .then(|| Err(Reason::Columns(format!("row groups of {missing} rows are missing"))));
            }
            match self.row_group(self.next) {
                Ok(reader) => self.reader = Some(reader),
                Err(reason) => return Some(Err(reason)),
            }
            self.next += 1;
        }
    }

    fn row_group(&mut self, group: usize) -> Result<ParquetRecordBatchReader, Reason> {
        let metadata = self.metadata.metadata();
        let described = metadata.row_group(group);
        let (mut bytes, mut shared) = (0_u64, 0_u64);
        for leaf in (0..described.num_columns()).filter(|leaf| self.mask.leaf_included(*leaf)) {
            let column = described.column(leaf);
            bytes = bytes.saturating_add(u64::try_from(column.uncompressed_size()).unwrap_or_default());
            let pages = check_headers(&self.file, column, &self.limits)?;
            shared = shared.saturating_add(pages.shared);
            // Row groups may be of the same bytes.
            self.unpacked = self.unpacked.saturating_add(pages.unpacked);
            self.limits.check_expansion(self.bytes, self.unpacked)?;
        }
        let rows = u64::try_from(described.num_rows()).unwrap_or_default();
        self.rows_left = rows;
        let rows = BATCH_BYTES / (bytes / rows.max(1)).max(1);
        let rows = rows.min(SHARED_BYTES_MAX / shared.max(1)).clamp(1, BATCH_ROWS);
        let rows = usize::try_from(rows).unwrap_or(1);
        let group = CheckedGroup { file: Arc::clone(&self.file), metadata: Arc::clone(metadata), group };
        guarded(|| {
            let schema = self.metadata.parquet_schema();
            let hint = Some(self.metadata.schema().fields());
            let levels = parquet_to_arrow_field_levels(schema, self.mask.clone(), hint)?;
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &group, rows, None)
        })?
        .map_err(corrupt)
    }
}

/// The size of the file, whose description has to be of a size and a schema that are plausible.
fn check_footer(file: &mut File) -> Result<u64, Reason> {
    let bytes = file.seek(SeekFrom::End(0)).map_err(Reason::Io)?;
    if bytes < 12 {
        return Err(no_end());
    }
    file.seek(SeekFrom::End(-8)).map_err(Reason::Io)?;
    let mut end = [0; 8];
    file.read_exact(&mut end).map_err(Reason::Io)?;
    let [a, b, c, d, magic @ ..] = end;
    match &magic {
        b"PAR1" => {}
        b"PARE" => return Err(Reason::Columns("the file is encrypted".to_owned())),
        // Its description is at the end, so nothing can be read.
        _ => return Err(no_end()),
    }
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    if footer > FOOTER_BYTES_MAX {
        return Err(Reason::TooLarge { what: "a Parquet footer", bytes: footer, max: FOOTER_BYTES_MAX });
    }
    let at = (bytes - 8).checked_sub(footer).ok_or_else(no_end)?;
    file.seek(SeekFrom::Start(at)).map_err(Reason::Io)?;
    check_schema(BufReader::new(file.take(footer)))?;
    Ok(bytes)
}

fn no_end() -> Reason {
    let reason =
        "the end of the file is not that of a Parquet file: it is cut off, or followed by other bytes";
    Reason::Columns(reason.to_owned())
}

/// Checks that all columns are inside the file, which the decoder takes for granted.
fn check_places(metadata: &ParquetMetaData, file_bytes: u64) -> Result<(), Reason> {
    for group in metadata.row_groups() {
        for column in group.columns() {
            let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let (begin, length) = (u64::try_from(begin), u64::try_from(column.compressed_size()));
            let is_inside = match (begin, length) {
                (Ok(begin), Ok(length)) => begin.saturating_add(length) <= file_bytes,
                _ => false,
            };
            if !is_inside || group.num_rows() < 0 {
                return Err(Reason::Columns("a column that is not inside the file".to_owned()));
            }
        }
    }
    Ok(())
}

/// A field with views in place of text and bytes.
fn viewed(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) if matches!(**values, DataType::Utf8 | DataType::LargeUtf8) => {
            DataType::Utf8View
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| viewed(field)).collect()),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

fn corrupt(error: ParquetError) -> Reason {
    match error {
        ParquetError::EOF(_) => Reason::Truncated,
        _ => Reason::columns(error),
    }
}
