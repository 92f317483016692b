//! Writes Parquet and Arrow files like those that were read: of the same schema, with what the file says of itself, and in the
//! same compression.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::parquet_types::columns_like;
use crate::columns::guard::guarded;
use crate::error::Reason;

/// The field of a Parquet file's description in which Arrow's writers put Arrow's schema.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// Writes batches.
pub(super) trait Out: Sized {
    /// Writes some rows.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Reason>;

    /// Ends what the rows so far are in, such as a row group.
    fn flush(&mut self) -> Result<(), Reason>;
}

/// A Parquet file.
pub(super) struct ParquetOut<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> ParquetOut<W> {
    /// Begins one with columns like those of another one, and perhaps more behind them.
    pub(super) fn new(out: W, schema: &SchemaRef, like: &ArrowReaderMetadata) -> Result<Self, Reason> {
        let file = like.metadata().file_metadata();
        let described = file.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
        let has_arrow_schema = described.iter().any(|pair| pair.key == ARROW_SCHEMA);
        let described: Vec<_> = described.iter().filter(|pair| pair.key != ARROW_SCHEMA).cloned().collect();
        // Row groups end where those of the input end.
        let mut properties = WriterProperties::builder()
            .set_max_row_group_row_count(None)
            .set_key_value_metadata(Some(described).filter(|described| !described.is_empty()));
        if let Some(group) = like.metadata().row_groups().first() {
            for column in group.columns() {
                properties =
                    properties.set_column_compression(column.column_path().clone(), column.compression());
            }
            if let Some(column) = group.columns().first() {
                properties = properties.set_compression(column.compression());
            }
        }
        let mut options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_skip_arrow_metadata(!has_arrow_schema);
        if let Some(columns) = columns_like(like.parquet_schema(), schema)? {
            options = options.with_parquet_schema(columns);
        }
        let writer = guarded(|| ArrowWriter::try_new_with_options(out, Arc::clone(schema), options))?;
        Ok(Self(writer.map_err(of_parquet)?))
    }

    /// Ends the file.
    pub(super) fn finish(self) -> Result<W, Reason> {
        guarded(|| self.0.into_inner())?.map_err(of_parquet)
    }
}

impl<W: Write + Send> Out for ParquetOut<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Reason> {
        self.0.write(batch).map_err(of_parquet)
    }

    fn flush(&mut self) -> Result<(), Reason> {
        guarded(|| self.0.flush())?.map_err(of_parquet)
    }
}

/// An Arrow file or stream.
pub(super) enum ArrowOut<W: Write> {
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
}

impl<W: Write> ArrowOut<W> {
    /// Begins a file.
    pub(super) fn file(
        out: W,
        schema: &SchemaRef,
        compression: Option<CompressionType>,
    ) -> Result<Self, Reason> {
        let writer =
            options(compression).and_then(|options| FileWriter::try_new_with_options(out, schema, options));
        Ok(Self::File(Box::new(writer.map_err(of_arrow)?)))
    }

    /// Begins a stream.
    pub(super) fn stream(
        out: W,
        schema: &SchemaRef,
        compression: Option<CompressionType>,
    ) -> Result<Self, Reason> {
        let writer =
            options(compression).and_then(|options| StreamWriter::try_new_with_options(out, schema, options));
        Ok(Self::Stream(Box::new(writer.map_err(of_arrow)?)))
    }

    /// Ends it.
    pub(super) fn finish(self) -> Result<W, Reason> {
        match self {
            Self::File(writer) => writer.into_inner(),
            Self::Stream(writer) => writer.into_inner(),
        }
        .map_err(of_arrow)
    }
}

impl<W: Write> Out for ArrowOut<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Reason> {
        match self {
            Self::File(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
        }
        .map_err(of_arrow)
    }

    fn flush(&mut self) -> Result<(), Reason> {
        Ok(())
    }
}

fn options(compression: Option<CompressionType>) -> Result<IpcWriteOptions, ArrowError> {
    IpcWriteOptions::default().try_with_compression(compression)
}

/// The failure of the file below, if it is that.
fn of_parquet(error: ParquetError) -> Reason {
    match error {
        ParquetError::External(error) => of_source(error),
        other => Reason::columns(other),
    }
}

fn of_arrow(error: ArrowError) -> Reason {
    match error {
        ArrowError::IoError(_, error) => Reason::Io(error),
        ArrowError::ExternalError(error) => of_source(error),
        other => Reason::columns(other),
    }
}

fn of_source(error: Box<dyn Error + Send + Sync>) -> Reason {
    match error.downcast::<io::Error>() {
        Ok(error) => Reason::Io(*error),
        Err(other) => Reason::columns(other),
    }
}
