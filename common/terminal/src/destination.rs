//! Where an export goes: standard output, a device or pipe, or a file.
//!
//! A file is replaced by a whole one or not at all: the export is written beside it, flushed to disk, and
//! renamed. Until then the old file can be read, by the run that replaces it, too.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::exit::Failure;
use crate::interrupt;
use crate::output::{self, Stdout};

/// What a new file is created with, less the umask, as the standard library does.
const NEW_FILE: u32 = 0o666;
/// The same of a file that gets the permissions of the one that it replaces.
const PRIVATE: u32 = 0o600;

/// Where an export goes.
#[derive(Debug)]
pub enum Destination {
    /// `-`, or whatever standard output is under another name.
    Standard,
    /// A device or a pipe.
    Special(PathBuf, File),
    /// A file.
    Whole(Replacement),
}

/// A file to be.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    /// Those of the file that is there.
    permissions: Option<Permissions>,
}

impl Destination {
    /// Finds out what is at `path`, and that it can be written, without writing anything: a wrong
    /// path is known before hours of work.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let to = if path == Path::new("-") {
            Self::Standard
        } else {
            Self::of_path(path).with_context(|| cannot_write(path))?
        };
        if matches!(to, Self::Standard) {
            output::give_to_data();
        }
        Ok(to)
    }

    fn of_path(path: &Path) -> io::Result<Self> {
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let replacement = match File::options().write(true).open(path) {
            Ok(file) => {
                let metadata = file.metadata()?;
                if is_stdout(&metadata) {
                    return Ok(Self::Standard);
                }
                if !metadata.is_file() {
                    return Ok(Self::Special(path.to_owned(), file));
                }
                // The file is replaced, not the link that leads to it.
                Replacement { path: fs::canonicalize(path)?, permissions: Some(metadata.permissions()) }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Replacement { path: path.to_owned(), permissions: None }
            }
            Err(error) => return Err(error),
        };
        replacement.begin()?;
        Ok(Self::Whole(replacement))
    }

    /// Writes the export, and gives what `write` does.
    ///
    /// # Errors
    /// What `write` fails with, or when the file cannot be written; then it is as it was.
    pub fn write<T>(&self, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>) -> anyhow::Result<T> {
        match self {
            Self::Standard => buffered(Stdout::lock(), write),
            Self::Special(path, file) => buffered(file, write).with_context(|| cannot_write(path)),
            Self::Whole(file) => file.write(write).with_context(|| cannot_write(&file.path)),
        }
    }
}

impl Replacement {
    fn dir(&self) -> &Path {
        directory_of(&self.path)
    }

    /// The new file under another name; it goes when it is dropped.
    fn begin(&self) -> io::Result<NamedTempFile> {
        let mode = if self.permissions.is_none() { NEW_FILE } else { PRIVATE };
        let mut beside = tempfile::Builder::new();
        beside.prefix(".doppel-").suffix(".part");
        // Opened here, because an error of `tempfile` tells the temporary name.
        let create = |path: &Path| File::options().write(true).create_new(true).mode(mode).open(path);
        let file = interrupt::removable(|| beside.make_in(self.dir(), create))?;
        if let Some(permissions) = &self.permissions {
            file.as_file().set_permissions(permissions.clone())?;
        }
        Ok(file)
    }

    fn write<T>(&self, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let file = self.begin()?;
        let written = buffered(file.as_file(), write)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        File::open(self.dir())?.sync_all()?;
        Ok(written)
    }
}

fn buffered<T>(
    out: impl Write,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut out = BufWriter::new(out);
    let written = write(&mut out)?;
    out.flush()?;
    Ok(written)
}

/// Whether a file is standard output, which a shell may have redirected. A terminal or `/dev/null`
/// is a destination of its own.
fn is_stdout(metadata: &Metadata) -> bool {
    let stdout = io::stdout().as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    !metadata.file_type().is_char_device() && stdout.is_ok_and(|out| are_one(&out, metadata))
}

/// Whether two names lead to one file of the system.
pub fn are_one(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// The directory that a file is in, or is to be in.
pub fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Whether both names are of one file, there or not. What is no file, such as a pipe, takes everything.
pub fn is_one(a: &Path, b: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file);
    match (file(a), file(b)) {
        // Also by a hard link, or on a file system that is mounted twice.
        (Some(a), Some(b)) => are_one(&a, &b),
        _ => place(a).is_some_and(|a| place(b) == Some(a)),
    }
}

/// An output in the place of an input would destroy what it is made from.
///
/// # Errors
/// [`Failure::Usage`] where the path is one of the inputs.
pub fn refuse_input(option: &str, path: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    match inputs.iter().find(|input| is_one(input, path)) {
        Some(input) => {
            let (path, input) = (path.display(), input.display());
            Err(Failure::Usage(format!("{option} {path} would replace the input {input}; name another file")))
        }
        None => Ok(()),
    }
}

/// One name for all spellings of a path, whether there is a file yet or not.
fn place(path: &Path) -> Option<PathBuf> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return None; // a pipe or a terminal takes both
    }
    fs::canonicalize(path)
        .ok()
        .or_else(|| Some(fs::canonicalize(directory_of(path)).ok()?.join(path.file_name()?)))
}
