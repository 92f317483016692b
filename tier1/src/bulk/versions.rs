//! The versions of each URL become one: the rules are those of `machine::page`. Where records are judged, each stays apart.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use doppel_join::ContentIndex;
use doppel_model::signature::Signature;
use doppel_model::{PageId, PageUrl, Timestamp};
use doppel_protocol::{Body, Counters, Market, Outcome, Rank, Rule, Submission, WinnerOrder};

use super::{BulkError, InputRecord, Unit};

/// A page as its last version has it, or a record.
#[derive(Debug)]
pub(super) struct Page {
    /// The record of the inputs that the page is read from; none of a page that no input has.
    pub(super) record: Option<InputRecord>,
    pub(super) rank: Rank,
    pub(super) fetched_at: Timestamp,
    /// None where a version says nothing of it, as most do.
    pub(super) details: Option<Box<Details>>,
    pub(super) state: State,
}

/// What is recorded of a page and plays no part in grouping.
#[derive(Debug)]
pub(super) struct Details {
    pub(super) language: Option<Box<str>>,
    pub(super) canonical: Option<PageUrl>,
}

/// What a page is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Content(ContentIndex),
    Redirect(PageUrl),
    Dead,
}

/// All pages in the order in which they first came, or all records in the order of the inputs.
#[derive(Debug)]
pub(super) struct Versions {
    unit: Unit,
    pub(super) pages: Vec<Page>,
    /// Where records are judged: the newest record of each URL, once it was [asked for](Self::index_targets).
    pub(super) numbers: HashMap<PageId, u32>,
    /// By shard: what was done with the versions of its pages.
    pub(super) intake: Vec<Counters>,
}

/// Takes the content of a page in.
type Add<'a> = dyn FnMut(PageId, &Arc<Signature>) -> Result<ContentIndex, BulkError> + 'a;

impl Page {
    pub(super) fn content(&self) -> Option<ContentIndex> {
        match self.state {
            State::Content(content) => Some(content),
            State::Redirect(_) | State::Dead => None,
        }
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

    /// How many shards there are.
    pub(super) fn shards(&self) -> u16 {
        self.intake.len() as u16
    }

    /// The number of a page.
    pub(super) fn find(&self, url: &PageUrl) -> Option<usize> {
        self.numbers.get(&url.id()).map(|number| *number as usize)
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &PageUrl> {
        self.pages.iter().filter(|page| page.state != State::Dead).map(|page| &page.rank.url)
    }

    /// Finds the newest record of each URL where records are judged and a redirect asks for one. Of records with one date it is the
    /// first.
    pub(super) fn index_targets(&mut self) {
        let asks = |page: &Page| matches!(page.state, State::Redirect(_));
        if self.unit == Unit::Page || !self.pages.iter().any(asks) {
            return;
        }
        for (number, page) in (0..).zip(&self.pages) {
            let newest = self.numbers.entry(page.rank.url.id()).or_insert(number);
            if self.pages[*newest as usize].fetched_at < page.fetched_at {
                *newest = number;
            }
        }
    }

    /// Compares two pages in the winner order; `Less` means that `a` wins. Where records are judged, a record that stores its content
    /// precedes those that refer to another one, and the position in the input takes the place of the URL.
    pub(super) fn compare(
        &self,
        winners: WinnerOrder,
        (a, b): (u32, u32),
        market: Option<&Market>,
    ) -> Ordering {
        let [one, other] = [a, b].map(|page| &self.pages[page as usize]);
        let (order, rule) = winners.compare(&one.rank, &other.rank, market);
        match self.unit {
            Unit::Page => order,
            Unit::Record => {
                let refers = |page: &Page| page.record.is_some_and(|record| record.is_reference);
                let order = if rule == Rule::Url { a.cmp(&b) } else { order };
                refers(one).cmp(&refers(other)).then(order)
            }
        }
    }

    pub(super) fn submit(
        &mut self,
        record: Option<InputRecord>,
        submission: Submission,
        add: &mut Add<'_>,
    ) -> Result<Outcome, BulkError> {
        let Submission { url, fetched_at, popularity, language, canonical, body } = submission;
        let id = url.id();
        let shard = usize::from(id.shard(self.shards()).0);
        let counters = &mut self.intake[shard];
        counters.submissions += 1;
        let details = || {
            let says_something = language.is_some() || canonical.is_some();
            says_something.then(|| Box::new(Details { language, canonical }))
        };
        let next = self.pages.len() as u32;
        if self.unit == Unit::Record {
            let (state, outcome) = state(id, body, add)?;
            let rank = Rank { url, popularity, first_seen: fetched_at };
            self.pages.push(Page { record, rank, fetched_at, details: details(), state });
            return Ok(outcome);
        }
        let number = match self.numbers.entry(id) {
            Entry::Vacant(entry) => {
                let (state, outcome) = state(id, body, add)?;
                entry.insert(next);
                let rank = Rank { url, popularity, first_seen: fetched_at };
                self.pages.push(Page { record, rank, fetched_at, details: details(), state });
                return Ok(outcome);
            }
            Entry::Occupied(entry) => *entry.get() as usize,
        };
        let page = &mut self.pages[number];
        // Two URLs with one 128-bit hash: the first one stays.
        if page.rank.url != url {
            counters.stale += 1;
            return Ok(Outcome::Stale);
        }
        page.rank.first_seen = page.rank.first_seen.min(fetched_at);
        if fetched_at < page.fetched_at {
            counters.stale += 1;
            return Ok(Outcome::Stale);
        }
        page.fetched_at = fetched_at;
        page.record = record;
        page.rank.popularity = popularity.or(page.rank.popularity);
        if !matches!(body, Body::Dead) {
            page.details = details();
        }
        let (state, outcome) = state(id, body, add)?;
        if state == page.state {
            counters.unchanged += 1;
            return Ok(Outcome::Unchanged);
        }
        if matches!((&state, &page.state), (State::Content(_), State::Content(_))) {
            counters.compared_updates += 1;
        }
        page.state = state;
        Ok(outcome)
    }
}

fn state(page: PageId, body: Body, add: &mut Add<'_>) -> Result<(State, Outcome), BulkError> {
    Ok(match body {
        Body::Content(signature) => {
            let outcome = if signature.tokens() == 0 { Outcome::Confirmed } else { Outcome::Pending };
            (State::Content(add(page, &signature)?), outcome)
        }
        Body::Redirect(to) => (State::Redirect(to), Outcome::Pending),
        Body::Dead => (State::Dead, Outcome::Confirmed),
    })
}
