//! Searches that were interrupted at their limit, until they are asked for again.
//!
//! A search visits its candidates in the order of insertion, so the last one visited says where it continues. Entries stored in the meantime are
//! younger, so the search still visits them.
//!
//! Losing an interrupted search costs time alone: the search begins anew. Invariant: none is kept for a content that a page has lost since, so
//! what is void does not fill the room.

use doppel_model::{ContentHash, InsertSeq, PageId};
use hashbrown::HashMap;

use super::columns::Center;
use super::found::Partner;
use super::tables::EntryRef;
use crate::seed::Seeded;

/// The most interrupted searches that are kept. A search that finds no room runs to its end.
const SEARCHES_MAX: usize = 16_384;

/// The most partners with which a search can be interrupted, and the most centers known to be far that it keeps.
pub(crate) const FINDINGS_MAX: usize = 512;

/// A search that was interrupted.
#[derive(Debug, Clone)]
pub(crate) struct Interrupted {
    /// The entry that is searched for, and its insertion sequence; none for a content that another node stores.
    pub(crate) own: Option<(EntryRef, InsertSeq)>,
    /// See [`QueryRole::First`](super::roles::QueryRole::First).
    pub(crate) before: Option<PageId>,
    /// The last candidate that was visited.
    pub(crate) visited: InsertSeq,
    /// Oldest first.
    pub(crate) partners: Vec<Partner>,
    /// See [`search`](super::search); oldest first.
    pub(crate) far: Vec<Center>,
}

/// The interrupted searches of a node.
#[derive(Debug, Default)]
pub(crate) struct InterruptedSearches {
    /// By content, and whether this node stores it.
    searches: HashMap<(ContentHash, bool), Interrupted, Seeded>,
}

impl InterruptedSearches {
    /// Their number.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.searches.len()
    }

    /// Whether another search may be interrupted.
    pub(crate) fn has_room(&self) -> bool {
        self.searches.len() < SEARCHES_MAX
    }

    pub(crate) fn insert(&mut self, content: ContentHash, search: Interrupted) {
        self.searches.insert((content, search.own.is_some()), search);
    }

    /// Takes out the search for a content, if it is the one that is meant.
    pub(crate) fn take_if(
        &mut self,
        content: ContentHash,
        is_stored: bool,
        is_meant: impl FnOnce(&Interrupted) -> bool,
    ) -> Option<Interrupted> {
        // Mostly there is none, and nothing has to be hashed.
        if self.searches.is_empty() {
            return None;
        }
        let key = (content, is_stored);
        if self.searches.get(&key).is_some_and(is_meant) { self.searches.remove(&key) } else { None }
    }

    /// A page no longer has the content. A search for a content that others have begins anew.
    pub(crate) fn forget(&mut self, content: ContentHash) {
        if !self.searches.is_empty() {
            self.searches.remove(&(content, true));
            self.searches.remove(&(content, false));
        }
    }

    /// All begin anew: places and insertion sequences mean something else from now on.
    pub(crate) fn clear(&mut self) {
        self.searches.clear();
    }
}
