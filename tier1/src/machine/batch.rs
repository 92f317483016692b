//! Several versions of one page in one batch.
//!
//! The newest version is applied first, and the oldest after it. The page then changes once, and the others are answered as versions that come
//! late, which change next to nothing. What is recorded of a page does not depend on the order of its versions (`page`), so it is what any other
//! order records. The answers differ: earlier versions are `stale`.
//!
//! Without this a batch of n versions of a page costs n changes, and each is told to everyone whom the page concerns.

use std::cmp::Reverse;

use doppel_model::PageId;
use doppel_protocol::Submission;

/// The order in which a batch is applied, as indexes; none if every page has one version in it. A page keeps its places in the batch.
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
        // The oldest says how early the page was seen. After it the others change nothing.
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
