//! The winner order: a total order on page records alone, so that winners do not depend on timing.
//!
//! A collection chooses some of the rules and their order; the URL decides last. The default order is:
//!
//! - popularity in powers of two (unknown lowest)
//! - day first seen, so that an attacker's new page cannot take over a group
//! - static before dynamic URL
//! - shorter URL
//! - time first seen
//!
//! A market that a query names takes precedence over all rules. Dead pages are in no group, and the target of
//! a redirect represents it, so the order never compares dead pages or redirects.

mod rank;

use std::cmp::Ordering;
use std::{fmt, iter};

use doppel_contract::{Market, WinnerRule};
use serde::{Deserialize, Serialize};

pub use rank::Rank;

/// The rules of a collection, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<WinnerRule>", try_from = "Vec<WinnerRule>")]
pub struct WinnerOrder {
    /// The chosen rules, followed by [`WinnerRule::Url`] in all remaining places.
    rules: [WinnerRule; Self::RULES.len()],
}

/// Why a list of rules is not a valid order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{rule} {reason}")]
pub struct OrderError {
    /// Index of the rule in the list, counted from 0.
    pub at: usize,
    /// The rule that is not allowed at this index.
    pub rule: WinnerRule,
    /// The reason in words, which continues the name of the rule.
    pub reason: &'static str,
}

impl WinnerOrder {
    /// The rules that can be chosen. The URL always decides last, whether it is named or not.
    pub const RULES: [WinnerRule; 6] = [
        WinnerRule::Popularity,
        WinnerRule::DayFirstSeen,
        WinnerRule::StaticUrl,
        WinnerRule::ShorterUrl,
        WinnerRule::FirstSeen,
        WinnerRule::Https,
    ];

    /// The order of a collection that has not chosen an order.
    pub const DEFAULT: Self = Self {
        rules: [
            WinnerRule::Popularity,
            WinnerRule::DayFirstSeen,
            WinnerRule::StaticUrl,
            WinnerRule::ShorterUrl,
            WinnerRule::FirstSeen,
            WinnerRule::Url,
        ],
    };

    /// Creates the order with these rules, followed by the URL.
    ///
    /// # Errors
    /// If a rule is named twice, is [`WinnerRule::Market`], or comes after [`WinnerRule::Url`].
    pub fn new(chosen: &[WinnerRule]) -> Result<Self, OrderError> {
        let mut rules = [WinnerRule::Url; Self::RULES.len()];
        for (at, &rule) in chosen.iter().enumerate() {
            let refused = |reason| Err(OrderError { at, rule, reason });
            if rule == WinnerRule::Market {
                return refused("is not named here: it always comes first when a query names a market");
            }
            if chosen[..at].contains(&rule) {
                return refused("is named twice");
            }
            if chosen[..at].contains(&WinnerRule::Url) {
                return refused("comes after url, which decides between any two pages");
            }
            // After these checks only a final `url` can be past the end, and it is implied.
            if let Some(place) = rules.get_mut(at) {
                *place = rule;
            }
        }
        Ok(Self { rules })
    }

    /// Returns the rules in order. The last rule is [`WinnerRule::Url`].
    pub fn rules(self) -> impl Iterator<Item = WinnerRule> {
        self.rules.into_iter().take_while(|rule| *rule != WinnerRule::Url).chain(iter::once(WinnerRule::Url))
    }

    /// Compares two pages; `Less` means that `a` wins. If `market` is given, pages of that market win. Also
    /// returns the rule that decided.
    #[must_use]
    pub fn compare(self, a: &Rank, b: &Rank, market: Option<&Market>) -> (Ordering, WinnerRule) {
        iter::once(WinnerRule::Market)
            .chain(self.rules())
            .map(|rule| (rank::compare(rule, a, b, market), rule))
            .find(|(order, _)| order.is_ne())
            .unwrap_or((Ordering::Equal, WinnerRule::Url))
    }

    /// Whether `a` wins over `b` if the query names no market.
    #[must_use]
    pub fn beats(self, a: &Rank, b: &Rank) -> bool {
        self.compare(a, b, None).0.is_lt()
    }
}

impl Default for WinnerOrder {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for WinnerOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, rule) in self.rules().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{rule}")?;
        }
        Ok(())
    }
}

impl From<WinnerOrder> for Vec<WinnerRule> {
    fn from(order: WinnerOrder) -> Self {
        order.rules().collect()
    }
}

impl TryFrom<Vec<WinnerRule>> for WinnerOrder {
    type Error = OrderError;

