//! `jaccard`: the exact Jaccard coefficient of the sets of shingles, of 5 tokens unless told otherwise, is above tau.
//!
//! It is decided in integers ([`Tau::exceeded_by`]). Candidates come from the bands of the sketch; a pair that shares none is
//! not linked, so the relation is F and a common band.

use super::Comparison;
use crate::Tau;
use crate::signature::Signature;

pub(super) fn compare(tau: Tau, a: &Signature, b: &Signature) -> Comparison {
    let shared = a.shared_with(b);
    // Both sizes are of inputs that are far from the limits of a number.
    let either = a.size().saturating_add(b.size()).saturating_sub(shared);
    Comparison::of((shared, either), exceeded(tau, shared, a, b))
}

pub(super) fn similar(tau: Tau, a: &Signature, b: &Signature) -> bool {
    exceeded(tau, a.size().min(b.size()), a, b) && exceeded(tau, a.shared_with(b), a, b)
}

fn exceeded(tau: Tau, shared: u32, a: &Signature, b: &Signature) -> bool {
    tau.exceeded_by(shared.into(), a.size().into(), b.size().into())
}
