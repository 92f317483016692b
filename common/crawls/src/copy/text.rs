//! Copies the lines of JSON lines files and the rows of CSV and TSV files.

use std::io::Write;

use super::annotation::{ANNOTATION_FIELDS, with_cells};
use super::compressed_writer::CompressedWriter;
use super::{CopyError, CopySide, Job, Sides};
use crate::delimited::Delimited;
use crate::lines::Lines;
use doppel_streams::{Packing, Reason};

/// Begins the file of each side with the bytes of `head`.
pub(super) fn begin<W: Write>(
    sides: Sides<W>,
    packing: Packing,
    head: &[u8],
) -> Result<Sides<CompressedWriter<W>>, CopyError> {
    sides.try_map(|side, out| {
        let mut out = CompressedWriter::new(packing, out).map_err(|error| CopyError::Write(side, error))?;
        out.write_all(head).map_err(|error| CopyError::Write(side, error))?;
        Ok(out)
    })
}

/// Ends the file of each side.
fn finish<W: Write>(sides: Sides<CompressedWriter<W>>) -> Result<Sides<W>, CopyError> {
    sides.try_map(|side, out| out.finish().map_err(|error| CopyError::Write(side, error)))
}

fn write<W: Write>(sides: &mut Sides<W>, side: CopySide, bytes: &[u8]) -> Result<(), CopyError> {
    let Some(out) = sides.get(side) else { return Ok(()) };
    out.write_all(bytes).map_err(|error| CopyError::Write(side, error))
}

/// Copies the lines of a file of JSON lines.
pub(super) fn copy_lines<W: Write>(
    lines: &mut Lines,
    mut sides: Sides<CompressedWriter<W>>,
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    while let Some(item) = lines.next() {
        job.judge.read(lines.bytes_read());
        let Some(fate) = job.fate(&item)? else { continue };
        let line = lines.original();
        match job.annotation(fate)? {
            None => write(&mut sides, fate.side(), line)?,
            Some(annotation) => {
                let line =
                    annotation.append_to_json(line).ok_or_else(|| job.input_error(Reason::Annotated))?;
                write(&mut sides, fate.side(), &line)?;
            }
        }
    }
    finish(sides)
}

/// Copies the rows of a table. Each side begins with the row of names.
pub(super) fn copy_rows<W: Write>(
    rows: &mut Delimited,
    (sides, packing): (Sides<W>, Packing),
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    let separator = rows.separator();
    let mut sides = if job.annotate {
        if rows.names().iter().any(|name| ANNOTATION_FIELDS.contains(&name.as_str())) {
            return Err(job.input_error(Reason::Annotated));
        }
        begin(sides, packing, &with_cells(rows.head(), separator, ANNOTATION_FIELDS.into_iter()))?
    } else {
        begin(sides, packing, rows.head())?
    };
    while let Some(item) = rows.next() {
        job.judge.read(rows.bytes_read());
        let Some(fate) = job.fate(&item)? else { continue };
        match job.annotation(fate)? {
            None => write(&mut sides, fate.side(), rows.original())?,
            Some(annotation) => {
                let row = annotation.append_to_row(rows.original(), separator);
                write(&mut sides, fate.side(), &row)?;
            }
        }
    }
    finish(sides)
}
