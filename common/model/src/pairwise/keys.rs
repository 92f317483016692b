//! Keys: two contents are candidates when they have one in common.
//!
//! Where F is a coefficient of Jaccard they are the bands of the sketch, of which a pair at tau shares one almost surely, and the link
//! relation asks for it. For every other policy each pair that is F shares a key, so the relation is F alone.

use super::{
    Bands, Policy, combined, fingerprints, multi_simhash, overlap, projection, simhash, supershingle,
};
use crate::signature::Signature;

/// A key: what it is compared by above the low byte, which is the number of the key among those of a signature; of more than 256 keys
/// several have one number.
pub type Key = u64;

impl Policy {
    /// The bands of a sketch, where there is one: a pair at tau shares at least one of them almost surely.
    #[must_use]
    pub fn bands(&self) -> Option<Bands> {
        self.metric().map(Bands::for_tau)
    }

    /// Calls `each` for every key of a signature.
    pub fn keys(&self, signature: &Signature, mut each: impl FnMut(Key)) {
        let payload = signature.payload();
        match *self {
            Self::Jaccard { .. } | Self::Content { .. } | Self::Copies { .. } => {
                let Some(bands) = self.bands() else { return };
                let keys = bands.keys(signature.sketch()).enumerate();
                keys.for_each(|(band, key)| each(u64::from(key) << 8 | band as u64));
            }
            Self::Supershingle { .. } => supershingle::keys(payload, each),
            Self::Projection { agreeing, .. } => projection::keys(payload, agreeing, each),
            Self::Combined { .. } => combined::keys(payload, each),
            Self::BySite { across, .. } => {
                combined::keys(payload, &mut each);
                combined::keys_across(payload, across, each);
            }
            Self::Simhash { differing } => simhash::keys(payload, differing, each),
            Self::Imatch { .. } => fingerprints::keys(payload, each),
            Self::MultiSimhash { below, .. } => multi_simhash::keys(payload, below, each),
            Self::Overlap { shared, .. } => overlap::keys(signature, shared, each),
        }
    }

    /// Whether two contents are candidates for the link relation.
    #[must_use]
    pub fn meets(&self, a: &Signature, b: &Signature) -> bool {
        self.bands().is_none_or(|bands| bands.meet(a.sketch(), b.sketch()))
    }
}
