//! The savings of a collection as it is on record.

use std::path::Path;

use doppel_model::PageId;
use doppel_model::pairwise::Policy;
use doppel_protocol::answer::Savings;
use doppel_protocol::{BATCH_MAX, SCAN_LINES_MAX, Scan, Tier1Api, Tier1Error};

use crate::problem::Problem;
use doppel_engine::savings::{Counting, CountingError, Page};

// The pages of a piece of the scan are asked for in one call.
const _: () = assert!(SCAN_LINES_MAX <= BATCH_MAX);

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SavingsError {
    #[error(transparent)]
    Tier1(#[from] Tier1Error),
    #[error(transparent)]
    Counting(#[from] CountingError),
}

/// Reads up to `pages_max` live pages, in two calls of tier 1 for a thousand of them; blocks. What does not fit in memory is
/// sorted in files in `temp_dir`, which have no names.
///
/// # Errors
/// [`Tier1Error::Stopping`] as soon as `stops` says so, because the process does not end before this call; otherwise as tier 1 and the
/// files.
pub(crate) fn read(
    tier1: &dyn Tier1Api,
    policy: Policy,
    temp_dir: &Path,
    pages_max: u64,
    stops: impl Fn() -> bool,
) -> Result<Savings, SavingsError> {
    let mut counting = Counting::new(policy, temp_dir);
    let mut scan = Scan::new(tier1).peekable();
    while scan.peek().is_some() && counting.pages() < pages_max {
        if stops() {
            return Err(Tier1Error::Stopping.into());
        }
        let lines = scan.by_ref().take(SCAN_LINES_MAX).collect::<Result<Vec<_>, Tier1Error>>()?;
        // Only pages that are in groups have anything in common with another.
        let grouped: Vec<PageId> =
            lines.iter().filter(|line| line.group.is_some()).map(|line| line.url.id()).collect();
        let mut views = tier1.pages(&grouped)?.into_iter();
        for line in &lines {
            let view = match line.group {
                None => None,
                // A page that was purged since then is no page any more.
                Some(_) => match views.next().flatten() {
                    None => continue,
                    view => view,
                },
            };
            // The line is older; a page may have died, or have left its group since then.
            let line = view.as_ref().map_or(line, |view| &view.line);
            let content = view.as_ref().and_then(|view| view.content);
            let of = view.as_ref().and_then(|view| view.duplicate_of);
            counting.add(&Page {
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
        CountingError::Stopped => Tier1Error::Stopping.into(),
        error @ CountingError::Files { .. } => error.into(),
    })
}

impl From<SavingsError> for Problem {
    fn from(error: SavingsError) -> Self {
        match error {
            SavingsError::Tier1(refused) => refused.into(),
            SavingsError::Counting(spill) if spill.is_disk_full() => {
                Self::disk_full(format!("the disk is full: {spill}; make room"))
            }
            SavingsError::Counting(spill) => {
                tracing::error!(error = &spill as &(dyn std::error::Error + 'static), "a report failed");
                Self::internal()
            }
        }
    }
}
