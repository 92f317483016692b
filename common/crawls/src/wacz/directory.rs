//! The files in a WACZ file, by the central directory of the ZIP file.

use std::fs::File;
use std::ops::Range;

use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive};

use crate::error::Reason;
use crate::names::{extension, unpacked};

/// How many files a WACZ file may have.
const FILES_MAX: usize = 100_000;

/// A file in the archive.
pub(super) struct Entry {
    pub(super) name: String,
    /// Where its stored bytes are.
    pub(super) range: Range<u64>,
    pub(super) is_deflated: bool,
}

/// A file that cannot be read, and why.
pub(super) struct Problem {
    pub(super) name: String,
    pub(super) reason: Reason,
}

/// What a WACZ file has.
pub(super) struct Directory {
    /// The WARC files in the order of their names, and what else may have records and cannot be read.
    pub(super) entries: Vec<Result<Entry, Problem>>,
    /// The lists of pages.
    pub(super) pages: Vec<Entry>,
}

impl Directory {
    pub(super) fn read(file: &File) -> Result<Self, Reason> {
        let bytes = file.metadata().map_err(Reason::Io)?.len();
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let archive =
            ZipArchive::from_file(file.try_clone().map_err(Reason::Io)?, &mut buffer).map_err(damaged)?;
        let mut found = Self { entries: Vec::new(), pages: Vec::new() };
        let (mut files, mut stored) = (0, 0_u64);
        let mut entries = archive.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(damaged)? {
            files += 1;
            if files > FILES_MAX {
                return Err(Reason::Wacz(format!("it has more than {FILES_MAX} files")));
            }
            let name = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
            let Some(kind) = Kind::of(&name).filter(|_| !entry.is_dir()) else { continue };
            let read = match entry.compression_method() {
                _ if kind == Kind::Wacz => {
                    Err("a WACZ file inside another one is not read; unpack it".to_owned())
                }
                _ if entry.flags().is_encrypted() => Err("it is encrypted".to_owned()),
                CompressionMethod::STORE => Ok(false),
                CompressionMethod::DEFLATE => Ok(true),
                other => Err(format!("its compression, number {} of ZIP, is not read", other.as_u16())),
            };
            let wayfinder = entry.wayfinder();
            let read = read.map_err(Reason::Wacz).and_then(|is_deflated| {
                let (start, end) = archive.get_entry(wayfinder).map_err(damaged)?.compressed_data_range();
                if start > end || end > bytes {
                    return Err(Reason::Truncated);
                }
                stored += end - start;
                Ok(Entry { name: name.clone(), range: start..end, is_deflated })
            });
            match (kind, read) {
                (Kind::Pages, Ok(entry)) => found.pages.push(entry),
                // What a list of pages would say is not needed.
                (Kind::Pages, Err(_)) => {}
                (_, read) => found.entries.push(read.map_err(|reason| Problem { name, reason })),
            }
        }
        // Of files that share their bytes a small archive can have any number.
        if stored > bytes {
            return Err(Reason::Wacz("its files overlap".to_owned()));
        }
        if found.entries.is_empty() {
            return Err(Reason::Wacz(
                "a ZIP file without a WARC file in archive/, so it is no WACZ file".to_owned(),
            ));
        }
        found.entries.sort_by(|a, b| name(a).cmp(name(b)));
        Ok(found)
    }
}

/// What a file in the archive is by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Warc,
    Wacz,
    Pages,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        let ending = |name: &str| extension(&unpacked(name.as_ref()));
        match name.split_once('/') {
            _ if ending(name) == "wacz" => Some(Self::Wacz),
            Some(("archive", rest)) if matches!(&*ending(rest), "warc" | "wet" | "arc") => Some(Self::Warc),
            Some(("pages", rest)) if extension(rest.as_ref()) == "jsonl" => Some(Self::Pages),
            _ => None,
        }
    }
}

fn name(entry: &Result<Entry, Problem>) -> &str {
    match entry {
        Ok(entry) => &entry.name,
        Err(problem) => &problem.name,
    }
}

// Takes the error by value because that is what `map_err` passes.
#[expect(clippy::needless_pass_by_value)]
fn damaged(error: rawzip::Error) -> Reason {
    Reason::Wacz(error.to_string())
}
