//! Copies pages that are files of their own.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Copied, CopyError, Fate, Job, Judge, Side, Sides};
use crate::directory::Files;
use crate::error::{InputError, Place, Reason, Skip};
use crate::{Input, InputOptions, Item, Source};

/// Copies the file of a page.
pub(super) fn one<W: Write>(
    input: &mut Input,
    mut sides: Sides<W>,
    job: &mut Job<'_>,
) -> Result<Sides<W>, CopyError> {
    if job.annotate {
        return Err(job.cannot(Reason::NoAnnotations));
    }
    for item in input {
        let Some(fate) = job.fate(&item)? else { continue };
        let mut file = File::open(job.path).map_err(|error| job.cannot(Reason::Io(error)))?;
        if let Some(out) = sides.get(fate.side()) {
            io::copy(&mut file, out).map_err(|error| CopyError::Write(fate.side(), error))?;
        }
    }
    Ok(sides)
}

/// What [`copy_directory`] tells of a file: its side, or none where it is a bad page; its path below the directory; and its own path.
pub type Take<'t> = dyn FnMut(Option<Side>, &Path, &Path) -> Result<(), CopyError> + 't;

/// Tells of each file of a directory of pages to which side it goes. Files that are no pages are kept; hidden ones and links, which are
/// not read, are left out. Gives as well whether all files and directories could be read.
///
/// # Errors
/// When a file cannot be judged, or what `take` fails with.
pub fn copy_directory(
    dir: &Path,
    options: &InputOptions,
    judge: &mut dyn Judge,
    take: &mut Take<'_>,
) -> Result<(Copied, bool), CopyError> {
    let mut input = crate::open(dir, options.clone()).map_err(|error| CopyError::Open(Box::new(error)))?;
    let mut job = Job { path: dir, judge, annotate: false, copied: Copied::default() };
    let Source::Files(files) = &mut input.source else { return Err(job.cannot(Reason::Format)) };
    while let Some(item) = files.next() {
        job.judge.read(files.bytes_read());
        if matches!(item, Item::Skipped(Skip::Hidden | Skip::Link)) {
            continue;
        }
        let fate = job.fate(&item)?;
        if let Item::Bad(error) = &item
            && files.file_path() != Some(&error.path)
        {
            // A directory that cannot be listed.
            continue;
        }
        let (root, path) = place(files, &job)?;
        let below = path.strip_prefix(&root).unwrap_or(&path);
        take(fate.map(Fate::side), below, &path)?;
    }
    Ok((job.copied, !files.broke_off()))
}

/// The canonical path of the directory, and of the last file.
fn place(files: &Files, job: &Job<'_>) -> Result<(PathBuf, PathBuf), CopyError> {
    let (root, file) = (files.root(), files.file_path());
    match (root, file) {
        (Some(root), Some(file)) => Ok((root.to_owned(), file.to_owned())),
        _ => Err(InputError::new(&job.path.into(), Place::File, Reason::FileKind).into()),
    }
}
