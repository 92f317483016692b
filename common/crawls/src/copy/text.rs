//! Copies lines of JSON, and rows of tables.

use std::io::Write;

use super::note::{NAMES, with_cells};
use super::packed::Packed;
use super::{CopyError, Job, Side, Sides};
use crate::delimited::Delimited;
use crate::error::Reason;
use crate::lines::Lines;
use crate::stream::Packing;

/// Begins both files with some bytes.
pub(super) fn begin<W: Write>(
    sides: Sides<W>,
    packing: Packing,
    head: &[u8],
) -> Result<Sides<Packed<W>>, CopyError> {
    sides.try_map(|side, out| {
        let mut out = Packed::new(packing, out).map_err(|error| CopyError::Write(side, error))?;
        out.write_all(head).map_err(|error| CopyError::Write(side, error))?;
        Ok(out)
    })
}

/// Ends both files.
fn finish<W: Write>(sides: Sides<Packed<W>>) -> Result<Sides<W>, CopyError> {
    sides.try_map(|side, out| out.finish().map_err(|error| CopyError::Write(side, error)))
}

fn write<W: Write>(sides: &mut Sides<W>, side: Side, bytes: &[u8]) -> Result<(), CopyError> {
    let Some(out) = sides.get(side) else { return Ok(()) };
    out.write_all(bytes).map_err(|error| CopyError::Write(side, error))
}

/// Copies lines.
pub(super) fn lines<W: Write>(
    lines: &mut Lines,
    mut sides: Sides<Packed<W>>,
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    while let Some(item) = lines.next() {
        job.judge.read(lines.bytes_read());
        let Some(fate) = job.fate(&item)? else { continue };
        let line = lines.original();
        match job.note(fate)? {
            None => write(&mut sides, fate.side(), line)?,
            Some(note) => {
                let line = note.in_json(line).ok_or_else(|| job.cannot(Reason::Annotated))?;
                write(&mut sides, fate.side(), &line)?;
            }
        }
    }
    finish(sides)
}

/// Copies the rows of a table under its names.
pub(super) fn rows<W: Write>(
    rows: &mut Delimited,
    (sides, packing): (Sides<W>, Packing),
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    let separator = rows.separator();
    let mut sides = if job.annotate {
        if rows.names().iter().any(|name| NAMES.contains(&name.as_str())) {
            return Err(job.cannot(Reason::Annotated));
        }
        begin(sides, packing, &with_cells(rows.head(), separator, NAMES.into_iter()))?
    } else {
        begin(sides, packing, rows.head())?
    };
    while let Some(item) = rows.next() {
        job.judge.read(rows.bytes_read());
        let Some(fate) = job.fate(&item)? else { continue };
        match job.note(fate)? {
            None => write(&mut sides, fate.side(), rows.original())?,
            Some(note) => write(&mut sides, fate.side(), &note.in_row(rows.original(), separator))?,
        }
    }
    finish(sides)
}
