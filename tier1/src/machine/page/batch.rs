//! The order in which a batch applies several versions of one page.
//!
//! The machine applies the newest version first, then the oldest, then the others. The page then changes
//! once. The remaining versions count as late versions, which change almost nothing. The final record does
//! not depend on the order of the versions (see `machine::page`), so every order gives the same record. The
//! answers do differ: earlier versions are `stale`.
//!
//! In the order of arrival, n versions of a page would cause n changes. Each change would be sent to every
//! page and group that it affects.

use std::cmp::Reverse;

use doppel_model::PageId;
use doppel_protocol::Submission;

/// Returns the order, as indexes into the batch, in which to apply the submissions. Returns `None` if no page
/// has two versions in the batch. The versions of a page exchange their positions among themselves only.
pub(crate) fn newest_first<T>(
    batch: &[T],
    submission: impl for<'t> Fn(&'t T) -> &'t Submission,
) -> Option<Vec<usize>> {
    let page = |(at, one): (usize, &T)| (submission(one).url.id(), at);
    let mut by_page: Vec<(PageId, usize)> = batch.iter().enumerate().map(page).collect();
    by_page.sort_unstable();
    if by_page.is_sorted_by(|(a, _), (b, _)| a < b) {
        return None;
    }
    let mut order: Vec<usize> = (0..batch.len()).collect();
    for versions in by_page.chunk_by(|(a, _), (b, _)| a == b) {
        let mut newest: Vec<usize> = versions.iter().map(|(_, at)| *at).collect();
        newest.sort_by_key(|at| Reverse(submission(&batch[*at]).place()));
        // The oldest version sets the date of first sight. After it, the remaining versions do not change
        // that date.
        if let Some((_, rest)) = newest.split_first_mut()
            && !rest.is_empty()
        {
            rest.rotate_right(1);
        }
        for ((_, place), from) in versions.iter().zip(newest) {
            order[*place] = from;
        }
    }
    Some(order)
}
