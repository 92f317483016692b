//! Pairs of pages on which a policy and the first one differ, for people to look at: near-duplicates of the one that are in different
//! groups of the other. Those that are shown are drawn by their URLs, so the same crawl gives the same ones.
//!
//! What is kept of the first policy is the group of each page that is in one, and a bounded number of pairs.

use std::collections::{BTreeMap, HashMap, HashSet};

use doppel_contract::Status;
use doppel_model::{GroupId, PageUrl};
use doppel_tier1::bulk::{Grouped, PageWithContent};
use serde::Serialize;

/// Pairs of each kind that are shown.
const SHOWN: usize = 3;
/// Near-duplicates of the first policy that are kept, to be looked for under the others.
const KEPT: usize = 10_000;

/// A page, and the kept page that it is a near-duplicate of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Pair {
    pub(super) url: PageUrl,
    pub(super) duplicate_of: PageUrl,
    /// The numbers of their records.
    #[serde(skip)]
    records: (u64, u64),
}

/// Pairs on which a policy and the first one differ, at most three of each kind.
#[derive(Debug, Serialize)]
pub(super) struct Examples {
    /// Near-duplicates of this policy that are in different groups under the first.
    pub(super) only_here: Vec<Pair>,
    /// Near-duplicates of the first policy that are in different groups under this one.
    pub(super) only_first: Vec<Pair>,
}

/// The groups under the first policy.
#[derive(Debug)]
pub(super) struct First {
    /// By the number of the record.
    groups: HashMap<u64, GroupId>,
    pairs: Vec<Pair>,
}

impl First {
    pub(super) fn of(grouped: &Grouped) -> Self {
        Self { groups: groups(grouped, |_| true), pairs: least(pairs(grouped), KEPT) }
    }

    /// How another policy differs.
    pub(super) fn examples(&self, grouped: &Grouped) -> Examples {
        let asked: HashSet<u64> = self.pairs.iter().flat_map(|pair| <[u64; 2]>::from(pair.records)).collect();
        let here = groups(grouped, |record| asked.contains(&record));
        let first = self.pairs.iter().filter(|pair| differ(&here, pair)).cloned();
        Examples {
            only_here: least(pairs(grouped).filter(|pair| differ(&self.groups, pair)), SHOWN),
            only_first: least(first, SHOWN),
        }
    }
}

/// The groups of those records that are `asked` for.
fn groups(grouped: &Grouped, asked: impl Fn(u64) -> bool) -> HashMap<u64, GroupId> {
    let group = |page: PageWithContent| Some((page.records.own?, page.line.group?));
    grouped.pages_with_contents().filter_map(group).filter(|(record, _)| asked(*record)).collect()
}

/// All near-duplicates that are no copies.
fn pairs(grouped: &Grouped) -> impl Iterator<Item = Pair> + '_ {
    let pages = grouped.pages_with_contents().filter(|page| page.content.is_some() && !page.is_copy());
    let duplicates = pages.filter(|page| page.line.status == Status::Duplicate);
    duplicates.filter_map(|page| {
        let records = page.records.own.zip(page.records.duplicate_of)?;
        Some(Pair { url: page.line.url, duplicate_of: page.line.duplicate_of?, records })
    })
}

/// Whether the pages of a pair are not in one group.
fn differ(groups: &HashMap<u64, GroupId>, pair: &Pair) -> bool {
    let [a, b] = <[u64; 2]>::from(pair.records).map(|record| groups.get(&record));
    a.is_none() || a != b
}

/// So many of the pairs: those whose ids, which are hashes of URLs, are least.
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
