//! The similarity threshold tau as an exact decimal.
//!
//! A Jaccard coefficient of exactly 4/5 is common on real pages, and floating-point comparison with 0.8 is
//! unreliable at that value. Therefore tau is stored as a fraction, and F is decided in integers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The similarity threshold tau, `0.3 <= tau < 1`, in ten-thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tau(u16);

/// The smallest threshold, in ten-thousandths. Far below it most pairs of pages on one site would be
/// near-duplicates, and every pair of pages would be a candidate.
const TAU_MIN: u16 = 3_000;

/// The text is not a valid threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a valid tau; give a decimal from 0.3 to 0.9999 with at most four places, such as 0.8")]
pub struct TauError(String);

impl Tau {
    /// The default threshold, 0.8.
    pub const DEFAULT: Self = Self(8000);

    /// The denominator of tau as a fraction. [`numerator`](Self::numerator) returns the numerator.
    pub const DENOMINATOR: u64 = 10_000;

    /// Creates a threshold in a constant, from hundredths.
    ///
    /// # Panics
    /// If `hundredths` is not from 50 to 99. In a constant this is a compile error.
    #[must_use]
    pub(crate) const fn of_hundredths(hundredths: u16) -> Self {
        assert!(50 <= hundredths && hundredths < 100);
        Self(100 * hundredths)
    }

    /// The numerator of tau as a fraction: tau times [`DENOMINATOR`](Self::DENOMINATOR).
    #[must_use]
    pub const fn numerator(self) -> u64 {
        self.0 as u64
    }

    /// Converts tau to a float, for estimates only. Decisions use the fraction.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 10_000.0
    }

    /// Whether the Jaccard coefficient of two sets is above tau, computed exactly as `shared (1 + tau) > tau
    /// (a + b)`.
    ///
    /// The sets have `a` and `b` elements, of which `shared` are in both.
    #[must_use]
    pub const fn exceeded_by(self, shared: u64, a: u64, b: u64) -> bool {
        shared * (Self::DENOMINATOR + self.numerator()) > self.numerator() * (a + b)
    }

    /// The most elements in which two sets may differ if their Jaccard coefficient is above tau. The sets have
    /// `sum` elements together. `None` if no two sets are that similar, which is so only if `sum` is 0.
    ///
    /// The sets share (sum - differing) / 2 elements. So the coefficient is above tau if and only if
    /// `differing (1 + tau) < sum (1 - tau)`.
    #[must_use]
    pub const fn differing_max(self, sum: u64) -> Option<u64> {
        let below = sum * (Self::DENOMINATOR - self.numerator());
        below.div_ceil(Self::DENOMINATOR + self.numerator()).checked_sub(1)
    }
}

impl FromStr for Tau {
    type Err = TauError;

    fn from_str(text: &str) -> Result<Self, TauError> {
        let parse = || {
            let places = text.strip_prefix("0.").or_else(|| text.strip_prefix('.'))?;
            if places.is_empty() || places.len() > 4 || !places.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let value: u16 = format!("{places:0<4}").parse().ok()?;
            (value >= TAU_MIN).then_some(Self(value))
        };
        parse().ok_or_else(|| TauError(text.chars().take(20).collect()))
    }
}

impl fmt::Display for Tau {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = format!("{:04}", self.0);
        write!(f, "0.{}", places.trim_end_matches('0'))
    }
}

impl TryFrom<String> for Tau {
    type Error = TauError;

    fn try_from(text: String) -> Result<Self, TauError> {
        text.parse()
    }
}

impl From<Tau> for String {
    fn from(tau: Tau) -> Self {
        tau.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coefficient_of_exactly_tau_does_not_exceed_it() {
        let tau: Tau = "0.8".parse().unwrap();
        // Two sets of 90 that share 80 have a coefficient of 80/100.
        assert!(!tau.exceeded_by(80, 90, 90));
        assert!(tau.exceeded_by(81, 90, 90));
    }

    #[test]
    fn sets_are_similar_if_they_differ_in_few_elements() {
        for tau in ["0.3", "0.8", "0.95"] {
            let tau: Tau = tau.parse().unwrap();
            for a in 1..60 {
                for (b, shared) in (1..=a).flat_map(|b| (0..=b).map(move |shared| (b, shared))) {
                    let differing = a + b - 2 * shared;
                    let is_similar = tau.differing_max(a + b).is_some_and(|max| differing <= max);
                    assert_eq!(tau.exceeded_by(shared, a, b), is_similar, "{tau} {shared} of {a} and {b}");
                }
            }
        }
        let tau: Tau = "0.8".parse().unwrap();
        assert_eq!(tau.differing_max(0), None);
    }

    #[test]
    fn valid_text_round_trips_and_other_text_is_refused() {
        for text in ["0.8", "0.3", "0.5", "0.9", "0.85", "0.9999"] {
            assert_eq!(text.parse::<Tau>().unwrap().to_string(), text);
        }
        for bad in ["", "1", "0.2999", "0.", "0.80001", "8", "-0.8", "0.8e1", "1.0"] {
            assert!(bad.parse::<Tau>().is_err(), "{bad}");
        }
    }
}
