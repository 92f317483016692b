//! The original records of the inputs as sets of files: those that are kept, those that are removed, and those that are superseded.
//!
//! While the inputs are read, [`Verdicts`](verdicts::Verdicts) notes which record of each page is its present version. When the
//! groups are known, that becomes what is decided of each record, by its number in the order of the inputs. Then the inputs are read once more, and each
//! record is copied to its side.
//!
//! Invariants:
//! - each file is written under another name and renamed when it is whole and on disk; a run that is killed and started again ends in
//!   the same files;
//! - a record is copied only where the second reading meets what the first one met: an input that has changed is an error;
//! - memory is bounded by the number of records and pages, whatever their sizes.

mod checked;
mod earlier;
mod locks;
mod notes;
mod originals;
mod part_file;
mod places;
mod record_verdicts;
mod taken;
mod verdicts;
mod writing;

use std::path::{Path, PathBuf};

use clap::Args;
use doppel_terminal::exit::Failure;

pub use checked::Results;
pub use verdicts::{RecordDecisions, TakenRecords, Verdicts};

/// Bytes of inputs from which on it is said what memory a run takes.
const MEMORY_TOLD: u64 = 64 << 20;
/// What grouping takes for each page, in bytes, as measured (docs/evaluation/memory-and-disk.md: 460 with 10 million pages, 600 with 5 million short rows that have ids).
const GROUPING_PAGE_BYTES: u64 = 600;
/// What the first reading takes for each page beside what grouping takes, in bytes: an entry of a table that may be half empty.
pub(crate) const PAGE_BYTES: u64 = 58;
/// What both readings take for each record.
pub(crate) const RECORD_BYTES: u64 = 1;
/// The same with annotations.
pub(crate) const ANNOTATED_RECORD_BYTES: u64 = 9;

/// Where the original records go.
#[derive(Debug, Clone, Default, Args)]
pub struct ResultArgs {
    /// Write the records that are kept to this directory: the original records, file by file, in the format and order of the inputs
    /// (docs/reference/results.md). The inputs are read twice.
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub kept: Option<PathBuf>,
    /// Write the records that are removed to this directory: near-duplicates of records that are kept; with --latest or --data also
    /// redirects and pages that are gone. Bad records are in neither; --bad has them.
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub removed: Option<PathBuf>,
    /// Write the records of which there is a newer version to this directory, with --latest or --data.
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub superseded: Option<PathBuf>,
    /// Write beside each of these records its group, the winner of that, the kept page that it is a duplicate of, the files and ids of these two
    /// records, how similar it is to the kept one, and why it is removed (docs/reference/results.md has the fields).
    #[arg(long, help_heading = "Results")]
    pub annotate: bool,
}

impl ResultArgs {
    /// Whether any are wanted.
    pub fn is_wanted(&self) -> bool {
        self.dirs().next().is_some()
    }

    /// The directories that are wanted, each with its option.
    fn dirs(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let dirs = [("--kept", &self.kept), ("--removed", &self.removed), ("--superseded", &self.superseded)];
        dirs.into_iter().filter_map(|(option, dir)| Some((option, dir.as_deref()?)))
    }

    fn check_options(&self) -> Result<(), Failure> {
        if self.annotate && !self.is_wanted() {
            return Err(Failure::Usage("--annotate needs --kept, --removed or --superseded".to_owned()));
        }
        Ok(())
    }
}
