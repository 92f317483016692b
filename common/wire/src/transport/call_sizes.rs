//! Splitting of work that is too large for one call.

use doppel_contract::SubmissionOutcome;
use doppel_model::PageUrl;
use doppel_protocol::{Body, Submission};

use crate::transport::wire_error::WireError;

/// Approximate maximum size of the signatures in a call, in bytes. A call may exceed it by one signature of
/// any length.
pub(crate) const SIGNATURES_BYTES: usize = 16 << 20;

/// Maximum size of a body with signatures, in bytes. It has room for [`SIGNATURES_BYTES`] and the signature
/// of the largest page.
pub(crate) const SIGNATURES_BYTES_MAX: usize = 96 << 20;

/// Returns how many leading items go into one call, given their sizes in bytes. The last item may exceed the
/// room, so a call carries at least one item if there is any.
pub(crate) fn count_fitting(sizes: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut bytes = 0;
    let fits = |size: &usize| {
        let before = bytes;
        bytes += size;
        before <= room
    };
    sizes.take_while(fits).count()
}

/// Submits submissions in as many calls as their sizes require. Returns the outcomes in the order of the
/// submissions.
pub(crate) fn submit_in_batches<E>(
    submissions: Vec<Submission>,
    submit: impl Fn(Vec<Submission>) -> Result<Vec<SubmissionOutcome>, E>,
) -> Result<Vec<SubmissionOutcome>, E> {
    let mut outcomes = Vec::with_capacity(submissions.len());
    let mut remaining = submissions;
    while !remaining.is_empty() {
        let rest = remaining.split_off(count_fitting(remaining.iter().map(bytes), SIGNATURES_BYTES));
        outcomes.extend(submit(remaining)?);
        remaining = rest;
    }
    Ok(outcomes)
}

/// Returns the approximate size of a submission in bytes.
fn bytes(submission: &Submission) -> usize {
    let url = |url: &PageUrl| url.as_str().len();
    let body = match &submission.body {
        Body::Content(signature) => signature.as_bytes().len(),
        Body::Redirect(target) => url(target),
        Body::Dead => 0,
    };
    url(&submission.url) + submission.canonical.as_ref().map_or(0, url) + body
}

/// An error of a call without an answer.
pub(crate) trait CallError {
    /// Whether the answer is too large for one call.
    fn is_too_large(&self) -> bool;
}

impl CallError for WireError {
    fn is_too_large(&self) -> bool {
        self.is_answer_too_large()
    }
}

/// Makes a call with a limit. Halves the limit as long as the answer is too large for one call.
pub(crate) fn with_smaller_limits<T, E: CallError>(
    mut limit: usize,
    ask: impl Fn(usize) -> Result<T, E>,
) -> Result<T, E> {
    loop {
        match ask(limit) {
            Err(error) if error.is_too_large() && limit > 1 => limit /= 2,
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_at_least_one_item_and_then_up_to_its_limit() {
        let fitting = |sizes: &[usize]| count_fitting(sizes.iter().copied(), 10);
        assert_eq!(fitting(&[]), 0);
        assert_eq!(fitting(&[100, 1]), 1);
        assert_eq!(fitting(&[5, 5, 100, 1]), 3);
        assert_eq!(fitting(&[5, 6, 1]), 2);
    }
}
