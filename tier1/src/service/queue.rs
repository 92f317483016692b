//! A queue that holds each item at most once.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

/// A first-in, first-out queue. Pushing an item that waits already leaves it in its place.
#[derive(Debug)]
pub(super) struct Queue<T> {
    order: VecDeque<T>,
    waiting: HashSet<T>,
}

impl<T: Copy + Eq + Hash> Queue<T> {
    pub(super) fn push(&mut self, item: T) {
        if self.waiting.insert(item) {
            self.order.push_back(item);
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.order.pop_front()?;
        self.waiting.remove(&item);
        Some(item)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.order.iter()
    }

    pub(super) fn contains(&self, item: &T) -> bool {
        self.waiting.contains(item)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), waiting: HashSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;

    #[test]
    fn what_waits_keeps_its_place_and_may_come_again_afterwards() {
        let mut queue: Queue<u32> = Queue::default();
        [1, 2, 1].into_iter().for_each(|item| queue.push(item));
        queue.push(2);
        assert_eq!((queue.pop(), queue.len()), (Some(1), 1));
        queue.push(1);
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(2), Some(1), None));
        assert!(queue.is_empty());
    }
}
