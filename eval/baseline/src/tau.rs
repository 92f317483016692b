//! Threshold tau as an exact fraction.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Threshold `numerator / denominator`, between 0 and 1, both excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tau {
    numerator: u64,
    denominator: u64,
}

/// Error for a text or a fraction that is not a threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no threshold: tau must be above 0 and below 1, written 0.d with one to six decimals")]
pub struct TauError(String);

impl Tau {
    /// Creates the threshold `numerator / denominator`.
    ///
    /// # Errors
    /// If the fraction is not above 0 and below 1.
    pub fn ratio(numerator: u64, denominator: u64) -> Result<Self, TauError> {
        if (1..denominator).contains(&numerator) {
            Ok(Self { numerator, denominator })
        } else {
            Err(TauError(format!("{numerator} / {denominator}")))
        }
    }

    /// Compares `shared / (a + b - shared)`, the Jaccard coefficient of two sets of `a` and `b` elements, with tau.
    #[must_use]
    pub fn against(self, shared: usize, a: usize, b: usize) -> Ordering {
        let union = (a + b - shared) as u64;
        (shared as u64 * self.denominator).cmp(&(self.numerator * union))
    }

    /// Minimum number of elements that a set of `len` elements must share with any set at a coefficient of
    /// tau or more. The shared part is at least tau times the union, and the union contains the set.
    #[must_use]
    pub fn least_shared(self, len: usize) -> usize {
        (self.numerator * len as u64).div_ceil(self.denominator) as usize
    }
}

impl FromStr for Tau {
    type Err = TauError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || TauError(text.to_owned());
        let digits = text
            .strip_prefix("0.")
            .filter(|digits| {
                (1..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
            })
            .ok_or_else(wrong)?;
        let numerator = digits.parse().map_err(|_| wrong())?;
        Self::ratio(numerator, 10_u64.pow(digits.len() as u32)).map_err(|_| wrong())
    }
}

impl fmt::Display for Tau {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.numerator as f64 / self.denominator as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_the_exact_fraction_of_its_text() {
        let tau: Tau = "0.80".parse().unwrap();
        assert_eq!(tau.against(4, 4, 5), Ordering::Equal);
        assert_eq!((tau.against(5, 5, 6), tau.against(3, 3, 4)), (Ordering::Greater, Ordering::Less));
        assert_eq!((tau.least_shared(5), tau.least_shared(6)), (4, 5));
        assert_eq!(tau.to_string(), "0.8");
        for wrong in ["0", "0.0", "1.0", "0.", "0.1234567", "0.x", ".5", "0.-1", "0.+1"] {
            assert!(wrong.parse::<Tau>().is_err(), "{wrong}");
        }
        assert!(Tau::ratio(5, 5).is_err() && Tau::ratio(0, 5).is_err());
    }
}
