//! Copies the records of WARC, WET, ARC and WACZ files.
//!
//! The copy reads the file twice: first to decide the fate of each record, then to copy the bytes. One pass
//! is not enough, because a request may come before the response whose fate it shares. Records other than
//! captures, such as requests, are copied but not counted.
//!
//! The record that describes an ARC file goes to all sides that have records, because an ARC file is not
//! valid without it.

use std::collections::HashMap;
use std::io::{self, Read, Seek, Write};

use doppel_model::stable_hash128;
use doppel_streams::{Packing, Reason};

use super::annotation::{ANNOTATION_FIELDS, Annotation};
use super::compressed_writer::CompressedWriter;
use super::{CopyError, CopySide, Fate, Job, Sides};
use crate::wacz::Wacz;
use crate::warc::{ArchiveFormat, Pages};

/// Copies the records of a file.
pub(super) fn copy<W: Write>(
    pages: &mut Pages,
    (sides, packing): (Sides<W>, Packing),
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    let mut outs = begin(sides, packing)?;
    copy_records(pages, &mut outs, job)?;
    finish(outs)
}

/// Copies the records of all files in a WACZ file. Each side is a WARC file in which each record is a gzip
/// member.
pub(super) fn copy_wacz<W: Write>(
    files: &mut Wacz,
    sides: Sides<W>,
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    let mut outs = begin(sides, Packing::Gzip)?;
    while let Some(file) = files.next_file() {
        match file {
            Ok(pages) => copy_records(pages, &mut outs, job)?,
            Err(bad) => {
                job.fate(&bad)?;
            }
        }
    }
    finish(outs)
}

fn begin<W: Write>(sides: Sides<W>, packing: Packing) -> Result<Sides<SideWriter<W>>, CopyError> {
    sides.try_map(|side, out| SideWriter::new(packing, out).map_err(|error| CopyError::Write(side, error)))
}

fn finish<W: Write>(outs: Sides<SideWriter<W>>) -> Result<Sides<W>, CopyError> {
    outs.try_map(|side, out| out.finish().map_err(|error| CopyError::Write(side, error)))
}

/// Copies the records of one WARC or ARC file.
fn copy_records<W: Write>(
    pages: &mut Pages,
    outs: &mut Sides<SideWriter<W>>,
    job: &mut Job<'_>,
) -> Result<(), CopyError> {
    if job.annotate && pages.format() == ArchiveFormat::Arc {
        return Err(job.input_error(Reason::NoAnnotationsInArc));
    }
    let fates = decide_fates(pages, job)?;
    let is_used =
        |side: &CopySide| *side == CopySide::Kept || fates.iter().flatten().any(|fate| fate.side() == *side);
    let used: Vec<CopySide> = CopySide::ALL.into_iter().filter(is_used).collect();
    let mut records = pages.reopen_records().map_err(|reason| job.input_error(reason))?;
    for fate in fates {
        // The second pass meets the same bad records as the first, and finds the same records after them.
        let advanced = records.advance();
        let Some(fate) = fate else { continue };
        if !advanced.map_err(|reason| job.input_error(reason))? {
            return Err(job.input_error(Reason::Truncated));
        }
        if used.len() > 1 && records.is_about_file() {
            let mut original = records.original().map_err(|reason| job.input_error(reason))?;
            for &side in &used {
                let Some(out) = outs.get(side) else { continue };
                original.rewind().map_err(|error| job.input_error(Reason::Io(error)))?;
                out.write_record(&mut original).map_err(|error| CopyError::Write(side, error))?;
            }
            continue;
        }
        let side = fate.side();
        if outs.get(side).is_none() {
            continue;
        }
        let new_head = match job.annotation(fate)? {
            None => Vec::new(),
            Some(annotation) => {
                let head = records.record().head_bytes;
                with_annotation(head, &annotation).ok_or_else(|| job.input_error(Reason::Annotated))?
            }
        };
        let old_head = if new_head.is_empty() { 0 } else { records.record().head_bytes.len() as u64 };
        let mut original = records.original().map_err(|reason| job.input_error(reason))?;
        let skipped = io::copy(&mut (&mut original).take(old_head), &mut io::sink());
        skipped.map_err(|error| job.input_error(Reason::Io(error)))?;
        if let Some(out) = outs.get(side) {
            let record = new_head.as_slice().chain(original);
            out.write_record(record).map_err(|error| CopyError::Write(side, error))?;
        }
    }
    Ok(())
}

/// Writes the records of one side.
enum SideWriter<W: Write> {
    /// Compresses each record as a member of its own, or does not compress.
    Members { packing: Packing, out: W, is_empty: bool },
    /// Compresses all records as one stream.
    Solid(CompressedWriter<W>),
}

impl<W: Write> SideWriter<W> {
    fn new(packing: Packing, out: W) -> io::Result<Self> {
        Ok(match packing {
            Packing::Plain | Packing::Gzip | Packing::Zstd => Self::Members { packing, out, is_empty: true },
            Packing::Bzip2 | Packing::Xz => Self::Solid(CompressedWriter::new(packing, out)?),
        })
    }

