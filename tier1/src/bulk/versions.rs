//! Folding the versions of each URL into one page, by the rules of `machine::page`. If records are judged,
//! each record stays apart.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use doppel_contract::{Counters, Market, SubmissionOutcome, WinnerRule};
use doppel_join::ContentIndex;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId, PageUrl, Timestamp};
use doppel_protocol::{
    Body, DatedPopularity, FetchResult, Rank, Submission, VersionDetails, VersionPlace, WinnerOrder,
};

use super::{BulkError, InputRecord, Unit};

/// A page as its newest version describes it, or a record.
#[derive(Debug)]
pub(super) struct Page {
    /// Record of the inputs from which the page was read; `None` if the page comes from no input.
    pub(super) record: Option<InputRecord>,
    /// Number of the reference that the record is from. Such a record is protected: it is kept in any case.
    pub(super) reference: Option<u32>,
    pub(super) rank: Rank,
    pub(super) fetched_at: Timestamp,
    /// Date of the version with this popularity; `None` if the page has no popularity.
    pub(super) popularity_at: Option<Timestamp>,
    /// `None` if the version has no such details, as is usual.
    pub(super) details: Option<Box<Details>>,
    pub(super) state: PageState,
}

/// Data of a page that is recorded but does not affect the groups.
#[derive(Debug)]
pub(super) struct Details {
    pub(super) language: Option<Box<str>>,
    pub(super) canonical: Option<PageUrl>,
}

/// The content of a page, or what it has instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PageState {
    Content(ContentIndex),
    Redirect(PageUrl),
    Dead,
}

/// All pages in the order of their first versions, or all records in the order of the inputs.
#[derive(Debug)]
pub(super) struct Versions {
    unit: Unit,
    pub(super) pages: Vec<Page>,
    /// Number of each page, by its id. If records are judged, the number of the newest record of each URL,
    /// after [`index_targets`](Self::index_targets).
    pub(super) numbers: HashMap<PageId, u32>,
    /// Counters of each shard about the versions of its pages.
    pub(super) intake: Vec<Counters>,
}

/// Receives the contents of pages.
pub(super) trait TakeContents {
    /// Adds the content of a page.
    ///
    /// # Errors
    /// Fails if the temporary file or a database fails.
    fn add(&mut self, page: PageId, signature: &Arc<Signature>) -> Result<ContentIndex, BulkError>;

    /// Returns the hash of a content that was added.
    fn hash(&self, content: ContentIndex) -> ContentHash;
}

impl Page {
    /// Whether the page is a record of a reference.
    pub(super) fn is_protected(&self) -> bool {
        self.reference.is_some()
    }

    pub(super) fn content(&self) -> Option<ContentIndex> {
        match self.state {
            PageState::Content(content) => Some(content),
            PageState::Redirect(_) | PageState::Dead => None,
        }
    }

    /// Creates a page from its first version.
    fn first(
        (id, record): (PageId, Option<InputRecord>),
        version: Submission,
        contents: &mut impl TakeContents,
    ) -> Result<(Self, SubmissionOutcome), BulkError> {
        let Submission { url, fetched_at, popularity, language, canonical, body } = version;
        let details = Details::of(&body, language, canonical);
        let (state, outcome) = state(id, body, contents)?;
        let popularity_at = popularity.map(|_| fetched_at);
        let rank = Rank { url, popularity, first_seen: fetched_at };
        let page = Self { record, reference: None, rank, fetched_at, popularity_at, details, state };
        Ok((page, outcome))
    }

    /// Returns the place, in the order of versions, of the version that stands for the page.
    fn place(&self, contents: &impl TakeContents) -> VersionPlace<'_> {
        let result = match &self.state {
            PageState::Content(content) => FetchResult::Content(contents.hash(*content)),
            PageState::Redirect(target) => FetchResult::Redirect(target),
            PageState::Dead => FetchResult::Dead,
        };
        VersionPlace { fetched_at: self.fetched_at, result }
    }

    fn details(&self) -> VersionDetails<'_> {
        let details = self.details.as_deref();
        (
            details.and_then(|details| details.language.as_deref()),
            details.and_then(|details| details.canonical.as_ref()),
        )
    }

    /// Updates the data that every version contributes, whatever its place.
    fn note(&mut self, version: &Submission) {
        self.rank.first_seen = self.rank.first_seen.min(version.fetched_at);
        let known = self.rank.popularity.zip(self.popularity_at);
        let known = known.map(|(value, at)| DatedPopularity { at, value });
        let later = DatedPopularity::later(known, version.dated_popularity());
        self.rank.popularity = later.map(|popularity| popularity.value);
        self.popularity_at = later.map(|popularity| popularity.at);
    }
}

impl Details {
    /// Returns the details of a version, as [`Submission::details`] defines them.
    fn of(body: &Body, language: Option<Box<str>>, canonical: Option<PageUrl>) -> Option<Box<Self>> {
        let says_something = language.is_some() || canonical.is_some();
        (says_something && !matches!(body, Body::Dead)).then(|| Box::new(Self { language, canonical }))
    }
}

impl Versions {
    pub(super) fn new(shards: u16, unit: Unit) -> Self {
        let intake = vec![Counters::default(); usize::from(shards)];
        Self { unit, pages: Vec::new(), numbers: HashMap::new(), intake }
    }

    pub(super) fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the number of shards.
    pub(super) fn shards(&self) -> u16 {
        self.intake.len() as u16
    }

