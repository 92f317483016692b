//! The orders of a range to tier 2. Those of a range alone are numbered one by one, and there after it has died alone. Each
//! owner of a replicated range counts its own from the number that belongs to its epoch, and hands none over again.

use std::collections::VecDeque;

use doppel_model::Epoch;
use doppel_protocol::IndexCommand;

/// Ranges alone count their orders on for as long as tier 2 lives, so all of that is one epoch.
const EPOCH: Epoch = Epoch(1);

/// Orders that a range hands over again when it starts.
const AGAIN: usize = 8;

/// Bits of the number of an order below the epoch, as in the product.
const ORDER_BITS: u32 = 40;

#[derive(Debug, Default)]
pub(crate) struct OrderLog {
    /// None of a range alone.
    epoch: Option<Epoch>,
    last: u64,
    /// The last orders.
    orders: VecDeque<IndexCommand>,
}

impl OrderLog {
    /// A new owner begins.
    pub(crate) fn begin(&mut self, epoch: Epoch) {
        *self = Self { epoch: Some(epoch), last: epoch.0 << ORDER_BITS, orders: VecDeque::new() };
    }

    /// Tier 2 begins anew: true when it has to be told which order comes next.
    pub(crate) fn begin_again(&mut self) -> bool {
        if self.epoch.is_none() {
            *self = Self::default();
        }
        self.epoch.is_some()
    }

    /// The epoch of the present owner.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch.unwrap_or(EPOCH)
    }

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
