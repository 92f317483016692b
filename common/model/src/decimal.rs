//! The threshold tau as an exact decimal.
//!
//! A Jaccard coefficient of exactly 4/5 is common on real pages, and floating point decides it sometimes one
//! way and sometimes the other. So tau is kept as a fraction, and F is decided in integers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The similarity threshold, `0.3 <= tau < 1`, in ten-thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tau(u16);

/// The least threshold. Far below it most pairs of pages on one site would be near-duplicates, and every pair a candidate.
const LEAST: u16 = 3_000;

/// The text is not a valid threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tau is a decimal from 0.3 to 0.9999 with at most four places, such as 0.8; this is {0:?}")]
pub struct TauError(String);

impl Tau {
    /// The default, 0.8.
    pub const DEFAULT: Self = Self(8000);

    /// The denominator of [`numerator`](Self::numerator).
    pub const DENOMINATOR: u64 = 10_000;

    /// A threshold that is known when the program is compiled, in hundredths from 50 to 99.
    #[must_use]
    pub(crate) const fn of_hundredths(hundredths: u16) -> Self {
        assert!(50 <= hundredths && hundredths < 100);
        Self(100 * hundredths)
    }

    /// tau times [`DENOMINATOR`](Self::DENOMINATOR).
    #[must_use]
    pub const fn numerator(self) -> u64 {
        self.0 as u64
    }

    /// tau as a float, for estimates only; decisions use the fraction.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 10_000.0
    }

    /// Whether two sets of `a` and `b` elements with `shared` in common have J > tau, exactly:
    /// `shared (1 + tau) > tau (a + b)`.
    #[must_use]
    pub const fn exceeded_by(self, shared: u64, a: u64, b: u64) -> bool {
        shared * (Self::DENOMINATOR + self.numerator()) > self.numerator() * (a + b)
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
            (value >= LEAST).then_some(Self(value))
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
    fn exact_at_the_boundary() {
        let tau: Tau = "0.8".parse().unwrap();
        // 80 shared of 90 and 90: J is 80/100, exactly tau, so not above it.
        assert!(!tau.exceeded_by(80, 90, 90));
        assert!(tau.exceeded_by(81, 90, 90));
    }

    #[test]
    fn text_round_trip() {
        for text in ["0.8", "0.3", "0.5", "0.9", "0.85", "0.9999"] {
            assert_eq!(text.parse::<Tau>().unwrap().to_string(), text);
        }
        for bad in ["", "1", "0.2999", "0.", "0.80001", "8", "-0.8", "0.8e1", "1.0"] {
            assert!(bad.parse::<Tau>().is_err(), "{bad}");
        }
    }
}
