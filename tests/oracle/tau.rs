//! The threshold tau as an exact decimal fraction.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use anyhow::{Context, ensure};

/// A threshold `numerator / denominator` in (0, 1), where the denominator is a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tau {
    numerator: u64,
    denominator: u64,
}

impl Tau {
    /// Compares `shared / (a + b - shared)`, the Jaccard coefficient of two sets of `a` and `b`
    /// elements, with tau.
    pub(crate) fn against(self, shared: usize, a: usize, b: usize) -> Ordering {
        let union = (a + b - shared) as u64;
        (shared as u64 * self.denominator).cmp(&(self.numerator * union))
    }

    /// The fewest elements that a set of `len` must share with any set at Jaccard >= tau:
    /// the shared part is at least tau times the union, and the union holds the set.
    pub(crate) fn least_shared(self, len: usize) -> usize {
        (self.numerator * len as u64).div_ceil(self.denominator) as usize
    }
}

impl FromStr for Tau {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("0.").context("tau is written 0.d")?;
        ensure!((1..=6).contains(&digits.len()), "tau has one to six decimals");
        let tau = Self { numerator: digits.parse()?, denominator: 10_u64.pow(digits.len() as u32) };
        ensure!(tau.numerator > 0, "tau is above 0");
        Ok(tau)
    }
}

impl fmt::Display for Tau {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = self.denominator.ilog10() as usize;
        write!(f, "0.{:0decimals$}", self.numerator)
    }
}
