//! Lengths of time as command-line arguments: `30d`, `12h`, `5m`, `45s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Units with their lengths in seconds, longest first.
const UNITS: [(&str, u64); 4] = [("d", 24 * 60 * 60), ("h", 60 * 60), ("m", 60), ("s", 1)];

/// Longest span in seconds: a century. The sum of a span and a date cannot overflow.
const SECONDS_MAX: u64 = 36_525 * 24 * 60 * 60;

/// A length of time in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// Reason why a text is not a length of time.
#[derive(Debug, thiserror::Error)]
pub enum SpanError {
    /// The text is not a number followed by a unit.
    #[error("a number and a unit are expected, as in 30d, 12h, 5m or 45s")]
    Form,
    /// The span is longer than a century.
    #[error("the time is too long; the maximum is 36525d, a century")]
    TooLong,
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let (number, unit) = UNITS
            .iter()
            .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)))
            .ok_or(SpanError::Form)?;
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(SpanError::Form);
        }
        let seconds = number.parse().ok().and_then(|number: u64| number.checked_mul(unit));
        let seconds = seconds.filter(|seconds| *seconds <= SECONDS_MAX).ok_or(SpanError::TooLong)?;
        Ok(Self(Duration::from_secs(seconds)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let whole = UNITS.iter().find(|(_, unit)| seconds > 0 && seconds.is_multiple_of(*unit));
        let (unit, of) = whole.unwrap_or(&UNITS[3]);
        write!(f, "{}{unit}", seconds / of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_round_trip_in_their_largest_unit() {
        let shown = |text: &str| text.parse::<Span>().map(|span| span.to_string());
        for (text, same) in [("30d", "30d"), ("48h", "2d"), ("90m", "90m"), ("3600s", "1h"), ("0d", "0s")] {
            assert_eq!(shown(text).unwrap(), same);
        }
        assert_eq!("2h".parse::<Span>().unwrap().0, Duration::from_secs(7_200));
    }

    #[test]
    fn bad_spans_are_told_apart() {
        for bad in ["", "d", "30", "-1d", "+1d", "1.5h", "1w", "1 d", "1d2h"] {
            assert!(matches!(bad.parse::<Span>(), Err(SpanError::Form)), "{bad}");
        }
        for long in ["36526d", "99999999999999999999s", "18446744073709551615d"] {
            assert!(matches!(long.parse::<Span>(), Err(SpanError::TooLong)), "{long}");
        }
    }
}
