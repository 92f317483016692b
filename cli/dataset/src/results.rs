//! Copies the original records of the inputs into up to three directories: the kept, the removed and the
//! superseded ones. Each directory is called a *side*.
//!
//! While the inputs are read first, [`Verdicts`](verdicts::Verdicts) notes which record of each page is its
//! present version. When the groups are known, every record gets a decision, by its number in the order of
//! the inputs. Then the inputs are read a second time, and each record is copied to its side.
//!
//! Invariants:
//! - Each file is written under a temporary name and renamed when it is complete and on disk. A run that is
//!   killed and started again produces the same files.
//! - A record is copied only if the second reading finds the same records as the first. A changed input is an
//!   error.
//! - Memory is bounded by the number of records and pages, independently of their sizes.

mod annotations;
mod checked;
mod earlier;
mod input_paths;
mod locks;
mod originals;
mod part_file;
pub(crate) mod places;
mod record_verdicts;
mod verdicts;
mod writing;

use std::path::{Path, PathBuf};

use clap::Args;
use doppel_crawls::copy::Copied;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::count;

pub use checked::Results;
pub use verdicts::{JudgedRecord, RecordDecisions, TakenRecords, Verdicts};

/// Size of the inputs from which a run reports its memory needs, in bytes.
const MEMORY_TOLD: u64 = 64 << 20;
/// Memory of grouping for each page, in bytes, as measured (docs/evaluation/memory-and-disk.md: 460 with 10
/// million pages, 600 with 5 million short rows that have ids).
const GROUPING_PAGE_BYTES: u64 = 600;
/// Memory of the first reading for each page, in addition to grouping, in bytes: an entry of a table that may
/// be half empty.
pub(crate) const PAGE_BYTES: u64 = 58;
/// Memory of both readings for each record, in bytes.
pub(crate) const RECORD_BYTES: u64 = 1;
/// Memory of both readings for each record with annotations, in bytes.
pub(crate) const ANNOTATED_RECORD_BYTES: u64 = 9;

/// Options that name the directories of results.
#[derive(Debug, Clone, Default, Args)]
pub struct ResultArgs {
    /// Write the kept records to this directory: the original records, file by file, in the format and order
    /// of the inputs (docs/reference/results.md). The inputs are read twice.
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub kept: Option<PathBuf>,
    /// Write the removed records to this directory: near-duplicates of kept records and, with --latest or
    /// --data, also redirects and pages that are gone. Bad records are in neither directory; --bad writes
    /// them.
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub removed: Option<PathBuf>,
    /// Write the records with a newer version to this directory. Needs --latest or --data.
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub superseded: Option<PathBuf>,
    /// Annotate each written record with its group, the winner of the group, and the kept page of which it is
    /// a duplicate. The annotation also has the files and ids of these two records, the similarity, and the
    /// reason of the removal (docs/reference/results.md).
    #[arg(long, help_heading = "Results")]
    pub annotate: bool,
}

/// Describes the copied records in words.
pub(crate) fn written(copied: &Copied) -> String {
    let removed = copied.removed.iter().map(|(reason, records)| format!("{} {reason}", count(*records)));
    let removed: Vec<_> = removed.collect();
    let reasons = if removed.is_empty() { String::new() } else { format!(" ({})", removed.join(", ")) };
    let all: u64 = copied.removed.values().sum();
    let Copied { kept, superseded, bad, skipped, .. } = *copied;
    let superseded =
        if superseded > 0 { format!(", {} superseded", count(superseded)) } else { String::new() };
    let (kept, bad, skipped) = (count(kept), count(bad), count(skipped));
    format!(
        "records written: {kept} kept, {} removed{reasons}{superseded}, {skipped} skipped beside those kept; {bad} bad",
        count(all)
    )
}

impl ResultArgs {
    /// Whether the options name at least one directory.
    pub fn is_wanted(&self) -> bool {
        self.dirs().next().is_some()
    }

    /// The named directories, each with its option.
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
