//! The attributes of a page that the winner order compares, and each rule of the order.

use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::Error as NoSuchName;
use serde::{Deserialize, Serialize};

use super::Market;
use doppel_model::{PageUrl, Timestamp};

/// The attributes of a page that the winner order compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rank {
    /// URL of the page.
    pub url: PageUrl,
    /// Popularity as the client submitted it; larger is better.
    pub popularity: Option<f64>,
    /// Time of the earliest fetch of this URL.
    pub first_seen: Timestamp,
}

/// A rule of the winner order. Its name appears in answers, in the policy file and in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
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

impl Rule {
    /// Compares by this rule alone. `Less` means that `a` wins; `Equal` leaves the decision to the next rule.
    pub(super) fn compare(self, a: &Rank, b: &Rank, market: Option<&Market>) -> Ordering {
        match self {
            Self::Market => {
                market.map_or(Ordering::Equal, |market| market.has(&b.url).cmp(&market.has(&a.url)))
            }
            Self::Popularity => Reverse(a.popularity_class()).cmp(&Reverse(b.popularity_class())),
            Self::DayFirstSeen => a.first_seen.day().cmp(&b.first_seen.day()),
            Self::StaticUrl => a.is_dynamic().cmp(&b.is_dynamic()),
            Self::ShorterUrl => a.url_length().cmp(&b.url_length()),
            Self::FirstSeen => a.first_seen.cmp(&b.first_seen),
            Self::Https => b.is_https().cmp(&a.is_https()),
            Self::Url if a.url.is_record() && b.url.is_record() => {
                let length = |rank: &Rank| rank.url.as_str().len();
                (length(a), &a.url).cmp(&(length(b), &b.url))
            }
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
    /// Returns the exponent of the greatest power of two up to the popularity. Unknown is lowest, zero is
    /// next.
    fn popularity_class(&self) -> Option<i32> {
        self.popularity.map(|p| if p > 0.0 { p.log2().floor() as i32 } else { i32::MIN })
    }

    /// Returns the length of the URL in bytes. The name of a record consists of its file and its id, so its
    /// length says nothing about the page and counts as the maximum.
    fn url_length(&self) -> usize {
        if self.url.is_record() { usize::MAX } else { self.url.as_str().len() }
    }

    fn is_dynamic(&self) -> bool {
        self.url.as_str().contains('?')
    }

    /// Whether the scheme is https. The URL is stored as it was spelt, so the comparison ignores case.
    fn is_https(&self) -> bool {
        self.url.as_str().get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
    }
}
