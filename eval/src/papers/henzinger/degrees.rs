//! Exponent of a distribution of degrees: figures 1 and 3 of the paper.

use serde::Serialize;

/// Minimum number of distinct degrees. A line through fewer points says little.
const DEGREES_MIN: usize = 5;

/// Power law by least squares: a line through the logarithm of the number of contents against the logarithm
/// of their degree.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct PowerLaw {
    pub(crate) exponent: f64,
    /// Share of the variance that the line explains.
    pub(crate) r_squared: f64,
    /// Number of distinct degrees.
    pub(crate) degrees: usize,
}

impl PowerLaw {
    /// Fits a line to degrees, each with its number of contents. `None` if there are too few distinct
    /// degrees.
    pub(super) fn fit(degrees: &[(u32, u64)]) -> Option<Self> {
        let points = degrees.iter().filter(|(degree, contents)| *degree > 0 && *contents > 0);
        let points: Vec<(f64, f64)> =
            points.map(|(degree, contents)| (f64::from(*degree).ln(), (*contents as f64).ln())).collect();
        if points.len() < DEGREES_MIN {
            return None;
        }
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
        let sum =
            |of: fn(f64, f64) -> f64| points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>();
        let (both, of_x, of_y) = (sum(|x, y| x * y), sum(|x, _| x * x), sum(|_, y| y * y));
        let r_squared = if of_y > 0.0 { both * both / (of_x * of_y) } else { 1.0 };
        Some(Self { exponent: both / of_x, r_squared, degrees: points.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_finds_the_exponent_of_a_power_law() {
        let degrees: Vec<(u32, u64)> = (0..6).map(|n| (1 << n, 1 << (20 - 2 * n))).collect();
        let fit = PowerLaw::fit(&degrees).unwrap();
        assert!((fit.exponent + 2.0).abs() < 1e-9 && (fit.r_squared - 1.0).abs() < 1e-9, "{fit:?}");
        assert!(PowerLaw::fit(&degrees[..4]).is_none());
    }
}
