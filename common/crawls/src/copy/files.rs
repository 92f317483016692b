//! Copies pages that are files of their own, one by one or as the files of a directory.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Copied, CopyError, CopySide, Fate, Job, Judge, Sides};
use crate::directory::Files;
use crate::{Input, InputOptions, Item, Source};
use doppel_streams::{InputError, InputPosition, Reason, SkipReason};

/// Copies a file that is one page.
pub(super) fn copy_page<W: Write>(
    input: &mut Input,
    mut sides: Sides<W>,
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    if job.annotate {
        return Err(job.input_error(Reason::NoAnnotations));
    }
    for item in input {
        let Some(fate) = job.fate(&item)? else { continue };
        let mut file = File::open(job.path).map_err(|error| job.input_error(Reason::Io(error)))?;
        if let Some(out) = sides.get(fate.side()) {
            io::copy(&mut file, out).map_err(|error| CopyError::Write(fate.side(), error))?;
        }
    }
    Ok(sides)
}

/// A function that [`copy_directory`] calls for each file, so that its caller can copy the file. The
/// arguments are the side of the file (`None` for a bad page), its path below the directory, and its full
/// path.
pub type FileVisitor<'v> = dyn FnMut(Option<CopySide>, &Path, &Path) -> Result<(), CopyError> + 'v;

/// Calls `visit` with the side of each file of a directory of pages. Files that are not pages are kept.
/// Hidden files and links are left out, because they are not read. Returns the counts of the records, and
/// whether all files and directories could be read.
///
/// # Errors
/// If the directory cannot be opened, the judge fails, or `visit` fails.
pub fn copy_directory(
    dir: &Path,
    options: &InputOptions,
    judge: &mut dyn Judge,
    visit: &mut FileVisitor<'_>,
) -> Result<(Copied, bool), CopyError> {
    let mut input = crate::open(dir, options.clone()).map_err(|error| CopyError::Open(Box::new(error)))?;
    let mut job = Job { path: dir, judge, annotate: false, copied: Copied::default() };
    let Source::Files(files) = &mut input.source else { return Err(job.input_error(Reason::Format)) };
    while let Some(item) = files.next() {
        job.judge.read(files.bytes_read());
        if matches!(item, Item::Skipped(SkipReason::Hidden | SkipReason::Link)) {
            continue;
        }
        let fate = job.fate(&item)?;
        if let Item::Bad(error) = &item
            && files.file_path() != Some(&error.path)
        {
            // The error is about a directory that cannot be listed.
            continue;
        }
        let LastFile { root, path } = last_file(files, &job)?;
        let below = path.strip_prefix(&root).unwrap_or(&path);
        visit(fate.map(Fate::side), below, &path)?;
    }
    Ok((job.copied, !files.broke_off()))
}

/// The last file that was read, and the directory.
struct LastFile {
    /// The canonical path of the directory.
    root: PathBuf,
    /// The canonical path of the file.
    path: PathBuf,
}

fn last_file(files: &Files, job: &Job<'_>) -> Result<LastFile, CopyError> {
    match (files.root(), files.file_path()) {
        (Some(root), Some(path)) => Ok(LastFile { root: root.to_owned(), path: path.to_owned() }),
        _ => Err(InputError::new(&job.path.into(), InputPosition::File, Reason::FileKind).into()),
    }
}
