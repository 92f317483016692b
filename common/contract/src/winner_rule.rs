//! The names of the rules that elect winners.

use std::fmt;
use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::Error as NoSuchName;
use serde::{Deserialize, Serialize};

/// A rule of the winner order. Its name appears in answers, in the policy file and in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Rule)]
pub enum WinnerRule {
    /// The host is in the market that the query names.
    Market,
    /// The popularity is in a higher power-of-two class.
    Popularity,
    /// The page was first seen on an earlier day.
    DayFirstSeen,
    /// The URL has no query string.
    StaticUrl,
    /// The URL is shorter. Names of records count as equally long, and as longer than any URL.
    ShorterUrl,
    /// The page was first seen earlier.
    FirstSeen,
    /// The scheme of the URL is https.
    Https,
    /// The URL comes first in byte order. Names of records come after URLs, shorter names first, so that rows
    /// are in the order of their numbers.
    Url,
}

impl fmt::Display for WinnerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for WinnerRule {
    type Err = NoSuchName;

    fn from_str(name: &str) -> Result<Self, NoSuchName> {
        Self::deserialize(name.into_deserializer())
    }
}
