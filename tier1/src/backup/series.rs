//! A full backup and its increments, in order, each of which names the one that it follows.
//!
//! A series is read file by file, and every file to its end: what comes out of it in order, applied, is the state that the
//! last file was made of. One file alone is a series, too.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use doppel_protocol::BackupSummary;

use super::{BackupHash, Head, Kind, Reader, Unusable};
use crate::store::Write;

/// Bytes that are read of a file at once.
const READ_BYTES: usize = 1 << 20;

/// Why files are no series.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// None was named.
    #[error("no backup is named")]
    Empty,
    /// A directory.
    #[error("{} is a directory, not a backup; name the file", .0.display())]
    Directory(PathBuf),
    /// A pipe, where files are read twice.
    #[error("{} is no regular file, and a series is read twice; name a file", .0.display())]
    Pipe(PathBuf),
    /// A file cannot be read, or is damaged, cut off or none of this program.
    #[error("cannot use {}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Unusable,
    },
    /// The first file has only changes.
    #[error(
        "{} has only what changed since the backup {follows}: name the full backup first, then its increments in \
         the order in which they were made",
        path.display()
    )]
    NoFull {
        /// The file.
        path: PathBuf,
        /// What it follows.
        follows: BackupHash,
    },
    /// A file that follows none, where an increment is expected.
    #[error("{} is a full backup: it comes first, and increments follow it", .0.display())]
    Full(PathBuf),
    /// A file follows another one than that before it.
    #[error(
        "{} follows the backup {follows}, and {} before it is {hash}: an increment between them is missing, or they are \
         not of one series or not in order",
        path.display(),
        before.display()
    )]
    Gap {
        /// The file.
        path: PathBuf,
        /// What it follows.
        follows: BackupHash,
        /// The file before it.
        before: PathBuf,
        /// The hash of that.
        hash: BackupHash,
    },
    /// A file is of another collection than that before it.
    #[error("{} is of another collection than {}", path.display(), before.display())]
    OtherCollection {
        /// The file.
        path: PathBuf,
        /// The file before it.
        before: PathBuf,
    },
    /// What is sorted for a comparison cannot be kept.
    #[error("cannot keep what increments changed in {}", dir.display())]
    Sorting {
        /// Where.
        dir: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl SeriesError {
    pub(super) fn unusable(path: &Path, source: Unusable) -> Self {
        Self::Unusable { path: path.to_owned(), source }
    }
}

/// A series that is being read.
pub struct Series {
    path: PathBuf,
    reader: Reader<BufReader<File>>,
    rest: VecDeque<PathBuf>,
    /// What the files before had.
    before: BackupSummary,
    /// The hashes of the files that were read to their end.
    hashes: Vec<BackupHash>,
}

/// What a series has that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Rows of the full backup; the changes that follow them, in it and in the increments; bytes of all files.
    pub summary: BackupSummary,
    /// The hash of each file.
    pub hashes: Vec<BackupHash>,
}

impl Series {
    /// Opens the first file, which has to be a full backup.
    ///
    /// # Errors
    /// When it cannot be read, or is no full backup of this version.
    pub fn open(files: &[PathBuf]) -> Result<Self, SeriesError> {
        let mut rest: VecDeque<PathBuf> = files.iter().cloned().collect();
        let path = rest.pop_front().ok_or(SeriesError::Empty)?;
        let reader = open(&path)?;
        match reader.head().follows {
            None => Ok(Self { path, reader, rest, before: BackupSummary::default(), hashes: Vec::new() }),
            Some(follows) => Err(SeriesError::NoFull { path, follows }),
        }
    }

    /// What the file is of that is being read.
    #[must_use]
    pub fn head(&self) -> &Head {
        self.reader.head()
    }

    /// Reads all files to their end.
    ///
    /// # Errors
    /// When one is damaged or cut off, is of another collection, or does not follow that before it.
    pub fn verify(mut self) -> Result<Verified, SeriesError> {
        while self.writes()?.is_some() {}
        Ok(self.verified())
    }

    /// What was read so far.
    pub(super) fn verified(&self) -> Verified {
        Verified { summary: self.summary(), hashes: self.hashes.clone() }
    }

    /// Whether the full backup is being read, and no increment yet.
    pub(super) fn is_at_full(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The next writes, to be applied in order; none when all files were read and are whole.
    pub(super) fn writes(&mut self) -> Result<Option<(Kind, Vec<Write>)>, SeriesError> {
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
            if next.head().manifest != self.head().manifest {
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
        // What an increment has changes the rows of the full backup.
        let (rows, changes) = if self.reader.head().follows.is_none() {
            (rows, changes)
        } else {
            (before.rows, before.changes + rows + changes)
        };
        BackupSummary { rows, changes, bytes: before.bytes + bytes }
    }
}

/// Refuses what can be read once alone.
///
/// # Errors
/// [`SeriesError::Pipe`] names the first that is no regular file. One that is not there is found later.
pub fn refuse_pipes(files: &[PathBuf]) -> Result<(), SeriesError> {
    let is_pipe =
        |file: &&PathBuf| fs::metadata(file).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    files.iter().find(is_pipe).map_or(Ok(()), |file| Err(SeriesError::Pipe(file.clone())))
}

/// Opens a file.
pub(super) fn open(path: &Path) -> Result<Reader<BufReader<File>>, SeriesError> {
    let unusable = |source| SeriesError::unusable(path, source);
    let file = File::open(path).map_err(|error| unusable(Unusable::Io(error)))?;
    if path.is_dir() {
        return Err(SeriesError::Directory(path.to_owned()));
    }
    Reader::open(BufReader::with_capacity(READ_BYTES, file)).map_err(unusable)
}
