//! Copies the rows of Parquet and Arrow files.
//!
//! Two readers read the file side by side. The reader of pages gives the fate of each row. The other reader
//! decodes the batches with the types that the file stores. Both decode all columns, so in a damaged file
//! both end at the same batch. The rows of a batch are distributed to the sides by a mask for each side.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, make_array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use doppel_streams::{Packing, Reason, Stream};

use super::annotation::{ANNOTATION_FIELDS, Annotation, SIMILARITY};
use super::batch_writers::{ArrowBatchWriter, BatchWriter, ParquetBatchWriter};
use super::text;
use super::{CopyError, CopySide, Fate, Job, Sides};
use crate::columns::ColumnFormat;
use crate::columns::guard::guarded;
use crate::columns::ipc::{FileBatches, StreamBatches};
use crate::columns::parquet_file::ParquetBatches;
use crate::{Input, InputOptions, Item, Source};

/// A batch as a reader of columns returns it.
type Batch = Result<RecordBatch, Reason>;

/// Copies the rows of an open file. `input` is its reader of pages.
pub(super) fn copy<W: Write + Send>(
    input: &mut Input,
    options: &InputOptions,
    (sides, packing): (Sides<W>, Packing),
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    let Source::Columns(rows) = &input.source else { return Err(job.input_error(Reason::Format)) };
    let open = |job: &Job<'_>| File::open(job.path).map_err(|error| job.input_error(Reason::Io(error)));
    match rows.format() {
        ColumnFormat::Parquet => {
            let batches = ParquetBatches::open_as_stored(open(job)?, options.limits);
            let mut batches = batches.map_err(|reason| job.input_error(reason))?;
            let schema = schema(batches.metadata().schema(), job)?;
            let mut outs = sides.try_map(|side, out| {
                ParquetBatchWriter::new(out, &schema, batches.metadata())
                    .map_err(|reason| write_error(side, reason, job))
            })?;
            let (mut group, mut damage) = (0, None);
            while let Some(batch) = batches.next() {
                if batches.group() != group {
                    group = batches.group();
                    flush(&mut outs, job)?;
                }
                match batch {
                    Ok(batch) if copy_batch(input, &batch, &schema, &mut outs, job)? => {}
                    Ok(_) => break,
                    Err(reason) => {
                        damage = Some(reason);
                        break;
                    }
                }
            }
            count_rest(input, damage, job)?;
            outs.try_map(|side, out| out.finish().map_err(|reason| write_error(side, reason, job)))
        }
        ColumnFormat::ArrowFile => {
            let batches = FileBatches::open(open(job)?, options.limits);
            let mut batches = batches.map_err(|reason| job.input_error(reason))?;
            let schema = schema(batches.schema(), job)?;
            let first = batches.next();
            let mut outs = sides.try_map(|side, out| {
                ArrowBatchWriter::file(out, &schema, batches.compression())
                    .map_err(|reason| write_error(side, reason, job))
            })?;
            copy_batches(input, (first, || batches.next()), &schema, &mut outs, job)?;
            outs.try_map(|side, out| out.finish().map_err(|reason| write_error(side, reason, job)))
        }
        ColumnFormat::ArrowStream => {
            let open = || StreamBatches::open(Stream::open(job.path, &options.limits)?, options.limits);
            let mut batches = open().map_err(|reason| job.input_error(reason))?;
            let schema = schema(batches.schema(), job)?;
            let first = batches.next();
            let packed = text::begin(sides, packing, b"")?;
            let mut outs = packed.try_map(|side, out| {
                ArrowBatchWriter::stream(out, &schema, batches.compression())
                    .map_err(|reason| write_error(side, reason, job))
            })?;
            copy_batches(input, (first, || batches.next()), &schema, &mut outs, job)?;
            let packed =
                outs.try_map(|side, out| out.finish().map_err(|reason| write_error(side, reason, job)))?;
            packed.try_map(|side, out| out.finish().map_err(|error| CopyError::Write(side, error)))
        }
    }
}

