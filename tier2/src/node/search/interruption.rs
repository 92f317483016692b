//! Interrupted searches: they have reached their limit, and wait until the router continues them.
//!
//! A search visits its candidates in the order of insertion, so it can continue after the last visited
//! candidate. Entries that are stored in the meantime are younger, so the search still visits them.
//!
//! Losing an interrupted search costs only time: it starts again.
//!
//! Invariant: when a content loses a page, its interrupted search is dropped. So void searches take no room.

use doppel_model::{ContentHash, InsertSeq, PageId};
use hashbrown::HashMap;

use super::findings::FoundPartner;
use crate::node::partition::columns::Center;
use crate::node::tables::EntryRef;
use crate::seed::Seeded;

/// Largest number of interrupted searches. A search that finds no room runs to its end.
const SEARCHES_MAX: usize = 16_384;

/// Largest number of partners with which a search can be interrupted. Also the largest number of far centers
/// that an interrupted search keeps.
pub(crate) const FINDINGS_MAX: usize = 512;

/// A search that was interrupted.
#[derive(Debug, Clone)]
pub(crate) struct InterruptedSearch {
    /// The searched entry and its insertion sequence. `None` if another node stores the content.
    pub(crate) own: Option<(EntryRef, InsertSeq)>,
    /// See [`QueryRole::First`](crate::node::tables::roles::QueryRole::First).
    pub(crate) before: Option<PageId>,
    /// The last visited candidate.
    pub(crate) visited: InsertSeq,
    /// Partners, oldest first.
    pub(crate) partners: Vec<FoundPartner>,
    /// Far centers, oldest first; see [`search`](super).
    pub(crate) far: Vec<Center>,
}

/// The interrupted searches of a node.
#[derive(Debug, Default)]
pub(crate) struct InterruptedSearches {
    /// Searches by content, and by whether this node stores the content.
    searches: HashMap<(ContentHash, bool), InterruptedSearch, Seeded>,
}

impl InterruptedSearches {
    /// Number of interrupted searches.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.searches.len()
    }

    /// Whether another search may be interrupted.
    pub(crate) fn has_room(&self) -> bool {
        self.searches.len() < SEARCHES_MAX
    }

    /// Keeps a search until it is continued.
    pub(crate) fn insert(&mut self, content: ContentHash, search: InterruptedSearch) {
        self.searches.insert((content, search.own.is_some()), search);
    }

    /// Removes and returns the search for a content if `is_meant` accepts it.
    pub(crate) fn take_if(
        &mut self,
        content: ContentHash,
        is_stored: bool,
        is_meant: impl FnOnce(&InterruptedSearch) -> bool,
    ) -> Option<InterruptedSearch> {
        // Usually there are no interrupted searches. Then nothing has to be hashed.
        if self.searches.is_empty() {
            return None;
        }
        let key = (content, is_stored);
        if self.searches.get(&key).is_some_and(is_meant) { self.searches.remove(&key) } else { None }
    }

    /// Drops the searches for a content that has lost a page. If other pages still have the content, its
    /// search starts again.
    pub(crate) fn forget(&mut self, content: ContentHash) {
        if !self.searches.is_empty() {
            self.searches.remove(&(content, true));
            self.searches.remove(&(content, false));
        }
    }

    /// Drops all searches, so that they start again. Called when slots or insertion sequences change their
    /// meaning.
    pub(crate) fn clear(&mut self) {
        self.searches.clear();
    }
}
