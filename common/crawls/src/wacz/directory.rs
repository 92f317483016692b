//! Lists the files in a WACZ file from the central directory of the ZIP format.
//!
//! The archive is untrusted. The module checks that every entry lies within the file, that entries do not
//! overlap, and that their number is bounded.

use std::fs::File;
use std::ops::Range;

use doppel_streams::Reason;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive};

use crate::names::{extension, without_compression_ending};

/// Largest number of files in a WACZ file.
const FILES_MAX: usize = 100_000;

/// A readable file in the archive.
pub(super) struct Entry {
    pub(super) name: String,
    /// Byte range of its stored data in the archive.
    pub(super) range: Range<u64>,
    pub(super) is_deflated: bool,
}

/// A file in the archive that cannot be read, and the reason.
pub(super) struct UnreadableFile {
    pub(super) name: String,
    pub(super) reason: Reason,
}

/// The files of a WACZ archive that matter for reading its pages.
pub(super) struct CentralDirectory {
    /// WARC files in the order of their names, and other files that may contain records but cannot be read.
    pub(super) entries: Vec<Result<Entry, UnreadableFile>>,
    /// Lists of pages.
    pub(super) pages: Vec<Entry>,
}

impl CentralDirectory {
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
            let Some(kind) = EntryKind::from_name(&name).filter(|_| !entry.is_dir()) else { continue };
            let read = match entry.compression_method() {
                _ if kind == EntryKind::Wacz => {
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
                (EntryKind::Pages, Ok(entry)) => found.pages.push(entry),
                // A list of pages is optional, so an unreadable list is not an error.
                (EntryKind::Pages, Err(_)) => {}
                (_, read) => found.entries.push(read.map_err(|reason| UnreadableFile { name, reason })),
            }
        }
        // If files shared their bytes, a small archive could contain any number of them.
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

/// Role of a file in the archive, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Warc,
    Wacz,
    Pages,
}

impl EntryKind {
    fn from_name(name: &str) -> Option<Self> {
        let ending = |name: &str| extension(&without_compression_ending(name.as_ref()));
        match name.split_once('/') {
            _ if ending(name) == "wacz" => Some(Self::Wacz),
            Some(("archive", rest)) if matches!(&*ending(rest), "warc" | "wet" | "arc") => Some(Self::Warc),
            Some(("pages", rest)) if extension(rest.as_ref()) == "jsonl" => Some(Self::Pages),
            _ => None,
        }
    }
}

fn name(entry: &Result<Entry, UnreadableFile>) -> &str {
    match entry {
        Ok(entry) => &entry.name,
        Err(unreadable) => &unreadable.name,
    }
}

// Takes the error by value because that is what `map_err` passes.
#[expect(clippy::needless_pass_by_value)]
fn damaged(error: rawzip::Error) -> Reason {
    Reason::Wacz(error.to_string())
}
