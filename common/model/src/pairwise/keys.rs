//! Keys of signatures. Two contents are candidates if they share a key.
//!
//! If F is a Jaccard coefficient above a threshold, the keys are the bands of the sketch. A pair at the
//! threshold shares a band almost surely. The link relation requires a shared band, so that a missed pair is
//! not linked at all.
//!
//! Invariant: under every other policy, every pair that F accepts shares a key. There the link relation is F
//! alone.

use super::{
    Bands, Policy, combined, fingerprints, multi_simhash, overlap, projection, simhash, supershingle,
};
use crate::signature::Signature;

/// Key of a signature. The low byte is the number of the key within its signature, and the bits above are its value.
///
/// The number is that of the band, piece, or fingerprint. If a signature has more than 256 keys, several keys
/// have the same number.
pub type Key = u64;

impl Policy {
    /// The bands into which the policy cuts a sketch. `None` if the policy has no [metric](Self::metric).
    ///
    /// A pair at the threshold shares at least one band almost surely.
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

    /// Whether two contents can be linked by similarity: they share a band, or the policy has no bands.
    #[must_use]
    pub fn meets(&self, a: &Signature, b: &Signature) -> bool {
        self.bands().is_none_or(|bands| bands.meet(a.sketch(), b.sketch()))
    }
}
