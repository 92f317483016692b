//! A permutation of the bits of a fingerprint, as rotations of groups of them.
//!
//! Invariants: every bit of the width is in exactly one group. The images fill the top of 64 bits without a gap, so that
//! the leading bits of a permuted fingerprint are those of the number, whatever the width is. Permuting commutes with
//! XOR; the distance of two fingerprints is that of their images.

use smallvec::SmallVec;

/// Bits that move by the same number of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    mask: u64,
    rotation: u32,
}

/// A permutation of bits, see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    groups: SmallVec<[Group; 8]>,
}

impl Permutation {
    /// The permutation that makes the first of these bits the most significant one, and so on.
    pub(crate) fn from_order(order: &[u32]) -> Self {
        let mut groups: SmallVec<[Group; 8]> = SmallVec::new();
        for (place, &bit) in order.iter().enumerate() {
            let rotation = (63 + 64 - place as u32 - bit) % 64;
            match groups.iter_mut().find(|group| group.rotation == rotation) {
                Some(group) => group.mask |= 1 << bit,
                None => groups.push(Group { mask: 1 << bit, rotation }),
            }
        }
        Self { groups }
    }

    /// The permuted fingerprint, in the top bits.
    #[inline]
    #[must_use]
    pub fn apply(&self, fingerprint: u64) -> u64 {
        self.groups.iter().fold(0, |image, g| image | (fingerprint & g.mask).rotate_left(g.rotation))
    }

    /// The fingerprint whose image this is.
    #[inline]
    #[must_use]
    pub fn invert(&self, image: u64) -> u64 {
        self.groups.iter().fold(0, |fingerprint, g| fingerprint | (image.rotate_right(g.rotation) & g.mask))
    }

    /// By how many places all these bits are rotated, if it is the same number.
    pub(crate) fn rotation_of(&self, mask: u64) -> Option<u32> {
        self.groups.iter().find(|group| group.mask & mask == mask).map(|group| group.rotation)
    }
}
