//! Why a data directory cannot be used.

use std::io;
use std::path::PathBuf;

use doppel_model::tables::TablesHash;
use doppel_protocol::{RangeMapError, WinnerOrder};

use super::{FORMAT, NAME};
use crate::directory::policy_tables::PolicyTablesError;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The operating system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Something else than a directory.
    #[error("{} is a file, not a directory; name a directory", .0.display())]
    NoDirectory(PathBuf),
    /// Files, and no manifest.
    #[error("{} is not empty and has no {NAME}; name an empty directory, or one that Doppel made", .0.display())]
    Foreign(PathBuf),
    /// Files of a command that makes a directory as a whole, and did not come to its end.
    #[error(
        "{} has no {NAME}, because `doppel dedup --data` or `doppel restore` was interrupted while it made the directory, \
         or is under way; give that command again, or name another directory. Nothing in it counts yet: when neither of \
         them runs, it may be deleted",
        .0.display()
    )]
    Unfinished(PathBuf),
    /// No data directory.
    #[error("{} has no {NAME}; name a directory that Doppel made", .0.display())]
    Missing(PathBuf),
    /// Not what was written.
    #[error("{} is damaged ({reason}); restore it from a backup of the directory", path.display())]
    Damaged {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another program version's, with a layout that this one does not read.
    #[error(
        "{} has format {found}, and this program reads format {FORMAT}; load the pages into a new directory, or use \
         the program that made it",
        path.display()
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// Numbers of shards and ranges that do not go together.
    #[error("{0}: give another --ranges or --shards")]
    Ranges(RangeMapError),
    /// Its contents are of another version of the tokeniser.
    #[error(
        "{} was made by tokeniser version {found}, and this program has {expected}; make a new directory and load the pages \
         again",
        path.display()
    )]
    Tokeniser {
        /// The manifest.
        path: PathBuf,
        /// Its tokeniser.
        found: u16,
        /// This program's.
        expected: u16,
    },
    /// The command line contradicts it.
    #[error(
        "{} was made with --{option} {has}, not {wanted}; leave --{leave} away, or make a new directory",
        path.display()
    )]
    Conflict {
        /// The data directory.
        path: PathBuf,
        /// The option's name.
        option: &'static str,
        /// What the directory has.
        has: String,
        /// What was asked for.
        wanted: String,
        /// The option that asked for it.
        leave: &'static str,
    },
    /// Its policy and tables do not go together.
    #[error(transparent)]
    PolicyTables(#[from] PolicyTablesError),
    /// The file of `--policy-tables` contradicts it.
    #[error(
        "{} was made with the tables {has}, and those of --policy-tables are {wanted}; leave --policy-tables away, or make a new \
         directory",
        path.display()
    )]
    Tables {
        /// The data directory.
        path: PathBuf,
        /// What the directory has.
        has: TablesHash,
        /// What was asked for.
        wanted: TablesHash,
    },
    /// Its own tables are lost, and those of `--policy-tables` are others.
    #[error(
        "{} needs the tables {has}, which it has not got; the file of --policy-tables has {wanted}: give the file whose hash is {has}",
        path.display()
    )]
    OtherTables {
        /// The data directory.
        path: PathBuf,
        /// What the directory needs.
        has: TablesHash,
        /// What was given.
        wanted: TablesHash,
    },
    /// The file of `--winners` contradicts it.
    #[error(
        "{} elects its winners by {has}, not by {wanted}; leave the rules out of the --winners file, or make a new directory",
        path.display()
    )]
    Winners {
        /// The data directory.
        path: PathBuf,
        /// What the directory has.
        has: WinnerOrder,
        /// What was asked for.
        wanted: WinnerOrder,
    },
}

impl ManifestError {
    /// Whether the arguments do not go together, whatever is on disk.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::PolicyTables(error) if error.is_usage())
    }
}

// Its text is part of this one's, so it is not named as the source again.
impl From<RangeMapError> for ManifestError {
    fn from(error: RangeMapError) -> Self {
        Self::Ranges(error)
    }
}
