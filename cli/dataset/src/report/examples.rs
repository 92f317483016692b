//! Collects the largest groups, with a few of their pages and one duplicate that is shown beside its kept
//! page.

use std::collections::HashMap;

use doppel_contract::Status;
use doppel_model::{ContentHash, GroupId, PageUrl};
use doppel_tier1::bulk::{NamedRecord, PageWithContent, Unit};

use super::EXAMPLES;
use crate::accounts;
use crate::collection_groups::CollectionGroups;
use crate::weights::Weight;

/// Largest number of kept pages, and of removed pages, that are named for each group.
const NAMED: usize = 5;

/// A large group.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) group: GroupId,
    pub(super) winner: Option<PageUrl>,
    /// Whether all its pages with content have the same content.
    pub(super) is_exact: bool,
    /// Number of kept pages, including the winner.
    pub(super) kept: u64,
    /// First kept pages in the order of their URLs, without the winner.
    pub(super) secondaries: Vec<PageUrl>,
    /// Pages that can be removed.
    pub(super) removed: Weight,
    /// Number of removable pages that redirect.
    pub(super) redirects: u64,
    /// First removable pages in the order of their URLs.
    pub(super) duplicates: Vec<Duplicate>,
    /// Duplicate that is shown beside its kept page. Preferred are duplicates that differ from the kept page,
    /// then duplicates of the winner, then duplicates with the least similarity.
    pub(super) shown: Option<Duplicate>,
}

/// A page that can be removed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Duplicate {
    pub(super) url: PageUrl,
    pub(super) of: PageUrl,
    /// Similarity to the kept page; `None` for a redirect.
    pub(super) similarity: Option<f64>,
    /// Content of the page; `None` for a redirect.
    pub(super) content: Option<ContentHash>,
    /// Content of the kept page.
    pub(super) kept_content: Option<ContentHash>,
    pub(super) is_of_winner: bool,
    /// Record number of the page, if the pages are records of the inputs.
    pub(super) record: Option<u64>,
    /// Record number of the kept page, if the pages are records of the inputs.
    pub(super) kept_record: Option<u64>,
}

/// The largest groups, while pages are added.
#[derive(Debug)]
pub(super) struct Examples {
    largest: Vec<Example>,
    at: HashMap<GroupId, usize>,
}

impl Examples {
    pub(super) fn of(groups: &CollectionGroups) -> Self {
        let largest = groups.largest.iter().take(EXAMPLES).map(|large| Example {
            group: large.group,
            winner: large.winner.clone(),
            is_exact: large.exact,
            kept: 0,
            secondaries: Vec::new(),
            removed: Weight::default(),
            redirects: 0,
            duplicates: Vec::new(),
            shown: None,
        });
        let largest: Vec<_> = largest.collect();
        let at = largest.iter().enumerate().map(|(at, example)| (example.group, at)).collect();
        Self { largest, at }
    }

    /// Adds a live page or a record, with its size in bytes if it is known.
    pub(super) fn add(&mut self, page: &PageWithContent, (bytes, unit): (Option<u64>, Unit)) {
        let place = page.line.group.and_then(|group| self.at.get(&group));
        let Some(example) = place.and_then(|at| self.largest.get_mut(*at)) else { return };
        let url = &page.line.url;
        let is_removed = accounts::removal((page.line.status, page.content), unit).is_some();
        let of = page.line.duplicate_of.as_ref().filter(|_| is_removed);
        let Some(of) = of else {
            example.kept += 1;
            if page.line.status != Status::Winner {
                keep_first(&mut example.secondaries, url.clone(), |kept| kept);
            }
            return;
        };
        example.removed.add(bytes);
        example.redirects += u64::from(page.content.is_none());
        let duplicate = Duplicate {
            url: url.clone(),
            of: of.clone(),
            similarity: page.line.similarity,
            content: page.content,
            kept_content: page.kept_content,
            is_of_winner: page.is_of_winner(),
            record: page.records.own,
            kept_record: page.records.duplicate_of.and_then(NamedRecord::input),
        };
        let is_better = |shown: &Duplicate| is_before(&duplicate, shown);
        if duplicate.content.is_some() && example.shown.as_ref().is_none_or(is_better) {
            example.shown = Some(duplicate.clone());
        }
        keep_first(&mut example.duplicates, duplicate, |duplicate| &duplicate.url);
    }

    pub(super) fn finish(self) -> Vec<Example> {
        self.largest
    }
}

/// Whether `a` is a better example than `b`.
fn is_before(a: &Duplicate, b: &Duplicate) -> bool {
    let similarity = |one: &Duplicate| one.similarity.unwrap_or(1.0);
    let rank = |one: &Duplicate| (similarity(one) >= 1.0, !one.is_of_winner);
    let order = rank(a).cmp(&rank(b)).then(similarity(a).total_cmp(&similarity(b)));
    order.then_with(|| (&a.url, a.record).cmp(&(&b.url, b.record))).is_lt()
}

/// Inserts an item into a list that keeps the [`NAMED`] items with the first URLs, sorted by URL.
fn keep_first<T>(first: &mut Vec<T>, one: T, url: impl Fn(&T) -> &PageUrl) {
    let at = first.partition_point(|other| url(other) < url(&one));
    if at < NAMED {
        first.insert(at, one);
        first.truncate(NAMED);
    }
}
