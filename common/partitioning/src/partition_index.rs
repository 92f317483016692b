//! The place of a partition in its map.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The place of a partition in its map, from 0: neighbouring boxes have neighbouring places. It changes when other
/// boxes are split or joined; what stays the same for as long as the box does is the
/// [`PartitionId`](doppel_model::PartitionId).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[repr(transparent)]
pub struct PartitionIndex(pub u32);

impl PartitionIndex {
    /// The places of the first `count` partitions.
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..count as u32).map(Self)
    }

    /// The place as the index of a slice.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The place that is so many further on.
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
