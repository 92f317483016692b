//! What the winner order looks at, and its rules one by one.

use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::Error as NoSuchName;
use serde::{Deserialize, Serialize};

use super::Market;
use doppel_model::{PageUrl, Timestamp};

/// What the winner order looks at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rank {
    /// The page.
    pub url: PageUrl,
    /// As the pipeline gave it; larger is better.
    pub popularity: Option<f64>,
    /// The earliest fetch of this URL.
    pub first_seen: Timestamp,
}

/// A rule of the winner order. Its name is that of the answers, the policy file and the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Its host is in the market that the query asked for.
    Market,
    /// Its popularity is a power of two higher.
    Popularity,
    /// It was first seen on an earlier day.
    DayFirstSeen,
    /// Its URL has no query string.
    StaticUrl,
    /// Its URL is shorter.
    ShorterUrl,
    /// It was first seen earlier.
    FirstSeen,
    /// Its URL is an https one.
    Https,
    /// Its URL comes first in byte order.
    Url,
}

impl Rule {
    /// Compares by this rule alone; `Less` wins, `Equal` leaves it to the next rule.
    pub(super) fn compare(self, a: &Rank, b: &Rank, market: Option<&Market>) -> Ordering {
        match self {
            Self::Market => {
                market.map_or(Ordering::Equal, |market| market.has(&b.url).cmp(&market.has(&a.url)))
            }
            Self::Popularity => Reverse(a.popularity_class()).cmp(&Reverse(b.popularity_class())),
            Self::DayFirstSeen => a.first_seen.day().cmp(&b.first_seen.day()),
            Self::StaticUrl => a.is_dynamic().cmp(&b.is_dynamic()),
            Self::ShorterUrl => a.url.as_str().len().cmp(&b.url.as_str().len()),
            Self::FirstSeen => a.first_seen.cmp(&b.first_seen),
            Self::Https => b.is_https().cmp(&a.is_https()),
            Self::Url => a.url.cmp(&b.url),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for Rule {
    type Err = NoSuchName;

    fn from_str(name: &str) -> Result<Self, NoSuchName> {
        Self::deserialize(name.into_deserializer())
    }
}

impl Rank {
    /// The power of two at or below the popularity; unknown is lowest, zero next.
    fn popularity_class(&self) -> Option<i32> {
        self.popularity.map(|p| if p > 0.0 { p.log2().floor() as i32 } else { i32::MIN })
    }

    fn is_dynamic(&self) -> bool {
        self.url.as_str().contains('?')
    }

    /// A URL is kept as it was spelt.
    fn is_https(&self) -> bool {
        self.url.as_str().get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
    }
}
