//! Copies the records of WARC, WET and ARC files.
//!
//! The file is read twice: first for what becomes of each record, then for the bytes. A request may come before the response that
//! decides about both. The record that describes a file of ARC goes to all sides that have records, because no file of ARC is valid without it.
//!
//! Records beside the pages, such as requests, are copied and not counted.

use std::collections::HashMap;
use std::io::{self, Read, Seek, Write};

use doppel_model::stable_hash128;

use super::note::{NAMES, Note};
use super::packed::Packed;
use super::{CopyError, Fate, Job, Side, Sides};
use crate::error::Reason;
use crate::stream::Packing;
use crate::wacz::Wacz;
use crate::warc::{ArchiveFormat, Pages};

/// Copies the records of a file.
pub(super) fn copy<W: Write>(
    pages: &mut Pages,
    (sides, packing): (Sides<W>, Packing),
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    let mut outs = begin(sides, packing)?;
    one(pages, &mut outs, job)?;
    finish(outs)
}

/// Copies the records of all files in a WACZ file: each side is a WARC file, of which each record is a gzip member.
pub(super) fn copy_wacz<W: Write>(
    files: &mut Wacz,
    sides: Sides<W>,
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    let mut outs = begin(sides, Packing::Gzip)?;
    while let Some(file) = files.next_file() {
        match file {
            Ok(pages) => one(pages, &mut outs, job)?,
            Err(bad) => {
                job.fate(&bad)?;
            }
        }
    }
    finish(outs)
}

fn begin<W: Write>(sides: Sides<W>, packing: Packing) -> Result<Sides<Out<W>>, CopyError> {
    sides.try_map(|side, out| Out::new(packing, out).map_err(|error| CopyError::Write(side, error)))
}

fn finish<W: Write>(outs: Sides<Out<W>>) -> Result<Sides<W>, CopyError> {
    outs.try_map(|side, out| out.finish().map_err(|error| CopyError::Write(side, error)))
}

/// Copies the records of one file.
fn one<W: Write>(pages: &mut Pages, outs: &mut Sides<Out<W>>, job: &mut Job<'_>) -> Result<(), CopyError> {
    if job.annotate && pages.format() == ArchiveFormat::Arc {
        return Err(job.cannot(Reason::NoAnnotationsInArc));
    }
    let fates = fates(pages, job)?;
    let is_used =
        |side: &Side| *side == Side::Kept || fates.iter().flatten().any(|fate| fate.side() == *side);
    let used: Vec<Side> = Side::ALL.into_iter().filter(is_used).collect();
    let mut records = pages.reopen_records().map_err(|reason| job.cannot(reason))?;
    for fate in fates {
        // A bad record is bad again, and what follows it is found again.
        let advanced = records.advance();
        let Some(fate) = fate else { continue };
        if !advanced.map_err(|reason| job.cannot(reason))? {
            return Err(job.cannot(Reason::Truncated));
        }
        if used.len() > 1 && records.is_about_file() {
            let mut original = records.original().map_err(|reason| job.cannot(reason))?;
            for &side in &used {
                let Some(out) = outs.get(side) else { continue };
                original.rewind().map_err(|error| job.cannot(Reason::Io(error)))?;
                out.record(&mut original).map_err(|error| CopyError::Write(side, error))?;
            }
            continue;
        }
        let side = fate.side();
        if outs.get(side).is_none() {
            continue;
        }
        let noted = match job.note(fate)? {
            None => Vec::new(),
            Some(note) => {
                let head = records.record().head_bytes;
                with_fields(head, &note).ok_or_else(|| job.cannot(Reason::Annotated))?
            }
        };
        let head = if noted.is_empty() { 0 } else { records.record().head_bytes.len() as u64 };
        let mut original = records.original().map_err(|reason| job.cannot(reason))?;
        let skipped = io::copy(&mut (&mut original).take(head), &mut io::sink());
        skipped.map_err(|error| job.cannot(Reason::Io(error)))?;
        if let Some(out) = outs.get(side) {
            out.record(noted.as_slice().chain(original)).map_err(|error| CopyError::Write(side, error))?;
        }
    }
    Ok(())
}

/// A file of a side.
enum Out<W: Write> {
    /// Each record is a member, or the file is not compressed.
    Members { packing: Packing, out: W, is_empty: bool },
    /// All records are in one piece.
    Solid(Packed<W>),
}

impl<W: Write> Out<W> {
    fn new(packing: Packing, out: W) -> io::Result<Self> {
        Ok(match packing {
            Packing::Plain | Packing::Gzip | Packing::Zstd => Self::Members { packing, out, is_empty: true },
            Packing::Bzip2 | Packing::Xz => Self::Solid(Packed::new(packing, out)?),
        })
    }

