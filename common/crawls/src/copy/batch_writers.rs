//! Writes Parquet and Arrow files that resemble the input of a copy: with the same schema, the same metadata
//! and the same compression.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use doppel_streams::Reason;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::parquet_types::output_schema;
use crate::columns::guard::guarded;

/// The key of the metadata of a Parquet file under which Arrow's writers store the Arrow schema.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// Writes batches of rows to a file.
pub(super) trait BatchWriter: Sized {
    /// Writes the rows of a batch.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Reason>;

    /// Ends the row group of the rows so far, in a format that has row groups.
    fn flush(&mut self) -> Result<(), Reason>;
}

/// Writes a Parquet file.
pub(super) struct ParquetBatchWriter<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> ParquetBatchWriter<W> {
    /// Begins a file like the `input`. `schema` has the columns of the input, and possibly further columns
    /// after them.
    pub(super) fn new(out: W, schema: &SchemaRef, input: &ArrowReaderMetadata) -> Result<Self, Reason> {
        let file = input.metadata().file_metadata();
        let pairs = file.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
        let has_arrow_schema = pairs.iter().any(|pair| pair.key == ARROW_SCHEMA);
        let pairs: Vec<_> = pairs.iter().filter(|pair| pair.key != ARROW_SCHEMA).cloned().collect();
        // The copy ends row groups itself, where those of the input end.
        let mut properties = WriterProperties::builder()
            .set_max_row_group_row_count(None)
            .set_key_value_metadata(Some(pairs).filter(|pairs| !pairs.is_empty()));
        if let Some(group) = input.metadata().row_groups().first() {
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
        if let Some(parquet_schema) = output_schema(input.parquet_schema(), schema)? {
            options = options.with_parquet_schema(parquet_schema);
        }
        let writer = guarded(|| ArrowWriter::try_new_with_options(out, Arc::clone(schema), options))?;
        Ok(Self(writer.map_err(parquet_reason)?))
    }

    /// Ends the file, and returns the underlying writer.
    pub(super) fn finish(self) -> Result<W, Reason> {
        guarded(|| self.0.into_inner())?.map_err(parquet_reason)
    }
}

impl<W: Write + Send> BatchWriter for ParquetBatchWriter<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Reason> {
        self.0.write(batch).map_err(parquet_reason)
    }

    fn flush(&mut self) -> Result<(), Reason> {
        guarded(|| self.0.flush())?.map_err(parquet_reason)
    }
}

/// Writes an Arrow file or stream.
pub(super) enum ArrowBatchWriter<W: Write> {
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
}

impl<W: Write> ArrowBatchWriter<W> {
    /// Begins an Arrow file.
    pub(super) fn file(
        out: W,
        schema: &SchemaRef,
        compression: Option<CompressionType>,
    ) -> Result<Self, Reason> {
        let writer =
            options(compression).and_then(|options| FileWriter::try_new_with_options(out, schema, options));
        Ok(Self::File(Box::new(writer.map_err(arrow_reason)?)))
    }

    /// Begins an Arrow stream.
    pub(super) fn stream(
        out: W,
        schema: &SchemaRef,
        compression: Option<CompressionType>,
    ) -> Result<Self, Reason> {
        let writer =
            options(compression).and_then(|options| StreamWriter::try_new_with_options(out, schema, options));
        Ok(Self::Stream(Box::new(writer.map_err(arrow_reason)?)))
    }

    /// Ends the file or stream, and returns the underlying writer.
    pub(super) fn finish(self) -> Result<W, Reason> {
        match self {
            Self::File(writer) => writer.into_inner(),
            Self::Stream(writer) => writer.into_inner(),
        }
        .map_err(arrow_reason)
    }
}

impl<W: Write> BatchWriter for ArrowBatchWriter<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Reason> {
        match self {
            Self::File(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
        }
        .map_err(arrow_reason)
    }

    fn flush(&mut self) -> Result<(), Reason> {
        Ok(())
    }
}

fn options(compression: Option<CompressionType>) -> Result<IpcWriteOptions, ArrowError> {
    IpcWriteOptions::default().try_with_compression(compression)
}

/// Converts an error of the encoder. A failure of the underlying file becomes [`Reason::Io`].
fn parquet_reason(error: ParquetError) -> Reason {
    match error {
        ParquetError::External(error) => source_reason(error),
        other => Reason::columns(other),
    }
}

/// Converts an error of the encoder. A failure of the underlying file becomes [`Reason::Io`].
fn arrow_reason(error: ArrowError) -> Reason {
    match error {
        ArrowError::IoError(_, error) => Reason::Io(error),
        ArrowError::ExternalError(error) => source_reason(error),
        other => Reason::columns(other),
    }
}

fn source_reason(error: Box<dyn Error + Send + Sync>) -> Reason {
    match error.downcast::<io::Error>() {
        Ok(error) => Reason::Io(*error),
        Err(other) => Reason::columns(other),
    }
}