/// The schema of the copy: the columns of the file, and those of the annotation if there is one.
fn schema(read: &SchemaRef, job: &Job<'_>) -> Result<SchemaRef, CopyError> {
    if !job.annotate {
        return Ok(Arc::clone(read));
    }
    if ANNOTATION_FIELDS.into_iter().any(|name| read.field_with_name(name).is_ok()) {
        return Err(job.input_error(Reason::Annotated));
    }
    let added = ANNOTATION_FIELDS.into_iter().map(|name| {
        let data_type = if name == SIMILARITY { DataType::Float64 } else { DataType::Utf8 };
        Arc::new(Field::new(name, data_type, true))
    });
    let fields: Vec<_> = read.fields().iter().cloned().chain(added).collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, read.metadata().clone())))
}

/// Copies all batches of an Arrow file or stream. The caller reads the first batch in advance, because the
/// writers of the sides need its compression.
fn copy_batches<O: BatchWriter>(
    input: &mut Input,
    (first, mut rest): (Option<Batch>, impl FnMut() -> Option<Batch>),
    schema: &SchemaRef,
    outs: &mut Sides<O>,
    job: &mut Job<'_>,
) -> Result<(), CopyError> {
    let mut next = first;
    while let Some(batch) = next {
        match batch {
            Ok(batch) if copy_batch(input, &batch, schema, outs, job)? => next = rest(),
            Ok(_) => break,
            Err(reason) => return count_rest(input, Some(reason), job),
        }
    }
    count_rest(input, None, job)
}

/// Copies the rows of a batch to their sides. Returns false if the reader of pages ended before the last row,
/// which it does in a damaged file.
fn copy_batch<O: BatchWriter>(
    input: &mut Input,
    batch: &RecordBatch,
    schema: &SchemaRef,
    outs: &mut Sides<O>,
    job: &mut Job<'_>,
) -> Result<bool, CopyError> {
    let mut fates: Vec<Option<Fate>> = Vec::with_capacity(batch.num_rows());
    let mut ended = false;
    while fates.len() < batch.num_rows() {
        match input.next() {
            Some(Item::Fields(_)) => {}
            Some(item) => fates.push(job.fate(&item)?),
            None => {
                ended = true;
                fates.resize(batch.num_rows(), None);
            }
        }
    }
    job.judge.read(input.bytes_read());
    for side in CopySide::ALL {
        if outs.get(side).is_none() {
            continue;
        }
        let side_fates: Vec<Fate> =
            fates.iter().flatten().copied().filter(|fate| fate.side() == side).collect();
        if side_fates.is_empty() {
            continue;
        }
        let mask: BooleanArray =
            fates.iter().map(|fate| Some(fate.is_some_and(|fate| fate.side() == side))).collect();
        let mut rows = filter_record_batch(batch, &mask)
            .and_then(|rows| without_shared_data(&rows))
            .map_err(|error| job.input_error(Reason::columns(error)))?;
        if job.annotate {
            let annotations =
                side_fates.into_iter().map(|fate| Ok(job.annotation(fate)?.unwrap_or_default()));
            let annotations: Vec<Annotation> = annotations.collect::<Result<_, CopyError>>()?;
            rows = with_annotations(&rows, &annotations, schema)
                .map_err(|error| job.input_error(Reason::columns(error)))?;
        }
        if let Some(out) = outs.get(side) {
            guarded(|| out.write(&rows)).flatten().map_err(|reason| write_error(side, reason, job))?;
        }
    }
    Ok(!ended)
}

/// Counts the items of the reader of pages after the last copied row: the damage, and the rows that could not
/// be read.
///
/// # Errors
/// If the reader of pages returns another row, so that the two readers disagree. The error is the `damage` at
/// which the other reader ended.
fn count_rest(input: &mut Input, damage: Option<Reason>, job: &mut Job<'_>) -> Result<(), CopyError> {
    for item in input {
        if matches!(item, Item::Page(_) | Item::Skipped(_)) {
            return Err(job.input_error(damage.unwrap_or(Reason::Truncated)));
        }
        job.fate(&item)?;
    }
    Ok(())
}

