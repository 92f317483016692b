//! A permutation of the bits of a fingerprint, stored as rotations of groups of bits.
//!
//! Invariants: every bit of the fingerprint is in exactly one group. The images fill the most significant
//! bits of a 64-bit number without a gap. So the leading bits of an image are the leading bits of the number,
//! whatever the width of the fingerprint is. The permutation commutes with XOR, and preserves the distance of
//! two fingerprints.

use smallvec::SmallVec;

/// Bits that rotate to the left by the same number of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RotationGroup {
    mask: u64,
    rotation: u32,
}

/// A permutation of the bits of a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    groups: SmallVec<[RotationGroup; 8]>,
}

impl Permutation {
    /// Creates the permutation that makes bit `order[0]` the most significant bit, `order[1]` the next bit,
    /// and so on.
    pub(crate) fn from_order(order: &[u32]) -> Self {
        let mut groups: SmallVec<[RotationGroup; 8]> = SmallVec::new();
        for (position, &bit) in order.iter().enumerate() {
            let rotation = (63 + 64 - position as u32 - bit) % 64;
            match groups.iter_mut().find(|group| group.rotation == rotation) {
                Some(group) => group.mask |= 1 << bit,
                None => groups.push(RotationGroup { mask: 1 << bit, rotation }),
            }
        }
        Self { groups }
    }

    /// Permutes the bits of a fingerprint. The image is in the most significant bits.
    #[inline]
    #[must_use]
    pub fn apply(&self, fingerprint: u64) -> u64 {
        self.groups.iter().fold(0, |image, g| image | (fingerprint & g.mask).rotate_left(g.rotation))
    }

    /// Returns the fingerprint whose image is `image`.
    #[inline]
    #[must_use]
    pub fn invert(&self, image: u64) -> u64 {
        self.groups.iter().fold(0, |fingerprint, g| fingerprint | (image.rotate_right(g.rotation) & g.mask))
    }

    /// The number of positions by which all bits of `mask` rotate to the left. `None` if they do not all
    /// rotate by one number.
    pub(crate) fn rotation_of(&self, mask: u64) -> Option<u32> {
        self.groups.iter().find(|group| group.mask & mask == mask).map(|group| group.rotation)
    }
}
