//! A queue that holds each item at most once.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

/// A first-in, first-out queue. Pushing an item that waits already leaves it in its place.
#[derive(Debug)]
pub(in crate::service) struct UniqueQueue<T> {
    order: VecDeque<T>,
    waiting: HashSet<T>,
}

impl<T: Copy + Eq + Hash> UniqueQueue<T> {
    pub(in crate::service) fn push(&mut self, item: T) {
        if self.waiting.insert(item) {
            self.order.push_back(item);
        }
    }

    pub(in crate::service) fn pop(&mut self) -> Option<T> {
        let item = self.order.pop_front()?;
        self.waiting.remove(&item);
        Some(item)
    }

    pub(in crate::service) fn iter(&self) -> impl Iterator<Item = &T> {
        self.order.iter()
    }

    pub(in crate::service) fn contains(&self, item: &T) -> bool {
        self.waiting.contains(item)
    }

    pub(in crate::service) fn len(&self) -> usize {
        self.order.len()
    }

    pub(in crate::service) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

impl<T> Default for UniqueQueue<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), waiting: HashSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::UniqueQueue;

    #[test]
    fn a_waiting_item_keeps_its_place_and_may_be_pushed_again_later() {
        let mut queue: UniqueQueue<u32> = UniqueQueue::default();
        [1, 2, 1].into_iter().for_each(|item| queue.push(item));
        queue.push(2);
        assert_eq!((queue.pop(), queue.len()), (Some(1), 1));
        queue.push(1);
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(2), Some(1), None));
        assert!(queue.is_empty());
    }
}
