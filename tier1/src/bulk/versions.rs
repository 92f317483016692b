//! The versions of each URL become one: the rules are those of `machine::page`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use doppel_join::{ContentIndex, Contents, JoinError};
use doppel_model::{PageId, PageUrl, Timestamp};
use doppel_protocol::{Body, Counters, Outcome, Rank, Submission};

/// A page as its last version has it.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) rank: Rank,
    fetched_at: Timestamp,
    pub(super) state: State,
}

/// What a page is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Content(ContentIndex),
    Redirect(PageUrl),
    Dead,
}

/// All pages, in the order in which they first came.
#[derive(Debug, Default)]
pub(super) struct Versions {
    pub(super) pages: Vec<Page>,
    numbers: HashMap<PageId, u32>,
    pub(super) counters: Counters,
}

impl Versions {
    /// The number of a page.
    pub(super) fn find(&self, url: &PageUrl) -> Option<usize> {
        self.numbers.get(&url.id()).map(|number| *number as usize)
    }

    pub(super) fn submit(
        &mut self,
        submission: Submission,
        contents: &mut Contents,
    ) -> Result<Outcome, JoinError> {
        let Submission { url, fetched_at, popularity, body, .. } = submission;
        self.counters.submissions += 1;
        let next = self.pages.len() as u32;
        let number = match self.numbers.entry(url.id()) {
            Entry::Vacant(entry) => {
                let (state, outcome) = state(body, contents)?;
                entry.insert(next);
                let rank = Rank { url, popularity, first_seen: fetched_at };
                self.pages.push(Page { rank, fetched_at, state });
                return Ok(outcome);
            }
            Entry::Occupied(entry) => *entry.get() as usize,
        };
        let page = &mut self.pages[number];
        // Two URLs with one 128-bit hash: the first one stays.
        if page.rank.url != url {
            self.counters.stale += 1;
            return Ok(Outcome::Stale);
        }
        page.rank.first_seen = page.rank.first_seen.min(fetched_at);
        if fetched_at < page.fetched_at {
            self.counters.stale += 1;
            return Ok(Outcome::Stale);
        }
        page.fetched_at = fetched_at;
        page.rank.popularity = popularity.or(page.rank.popularity);
        let (state, outcome) = state(body, contents)?;
        if state == page.state {
            self.counters.unchanged += 1;
            return Ok(Outcome::Unchanged);
        }
        if matches!((&state, &page.state), (State::Content(_), State::Content(_))) {
            self.counters.compared_updates += 1;
        }
        page.state = state;
        Ok(outcome)
    }
}

fn state(body: Body, contents: &mut Contents) -> Result<(State, Outcome), JoinError> {
    Ok(match body {
        Body::Content(signature) => {
            let outcome = if signature.tokens() == 0 { Outcome::Confirmed } else { Outcome::Pending };
            (State::Content(contents.add(&signature)?), outcome)
        }
        Body::Redirect(to) => (State::Redirect(to), Outcome::Pending),
        Body::Dead => (State::Dead, Outcome::Confirmed),
    })
}
