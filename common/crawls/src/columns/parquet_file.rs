//! Reads a Parquet file in batches of bounded size, one row group after the other.
//!
//! The footer and the schema are checked before the decoder sees the file, and the page headers of a row
//! group before the row group is decoded. Every call of the decoder is guarded against panics. A file whose
//! row groups contain fewer rows than the file declares is damaged.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Fields, Schema};
use doppel_streams::{Limits, Reason};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::cells;
use super::guard::guarded;
use super::pages::{CheckedGroup, check_headers};
use super::parquet_schema::check_schema;

/// The target size of a batch in bytes. The number of rows follows from the average row of the row group.
const BATCH_BYTES: u64 = 8 << 20;

/// The maximum number of rows of a batch.
const BATCH_ROWS: u64 = 1_024;

/// The maximum size of a batch in bytes if its values share prefixes, so that each value can be as long as a
/// page.
const SHARED_BYTES_MAX: u64 = 256 << 20;

/// The longest footer that is read, in bytes. Writers make some kilobytes for each row group.
const FOOTER_BYTES_MAX: u64 = 256 << 20;

/// An open Parquet file, as an iterator over batches of rows.
pub(crate) struct ParquetBatches {
    file: Arc<File>,
    limits: Limits,
    metadata: ArrowReaderMetadata,
    /// The paths of all columns.
    names: Vec<String>,
    mask: ProjectionMask,
    /// The number of the next row group, counted from 0.
    next: usize,
    reader: Option<ParquetRecordBatchReader>,
    /// The size of the file.
    bytes: u64,
    rows_read: u64,
    /// The number of rows of the current row group that have not been read.
    rows_left: u64,
    /// The number of rows that the file declares.
    rows: u64,
    /// The unpacked size in bytes of the pages of all row groups so far.
    unpacked: u64,
}