    fn try_from(chosen: Vec<WinnerRule>) -> Result<Self, OrderError> {
        Self::new(&chosen)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use doppel_model::{PageUrl, Timestamp};

    fn rank(url: &str, popularity: Option<f64>, first_seen_ms: i64) -> Rank {
        Rank {
            url: PageUrl::parse(url).unwrap(),
            popularity,
            first_seen: Timestamp::from_millis(first_seen_ms),
        }
    }

    fn order(names: &str) -> WinnerOrder {
        let rules: Vec<WinnerRule> = names.split_whitespace().map(|name| name.parse().unwrap()).collect();
        WinnerOrder::new(&rules).unwrap()
    }

    /// The rules implemented from their description: the smallest key wins.
    fn key(rule: WinnerRule, rank: &Rank) -> i64 {
        let url = rank.url.as_str();
        let seen = rank.first_seen.millis();
        match rule {
            WinnerRule::Popularity => match rank.popularity {
                None => i64::MAX,
                // The inverted exponent of the number; for zero it is greater than for any normal number.
                Some(p) => 1_023 - (p.to_bits() >> 52) as i64,
            },
            WinnerRule::DayFirstSeen => seen.div_euclid(86_400_000),
            WinnerRule::StaticUrl => i64::from(url.contains('?')),
            WinnerRule::ShorterUrl => url.len() as i64,
            WinnerRule::FirstSeen => seen,
            WinnerRule::Https => i64::from(!url.to_lowercase().starts_with("https://")),
            WinnerRule::Market | WinnerRule::Url => unreachable!(),
        }
    }

    fn expected(rules: &[WinnerRule], a: &Rank, b: &Rank) -> (Ordering, WinnerRule) {
        for &rule in rules {
            let (a, b) = (key(rule, a), key(rule, b));
            if a != b {
                return (a.cmp(&b), rule);
            }
        }
        (a.url.as_str().cmp(b.url.as_str()), WinnerRule::Url)
    }

    /// Returns all permutations of all subsets.
    fn permutations_of_subsets(of: &[WinnerRule]) -> Vec<Vec<WinnerRule>> {
        let mut all = vec![Vec::new()];
        for rule in of {
            let rest: Vec<WinnerRule> = of.iter().copied().filter(|other| other != rule).collect();
            all.extend(permutations_of_subsets(&rest).into_iter().map(|tail| [vec![*rule], tail].concat()));
        }
        all
    }

    #[test]
    fn records_without_url_come_after_urls_and_rows_by_number() {
        let day = Timestamp::DAY_MS;
        let page = |url: &str, seen| rank(url, None, seen);
        let url = page("https://a.org/a/rather/long/path", day);
        let long = page("record:a.jsonl#a-long-id", day);
        for (first, second, rule) in [
            (&url, &page("record:a#1", day), WinnerRule::ShorterUrl),
            (&page("record:a#1", day - 1), &url, WinnerRule::DayFirstSeen),
            // The length of an id has no meaning, so the older record wins.
            (&long, &page("record:a#1", day + 1), WinnerRule::FirstSeen),
            (&page("record:a.jsonl#row=9", day), &page("record:a.jsonl#row=10", day), WinnerRule::Url),
            (&page("record:a.jsonl#row=10", day), &page("record:a.jsonl#row=11", day), WinnerRule::Url),
        ] {
            assert_eq!(WinnerOrder::DEFAULT.compare(first, second, None), (Ordering::Less, rule));
            assert_eq!(WinnerOrder::DEFAULT.compare(second, first, None), (Ordering::Greater, rule));
        }
        let urls = WinnerOrder::new(&[]).unwrap();
        assert!(urls.beats(&url, &long) && !urls.beats(&long, &url));
        assert!(urls.beats(&page("file:///a", day), &long));
    }

    #[test]
    fn rules_in_the_default_order() {
        let day = Timestamp::DAY_MS;
        let de = Market::new(vec!["de".parse().unwrap()]).unwrap();
        let cases = [
            (
                rank("http://a.de/longer?x", None, day),
                rank("http://a.fr/", Some(9.0), 0),
                Some(&de),
                WinnerRule::Market,
            ),
            (
                rank("http://a/longer", Some(4.0), day),
                rank("http://a/", Some(3.9), 0),
                None,
                WinnerRule::Popularity,
            ),
            (
                rank("http://a/longer", Some(0.0), day),
                rank("http://a/", None, 0),
                None,
                WinnerRule::Popularity,
            ),
            (
                rank("http://a/longer?x", Some(4.0), 0),
                rank("http://a/", Some(7.9), day),
                None,
                WinnerRule::DayFirstSeen,
            ),
            (rank("http://a/longer", None, 9), rank("http://a/?", None, 0), None, WinnerRule::StaticUrl),
            (rank("http://a/b", None, 9), rank("http://a/bc", None, 0), None, WinnerRule::ShorterUrl),
            (rank("http://a/c", None, 1), rank("http://a/b", None, 2), None, WinnerRule::FirstSeen),
            (rank("http://a/b", None, 1), rank("http://a/c", None, 1), None, WinnerRule::Url),
        ];
        for (winner, loser, market, rule) in cases {
            let usual = WinnerOrder::default();
            assert_eq!(
                usual.compare(&winner, &loser, market),
                (Ordering::Less, rule),
                "{winner:?} {loser:?}"
            );
            assert_eq!(usual.compare(&loser, &winner, market), (Ordering::Greater, rule));
        }
    }

    #[test]
    fn chosen_rules_decide_in_their_order() {
        let (old, secure) = (rank("http://a/", None, 0), rank("HTTPS://a/longer?x", None, 9));
        let decides = |names| order(names).compare(&secure, &old, None);
        assert_eq!(decides("https popularity"), (Ordering::Less, WinnerRule::Https));
        assert_eq!(decides("first_seen https"), (Ordering::Greater, WinnerRule::FirstSeen));
        assert_eq!(decides("popularity day_first_seen"), (Ordering::Less, WinnerRule::Url), "in byte order");
        assert_eq!(decides("url"), decides(""));
        let file = rank("file:///a", None, 0);
        assert_eq!(order("https").compare(&file, &old, None).1, WinnerRule::Url, "neither is https");
    }

    #[test]
    fn names_round_trip() {
        assert_eq!(
            WinnerOrder::DEFAULT.to_string(),
            "popularity, day_first_seen, static_url, shorter_url, first_seen, url"
        );
        for rules in permutations_of_subsets(&WinnerOrder::RULES) {
            let order = WinnerOrder::new(&rules).unwrap();
            let json = serde_json::to_string(&order).unwrap();
            assert_eq!(serde_json::from_str::<WinnerOrder>(&json).unwrap(), order, "{json}");
            assert_eq!(order.rules().collect::<Vec<_>>(), [rules, vec![WinnerRule::Url]].concat());
        }
    }

    #[test]
    fn an_invalid_order_names_the_rule_and_the_reason() {
        let refused = |rules: &[WinnerRule]| WinnerOrder::new(rules).unwrap_err();
        let twice = refused(&[WinnerRule::Https, WinnerRule::FirstSeen, WinnerRule::Https]);
        assert_eq!((twice.at, twice.to_string().as_str()), (2, "https is named twice"));
        let late = refused(&[WinnerRule::Url, WinnerRule::Https]);
        assert_eq!((late.at, late.rule), (1, WinnerRule::Https));
        assert_eq!(refused(&[WinnerRule::Url, WinnerRule::Url]).reason, "is named twice");
        let market = refused(&[WinnerRule::Popularity, WinnerRule::Market]);
        assert_eq!((market.at, market.rule), (1, WinnerRule::Market));
        assert!(serde_json::from_str::<WinnerOrder>("[\"url\", \"https\"]").is_err());
    }

    /// Every order that can be chosen agrees with the model. The model is total: it compares keys one after
    /// the other, and URLs at the end.
    #[test]
    fn every_arrangement_is_a_total_order() {
        let mut ranks = Vec::new();
        for url in ["http://a/b", "http://a/c", "https://a/", "http://a/?", "https://a/?", "http://a/longer"]
        {
            for (popularity, seen) in [(None, 5), (Some(0.0), 5), (Some(3.0), 7), (Some(2.0), 86_400_001)] {
                ranks.push(rank(url, popularity, seen));
            }
        }
        let all = permutations_of_subsets(&WinnerOrder::RULES);
        assert_eq!(all.len(), 1 + 6 + 30 + 120 + 360 + 720 + 720);
        for rules in all {
            let order = WinnerOrder::new(&rules).unwrap();
            for a in &ranks {
                for b in &ranks {
                    assert_eq!(order.compare(a, b, None), expected(&rules, a, b), "{order}: {a:?} {b:?}");
                }
            }
        }
    }

    fn ranks() -> impl Strategy<Value = Rank> {
        let popularity = prop_oneof![
            Just(None),
            prop_oneof![Just(0.0), 0.1..9.0, proptest::num::f64::NORMAL.prop_map(f64::abs)].prop_map(Some)
        ];
        let seen = prop_oneof![-2 * Timestamp::DAY_MS..2 * Timestamp::DAY_MS, -2..2i64];
        ("(https?|HTTPS|hTTp)://[ab]\\.(de|fr)/[ab?]{0,3}", popularity, seen)
            .prop_map(|(url, popularity, seen)| rank(&url, popularity, seen))
    }

    proptest! {
        #[test]
        fn any_order_agrees_with_the_model(
            rules in proptest::sample::subsequence(WinnerOrder::RULES.to_vec(), 0..=6).prop_shuffle(),
            a in ranks(), b in ranks(), in_market in any::<bool>(),
        ) {
            let market = in_market.then(|| Market::new(vec!["fr".parse().unwrap()]).unwrap());
            let order = WinnerOrder::new(&rules).unwrap();
            let fr = |rank: &Rank| rank.url.as_str().to_lowercase().contains(".fr/");
            let expected = if in_market && fr(&a) != fr(&b) {
                (if fr(&a) { Ordering::Less } else { Ordering::Greater }, WinnerRule::Market)
            } else {
                expected(&rules, &a, &b)
            };
            prop_assert_eq!(order.compare(&a, &b, market.as_ref()), expected);
            let (opposite, _) = order.compare(&b, &a, market.as_ref());
            prop_assert_eq!(opposite, expected.0.reverse());
            prop_assert_eq!(expected.0.is_eq(), a.url == b.url && opposite.is_eq());
        }
    }
}
