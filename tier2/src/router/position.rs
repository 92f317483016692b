//! How far the orders of each range have come.
//!
//! The router keeps an order until every node has acknowledged it. Some orders cannot be sent: orders that
//! were acknowledged, orders that only an earlier router had, and orders that a later owner of the range has
//! made void. A node that lacks one of them is fed again, and then continues with later orders.

use std::sync::atomic::Ordering;

use doppel_model::{Epoch, RangeId};
use doppel_protocol::index_node::AppliedState;
use doppel_protocol::{IndexError, Orders, RefusedOrders};

use super::{Router, lock};

/// How far the orders of a range have come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RangePosition {
    /// The latest epoch that a message has named.
    epoch: Epoch,
    /// Epoch and index of the last order that was handed over. `None` before the first.
    submitted: Option<(Epoch, u64)>,
    /// Orders up to this index cannot be sent again.
    released: u64,
}

impl Router {
    /// Accepts orders in sequence, and leaves out orders that were handed over before. Returns `None` if
    /// nothing is left.
    ///
    /// The first orders of an epoch, and the first orders after a start of the router, may begin at any
    /// index. Earlier orders went to another router or came from another owner, and cannot be requested
    /// again. An owner announces where its orders begin by sending an empty list first.
    pub(crate) fn accept(&self, mut orders: Orders) -> Result<Option<Orders>, RefusedOrders> {
        let refused = |orders, error| Err(RefusedOrders { orders, error });
        if self.is_stopping() {
            return refused(orders, IndexError::Stopping);
        }
        let mut positions = lock(&self.positions);
        let position = positions.entry(orders.range).or_default();
        if orders.epoch < position.epoch {
            return refused(orders, IndexError::StaleEpoch { present: position.epoch });
        }
        if orders.commands.is_empty() {
            let before = orders.first.saturating_sub(1);
            if position.submitted.is_none_or(|(_, index)| index < before) {
                position.submitted = Some((orders.epoch, before));
                position.released = position.released.max(before);
            }
            position.epoch = orders.epoch;
            return Ok(None);
        }
        let submitted = position.submitted.map_or(0, |(_, index)| index);
        let expected = submitted + 1;
        if orders.first > expected {
            if position.submitted.is_some_and(|(epoch, _)| epoch == orders.epoch) {
                return refused(orders, IndexError::Gap { expected });
            }
            position.released = position.released.max(orders.first - 1);
        }
        let last = orders.first + orders.commands.len() as u64 - 1;
        position.epoch = orders.epoch;
        position.submitted = Some((orders.epoch, submitted.max(last)));
        let known = (expected.saturating_sub(orders.first) as usize).min(orders.commands.len());
        orders.commands.drain(..known);
        orders.first += known as u64;
        if orders.commands.is_empty() {
            return Ok(None);
        }
        self.waiting.fetch_add(orders.commands.len(), Ordering::Relaxed);
        Ok(Some(orders))
    }

    /// Notes that orders of a range up to this index cannot be sent again. Either every node has acknowledged
    /// them, or they are void.
    pub(super) fn release(&self, range: RangeId, epoch: Epoch, through: u64) {
        let mut positions = lock(&self.positions);
        let position = positions.entry(range).or_default();
        position.epoch = position.epoch.max(epoch);
        position.released = position.released.max(through);
    }

    /// Returns the index of the last order that counts as applied once a node has been fed from now on. The
    /// contents that the range offers include all its orders up to `ordered`. If this router has received
    /// orders of the range, the node nevertheless gets every order that can still be sent.
    pub(super) fn fed_index(&self, range: RangeId, epoch: Epoch, ordered: u64) -> u64 {
        let mut positions = lock(&self.positions);
        let position = positions.entry(range).or_default();
        position.epoch = position.epoch.max(epoch);
        if position.submitted.is_none() { position.released.max(ordered) } else { position.released }
    }

    /// Whether a range has to feed a node before the node can follow the remaining orders.
    pub(super) fn needs_feeding(&self, range: RangeId, applied: &AppliedState) -> bool {
        let released = lock(&self.positions).get(&range).map_or(0, |position| position.released);
        applied.position.is_none_or(|(_, index)| index < released)
    }

    /// The ranges that have handed over or announced orders.
    pub(super) fn ranges(&self) -> Vec<RangeId> {
        lock(&self.positions).keys().copied().collect()
    }

    /// Index up to which the orders of a range cannot be sent again.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn acknowledged(&self, range: RangeId) -> u64 {
        lock(&self.positions).get(&range).map_or(0, |position| position.released)
    }
}
