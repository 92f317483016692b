//! Rho, by which the paper's intervals are wider than tau alone makes them, and what it is made of.

use std::str::FromStr;

use serde::Serialize;

use doppel_model::signature::Signature;

use crate::error::MappingError;

/// The most that rho may be.
const RHO_MAX: f64 = 10.0;

/// By how much the interval of a length is wider than tau alone makes it, at each end; from 1 to 10.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rho(f64);

impl Rho {
    /// From the tolerances it is made of, for which see [`Deviation`]:
    /// (1 + delta) (1 + epsilon) / ((1 - delta) (1 - epsilon)).
    ///
    /// # Errors
    /// When that is not from 1 to 10, or a tolerance is not a share.
    pub fn of(delta: f64, epsilon: f64) -> Result<Self, MappingError> {
        let shares = (0.0..1.0).contains(&delta) && (0.0..1.0).contains(&epsilon);
        let rho = (1.0 + delta) * (1.0 + epsilon) / ((1.0 - delta) * (1.0 - epsilon));
        Self::new(if shares { rho } else { f64::INFINITY })
    }

    /// Rho itself.
    ///
    /// # Errors
    /// When it is not from 1 to 10.
    pub fn new(rho: f64) -> Result<Self, MappingError> {
        if (1.0..=RHO_MAX).contains(&rho) { Ok(Self(rho)) } else { Err(MappingError::Rho(rho.to_string())) }
    }

    /// The number.
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

/// How far a content is from the assumptions that the paper's bound is derived from: that it is dealt evenly to the
/// sub-dictionaries, and that it has as many distinct shingles as tokens.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Deviation {
    /// The greatest |L / (N L_i) - 1| over the N sub-dictionaries, where L is the sum of all lengths; infinite where
    /// a sub-dictionary has nothing of the content.
    pub delta: f64,
    /// |shingles / tokens - 1|.
    pub epsilon: f64,
}

impl Deviation {
    /// Of a content with these lengths. One without a token has none.
    pub(super) fn of(lengths: &[u32], signature: &Signature) -> Self {
        if signature.tokens() == 0 {
            return Self { delta: 0.0, epsilon: 0.0 };
        }
        let mean = f64::from(signature.shingles()) / lengths.len() as f64;
        let delta = lengths.iter().map(|length| (mean / f64::from(*length) - 1.0).abs()).fold(0.0, f64::max);
        let epsilon = (f64::from(signature.shingles()) / f64::from(signature.tokens()) - 1.0).abs();
        Self { delta, epsilon }
    }
}
