//! A series of backups: a full backup and its increments, in order. Each increment names the file that it
//! follows.
//!
//! A series is read file by file, and each file to its end. A caller that applies all writes in order gets
//! the state from which the last file was made. A full backup alone is also a series.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use doppel_protocol::BackupSummary;

use super::{BackupFileError, BackupHash, BackupHead, BackupReader, BlockKind};
use crate::storage::store::Write;

/// Number of bytes to read from a file at a time.
const READ_BYTES: usize = 1 << 20;

/// Why files cannot be used as a series of backups.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// No file was named.
    #[error("no backup file was named")]
    Empty,
    /// The path is a directory.
    #[error("{} is a directory, not a backup; name the file", .0.display())]
    Directory(PathBuf),
    /// The path is a pipe or a device, but the files are read twice.
    #[error("{} is no regular file, and a series is read twice; name a file", .0.display())]
    Pipe(PathBuf),
    /// A file cannot be read, is damaged or cut off, or is not a backup.
    #[error("cannot use {}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason why the file cannot be used.
        source: BackupFileError,
    },
    /// The first file is an increment.
    #[error(
        "{} is an increment, which follows the backup {follows}: name the full backup first, then its increments in \
         the order in which they were made",
        path.display()
    )]
    NoFull {
        /// The file.
        path: PathBuf,
        /// Backup that the file follows.
        follows: BackupHash,
    },
    /// A later file is a full backup instead of an increment.
    #[error("{} is a full backup: it comes first, and increments follow it", .0.display())]
    Full(PathBuf),
    /// A file follows a backup other than the previous file.
    #[error(
        "{} follows the backup {follows}, but {} before it is the backup {hash}: an increment between them is missing, \
         or the files are not in order or of different series",
        path.display(),
        before.display()
    )]
    Gap {
        /// The file.
        path: PathBuf,
        /// Backup that the file follows.
        follows: BackupHash,
        /// The previous file.
        before: PathBuf,
        /// Hash of the previous file.
        hash: BackupHash,
    },
    /// A file is of another collection than the previous file.
    #[error("{} is of another collection than {}", path.display(), before.display())]
    OtherCollection {
        /// The file.
        path: PathBuf,
        /// The previous file.
        before: PathBuf,
    },
    /// The temporary files for sorting changes cannot be written or read.
    #[error("cannot sort the changes of the series in temporary files in {}", dir.display())]
    Sorting {
        /// Directory of the temporary files.
        dir: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
}

impl SeriesError {
    pub(super) fn unusable(path: &Path, source: BackupFileError) -> Self {
        Self::Unusable { path: path.to_owned(), source }
    }
}

/// A series of backups that is open for reading.
pub struct Series {
    /// Path of the present file.
    path: PathBuf,
    reader: BackupReader<BufReader<File>>,
    /// Files that are not yet open.
    rest: VecDeque<PathBuf>,
    /// Totals of the files before the present one.
    before: BackupSummary,
    /// Hashes of the files that were read to their end.
    hashes: Vec<BackupHash>,
}

/// Totals of a series that was read and verified to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedSeries {
    /// Number of rows in the full backup, number of all later changes and increment rows, and bytes of all
    /// files.
    pub summary: BackupSummary,
    /// Hash of each file.
    pub hashes: Vec<BackupHash>,
}

impl Series {
    /// Opens the first file, which must be a full backup.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a full backup of this version.
    pub fn open(files: &[PathBuf]) -> Result<Self, SeriesError> {
        let mut rest: VecDeque<PathBuf> = files.iter().cloned().collect();
        let path = rest.pop_front().ok_or(SeriesError::Empty)?;
        let reader = open(&path)?;
        match reader.head().follows {
            None => Ok(Self { path, reader, rest, before: BackupSummary::default(), hashes: Vec::new() }),
            Some(follows) => Err(SeriesError::NoFull { path, follows }),
        }
    }

    /// Head of the present file.
    #[must_use]
    pub fn head(&self) -> &BackupHead {
        self.reader.head()
    }

    /// Reads and verifies all files.
    ///
    /// # Errors
    /// If a file is damaged or cut off, is of another collection, or does not follow the previous file.
    pub fn verify(mut self) -> Result<VerifiedSeries, SeriesError> {
        while self.writes()?.is_some() {}
        Ok(self.verified())
    }

    /// Totals of what was read so far.
    pub(super) fn verified(&self) -> VerifiedSeries {
        VerifiedSeries { summary: self.summary(), hashes: self.hashes.clone() }
    }

    /// Whether the present file is the full backup.
    pub(super) fn is_at_full(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns the next writes, which the caller applies in order. Returns `None` after all files were read
    /// and verified.
    pub(super) fn writes(&mut self) -> Result<Option<(BlockKind, Vec<Write>)>, SeriesError> {
        loop {
            let entries =
                self.reader.entries().map_err(|source| SeriesError::unusable(&self.path, source))?;
            if entries.is_some() {
                return Ok(entries);
            }
            let hash = self.reader.hash();
            let Some(path) = self.rest.pop_front() else {
                self.hashes.push(hash);
                return Ok(None);
            };
            let next = open(&path)?;
            let before = || self.path.clone();
            let Some(follows) = next.head().follows else { return Err(SeriesError::Full(path)) };
            if next.head().directory_manifest != self.head().directory_manifest {
                return Err(SeriesError::OtherCollection { path, before: before() });
            }
            if follows != hash {
                return Err(SeriesError::Gap { path, follows, before: before(), hash });
            }
            self.before = self.summary();
            self.hashes.push(hash);
            (self.path, self.reader) = (path, next);
        }
    }

    fn summary(&self) -> BackupSummary {
        let BackupSummary { rows, changes, bytes } = self.reader.summary();
        let before = self.before;
        // Rows of an increment change rows of the full backup, so they count as changes.
        let (rows, changes) = if self.reader.head().follows.is_none() {
            (rows, changes)
        } else {
            (before.rows, before.changes + rows + changes)
        };
        BackupSummary { rows, changes, bytes: before.bytes + bytes }
    }
}

/// Refuses files that can be read only once, such as pipes.
///
/// # Errors
/// [`SeriesError::Pipe`] names the first such file. A missing file is reported when it is opened.
pub fn refuse_pipes(files: &[PathBuf]) -> Result<(), SeriesError> {
    let is_pipe =
        |file: &&PathBuf| fs::metadata(file).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    files.iter().find(is_pipe).map_or(Ok(()), |file| Err(SeriesError::Pipe(file.clone())))
}

/// Opens one file of a series.
pub(super) fn open(path: &Path) -> Result<BackupReader<BufReader<File>>, SeriesError> {
    let unusable = |source| SeriesError::unusable(path, source);
    let file = File::open(path).map_err(|error| unusable(BackupFileError::Io(error)))?;
    if path.is_dir() {
        return Err(SeriesError::Directory(path.to_owned()));
    }
    BackupReader::open(BufReader::with_capacity(READ_BYTES, file)).map_err(unusable)
}