impl ParquetBatches {
    /// Opens a file for reading. Columns of text and bytes are decoded as views.
    pub(super) fn open(file: File, limits: Limits) -> Result<Self, Reason> {
        let mut this = Self::open_as_stored(file, limits)?;
        let stored = &this.metadata;
        // A view points into its page. The decoder therefore copies no text, and a value that a dictionary
        // repeats takes no memory.
        let with_views =
            Schema::new(stored.schema().fields().iter().map(|field| with_views(field)).collect::<Fields>());
        let parsed = Arc::clone(stored.metadata());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(with_views));
        if let Ok(with_views) = guarded(|| ArrowReaderMetadata::try_new(parsed, options))? {
            this.metadata = with_views;
        }
        Ok(this)
    }

    /// Opens a file for copying. Columns have the types that the file declares.
    pub(crate) fn open_as_stored(mut file: File, limits: Limits) -> Result<Self, Reason> {
        let bytes = check_footer(&mut file)?;
        let options = ArrowReaderOptions::new();
        let metadata = guarded(|| ArrowReaderMetadata::load(&file, options))?.map_err(corrupt)?;
        check_column_ranges(metadata.metadata(), bytes)?;
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

    /// Goes to the first row and sets which columns the batches contain: the columns at `paths`, or all
    /// columns if `paths` is `None`.
    pub(super) fn begin(&mut self, paths: Option<&[String]>) -> Result<(), Reason> {
        let schema = self.metadata.parquet_schema();
        let leaves: Vec<_> = schema.columns().iter().map(|column| column.path().string()).collect();
        let is_inside = |leaf: &str, path: &str| {
            leaf.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        // For a structure or a list, one leaf is enough to detect whether it is present.
        let first = |path: &String| {
            let leaf = leaves.iter().position(|leaf| is_inside(leaf, path));
            leaf.or_else(|| cells::lists::first_leaf(self.metadata.schema().fields(), path))
        };
        self.mask = match paths {
            Some(paths) => ProjectionMask::leaves(schema, paths.iter().filter_map(first)),
            None => ProjectionMask::all(),
        };
        (self.next, self.reader, self.rows_read, self.rows_left, self.unpacked) = (0, None, 0, 0, 0);
        Ok(())
    }

    /// The metadata in the footer of the file.
    pub(crate) fn metadata(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    /// The number of the row group that contains the last batch, counted from 0.
    pub(crate) fn group(&self) -> usize {
        self.next.saturating_sub(1)
    }

    /// The paths of all columns, both top-level columns and columns inside structures.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of rows that the file declares.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// The approximate number of stored bytes read: the size of the file times the share of rows that were
    /// read.
    pub(super) fn bytes_read(&self) -> u64 {
        let share = u128::from(self.bytes) * u128::from(self.rows_read.min(self.rows));
        u64::try_from(share / u128::from(self.rows.max(1))).unwrap_or(self.bytes)
    }

    /// The size of the file in bytes.
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
                                "a row group ends {} rows early",
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
                return (is_first && missing > 0).then(|| {
                    Err(Reason::Columns(format!("the row groups lack {missing} of the declared rows")))
                });
            }
            match self.row_group(self.next) {
                Ok(reader) => self.reader = Some(reader),
                Err(reason) => return Some(Err(reason)),
            }
            self.next += 1;
        }
    }

    /// Checks the pages of a row group and opens a reader for it.
    fn row_group(&mut self, group: usize) -> Result<ParquetRecordBatchReader, Reason> {
        let metadata = self.metadata.metadata();
        let described = metadata.row_group(group);
        let (mut bytes, mut largest_shared) = (0_u64, 0_u64);
        for leaf in (0..described.num_columns()).filter(|leaf| self.mask.leaf_included(*leaf)) {
            let column = described.column(leaf);
            bytes = bytes.saturating_add(u64::try_from(column.uncompressed_size()).unwrap_or_default());
            let pages = check_headers(&self.file, column, &self.limits)?;
            largest_shared = largest_shared.saturating_add(pages.largest_shared);
            // Several row groups may refer to the same stored bytes, so a small file can expand without end.
            self.unpacked = self.unpacked.saturating_add(pages.unpacked);
            self.limits.check_expansion(self.bytes, self.unpacked)?;
        }
        let rows = u64::try_from(described.num_rows()).unwrap_or_default();
        self.rows_left = rows;
        let rows = BATCH_BYTES / (bytes / rows.max(1)).max(1);
        let rows = rows.min(SHARED_BYTES_MAX / largest_shared.max(1)).clamp(1, BATCH_ROWS);
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

/// Checks the footer: the magic number, the length, and the schema. Returns the size of the file in bytes.
fn check_footer(file: &mut File) -> Result<u64, Reason> {
    let bytes = file.seek(SeekFrom::End(0)).map_err(Reason::Io)?;
    if bytes < 12 {
        return Err(not_parquet_end());
    }
    file.seek(SeekFrom::End(-8)).map_err(Reason::Io)?;
    let mut end = [0; 8];
    file.read_exact(&mut end).map_err(Reason::Io)?;
    let [a, b, c, d, magic @ ..] = end;
    match &magic {
        b"PAR1" => {}
        b"PARE" => {
            return Err(Reason::Columns("the file is encrypted; write it without encryption".to_owned()));
        }
        // The footer is at the end, and without the footer no row can be read.
        _ => return Err(not_parquet_end()),
    }
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    if footer > FOOTER_BYTES_MAX {
        return Err(Reason::TooLarge { what: "a Parquet footer", bytes: footer, max: FOOTER_BYTES_MAX });
    }
    let at = (bytes - 8).checked_sub(footer).ok_or_else(not_parquet_end)?;
    file.seek(SeekFrom::Start(at)).map_err(Reason::Io)?;
    check_schema(BufReader::new(file.take(footer)))?;
    Ok(bytes)
}

fn not_parquet_end() -> Reason {
    let reason = "the file does not end like a Parquet file: it is cut off, or other bytes follow; \
                  download or write it again";
    Reason::Columns(reason.to_owned())
}

/// Checks that all columns are inside the file. The decoder does not check this.
fn check_column_ranges(metadata: &ParquetMetaData, file_bytes: u64) -> Result<(), Reason> {
    for group in metadata.row_groups() {
        for column in group.columns() {
            let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let (begin, length) = (u64::try_from(begin), u64::try_from(column.compressed_size()));
            let is_inside = match (begin, length) {
                (Ok(begin), Ok(length)) => begin.saturating_add(length) <= file_bytes,
                _ => false,
            };
            if !is_inside || group.num_rows() < 0 {
                return Err(Reason::Columns("a column is not inside the file".to_owned()));
            }
        }
    }
    Ok(())
}

/// The field with views instead of text and bytes, also inside structures.
fn with_views(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) if matches!(**values, DataType::Utf8 | DataType::LargeUtf8) => {
            DataType::Utf8View
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| with_views(field)).collect()),
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
