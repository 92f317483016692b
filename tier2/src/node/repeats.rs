//! Repeats: pages that have to be searched for again although no order requests it. They are kept until their
//! range has taken them.
//!
//! There is at most one repeat per content, because a later one replaces the earlier one. So there are never
//! more repeats than contents with copies.

use std::collections::BTreeMap;

use doppel_model::{ContentHash, PageId, RangeId};
use doppel_protocol::Repeat;
use doppel_protocol::index_node::ENTRIES_MAX;
use hashbrown::HashMap;

use super::{LocalNode, lock};
use crate::seed::Seeded;

/// The repeats of one range.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: u64,
    waiting: BTreeMap<u64, (PageId, ContentHash)>,
    numbers: HashMap<ContentHash, u64, Seeded>,
}

impl Repeats {
    /// Adds a repeat. It replaces an earlier repeat of the same content.
    pub(super) fn push(&mut self, page: PageId, content: ContentHash) {
        self.last += 1;
        if let Some(earlier) = self.numbers.insert(content, self.last) {
            self.waiting.remove(&earlier);
        }
        self.waiting.insert(self.last, (page, content));
    }

    /// Repeats with numbers above `number`, at most [`ENTRIES_MAX`].
    pub(super) fn after(&self, number: u64) -> Vec<Repeat> {
        let later = self.waiting.range(number.saturating_add(1)..).take(ENTRIES_MAX);
        later
            .map(|(number, (page, content))| Repeat { number: *number, page: *page, content: *content })
            .collect()
    }

    /// Forgets the repeats with numbers up to `through`.
    pub(super) fn forget(&mut self, through: u64) {
        let left = self.waiting.split_off(&through.saturating_add(1));
        for (number, (_, content)) in std::mem::replace(&mut self.waiting, left) {
            if self.numbers.get(&content) == Some(&number) {
                self.numbers.remove(&content);
            }
        }
    }
}

impl LocalNode {
    /// Calls `work` with the repeats of a range.
    pub(super) fn with_repeats<T>(&self, range: RangeId, work: impl FnOnce(&mut Repeats) -> T) -> T {
        let mut all = lock(&self.repeats);
        work(all.entry(range).or_default())
    }

    /// Whether there are repeats of any range.
    pub(super) fn has_repeats(&self) -> bool {
        lock(&self.repeats).values().any(|repeats| !repeats.waiting.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_stay_until_acknowledged_and_each_content_has_at_most_one() {
        let (page, content) = (|n: u8| PageId::from_bytes([n; 16]), |n: u8| ContentHash([n; 16]));
        let mut repeats = Repeats::default();
        repeats.push(page(1), content(1));
        repeats.push(page(2), content(2));
        repeats.push(page(3), content(1));
        let numbers = |repeats: &Repeats, after| -> Vec<_> {
            repeats.after(after).iter().map(|one| (one.number, one.page)).collect()
        };
        assert_eq!(numbers(&repeats, 0), [(2, page(2)), (3, page(3))]);
        assert_eq!(numbers(&repeats, 0), numbers(&repeats, 1));
        repeats.forget(2);
        assert_eq!(numbers(&repeats, 0), [(3, page(3))]);
        repeats.push(page(4), content(2));
        repeats.forget(3);
        assert_eq!((numbers(&repeats, 0), repeats.numbers.len()), (vec![(4, page(4))], 1));
        repeats.forget(u64::MAX);
        assert!(repeats.after(0).is_empty() && repeats.numbers.is_empty());
    }
}
