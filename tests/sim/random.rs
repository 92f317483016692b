//! The only source of randomness, so that a seed determines a run.

use doppel_model::Random as Numbers;

/// The random numbers of a seed.
#[derive(Debug, Clone)]
pub(crate) struct Random(Numbers);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Numbers::new(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.number()
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn number(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }
}
