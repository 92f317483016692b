//! Errors of opening or creating a data directory.

use std::io;
use std::path::PathBuf;

use doppel_model::tables::TablesHash;
use doppel_protocol::{RangeMapError, WinnerOrder};

use super::{FORMAT, NAME};
use crate::directory::policy_tables::PolicyTablesError;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The operating system reports an error.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The path of the file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path is not a directory.
    #[error("{} is a file, not a directory; name a directory", .0.display())]
    NoDirectory(PathBuf),
    /// The directory has files, but no manifest.
    #[error("{} is not empty and has no {NAME}; name an empty directory, or one that Doppel made", .0.display())]
    Foreign(PathBuf),
    /// A command that writes the whole directory has not finished.
    #[error(
        "{} has no {NAME}, because `doppel dedup --data` or `doppel restore` was interrupted while it made the directory, \
         or still runs; run that command again, or name another directory. The directory has no data yet: if neither \
         command runs, it may be deleted",
        .0.display()
    )]
    Unfinished(PathBuf),
    /// The directory has no manifest.
    #[error("{} has no {NAME}; name a directory that Doppel made", .0.display())]
    Missing(PathBuf),
    /// The manifest is damaged.
    #[error("{} is damaged ({reason}); restore it from a backup of the directory", path.display())]
    Damaged {
        /// Path of the manifest.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another version of the program wrote the directory, in a layout that this version does not read.
    #[error(
        "{} has format {found}, and this program reads format {FORMAT}; load the pages into a new directory, or use \
         the program that made it",
        path.display()
    )]
    Format {
        /// Path of the manifest.
        path: PathBuf,
        /// Version of the directory's layout, which the manifest states.
        found: u64,
    },
    /// The numbers of shards and ranges contradict each other.
    #[error("{0}: give another --ranges or --shards")]
    Ranges(RangeMapError),
    /// The contents were read with another version of the tokeniser.
    #[error(
        "{} was made by tokeniser version {found}, and this program has {expected}; make a new directory and load the pages \
         again",
        path.display()
    )]
    Tokeniser {
        /// Path of the manifest.
        path: PathBuf,
        /// Version of the tokeniser that made the directory.
        found: u16,
        /// Version of the tokeniser in this program.
        expected: u16,
    },
    /// An option contradicts the manifest.
    #[error(
        "{} was made with --{option} {has}, not {wanted}; leave --{leave} away, or make a new directory",
        path.display()
    )]
    Conflict {
        /// Path of the data directory.
        path: PathBuf,
        /// Name of the option.
        option: &'static str,
        /// Value that the directory has.
        has: String,
        /// Value that was asked for.
        wanted: String,
        /// Name of the option that the caller has given and can leave away.
        leave: &'static str,
    },
    /// The policy and its tables contradict each other.
    #[error(transparent)]
    PolicyTables(#[from] PolicyTablesError),
    /// The file of `--policy-tables` contradicts the manifest.
    #[error(
        "{} was made with the tables {has}, and those of --policy-tables are {wanted}; leave --policy-tables away, or make a new \
         directory",
        path.display()
    )]
    Tables {
        /// Path of the data directory.
        path: PathBuf,
        /// Hash of the tables that the directory has.
        has: TablesHash,
        /// Hash of the tables in the file.
        wanted: TablesHash,
    },
    /// The tables of the directory are lost, and the file of `--policy-tables` has others.
    #[error(
        "{} needs the tables {has}, which are missing; the file of --policy-tables has {wanted}: give the file whose hash is {has}",
        path.display()
    )]
    OtherTables {
        /// Path of the data directory.
        path: PathBuf,
        /// Hash of the tables that the directory needs.
        has: TablesHash,
        /// Hash of the tables in the file.
        wanted: TablesHash,
    },
    /// The file of `--winners` contradicts the manifest.
    #[error(
        "{} elects its winners by {has}, not by {wanted}; leave the rules out of the --winners file, or make a new directory",
        path.display()
    )]
    Winners {
        /// Path of the data directory.
        path: PathBuf,
        /// Rules of the directory.
        has: WinnerOrder,
        /// Rules in the file.
        wanted: WinnerOrder,
    },
}

impl ManifestError {
    /// Whether the arguments contradict each other, independently of the files on disk.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::PolicyTables(error) if error.is_usage())
    }
}

// The message contains the text of the `RangeMapError`, so the error is no source as well.
impl From<RangeMapError> for ManifestError {
    fn from(error: RangeMapError) -> Self {
        Self::Ranges(error)
    }
}
