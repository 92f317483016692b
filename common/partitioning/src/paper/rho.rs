//! Rho, the tolerance by which the paper's intervals are widened.

use std::str::FromStr;

use serde::Serialize;

use crate::error::MappingError;

/// The maximum of rho, the factor by which the intervals of the paper are widened.
const RHO_MAX: f64 = 10.0;

/// The factor, from 1 to 10, by which the interval of a length is widened at each end. At 1, the interval
/// depends on tau only.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rho(f64);

impl Rho {
    /// Computes rho from the tolerances for two deviations of a content: (1 + delta) (1 + epsilon) / ((1 -
    /// delta) (1 - epsilon)). Delta is how unevenly the shingles are spread over the sub-dictionaries.
    /// Epsilon is how much the number of distinct shingles differs from the number of tokens.
    ///
    /// # Errors
    /// If rho is not from 1 to 10, or a tolerance is not from 0 to below 1.
    pub fn of(delta: f64, epsilon: f64) -> Result<Self, MappingError> {
        let shares = (0.0..1.0).contains(&delta) && (0.0..1.0).contains(&epsilon);
        let rho = (1.0 + delta) * (1.0 + epsilon) / ((1.0 - delta) * (1.0 - epsilon));
        Self::new(if shares { rho } else { f64::INFINITY })
    }

    /// Creates rho from its value.
    ///
    /// # Errors
    /// If the value is not from 1 to 10.
    pub fn new(rho: f64) -> Result<Self, MappingError> {
        if (1.0..=RHO_MAX).contains(&rho) { Ok(Self(rho)) } else { Err(MappingError::Rho(rho.to_string())) }
    }

    /// The value of rho.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Rho {
    type Err = MappingError;

    fn from_str(text: &str) -> Result<Self, MappingError> {
        text.parse().map_err(|_| MappingError::Rho(text.to_owned())).and_then(Self::new)
    }
}
