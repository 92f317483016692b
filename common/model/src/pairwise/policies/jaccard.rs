//! The policy `jaccard`: the Jaccard coefficient of the sets of shingles is above tau. A shingle has 5 tokens
//! by default.
//!
//! The comparison is exact, in integers ([`Tau::exceeded_by`]). Candidates come from the bands of the sketch.
//! A pair that shares no band is not linked, so the link relation is F and a shared band.

use crate::Tau;
use crate::pairwise::similarity::Comparison;
use crate::signature::Signature;

/// Compares two contents that differ, and counts the shingles that they share.
pub(in crate::pairwise) fn compare(tau: Tau, a: &Signature, b: &Signature) -> Comparison {
    let shared = a.shared_with(b);
    // Input limits keep both sizes far below the limit of a u32.
    let union = a.size().saturating_add(b.size()).saturating_sub(shared);
    Comparison::new(shared, union, exceeded(tau, shared, a, b))
}

/// Whether the coefficient is above tau. Like [`compare`], but counts shared shingles only if the sizes do
/// not rule it out.
pub(in crate::pairwise) fn similar(tau: Tau, a: &Signature, b: &Signature) -> bool {
    exceeded(tau, a.size().min(b.size()), a, b) && exceeded(tau, a.shared_with(b), a, b)
}

fn exceeded(tau: Tau, shared: u32, a: &Signature, b: &Signature) -> bool {
    tau.exceeded_by(shared.into(), a.size().into(), b.size().into())
}
