//! Rho, the tolerance by which the paper's intervals are widened, and the two deviations that it compensates
//! for.

use std::str::FromStr;

use serde::Serialize;

use doppel_model::signature::Signature;

use crate::error::MappingError;

/// The maximum value of rho.
const RHO_MAX: f64 = 10.0;

/// The factor, from 1 to 10, by which the interval of a length is widened at each end. At 1, the interval
/// depends on tau only.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rho(f64);

impl Rho {
    /// Computes rho from the tolerances for the two fields of [`Deviation`]: (1 + delta) (1 + epsilon) / ((1
    /// - delta) (1 - epsilon)).
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

/// How far a content deviates from the two assumptions of the paper's bound: its shingles are spread evenly
/// over the sub-dictionaries, and it has as many distinct shingles as tokens.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Deviation {
    /// The greatest |L / (N L_i) - 1| over the N sub-dictionaries. L is the sum of all lengths. Infinite if a
    /// length is 0.
    pub delta: f64,
    /// The absolute value of shingles / tokens - 1.
    pub epsilon: f64,
}

impl Deviation {
    /// The deviation of a content with these lengths. It is 0 for a content without tokens.
    pub(super) fn of(lengths: &[u32], signature: &Signature) -> Self {
        if signature.tokens() == 0 {
            return Self { delta: 0.0, epsilon: 0.0 };
        }
        let mean = f64::from(signature.size()) / lengths.len() as f64;
        let delta = lengths.iter().map(|length| (mean / f64::from(*length) - 1.0).abs()).fold(0.0, f64::max);
        let epsilon = (f64::from(signature.size()) / f64::from(signature.tokens()) - 1.0).abs();
        Self { delta, epsilon }
    }
}
