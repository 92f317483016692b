//! The orders of a range to tier 2. An unreplicated range numbers its orders one by one, also after it has
//! died alone. Each owner of a replicated range numbers its orders from the first number of its epoch, and
//! hands over no order again.

use std::collections::VecDeque;

use doppel_model::Epoch;
use doppel_protocol::IndexCommand;

/// The epoch of all orders of an unreplicated range. Their numbers continue for as long as tier 2 lives.
const EPOCH: Epoch = Epoch(1);

/// Number of the last orders that a range hands over again when it starts.
const AGAIN: usize = 8;

/// Bits of the number of an order below the epoch, as in the product.
const ORDER_BITS: u32 = 40;

#[derive(Debug, Default)]
pub(crate) struct OrderLog {
    /// Epoch of the present owner. `None` for an unreplicated range.
    epoch: Option<Epoch>,
    last: u64,
    /// The last orders, oldest first.
    orders: VecDeque<IndexCommand>,
}

impl OrderLog {
    /// Starts the orders of a new owner.
    pub(crate) fn begin(&mut self, epoch: Epoch) {
        *self = Self { epoch: Some(epoch), last: epoch.0 << ORDER_BITS, orders: VecDeque::new() };
    }

    /// Starts anew with tier 2. Returns true if tier 2 has to be told the number of the next order.
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

    /// Adds an order, and returns its number.
    pub(crate) fn push(&mut self, command: IndexCommand) -> u64 {
        if self.orders.len() == AGAIN {
            self.orders.pop_front();
        }
        self.orders.push_back(command);
        self.last += 1;
        self.last
    }

    /// Number of the last order.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The last orders with their numbers. If `mistaken`, numbers start from 1 again.
    pub(crate) fn again(&mut self, mistaken: bool) -> Vec<(u64, IndexCommand)> {
        if mistaken {
            self.last = 0;
            return Vec::new();
        }
        let first = self.last - self.orders.len() as u64 + 1;
        (first..).zip(self.orders.iter().cloned()).collect()
    }
}
