//! The target of an export: standard output, a device or pipe, or a regular file.
//!
//! A regular file is replaced atomically: it appears complete, or keeps its old content. The export is
//! written to a temporary file in the same directory, flushed to disk, and renamed over the old file. Until
//! the rename, everybody can read the old file. Even the command that writes the export can use the old file
//! as an input.

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

/// Mode of a new file before the umask applies, as in the standard library.
const NEW_FILE: u32 = 0o666;
/// Mode of a temporary file that is about to receive the permissions of the file that it replaces.
const PRIVATE: u32 = 0o600;

/// Target of an export: standard output, a device or pipe, or a regular file.
#[derive(Debug)]
pub enum Destination {
    /// Standard output: `-`, or another path to the file or pipe that standard output is redirected to.
    Standard,
    /// A device or a pipe, opened for writing.
    Special(PathBuf, File),
    /// A regular file, which the export replaces as a whole.
    Whole(Replacement),
}

/// A regular file that an export creates or replaces.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    /// Permissions of the existing file. `None` if the export creates the file.
    permissions: Option<Permissions>,
}

impl Destination {
    /// Opens `path` as the target of an export. Checks that the path can be written, so that the user learns
    /// of a wrong path before hours of work. The check does not change the content of an existing file. If
    /// the target is standard output, [`output::reserve_for_data`] reserves it for the export.
    ///
    /// # Errors
    /// If the path cannot be written.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let to = if path == Path::new("-") {
            Self::Standard
        } else {
            Self::of_path(path).with_context(|| cannot_write(path))?
        };
        if matches!(to, Self::Standard) {
            output::reserve_for_data();
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
                // Replaces the file that a symbolic link points to, not the link.
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

    /// Writes the export with `write`, and returns the result of `write`.
    ///
    /// # Errors
    /// If `write` fails, or if the target cannot be written. A regular file then keeps its old content,
    /// unless the error comes from the directory sync after the rename.
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

    /// Creates the temporary file beside the target. Dropping the temporary file removes it.
    fn begin(&self) -> io::Result<NamedTempFile> {
        let mode = if self.permissions.is_none() { NEW_FILE } else { PRIVATE };
        let mut beside = tempfile::Builder::new();
        beside.prefix(".doppel-").suffix(".part");
        // Opens the file itself, because an error of `tempfile` would show the temporary name.
        let create = |path: &Path| File::options().write(true).create_new(true).mode(mode).open(path);
        let file = interrupt::create_removable(|| beside.make_in(self.dir(), create))?;
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

/// Whether the file is standard output, which a shell may have redirected. Always false for character
/// devices, such as a terminal or `/dev/null`: they are targets of their own.
fn is_stdout(metadata: &Metadata) -> bool {
    let stdout = io::stdout().as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    !metadata.file_type().is_char_device() && stdout.is_ok_and(|out| is_same_file(&out, metadata))
}

/// Whether `a` and `b` are the metadata of one file: their devices and inodes are equal.
pub fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Directory that contains the file or will contain it: `.` for a bare file name.
pub fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Whether two paths name the same regular file, which need not exist yet. Always false for pipes and other
/// special files: a program can read and write them without destroying data.
pub fn is_same_path(a: &Path, b: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file);
    match (file(a), file(b)) {
        // Also detects hard links, and file systems that are mounted twice.
        (Some(a), Some(b)) => is_same_file(&a, &b),
        _ => place(a).is_some_and(|a| place(b) == Some(a)),
    }
}

/// Refuses an output path that is also an input, because the output would destroy its own input.
///
/// # Errors
/// [`Failure::Usage`] if `path` names the same file as any of `inputs`.
pub fn refuse_input(option: &str, path: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    match inputs.iter().find(|input| is_same_path(input, path)) {
        Some(input) => {
            let (path, input) = (path.display(), input.display());
            Err(Failure::Usage(format!("{option} {path} would replace the input {input}; name another file")))
        }
        None => Ok(()),
    }
}

/// Canonical path of a regular file, equal for all spellings of the path. The file need not exist yet, but
/// its directory must: otherwise the result is `None`. Also `None` for special files and directories.
fn place(path: &Path) -> Option<PathBuf> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return None; // a pipe or a terminal can be input and output at once
    }
    fs::canonicalize(path)
        .ok()
        .or_else(|| Some(fs::canonicalize(directory_of(path)).ok()?.join(path.file_name()?)))
}
