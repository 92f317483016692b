//! Time stamps in milliseconds since 1970. Their text form is RFC 3339.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A time stamp in milliseconds since 1970-01-01T00:00:00Z. Earlier dates are negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Timestamp(i64);

/// The text is not a valid time stamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an RFC 3339 date-time such as 2026-01-31T08:00:00Z")]
pub struct TimeError(String);

impl Timestamp {
    /// Number of milliseconds in a day.
    pub const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    /// Reads the current time from the system clock.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// Creates a time stamp from milliseconds since 1970.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The number of milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// The number of days since 1970, rounded down.
    #[must_use]
    pub const fn day(self) -> i64 {
        self.0.div_euclid(Self::DAY_MS)
    }

    /// The time stamp `millis` milliseconds later. Stops at the earliest or latest representable time stamp.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

impl Timestamp {
    /// Reads a date such as `2026-01-31`, or a date-time without a zone such as `2026-01-31T08:00:00`, as
    /// UTC.
    ///
    /// # Errors
    /// If `text` is neither a date nor a date-time.
    pub fn parse_without_zone(text: &str) -> Result<Self, TimeError> {
        text.parse::<jiff::civil::DateTime>()
            .and_then(|t| t.to_zoned(jiff::tz::TimeZone::UTC))
            .map(|t| Self(t.timestamp().as_millisecond()))
            .map_err(|_| TimeError(text.chars().take(60).collect()))
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_millisecond()))
            .map_err(|_| TimeError(text.chars().take(60).collect()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => fmt::Display::fmt(&t, f),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3339_text_round_trips_and_other_text_is_refused() {
        let t: Timestamp = "2024-02-26T00:00:00Z".parse().unwrap();
        assert_eq!(t.to_string(), "2024-02-26T00:00:00Z");
        assert_eq!("2024-02-26T01:00:00+01:00".parse(), Ok(t));
        assert_eq!(Timestamp::from_millis(-1).day(), -1);
        assert!("yesterday".parse::<Timestamp>().is_err());
        assert!("2024-02-26".parse::<Timestamp>().is_err());
        assert_eq!(Timestamp::parse_without_zone("2024-02-26"), Ok(t));
        assert_eq!(Timestamp::parse_without_zone("2024-02-26T00:00:00.001"), Ok(t.plus_millis(1)));
        assert!(Timestamp::parse_without_zone("26.2.2024").is_err());
    }
}
