//! Searches that wait for their turn: clients are served in turn, and each of them in the order of its searches.
//!
//! A search that was interrupted at its limit waits behind the other searches of its client. When [`INTERRUPTED_MAX`] of a client wait, they
//! come first, so that few searches are under way at a time.
//!
//! A search is void when its page no longer has the content, or is searched for under a later ticket: tier 1 takes no answer to it.

use std::collections::{HashMap, VecDeque};

use doppel_model::{ClientId, ContentHash, PageId};

use super::round::Asked;

/// Interrupted searches of a client that may wait while it has others.
const INTERRUPTED_MAX: usize = 64;

/// Bytes of signatures that waiting searches may keep in memory. A search beyond that reads its signature from the node that stores it.
const SIGNATURE_BYTES_MAX: usize = 64 << 20;

/// The searches of one client.
#[derive(Default)]
struct Lane {
    fresh: VecDeque<Asked>,
    interrupted: VecDeque<Asked>,
}

/// The searches of all clients.
#[derive(Default)]
pub(super) struct SearchQueue {
    lanes: HashMap<ClientId, Lane>,
    /// The clients that have searches, the next one first.
    turns: VecDeque<ClientId>,
    /// The content and ticket of the last search of each page.
    current: HashMap<PageId, (ContentHash, u32)>,
    count: usize,
    /// Bytes of the signatures that the waiting searches keep.
    signature_bytes: usize,
}

impl SearchQueue {
    /// The number of searches, those that are void among them.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a search behind the others of its client. It is void at once if the page is searched for under a later ticket already: tier 1
    /// holds searches back now and then, so an earlier one may come later.
    pub(super) fn push(&mut self, asked: Asked) {
        let (page, ticket) = (asked.page, asked.search.ticket);
        if self.current.get(&page).is_none_or(|(_, current)| *current <= ticket) {
            self.current.insert(page, (asked.content, ticket));
        }
        let asked = self.within_memory(asked);
        self.lane(asked.search.client).fresh.push_back(asked);
    }

    /// Gives back a search that has used up its turn.
    pub(super) fn postpone(&mut self, asked: Asked) {
        let asked = self.within_memory(asked);
        self.lane(asked.search.client).interrupted.push_back(asked);
    }

    /// Gives back a search that has not had its turn.
    pub(super) fn give_back(&mut self, asked: Asked) {
        let asked = self.within_memory(asked);
        self.lane(asked.search.client).fresh.push_front(asked);
    }

    /// Counts the signature of a search that is about to wait, and drops the signature if the waiting searches keep too many bytes.
    fn within_memory(&mut self, mut asked: Asked) -> Asked {
        if self.signature_bytes + asked.signature_bytes() > SIGNATURE_BYTES_MAX {
            asked.forget_signature();
        }
        self.signature_bytes += asked.signature_bytes();
        asked
    }

    fn lane(&mut self, client: ClientId) -> &mut Lane {
        self.count += 1;
        let turns = &mut self.turns;
        self.lanes.entry(client).or_insert_with(|| {
            turns.push_back(client);
            Lane::default()
        })
    }

    /// The page no longer has the content: searches for it are void.
    pub(super) fn forget(&mut self, page: PageId, content: ContentHash) {
        if self.current.get(&page).is_some_and(|(current, _)| *current == content) {
            self.current.remove(&page);
        }
    }

    /// Takes out the next search. The second value says whether it is void.
    fn pop(&mut self) -> Option<(Asked, bool)> {
        let client = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&client)?;
        let interrupted_first = lane.fresh.is_empty() || lane.interrupted.len() >= INTERRUPTED_MAX;
        let queue = if interrupted_first { &mut lane.interrupted } else { &mut lane.fresh };
        let asked = queue.pop_front();
        if lane.fresh.is_empty() && lane.interrupted.is_empty() {
            self.lanes.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        let asked = asked?;
        self.count -= 1;
        self.signature_bytes -= asked.signature_bytes();
        let is_void = self.current.get(&asked.page) != Some(&(asked.content, asked.search.ticket));
        Some((asked, is_void))
    }

