//! The versions of each URL become one: the rules are those of `machine::page`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use doppel_join::ContentIndex;
use doppel_model::signature::Signature;
use doppel_model::{PageId, PageUrl, Timestamp};
use doppel_protocol::{Body, Counters, Outcome, Rank, Submission};

use super::BulkError;

/// A page as its last version has it.
#[derive(Debug)]
pub(super) struct Page {
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

/// All pages, in the order in which they first came.
#[derive(Debug)]
pub(super) struct Versions {
    pub(super) pages: Vec<Page>,
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
    pub(super) fn new(shards: u16) -> Self {
        let intake = vec![Counters::default(); usize::from(shards)];
        Self { pages: Vec::new(), numbers: HashMap::new(), intake }
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

    pub(super) fn submit(&mut self, submission: Submission, add: &mut Add<'_>) -> Result<Outcome, BulkError> {
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
        let number = match self.numbers.entry(id) {
            Entry::Vacant(entry) => {
                let (state, outcome) = state(id, body, add)?;
                entry.insert(next);
                let rank = Rank { url, popularity, first_seen: fetched_at };
                self.pages.push(Page { rank, fetched_at, details: details(), state });
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
