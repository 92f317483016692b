//! Computes the savings report from the records of a collection.

use std::path::Path;

use doppel_contract::answer::Savings;
use doppel_model::PageId;
use doppel_model::pairwise::Policy;
use doppel_protocol::{BATCH_PAGES_MAX, PageScan, SCAN_LINES_MAX, Tier1Api, Tier1Error};

use crate::problem::Problem;
use doppel_engine::savings::{CountedPage, SavingsCountError, SavingsCounter};

// One call to tier 1 must be able to read all pages of a piece of the scan.
const _: () = assert!(SCAN_LINES_MAX <= BATCH_PAGES_MAX);

/// Reason why the report could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SavingsError {
    #[error(transparent)]
    Tier1(#[from] Tier1Error),
    #[error(transparent)]
    Counting(#[from] SavingsCountError),
}

/// Reads up to `pages_max` live pages, with two calls to tier 1 per thousand pages, and counts the savings.
/// Blocks. Records that do not fit in memory are sorted in unnamed files in `temp_dir`.
///
/// # Errors
/// [`Tier1Error::Stopping`] soon after `stops` returns true, because the process cannot end before this call
/// does. Otherwise the error of tier 1 or of the temporary files.
pub(crate) fn compute(
    tier1: &dyn Tier1Api,
    policy: Policy,
    temp_dir: &Path,
    pages_max: u64,
    stops: impl Fn() -> bool,
) -> Result<Savings, SavingsError> {
    let mut counting = SavingsCounter::new(policy, temp_dir);
    let mut scan = PageScan::new(tier1).peekable();
    while scan.peek().is_some() && counting.pages() < pages_max {
        if stops() {
            return Err(Tier1Error::Stopping.into());
        }
        let lines = scan.by_ref().take(SCAN_LINES_MAX).collect::<Result<Vec<_>, Tier1Error>>()?;
        // Only pages in groups are read, because no other page shares its content.
        let grouped: Vec<PageId> =
            lines.iter().filter(|line| line.group.is_some()).map(|line| line.url.id()).collect();
        let mut views = tier1.pages(&grouped)?.into_iter();
        for line in &lines {
            let view = match line.group {
                None => None,
                // The page was purged after the scan read its line.
                Some(_) => match views.next().flatten() {
                    None => continue,
                    view => view,
                },
            };
            // The record is newer than the line of the scan: the page may have died or left its group
            // meanwhile.
            let line = view.as_ref().map_or(line, |view| &view.line);
            let content = view.as_ref().and_then(|view| view.content);
            let of = view.as_ref().and_then(|view| view.duplicate_of);
            counting.add(&CountedPage {
                url: &line.url,
                status: line.status,
                of: line.duplicate_of.as_ref(),
                content,
                is_copy: content.is_some() && of.map(|of| of.content) == content,
                bytes: None,
            })?;
        }
    }
    let truncated = scan.peek().is_some();
    counting.finish(truncated, &stops).map_err(|error| match error {
        SavingsCountError::Stopped => Tier1Error::Stopping.into(),
        error @ SavingsCountError::Files { .. } => error.into(),
    })
}

impl From<SavingsError> for Problem {
    fn from(error: SavingsError) -> Self {
        match error {
            SavingsError::Tier1(refused) => refused.into(),
            SavingsError::Counting(spill) if spill.is_disk_full() => {
                Self::disk_full(format!("the disk is full: {spill}; free disk space"))
            }
            SavingsError::Counting(spill) => {
                tracing::error!(
                    error = &spill as &(dyn std::error::Error + 'static),
                    "the savings report failed"
                );
                Self::internal()
            }
        }
    }
}
