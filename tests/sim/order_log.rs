//! The orders of a range to tier 2, as its log has them: numbered one by one, and there after the range has died alone.

use std::collections::VecDeque;

use doppel_model::Epoch;
use doppel_protocol::IndexCommand;

/// Ranges count their orders on for as long as tier 2 lives, so all of that is one epoch.
pub(crate) const EPOCH: Epoch = Epoch(1);

/// Orders that a range hands over again when it starts.
const AGAIN: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct OrderLog {
    last: u64,
    /// The last orders.
    orders: VecDeque<IndexCommand>,
}

impl OrderLog {
    /// The index of a further order.
    pub(crate) fn push(&mut self, command: IndexCommand) -> u64 {
        if self.orders.len() == AGAIN {
            self.orders.pop_front();
        }
        self.orders.push_back(command);
        self.last += 1;
        self.last
    }

    /// Index of the last order.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The last orders with their indexes. When it is mistaken, it counts from 1 from now on.
    pub(crate) fn again(&mut self, mistaken: bool) -> Vec<(u64, IndexCommand)> {
        if mistaken {
            self.last = 0;
            return Vec::new();
        }
        let first = self.last - self.orders.len() as u64 + 1;
        (first..).zip(self.orders.iter().cloned()).collect()
    }
}
