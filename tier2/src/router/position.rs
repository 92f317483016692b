//! How far the orders of a range have come.
//!
//! The router keeps an order until every node has acknowledged it. Orders that it does not have cannot be sent: those
//! that were acknowledged, that an earlier router had, or that a later owner of the range has made void. A node that
//! lacks one of them is fed anew, and follows from there on.

use std::sync::atomic::Ordering;

use doppel_model::{Epoch, RangeId};
use doppel_protocol::index_node::Applied;
use doppel_protocol::{IndexError, Orders, RefusedOrders};

use super::{Router, lock};

/// How far a range has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position {
    /// The latest epoch that anybody has named.
    epoch: Epoch,
    /// The epoch and index of the last order that was handed over; none before the first.
    submitted: Option<(Epoch, u64)>,
    /// Orders up to this index are not sent any more.
    released: u64,
}

impl Router {
    /// Takes orders in their order: what was handed over before is left out.
    ///
    /// The first orders of an epoch, and the first after a start of the router, may begin anywhere: what was handed to
    /// another router, or by another owner, cannot be asked for again. An announcement says so before there are any.
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

    /// Orders of a range up to this one are not sent any more: every node has acknowledged them, or they are void.
    pub(super) fn release(&self, range: RangeId, epoch: Epoch, through: u64) {
        let mut positions = lock(&self.positions);
        let position = positions.entry(range).or_default();
        position.epoch = position.epoch.max(epoch);
        position.released = position.released.max(through);
    }

    /// The index after which a range sends its orders to a node that is fed from now on, with what the range has after
    /// `ordered` in this epoch. Orders that are here already are sent nevertheless.
    pub(super) fn fed_index(&self, range: RangeId, epoch: Epoch, ordered: u64) -> u64 {
        let mut positions = lock(&self.positions);
        let position = positions.entry(range).or_default();
        position.epoch = position.epoch.max(epoch);
        if position.submitted.is_none() { position.released.max(ordered) } else { position.released }
    }

    /// Whether a node has to be fed by a range before it can follow the orders that are left.
    pub(super) fn needs_feeding(&self, range: RangeId, applied: &Applied) -> bool {
        let released = lock(&self.positions).get(&range).map_or(0, |position| position.released);
        applied.position.is_none_or(|(_, index)| index < released)
    }

    /// The ranges that are known.
    pub(super) fn ranges(&self) -> Vec<RangeId> {
        lock(&self.positions).keys().copied().collect()
    }

    /// Index up to which orders of a range are not sent any more.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn acknowledged(&self, range: RangeId) -> u64 {
        lock(&self.positions).get(&range).map_or(0, |position| position.released)
    }
}
