//! The winner order: one total order on page records alone, so that winners do not depend on timing.
//!
//! Alive, content before redirect, market (named by the query), popularity in powers of two (unknown
//! lowest), day first seen (so that an attacker's new page cannot take a group over), static before
//! dynamic URL, shorter URL, time first seen, URL (DESIGN: tier 1, winner order). Dead pages are in no
//! group, and a redirect is represented by its target, so the first two never meet here.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::model::{PageUrl, Timestamp};

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

/// The rule of the winner order that decided between two pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Its host has the suffix that the query asked for.
    Market,
    /// Its popularity is a power of two higher.
    Popularity,
    /// It was first seen on an earlier day.
    DayFirstSeen,
    /// Its URL has no query string.
    StaticUrl,
    /// Its URL is shorter.
    ShorterUrl,
    /// It was first seen earlier on the same day.
    FirstSeen,
    /// Its URL comes first in byte order.
    Url,
}

impl Rank {
    /// Compares by the winner order; `Less` wins. Gives the rule that decided.
    #[must_use]
    pub fn order(&self, other: &Self, market: Option<&str>) -> (Ordering, Rule) {
        let in_market = |rank: &Self| market.is_some_and(|suffix| has_suffix(&rank.url.host(), suffix));
        let rules = [
            (in_market(other).cmp(&in_market(self)), Rule::Market),
            (other.popularity_class().cmp(&self.popularity_class()), Rule::Popularity),
            (self.first_seen.day().cmp(&other.first_seen.day()), Rule::DayFirstSeen),
            (self.is_dynamic().cmp(&other.is_dynamic()), Rule::StaticUrl),
            (self.url.as_str().len().cmp(&other.url.as_str().len()), Rule::ShorterUrl),
            (self.first_seen.cmp(&other.first_seen), Rule::FirstSeen),
        ];
        rules
            .into_iter()
            .find(|(order, _)| order.is_ne())
            .unwrap_or_else(|| (self.url.cmp(&other.url), Rule::Url))
    }

    /// Whether this page wins over `other` when no market is asked for.
    #[must_use]
    pub fn beats(&self, other: &Self) -> bool {
        self.order(other, None).0.is_lt()
    }

    /// The power of two at or below the popularity; unknown is lowest, zero next.
    fn popularity_class(&self) -> Option<i32> {
        self.popularity.map(|p| if p > 0.0 { p.log2().floor() as i32 } else { i32::MIN })
    }

    fn is_dynamic(&self) -> bool {
        self.url.as_str().contains('?')
    }
}

/// Whether `host` is `suffix` or ends in `.suffix`; a leading dot of `suffix` is ignored.
fn has_suffix(host: &str, suffix: &str) -> bool {
    let suffix = suffix.trim_start_matches('.');
    host.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')) && !suffix.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(url: &str, popularity: Option<f64>, first_seen_ms: i64) -> Rank {
        Rank {
            url: PageUrl::parse(url).unwrap(),
            popularity,
            first_seen: Timestamp::from_millis(first_seen_ms),
        }
    }

    #[test]
    fn rules_in_order() {
        let day = Timestamp::DAY_MS;
        let cases = [
            (
                rank("http://a.de/longer?x", None, day),
                rank("http://a.fr/", Some(9.0), 0),
                Some("de"),
                Rule::Market,
            ),
            (
                rank("http://a/longer", Some(4.0), day),
                rank("http://a/", Some(3.9), 0),
                None,
                Rule::Popularity,
            ),
            (rank("http://a/longer", Some(0.0), day), rank("http://a/", None, 0), None, Rule::Popularity),
            (
                rank("http://a/longer?x", Some(4.0), 0),
                rank("http://a/", Some(7.9), day),
                None,
                Rule::DayFirstSeen,
            ),
            (rank("http://a/longer", None, 9), rank("http://a/?", None, 0), None, Rule::StaticUrl),
            (rank("http://a/b", None, 9), rank("http://a/bc", None, 0), None, Rule::ShorterUrl),
            (rank("http://a/c", None, 1), rank("http://a/b", None, 2), None, Rule::FirstSeen),
            (rank("http://a/b", None, 1), rank("http://a/c", None, 1), None, Rule::Url),
        ];
        for (winner, loser, market, rule) in cases {
            assert_eq!(winner.order(&loser, market), (Ordering::Less, rule), "{winner:?} {loser:?}");
            assert_eq!(loser.order(&winner, market), (Ordering::Greater, rule));
        }
    }

    #[test]
    fn market_is_a_whole_label() {
        assert!(has_suffix("www.a.de", "de") && has_suffix("a.de", ".a.de"));
        assert!(!has_suffix("a.xde", "de") && !has_suffix("a.de", ""));
    }
}