/// Removes the data of other rows. Views of filtered rows still refer to the data of the whole batch, and an
/// Arrow writer would write all of it.
fn without_shared_data(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = rows.columns().iter().map(column_without_shared_data).collect::<Result<_, _>>()?;
    RecordBatch::try_new(rows.schema(), columns)
}

fn column_without_shared_data(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        nested if nested.is_nested() => {
            let data = column.to_data();
            let parts = data.child_data().iter().map(|part| {
                let part = column_without_shared_data(&make_array(part.clone()))?;
                Ok(part.to_data())
            });
            let parts = parts.collect::<Result<_, ArrowError>>()?;
            make_array(data.into_builder().child_data(parts).build()?)
        }
        _ => Arc::clone(column),
    })
}

/// Appends the columns of the annotations to the rows, in the order of [`ANNOTATION_FIELDS`].
fn with_annotations(
    rows: &RecordBatch,
    annotations: &[Annotation],
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let text = |of: fn(&Annotation) -> Option<&str>| -> ArrayRef {
        Arc::new(annotations.iter().map(of).collect::<StringArray>())
    };
    let mut columns = rows.columns().to_vec();
    columns.extend([
        text(|annotation| annotation.group.as_deref()),
        text(|annotation| annotation.winner.as_deref()),
        text(|annotation| annotation.winner_record.file.as_deref()),
        text(|annotation| annotation.winner_record.id.as_deref()),
        text(|annotation| annotation.duplicate_of.as_deref()),
        text(|annotation| annotation.duplicate_of_record.file.as_deref()),
        text(|annotation| annotation.duplicate_of_record.id.as_deref()),
        Arc::new(annotations.iter().map(|annotation| annotation.similarity).collect::<Float64Array>()),
        text(|annotation| annotation.reason),
    ]);
    RecordBatch::try_new(Arc::clone(schema), columns)
}

fn flush<O: BatchWriter>(outs: &mut Sides<O>, job: &Job<'_>) -> Result<(), CopyError> {
    for side in CopySide::ALL {
        if let Some(out) = outs.get(side) {
            out.flush().map_err(|reason| write_error(side, reason, job))?;
        }
    }
    Ok(())
}

/// The error for a failed write. An I/O error is about the file of the side, any other error about the input.
fn write_error(side: CopySide, reason: Reason, job: &Job<'_>) -> CopyError {
    match reason {
        Reason::Io(error) => CopyError::Write(side, error),
        other => job.input_error(other),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{StringViewArray, StructArray};

    use super::*;

    #[test]
    fn filtered_rows_do_not_keep_the_data_of_other_rows() {
        let texts: Vec<String> =
            (0..10).map(|n| format!("a text that is too long to be inside {n}")).collect();
        let views: ArrayRef = Arc::new(StringViewArray::from_iter_values(&texts));
        let field = Arc::new(Field::new("text", DataType::Utf8View, false));
        let inside: ArrayRef = Arc::new(StructArray::from(vec![(field, Arc::clone(&views))]));
        let all = RecordBatch::try_from_iter([("text", views), ("inside", inside)]).unwrap();
        let mask = (0..10).map(|n| Some(n == 7)).collect::<BooleanArray>();
        let rows = filter_record_batch(&all, &mask).unwrap();
        let separate = without_shared_data(&rows).unwrap();
        assert_eq!(separate, rows);
        for views in [separate.column(0), separate.column(1).as_struct().column(0)] {
            let views = views.as_string_view();
            assert_eq!(
                views.data_buffers().iter().map(arrow_buffer::Buffer::len).sum::<usize>(),
                texts[7].len()
            );
        }
    }
}
