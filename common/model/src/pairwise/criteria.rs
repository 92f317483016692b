//! Explains the decision of a policy about a pair: each criterion of F, and whether the pair meets it.

use super::{
    Policy, Similarity, combined, copies, fingerprints, imatch, multi_simhash, overlap, projection, simhash,
    supershingle,
};
use crate::Tau;
use crate::signature::Signature;

/// A criterion of F, applied to a pair of contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyCriterion {
    /// The units that are counted, such as `shingles`.
    pub what: &'static str,
    /// The number of units that both contents share, and the number of all units.
    pub has: Similarity,
    /// The requirement of F, such as `at least 2`.
    pub needed: String,
    /// Whether the pair meets the requirement.
    pub is_met: bool,
}

const SUPERSHINGLES: &str = "supershingles";
const PROJECTION: &str = "bits of the projection";

/// The criterion that at least `least` units are shared.
fn at_least(what: &'static str, has: Similarity, least: u32) -> PolicyCriterion {
    PolicyCriterion { what, has, needed: format!("at least {least}"), is_met: has.shared >= least }
}

/// The criterion that the Jaccard coefficient of two sets is above tau. `note` follows the threshold in
/// `needed`.
fn above(what: &'static str, tau: Tau, a: &Signature, b: &Signature, note: &str) -> PolicyCriterion {
    let shared = a.shared_with(b);
    let has = Similarity { shared, of: a.size().saturating_add(b.size()).saturating_sub(shared) };
    let is_met = tau.exceeded_by(shared.into(), a.size().into(), b.size().into());
    PolicyCriterion { what, has, needed: format!("above {tau}{note}"), is_met }
}

impl Policy {
    /// The criteria of F for two different contents. F accepts the pair if all criteria are met and both
    /// contents are [comparable](Self::comparable).
    #[must_use]
    pub fn criteria(&self, a: &Signature, b: &Signature) -> Vec<PolicyCriterion> {
        let (x, y) = (a.payload(), b.payload());
        let supershingles = |shared, least| {
            at_least(SUPERSHINGLES, Similarity { shared, of: supershingle::SUPERSHINGLES as u32 }, least)
        };
        let bits = |shared, least| at_least(PROJECTION, Similarity { shared, of: projection::BITS }, least);
        match *self {
            Self::Jaccard { tau, .. } => vec![above("shingles", tau, a, b, "")],
            Self::Content { tau } => vec![above("shingles of the main content", tau, a, b, "")],
            Self::Copies { text, within, across, .. } => {
                let pair = copies::PairKind::of(a, b);
                let tau = pair.threshold(text, within, across);
                vec![above("pairs of words of the main content", tau, a, b, pair.threshold_note())]
            }
            Self::Supershingle { equal, .. } => vec![supershingles(supershingle::equal(x, y), equal)],
            Self::Projection { agreeing, .. } => vec![bits(projection::agreeing(x, y), agreeing)],
            Self::BySite { across, .. } if !combined::is_one_site(x, y) => {
                vec![bits(combined::measure(x, y).bits, across)]
            }
            Self::Combined { equal, agreeing, .. } | Self::BySite { equal, agreeing, .. } => {
                let measured = combined::measure(x, y);
                vec![supershingles(measured.supershingles, equal), bits(measured.bits, agreeing)]
            }
            Self::Simhash { differing } => {
                let has = Similarity { shared: simhash::agreeing(x, y), of: simhash::BITS };
                vec![at_least("bits of the simhash", has, simhash::BITS - differing)]
            }
            Self::Imatch { lexicons, .. } => {
                let has =
                    Similarity { shared: fingerprints::equal(x, y), of: imatch::fingerprints(lexicons) };
                vec![at_least("fingerprints", has, 1)]
            }
            Self::MultiSimhash { below, .. } => {
                let has = Similarity { shared: multi_simhash::agreeing(x, y), of: multi_simhash::BITS };
                vec![at_least("bits of the simhash of one lexicon", has, multi_simhash::BITS + 1 - below)]
            }
            Self::Overlap { .. } if overlap::is_one_text(a, b) => {
                vec![at_least("text", Similarity::of_copies(1), 1)]
            }
            Self::Overlap { lines, shared: least } => {
                let what = if lines == 1 { "lines" } else { "chunks of lines" };
                vec![at_least(what, overlap::measure(a, b), least)]
            }
        }
    }
}
