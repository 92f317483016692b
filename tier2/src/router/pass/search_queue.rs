//! Searches that wait for their turn. Clients are served in turn, and the searches of a client in order.
//!
//! A search that was interrupted at its limit waits behind the other searches of its client. Once
//! [`INTERRUPTED_MAX`] searches of a client are interrupted, these come first, so that few searches are under
//! way at a time.
//!
//! A search is void if its page no longer has the content, or was searched for again under a later ticket.
//! Tier 1 would ignore its answer.

use std::collections::{HashMap, VecDeque};

use doppel_model::{ClientId, ContentHash, PageId};

use super::round::PendingSearch;

/// Number of interrupted searches of a client at which they precede its other searches.
const INTERRUPTED_MAX: usize = 64;

/// Limit of the signatures that waiting searches keep in memory, in bytes. A search beyond it reads its
/// signature from the node that stores the content. Interrupted searches that are under way at several nodes
/// keep theirs in addition.
const SIGNATURE_BYTES_MAX: usize = 64 << 20;

/// The waiting searches of one client.
#[derive(Default)]
struct Lane {
    fresh: VecDeque<PendingSearch>,
    interrupted: VecDeque<PendingSearch>,
}

/// The waiting searches of all clients.
#[derive(Default)]
pub(in crate::router) struct SearchQueue {
    lanes: HashMap<ClientId, Lane>,
    /// Clients with waiting searches, the next one first.
    turns: VecDeque<ClientId>,
    /// Content and ticket of the latest search of each page.
    current: HashMap<PageId, (ContentHash, u32)>,
    count: usize,
    /// Size of the signatures that the waiting searches keep, in bytes.
    signature_bytes: usize,
}

impl SearchQueue {
    /// Number of waiting searches, including void ones.
    pub(in crate::router) fn len(&self) -> usize {
        self.count
    }

    /// Adds a search behind the others of its client. If the page was already searched for under a later
    /// ticket, the new search is void. This happens because tier 1 sometimes holds a search back.
    pub(in crate::router) fn push(&mut self, pending: PendingSearch) {
        let (page, ticket) = (pending.page, pending.search.ticket);
        if self.current.get(&page).is_none_or(|(_, current)| *current <= ticket) {
            self.current.insert(page, (pending.content, ticket));
        }
        let pending = self.within_memory(pending);
        self.lane(pending.search.client).fresh.push_back(pending);
    }

    /// Returns a search that has used up its turn.
    pub(in crate::router) fn postpone(&mut self, pending: PendingSearch) {
        let pending = self.within_memory(pending);
        self.lane(pending.search.client).interrupted.push_back(pending);
    }

    /// Returns a search that did not get its turn. It goes in front of the others.
    pub(in crate::router) fn give_back(&mut self, pending: PendingSearch) {
        let pending = self.within_memory(pending);
        self.lane(pending.search.client).fresh.push_front(pending);
    }

    /// Counts the signature of a search that is about to wait. Drops the signature if the waiting searches
    /// would keep too many bytes.
    fn within_memory(&mut self, mut pending: PendingSearch) -> PendingSearch {
        if self.signature_bytes + pending.signature_bytes() > SIGNATURE_BYTES_MAX {
            pending.forget_signature();
        }
        self.signature_bytes += pending.signature_bytes();
        pending
    }

    /// The queue of a client, to which the caller adds one search.
    fn lane(&mut self, client: ClientId) -> &mut Lane {
        self.count += 1;
        let turns = &mut self.turns;
        self.lanes.entry(client).or_insert_with(|| {
            turns.push_back(client);
            Lane::default()
        })
    }

    /// Makes the searches for a page void, because it no longer has the content.
    pub(in crate::router) fn forget(&mut self, page: PageId, content: ContentHash) {
        if self.current.get(&page).is_some_and(|(current, _)| *current == content) {
            self.current.remove(&page);
        }
    }

    /// Removes the next search. The second value says whether it is void.
    fn pop(&mut self) -> Option<(PendingSearch, bool)> {
        let client = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&client)?;
        let interrupted_first = lane.fresh.is_empty() || lane.interrupted.len() >= INTERRUPTED_MAX;
        let queue = if interrupted_first { &mut lane.interrupted } else { &mut lane.fresh };
        let pending = queue.pop_front();
        if lane.fresh.is_empty() && lane.interrupted.is_empty() {
            self.lanes.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        let pending = pending?;
        self.count -= 1;
        self.signature_bytes -= pending.signature_bytes();
        let is_void = self.current.get(&pending.page) != Some(&(pending.content, pending.search.ticket));
        Some((pending, is_void))
    }