    fn write_record(&mut self, mut bytes: impl Read) -> io::Result<()> {
        match self {
            Self::Members { packing, out, is_empty } => {
                *is_empty = false;
                let mut member = CompressedWriter::new(*packing, out)?;
                io::copy(&mut bytes, &mut member)?;
                member.finish().map(drop)
            }
            Self::Solid(out) => io::copy(&mut bytes, out).map(drop),
        }
    }

    fn finish(self) -> io::Result<W> {
        match self {
            // Programs that decompress a file without any member report it as damaged, so an empty member is
            // written.
            Self::Members { packing, out, is_empty: true } => CompressedWriter::new(packing, out)?.finish(),
            Self::Members { out, .. } => Ok(out),
            Self::Solid(out) => out.finish(),
        }
    }
}

/// A record that is not a capture, such as a request or metadata. It follows the record that it is concurrent
/// to.
struct Companion {
    /// The index of the record in the file.
    at: usize,
    ids: RecordIds,
}

/// The hashes of the id of a record, and of the ids of the records that it is concurrent to.
#[derive(Debug, Default, PartialEq)]
struct RecordIds {
    own: Option<u128>,
    concurrent_to: Vec<u128>,
}

/// Decides the fate of each record of a file. `None` for a bad record.
fn decide_fates(pages: &mut Pages, job: &mut Job<'_>) -> Result<Vec<Option<Fate>>, CopyError> {
    let mut fates: Vec<Option<Fate>> = Vec::new();
    let mut companions: Vec<Companion> = Vec::new();
    // The indexes of captures, by their own ids and by the ids of the records that they are concurrent to.
    let (mut by_id, mut by_concurrent) = (HashMap::<u128, usize>::new(), HashMap::<u128, usize>::new());
    while let Some(item) = pages.next_record() {
        job.judge.read(pages.bytes_read());
        let at = fates.len();
        match item {
            None => {
                companions.push(Companion { at, ids: RecordIds::of(pages.head()) });
                fates.push(Some(Fate::NOT_A_PAGE));
            }
            Some(item) => {
                let fate = job.fate(&item)?;
                if fate.is_some() {
                    let RecordIds { own, concurrent_to } = RecordIds::of(pages.head());
                    by_id.extend(own.map(|own| (own, at)));
                    by_concurrent.extend(concurrent_to.into_iter().map(|other| (other, at)));
                }
                fates.push(fate);
            }
        }
    }
    for Companion { at, ids } in companions {
        let named = ids.concurrent_to.iter().find_map(|other| by_id.get(other));
        let capture = named.or_else(|| by_concurrent.get(&ids.own?));
        if let Some(fate) = capture.and_then(|capture| fates[*capture]) {
            fates[at] = Some(fate);
        }
    }
    Ok(fates)
}

impl RecordIds {
    /// Reads the ids from the head of a record.
    fn of(head: &[u8]) -> Self {
        let mut ids = Self::default();
        for line in head.split(|byte| *byte == b'\n') {
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"WARC-Record-ID") {
                ids.own = Some(stable_hash128(value));
            } else if name.eq_ignore_ascii_case(b"WARC-Concurrent-To") {
                ids.concurrent_to.push(stable_hash128(value));
            }
        }
        ids
    }
}

/// Appends the fields of an annotation to the head of a record. `None` if the head has a field with one of
/// the names already.
fn with_annotation(head: &[u8], annotation: &Annotation) -> Option<Vec<u8>> {
    let is_annotation_field = |line: &[u8]| {
        ANNOTATION_FIELDS.iter().any(|name| {
            line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    if head.split(|byte| *byte == b'\n').any(is_annotation_field) {
        return None;
    }
    let end: &[u8] = if head.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
    let mut longer = head[..head.len() - end.len()].to_vec();
    for (name, value) in ANNOTATION_FIELDS.iter().zip(annotation.values()) {
        if let Some(value) = value {
            longer.extend_from_slice(format!("{name}: {value}").as_bytes());
            longer.extend_from_slice(end);
        }
    }
    longer.extend_from_slice(end);
    Some(longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_record_are_read_from_its_head() {
        let head = b"WARC/1.0\r\nWARC-Record-ID: <urn:uuid:1>\r\nwarc-concurrent-to:<urn:uuid:2>\r\nWARC-Concurrent-To: <urn:uuid:3>\r\n\r\n";
        let hash = |id: &[u8]| stable_hash128(id);
        let concurrent_to = vec![hash(b"<urn:uuid:2>"), hash(b"<urn:uuid:3>")];
        assert_eq!(RecordIds::of(head), RecordIds { own: Some(hash(b"<urn:uuid:1>")), concurrent_to });
    }

    #[test]
    fn annotations_are_appended_to_the_head_of_a_record() {
        let annotation =
            Annotation { similarity: Some(0.5), reason: Some("duplicate"), ..Annotation::default() };
        for end in ["\r\n", "\n"] {
            let head = format!("WARC/1.0{end}Content-Length: 0{end}{end}");
            let annotated = with_annotation(head.as_bytes(), &annotation).unwrap();
            let expected = format!(
                "WARC/1.0{end}Content-Length: 0{end}doppel_similarity: 0.5{end}doppel_reason: duplicate{end}{end}"
            );
            assert_eq!(String::from_utf8(annotated.clone()).unwrap(), expected);
            assert_eq!(with_annotation(&annotated, &annotation), None);
        }
    }
}
