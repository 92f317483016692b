//! A fixed-size set of bits.

/// A bit vector. All bits are clear at first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    /// Bytes of memory that `count` bits take.
    pub(crate) fn bytes(count: u64) -> u64 {
        count.div_ceil(64) * 8
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn set(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    pub(crate) fn unset(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }
}
