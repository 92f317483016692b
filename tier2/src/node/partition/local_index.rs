//! Indexes of partitions on a node.

/// Index of a partition on its node. Reused after the partition has been dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct LocalIndex(pub(crate) u32);

impl LocalIndex {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for LocalIndex {
    fn from(index: usize) -> Self {
        Self(index as u32)
    }
}
