//! The attributes of a page that the winner order compares, and the comparison by a single rule.

use std::cmp::{Ordering, Reverse};

use doppel_contract::{Market, WinnerRule};
use doppel_model::{PageUrl, Timestamp};
use serde::{Deserialize, Serialize};

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

/// Compares two pages by one rule alone. `Less` means that `a` wins; `Equal` leaves the decision to the next
/// rule.
pub(super) fn compare(rule: WinnerRule, a: &Rank, b: &Rank, market: Option<&Market>) -> Ordering {
    match rule {
        WinnerRule::Market => {
            market.map_or(Ordering::Equal, |market| market.has(&b.url).cmp(&market.has(&a.url)))
        }
        WinnerRule::Popularity => Reverse(a.popularity_class()).cmp(&Reverse(b.popularity_class())),
        WinnerRule::DayFirstSeen => a.first_seen.day().cmp(&b.first_seen.day()),
        WinnerRule::StaticUrl => a.is_dynamic().cmp(&b.is_dynamic()),
        WinnerRule::ShorterUrl => a.url_length().cmp(&b.url_length()),
        WinnerRule::FirstSeen => a.first_seen.cmp(&b.first_seen),
        WinnerRule::Https => b.is_https().cmp(&a.is_https()),
        WinnerRule::Url if a.url.is_record() && b.url.is_record() => {
            let length = |rank: &Rank| rank.url.as_str().len();
            (length(a), &a.url).cmp(&(length(b), &b.url))
        }
        WinnerRule::Url => a.url.cmp(&b.url),
    }
}