    /// Returns the number of the page with a URL.
    pub(super) fn find(&self, url: &PageUrl) -> Option<usize> {
        self.numbers.get(&url.id()).map(|number| *number as usize)
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &PageUrl> {
        self.pages
            .iter()
            .filter(|page| page.state != PageState::Dead && !page.is_protected())
            .map(|page| &page.rank.url)
    }

    /// If records are judged and there are redirects, finds the newest record of each URL. If several have
    /// the same date, the first of them counts.
    pub(super) fn index_targets(&mut self) {
        let asks = |page: &Page| matches!(page.state, PageState::Redirect(_));
        if self.unit == Unit::Page || !self.pages.iter().any(asks) {
            return;
        }
        for (number, page) in (0..).zip(&self.pages).filter(|(_, page)| !page.is_protected()) {
            let newest = self.numbers.entry(page.rank.url.id()).or_insert(number);
            if self.pages[*newest as usize].fetched_at < page.fetched_at {
                *newest = number;
            }
        }
    }

    /// Compares two pages in the winner order; `Less` means that `a` wins.
    ///
    /// Records of references precede all others, in the order of the references, whatever the rules say. If records
    /// are judged, a record that stores its content precedes records that refer to another one. The position in the
    /// input takes the place of the URL.
    pub(super) fn compare(
        &self,
        winners: WinnerOrder,
        (a, b): (u32, u32),
        market: Option<&Market>,
    ) -> Ordering {
        let [one, other] = [a, b].map(|page| &self.pages[page as usize]);
        let (order, rule) = winners.compare(&one.rank, &other.rank, market);
        let order = match self.unit {
            Unit::Page if one.is_protected() && rule == WinnerRule::Url => order.then(a.cmp(&b)),
            Unit::Page => order,
            Unit::Record => {
                let refers = |page: &Page| page.record.is_some_and(|record| record.refers_back);
                let order = if rule == WinnerRule::Url { a.cmp(&b) } else { order };
                refers(one).cmp(&refers(other)).then(order)
            }
        };
        let reference = |page: &Page| page.reference.unwrap_or(u32::MAX);
        reference(one).cmp(&reference(other)).then(order)
    }

    /// Takes a protected record. It stays apart from all other records and pages, also if they have its URL.
    pub(super) fn protect(
        &mut self,
        reference: u32,
        version: Submission,
        contents: &mut impl TakeContents,
    ) -> Result<(), BulkError> {
        let (page, _) = Page::first((version.url.id(), None), version, contents)?;
        self.pages.push(Page { reference: Some(reference), ..page });
        Ok(())
    }

    pub(super) fn submit(
        &mut self,
        record: Option<InputRecord>,
        version: Submission,
        contents: &mut impl TakeContents,
    ) -> Result<SubmissionOutcome, BulkError> {
        let id = version.url.id();
        let shard = usize::from(id.shard(self.shards()).0);
        let counters = &mut self.intake[shard];
        counters.submissions += 1;
        let next = self.pages.len() as u32;
        if self.unit == Unit::Record {
            let (page, outcome) = Page::first((id, record), version, contents)?;
            self.pages.push(page);
            return Ok(outcome);
        }
        let number = match self.numbers.entry(id) {
            Entry::Vacant(entry) => {
                let (page, outcome) = Page::first((id, record), version, contents)?;
                entry.insert(next);
                self.pages.push(page);
                return Ok(outcome);
            }
            Entry::Occupied(entry) => *entry.get() as usize,
        };
        let page = &mut self.pages[number];
        // Two URLs have the same 128-bit hash. The first one stays.
        if page.rank.url != version.url {
            counters.stale += 1;
            return Ok(SubmissionOutcome::Stale);
        }
        page.note(&version);
        match version.place().cmp(&page.place(contents)) {
            Ordering::Less => {
                counters.stale += 1;
                return Ok(SubmissionOutcome::Stale);
            }
            Ordering::Equal => {
                page.record = record;
                if version.details() > page.details() {
                    page.details = Details::of(&version.body, version.language, version.canonical);
                }
                counters.unchanged += 1;
                return Ok(SubmissionOutcome::Unchanged);
            }
            Ordering::Greater => {}
        }
        let Submission { fetched_at, language, canonical, body, .. } = version;
        page.fetched_at = fetched_at;
        page.record = record;
        page.details = Details::of(&body, language, canonical);
        let (state, outcome) = state(id, body, contents)?;
        if state == page.state {
            counters.unchanged += 1;
            return Ok(SubmissionOutcome::Unchanged);
        }
        if matches!((&state, &page.state), (PageState::Content(_), PageState::Content(_))) {
            counters.compared_updates += 1;
        }
        page.state = state;
        Ok(outcome)
    }
}

fn state(
    page: PageId,
    body: Body,
    contents: &mut impl TakeContents,
) -> Result<(PageState, SubmissionOutcome), BulkError> {
    Ok(match body {
        Body::Content(signature) => {
            let outcome = if signature.tokens() == 0 {
                SubmissionOutcome::Confirmed
            } else {
                SubmissionOutcome::Pending
            };
            (PageState::Content(contents.add(page, &signature)?), outcome)
        }
        Body::Redirect(to) => (PageState::Redirect(to), SubmissionOutcome::Pending),
        Body::Dead => (PageState::Dead, SubmissionOutcome::Confirmed),
    })
}