    /// Removes up to `limit` searches that are not void. Also returns the number of void searches that were
    /// dropped.
    pub(in crate::router) fn take(&mut self, limit: usize) -> (Vec<PendingSearch>, usize) {
        let (mut taken, mut dropped) = (Vec::new(), 0);
        while taken.len() < limit
            && let Some((pending, is_void)) = self.pop()
        {
            if is_void {
                dropped += 1;
            } else {
                taken.push(pending);
            }
        }
        (taken, dropped)
    }

    /// Notes that a search has its answer.
    pub(in crate::router) fn note_answered(&mut self, pending: &PendingSearch) {
        if self.current.get(&pending.page) == Some(&(pending.content, pending.search.ticket)) {
            self.current.remove(&pending.page);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use doppel_model::NodeId;
    use doppel_model::Tau;
    use doppel_model::signature::Builder;
    use doppel_partitioning::{PartitionMap, Plan};
    use doppel_protocol::Search;

    use super::*;

    fn pending(client: u32, page: u8, ticket: u32) -> PendingSearch {
        let (page, content) = (PageId::from_bytes([page; 16]), ContentHash([page; 16]));
        PendingSearch::new(page, content, Search { ticket, client: ClientId(client) })
    }

    fn pages(taken: &[PendingSearch]) -> Vec<u8> {
        taken.iter().map(|pending| pending.page.bytes()[0]).collect()
    }

    #[test]
    fn clients_are_served_in_turn() {
        let mut queue = SearchQueue::default();
        for page in 1..=6 {
            queue.push(pending(1, page, 1));
        }
        queue.push(pending(2, 11, 1));
        queue.push(pending(2, 12, 1));
        queue.push(pending(0, 21, 1));
        assert_eq!(pages(&queue.take(5).0), [1, 11, 21, 2, 12]);
        assert_eq!((pages(&queue.take(9).0), queue.len()), (vec![3, 4, 5, 6], 0));
        assert!(queue.lanes.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn interrupted_searches_wait_behind_the_others_up_to_a_limit() {
        let mut queue = SearchQueue::default();
        for page in 1..=200 {
            queue.push(pending(1, page, 1));
        }
        let mut order = Vec::new();
        for _ in 0..INTERRUPTED_MAX + 2 {
            let (taken, _) = queue.take(1);
            order.extend(pages(&taken));
            taken.into_iter().for_each(|pending| queue.postpone(pending));
        }
        let expected: Vec<u8> = (1..=64).chain([1, 2]).collect();
        assert_eq!((order, queue.len()), (expected, 200));
        // A search that did not get its turn keeps its place.
        let mut queue = SearchQueue::default();
        (1..=3).for_each(|page| queue.push(pending(1, page, 1)));
        let (taken, _) = queue.take(2);
        taken.into_iter().rev().for_each(|pending| queue.give_back(pending));
        assert_eq!(pages(&queue.take(3).0), [1, 2, 3]);
    }

    #[test]
    fn searches_for_removed_contents_and_earlier_tickets_are_void() {
        let mut queue = SearchQueue::default();
        let page = |number: u8| PageId::from_bytes([number; 16]);
        (1..=4).for_each(|number| queue.push(pending(1, number, 1)));
        queue.forget(page(1), ContentHash([1; 16]));
        // The page is searched for with another content, so this has no effect.
        queue.forget(page(2), ContentHash([9; 16]));
        queue.push(pending(1, 3, 2));
        let (taken, dropped) = queue.take(9);
        assert_eq!((pages(&taken), dropped), (vec![2, 4, 3], 2));
        taken.iter().for_each(|pending| queue.note_answered(pending));
        assert!(queue.current.is_empty());
        // A search that was held back arrives after its successor.
        queue.push(pending(1, 5, 6));
        queue.push(pending(1, 5, 5));
        let (taken, dropped) = queue.take(9);
        assert_eq!((taken.len(), taken[0].search.ticket, dropped), (1, 6, 1));
    }

    #[test]
    fn waiting_searches_keep_signatures_of_bounded_size() {
        let signature = Builder::new().build(&(0..200_000).collect::<Vec<u64>>());
        let (bytes, signature) = (signature.as_bytes().len(), Arc::new(signature));
        let plan = Plan::on_first(PartitionMap::one(1, Tau::DEFAULT).unwrap(), 1).unwrap();
        let mut queue = SearchQueue::default();
        let few = SIGNATURE_BYTES_MAX / bytes;
        for page in 0..few + 10 {
            let mut pending = pending(1, page as u8, 1);
            pending.set_home(&plan, NodeId(0), &signature);
            queue.push(pending);
        }
        assert_eq!(queue.signature_bytes, few * bytes);
        assert_eq!(Arc::strong_count(&signature), 1 + few, "searches beyond the limit keep no signature");
        let (taken, _) = queue.take(usize::MAX);
        assert_eq!(queue.signature_bytes, 0);
        drop(taken);
        assert_eq!(Arc::strong_count(&signature), 1);
    }
}