    /// Takes out up to `limit` searches that are not void, and says how many void ones were dropped.
    pub(super) fn take(&mut self, limit: usize) -> (Vec<Asked>, usize) {
        let (mut taken, mut dropped) = (Vec::new(), 0);
        while taken.len() < limit
            && let Some((asked, is_void)) = self.pop()
        {
            if is_void {
                dropped += 1;
            } else {
                taken.push(asked);
            }
        }
        (taken, dropped)
    }

    /// The search has its answer.
    pub(super) fn answered(&mut self, asked: &Asked) {
        if self.current.get(&asked.page) == Some(&(asked.content, asked.search.ticket)) {
            self.current.remove(&asked.page);
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

    fn asked(client: u32, page: u8, ticket: u32) -> Asked {
        let (page, content) = (PageId::from_bytes([page; 16]), ContentHash([page; 16]));
        Asked::new(page, content, Search { ticket, client: ClientId(client) })
    }

    fn pages(taken: &[Asked]) -> Vec<u8> {
        taken.iter().map(|asked| asked.page.bytes()[0]).collect()
    }

    #[test]
    fn clients_are_served_in_turn() {
        let mut queue = SearchQueue::default();
        for page in 1..=6 {
            queue.push(asked(1, page, 1));
        }
        queue.push(asked(2, 11, 1));
        queue.push(asked(2, 12, 1));
        queue.push(asked(0, 21, 1));
        assert_eq!(pages(&queue.take(5).0), [1, 11, 21, 2, 12]);
        assert_eq!((pages(&queue.take(9).0), queue.len()), (vec![3, 4, 5, 6], 0));
        assert!(queue.lanes.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn an_interrupted_search_waits_behind_the_others_until_too_many_do() {
        let mut queue = SearchQueue::default();
        for page in 1..=200 {
            queue.push(asked(1, page, 1));
        }
        let mut order = Vec::new();
        for _ in 0..INTERRUPTED_MAX + 2 {
            let (taken, _) = queue.take(1);
            order.extend(pages(&taken));
            taken.into_iter().for_each(|asked| queue.postpone(asked));
        }
        let expected: Vec<u8> = (1..=64).chain([1, 2]).collect();
        assert_eq!((order, queue.len()), (expected, 200));
        // Without a turn, it keeps its place.
        let mut queue = SearchQueue::default();
        (1..=3).for_each(|page| queue.push(asked(1, page, 1)));
        let (taken, _) = queue.take(2);
        taken.into_iter().rev().for_each(|asked| queue.give_back(asked));
        assert_eq!(pages(&queue.take(3).0), [1, 2, 3]);
    }

    #[test]
    fn a_search_without_its_page_and_an_earlier_ticket_are_void() {
        let mut queue = SearchQueue::default();
        let page = |number: u8| PageId::from_bytes([number; 16]);
        (1..=4).for_each(|number| queue.push(asked(1, number, 1)));
        queue.forget(page(1), ContentHash([1; 16]));
        // Another content than the one that is searched for.
        queue.forget(page(2), ContentHash([9; 16]));
        queue.push(asked(1, 3, 2));
        let (taken, dropped) = queue.take(9);
        assert_eq!((pages(&taken), dropped), (vec![2, 4, 3], 2));
        taken.iter().for_each(|asked| queue.answered(asked));
        assert!(queue.current.is_empty());
        // One that was held back comes after the next one.
        queue.push(asked(1, 5, 6));
        queue.push(asked(1, 5, 5));
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
            let mut asked = asked(1, page as u8, 1);
            asked.is_stored_at(&plan, NodeId(0), &signature);
            queue.push(asked);
        }
        assert_eq!(queue.signature_bytes, few * bytes);
        assert_eq!(Arc::strong_count(&signature), 1 + few, "searches beyond the limit keep no signature");
        let (taken, _) = queue.take(usize::MAX);
        assert_eq!(queue.signature_bytes, 0);
        drop(taken);
        assert_eq!(Arc::strong_count(&signature), 1);
    }
}