    fn record(&mut self, mut bytes: impl Read) -> io::Result<()> {
        match self {
            Self::Members { packing, out, is_empty } => {
                *is_empty = false;
                let mut member = Packed::new(*packing, out)?;
                io::copy(&mut bytes, &mut member)?;
                member.finish().map(drop)
            }
            Self::Solid(out) => io::copy(&mut bytes, out).map(drop),
        }
    }

    fn finish(self) -> io::Result<W> {
        match self {
            // A compressed file without any member is damaged to all that unpack it.
            Self::Members { packing, out, is_empty: true } => Packed::new(packing, out)?.finish(),
            Self::Members { out, .. } => Ok(out),
            Self::Solid(out) => out.finish(),
        }
    }
}

/// A record beside the pages: its place among all, and the hashes of its id and of those that it is concurrent to.
struct Aside {
    at: usize,
    ids: Ids,
}

/// The hashes of the id of a record, and of the ids of those that it is concurrent to.
#[derive(Debug, Default, PartialEq)]
struct Ids {
    own: Option<u128>,
    concurrent_to: Vec<u128>,
}

/// What becomes of each record of the file; none of a bad one.
fn fates(pages: &mut Pages, job: &mut Job<'_>) -> Result<Vec<Option<Fate>>, CopyError> {
    let mut fates: Vec<Option<Fate>> = Vec::new();
    let mut asides: Vec<Aside> = Vec::new();
    // The places of records by their ids, and of those that say what they are concurrent to by that.
    let (mut by_id, mut by_other) = (HashMap::<u128, usize>::new(), HashMap::<u128, usize>::new());
    while let Some(item) = pages.next_record() {
        job.judge.read(pages.bytes_read());
        let at = fates.len();
        match item {
            None => {
                asides.push(Aside { at, ids: Ids::of(pages.head()) });
                fates.push(Some(Fate::BESIDE));
            }
            Some(item) => {
                let fate = job.fate(&item)?;
                if fate.is_some() {
                    let Ids { own, concurrent_to } = Ids::of(pages.head());
                    by_id.extend(own.map(|own| (own, at)));
                    by_other.extend(concurrent_to.into_iter().map(|other| (other, at)));
                }
                fates.push(fate);
            }
        }
    }
    for Aside { at, ids } in asides {
        let named = ids.concurrent_to.iter().find_map(|other| by_id.get(other));
        let leader = named.or_else(|| by_other.get(&ids.own?));
        if let Some(fate) = leader.and_then(|leader| fates[*leader]) {
            fates[at] = Some(fate);
        }
    }
    Ok(fates)
}

impl Ids {
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

/// The head of a record with what is said of it as fields at the end; none where it has such fields already.
fn with_fields(head: &[u8], note: &Note) -> Option<Vec<u8>> {
    let is_noted = |line: &[u8]| {
        NAMES.iter().any(|name| {
            line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    if head.split(|byte| *byte == b'\n').any(is_noted) {
        return None;
    }
    let end: &[u8] = if head.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
    let mut longer = head[..head.len() - end.len()].to_vec();
    for (name, value) in NAMES.iter().zip(note.values()) {
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
    fn a_head_tells_its_id_and_what_it_is_concurrent_to() {
        let head = b"WARC/1.0\r\nWARC-Record-ID: <urn:uuid:1>\r\nwarc-concurrent-to:<urn:uuid:2>\r\nWARC-Concurrent-To: <urn:uuid:3>\r\n\r\n";
        let hash = |id: &[u8]| stable_hash128(id);
        let concurrent_to = vec![hash(b"<urn:uuid:2>"), hash(b"<urn:uuid:3>")];
        assert_eq!(Ids::of(head), Ids { own: Some(hash(b"<urn:uuid:1>")), concurrent_to });
    }

    #[test]
    fn fields_are_added_at_the_end_of_a_head() {
        let note = Note { similarity: Some(0.5), reason: Some("duplicate"), ..Note::default() };
        for end in ["\r\n", "\n"] {
            let head = format!("WARC/1.0{end}Content-Length: 0{end}{end}");
            let noted = with_fields(head.as_bytes(), &note).unwrap();
            let expected = format!(
                "WARC/1.0{end}Content-Length: 0{end}doppel_similarity: 0.5{end}doppel_reason: duplicate{end}{end}"
            );
            assert_eq!(String::from_utf8(noted.clone()).unwrap(), expected);
            assert_eq!(with_fields(&noted, &note), None);
        }
    }
}
