//! How much one call brings or asks for where all would be too much.

use doppel_model::PageUrl;
use doppel_protocol::{Body, Outcome, Submission};

use crate::peer::WireError;

/// The approximate size of the signatures in a call, in bytes. One more is always brought, however long it is.
pub(crate) const SIGNATURES_BYTES: usize = 16 << 20;

/// A body of signatures, in bytes: above [`SIGNATURES_BYTES`] and the signature of the largest page.
pub(crate) const SIGNATURES_BYTES_MAX: usize = 96 << 20;

/// How many of the first a call brings, by their sizes in bytes: one more than there is room for, and at least one.
pub(crate) fn fitting(sizes: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut bytes = 0;
    let fits = |size: &usize| {
        let before = bytes;
        bytes += size;
        before <= room
    };
    sizes.take_while(fits).count()
}

/// Hands over submissions with as many calls as their sizes ask for. Outcomes are in their order.
pub(crate) fn in_pieces<E>(
    submissions: Vec<Submission>,
    submit: impl Fn(Vec<Submission>) -> Result<Vec<Outcome>, E>,
) -> Result<Vec<Outcome>, E> {
    let mut outcomes = Vec::with_capacity(submissions.len());
    let mut left = submissions;
    while !left.is_empty() {
        let rest = left.split_off(fitting(left.iter().map(bytes), SIGNATURES_BYTES));
        outcomes.extend(submit(left)?);
        left = rest;
    }
    Ok(outcomes)
}

/// The approximate size of a submission.
fn bytes(submission: &Submission) -> usize {
    let url = |url: &PageUrl| url.as_str().len();
    let body = match &submission.body {
        Body::Content(signature) => signature.as_bytes().len(),
        Body::Redirect(target) => url(target),
        Body::Dead => 0,
    };
    url(&submission.url) + submission.canonical.as_ref().map_or(0, url) + body
}

/// Why there is no answer.
pub(crate) trait NoAnswer {
    /// Whether it is too large for one call.
    fn is_too_large(&self) -> bool;
}

impl NoAnswer for WireError {
    fn is_too_large(&self) -> bool {
        self.is_answer_too_large()
    }
}

/// Asks for fewer where the answer with all is too large for one call.
pub(crate) fn fewer<T, E: NoAnswer>(mut limit: usize, ask: impl Fn(usize) -> Result<T, E>) -> Result<T, E> {
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
    fn a_call_brings_at_least_one_and_then_up_to_its_limit() {
        let fitting = |sizes: &[usize]| fitting(sizes.iter().copied(), 10);
        assert_eq!(fitting(&[]), 0);
        assert_eq!(fitting(&[100, 1]), 1);
        assert_eq!(fitting(&[5, 5, 100, 1]), 3);
        assert_eq!(fitting(&[5, 6, 1]), 2);
    }
}
