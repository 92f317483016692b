//! What F of a policy asks of a pair, and what the pair has: the policy's explanation.

use super::{
    Policy, Similarity, combined, copies, fingerprints, imatch, multi_simhash, overlap, projection, simhash,
    supershingle,
};
use crate::Tau;
use crate::signature::Signature;

/// One thing that F asks of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criterion {
    /// What is counted, such as `shingles`.
    pub what: &'static str,
    /// What the two have in common of it.
    pub has: Similarity,
    /// What F asks for, such as `at least 2`.
    pub needed: String,
    /// Whether the pair has it.
    pub is_met: bool,
}

const SUPERSHINGLES: &str = "supershingles";
const PROJECTION: &str = "bits of the projection";

fn at_least(what: &'static str, (shared, of): (u32, u32), least: u32) -> Criterion {
    let (has, needed) = (Similarity { shared, of }, format!("at least {least}"));
    Criterion { what, has, needed, is_met: shared >= least }
}

/// That of sets of shingles.
fn above(what: &'static str, tau: Tau, a: &Signature, b: &Signature, among: &str) -> Criterion {
    let shared = a.shared_with(b);
    let has = Similarity { shared, of: a.size().saturating_add(b.size()).saturating_sub(shared) };
    let is_met = tau.exceeded_by(shared.into(), a.size().into(), b.size().into());
    Criterion { what, has, needed: format!("above {tau}{among}"), is_met }
}

impl Policy {
    /// What F asks of two contents that differ: it is true where all of it is met, and both are
    /// [comparable](Self::comparable).
    #[must_use]
    pub fn criteria(&self, a: &Signature, b: &Signature) -> Vec<Criterion> {
        let (x, y) = (a.payload(), b.payload());
        let supershingles =
            |shared, least| at_least(SUPERSHINGLES, (shared, supershingle::SUPERSHINGLES as u32), least);
        let bits = |shared, least| at_least(PROJECTION, (shared, projection::BITS), least);
        match *self {
            Self::Jaccard { tau, .. } => vec![above("shingles", tau, a, b, "")],
            Self::Content { tau } => vec![above("shingles of the main content", tau, a, b, "")],
            Self::Copies { text, within, across, .. } => {
                let pair = copies::Pair::of(a, b);
                let tau = pair.threshold(text, within, across);
                vec![above("pairs of words of the main content", tau, a, b, pair.words())]
            }
            Self::Supershingle { equal, .. } => vec![supershingles(supershingle::equal(x, y), equal)],
            Self::Projection { agreeing, .. } => vec![bits(projection::agreeing(x, y), agreeing)],
            Self::BySite { across, .. } if !combined::is_one_site(x, y) => {
                vec![bits(combined::measure(x, y).1, across)]
            }
            Self::Combined { equal, agreeing, .. } | Self::BySite { equal, agreeing, .. } => {
                let (shared, agree) = combined::measure(x, y);
                vec![supershingles(shared, equal), bits(agree, agreeing)]
            }
            Self::Simhash { differing } => {
                vec![at_least(
                    "bits of the simhash",
                    (simhash::agreeing(x, y), simhash::BITS),
                    simhash::BITS - differing,
                )]
            }
            Self::Imatch { lexicons, .. } => {
                let shared = (fingerprints::equal(x, y), imatch::fingerprints(lexicons));
                vec![at_least("fingerprints", shared, 1)]
            }
            Self::MultiSimhash { below, .. } => {
                let agreeing = (multi_simhash::agreeing(x, y), multi_simhash::BITS);
                vec![at_least(
                    "bits of the simhash of one lexicon",
                    agreeing,
                    multi_simhash::BITS + 1 - below,
                )]
            }
            Self::Overlap { .. } if overlap::is_one_text(a, b) => vec![at_least("text", (1, 1), 1)],
            Self::Overlap { lines, shared: least } => {
                let (has, needed) = (overlap::measure(a, b), format!("at least {least}"));
                let what = if lines == 1 { "lines" } else { "chunks of lines" };
                vec![Criterion { what, has, needed, is_met: has.shared >= least }]
            }
        }
    }
}
