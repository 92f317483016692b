//! Finds pairs of pages on which a policy and the first policy differ, for people to look at. The pages of
//! such a pair are near-duplicates under one policy, and in different groups under the other. The shown pairs
//! are drawn by their URLs, so the same crawl always shows the same pairs.
//!
//! Memory holds the group of each grouped page under the first policy, and a bounded number of pairs.

use std::collections::{BTreeMap, HashMap, HashSet};

use doppel_contract::Status;
use doppel_model::{GroupId, PageUrl};
use doppel_tier1::bulk::{GroupedCollection, PageWithContent};
use serde::Serialize;

/// Number of pairs of each kind that are shown.
const SHOWN: usize = 3;
/// Number of near-duplicates under the first policy that are stored, to be looked up under other policies.
const KEPT: usize = 10_000;

/// A page, and the kept page of which it is a near-duplicate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Pair {
    pub(super) url: PageUrl,
    pub(super) duplicate_of: PageUrl,
    /// Numbers of the records of both pages.
    #[serde(skip)]
    records: (u64, u64),
}

/// Pairs on which a policy and the first policy differ, at most three of each kind.
#[derive(Debug, Serialize)]
pub(super) struct Examples {
    /// Near-duplicates under this policy that are in different groups under the first policy.
    pub(super) only_here: Vec<Pair>,
    /// Near-duplicates under the first policy that are in different groups under this policy.
    pub(super) only_first: Vec<Pair>,
}

/// Groups and pairs under the first policy.
#[derive(Debug)]
pub(super) struct FirstPolicyGroups {
    /// Group of each grouped record, by the number of the record.
    groups: HashMap<u64, GroupId>,
    pairs: Vec<Pair>,
}

impl FirstPolicyGroups {
    pub(super) fn of(grouped: &GroupedCollection) -> Self {
        Self { groups: groups(grouped, |_| true), pairs: least(pairs(grouped), KEPT) }
    }

    /// Finds pairs on which another policy differs from the first one.
    pub(super) fn examples(&self, grouped: &GroupedCollection) -> Examples {
        let wanted: HashSet<u64> =
            self.pairs.iter().flat_map(|pair| <[u64; 2]>::from(pair.records)).collect();
        let here = groups(grouped, |record| wanted.contains(&record));
        let first = self.pairs.iter().filter(|pair| are_apart(&here, pair)).cloned();
        Examples {
            only_here: least(pairs(grouped).filter(|pair| are_apart(&self.groups, pair)), SHOWN),
            only_first: least(first, SHOWN),
        }
    }
}

/// Returns the groups of the records for which `is_wanted` is true.
fn groups(grouped: &GroupedCollection, is_wanted: impl Fn(u64) -> bool) -> HashMap<u64, GroupId> {
    let group = |page: PageWithContent| Some((page.records.own?, page.line.group?));
    grouped.pages_with_contents().filter_map(group).filter(|(record, _)| is_wanted(*record)).collect()
}

/// Iterates over all near-duplicates that are not exact copies.
fn pairs(grouped: &GroupedCollection) -> impl Iterator<Item = Pair> + '_ {
    let pages = grouped.pages_with_contents().filter(|page| page.content.is_some() && !page.is_copy());
    let duplicates = pages.filter(|page| page.line.status == Status::Duplicate);
    duplicates.filter_map(|page| {
        let records = page.records.own.zip(page.records.duplicate_of?.input())?;
        Some(Pair { url: page.line.url, duplicate_of: page.line.duplicate_of?, records })
    })
}

/// Whether no group contains both pages of a pair.
fn are_apart(groups: &HashMap<u64, GroupId>, pair: &Pair) -> bool {
    let [a, b] = <[u64; 2]>::from(pair.records).map(|record| groups.get(&record));
    a.is_none() || a != b
}

/// Returns the `most` pairs whose page ids are smallest. Page ids are hashes of URLs, so this is a random but
/// repeatable choice.
fn least(pairs: impl Iterator<Item = Pair>, most: usize) -> Vec<Pair> {
    let mut least = BTreeMap::new();
    for pair in pairs {
        least.insert((pair.url.id(), pair.records.0), pair);
        if least.len() > most {
            least.pop_last();
        }
    }
    least.into_values().collect()
}
