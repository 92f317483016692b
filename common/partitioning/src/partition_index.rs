//! The position of a partition in its map.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The position of a partition in its map, counted from 0. Neighbouring boxes have neighbouring positions.
/// The position changes when other boxes are split or joined. The [`PartitionId`](doppel_model::PartitionId)
/// stays the same for as long as the box exists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[repr(transparent)]
pub struct PartitionIndex(pub u32);

impl PartitionIndex {
    /// The positions of the first `count` partitions.
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..count as u32).map(Self)
    }

    /// The position as an index into a slice.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The position `count` places after this one.
    #[must_use]
    pub(crate) fn plus(self, count: u32) -> Self {
        Self(self.0 + count)
    }
}

impl fmt::Display for PartitionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
