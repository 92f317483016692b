//! When a commit of the owner is settled, so that it may be acknowledged and leave the range.
//!
//! Standbys report what they have on their disks at once, and then again and again, for reports may be lost.
//! A report names the record by its epoch, index and hash, so it says of all records before, too, that they
//! are the same.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use doppel_model::Epoch;
use doppel_protocol::Settlement;

use super::{Copies, Replica, State, lock};
use crate::log::Position;
use crate::store::StoreError;

/// How long an owner waits for a report before it looks whether it still owns the range.
const LOOK: Duration = Duration::from_millis(50);

/// A commit that waits for longer is a trouble.
const TROUBLED: Duration = Duration::from_millis(500);

/// A report of what is on disk.
fn report(Position { epoch, index, hash }: Position) -> Bytes {
    let mut report = Vec::with_capacity(32);
    report.extend(epoch.to_le_bytes());
    report.extend(index.to_le_bytes());
    report.extend(hash.to_le_bytes());
    Bytes::from(report)
}

impl<D: Copies> Replica<D> {
    /// Reports what a standby has on its disk, where that is new or was last reported some time ago. Whether
    /// the owner waits for that is not known here: while the settlement is changed, not all nodes have the
    /// same one.
    pub(super) fn report(&self, state: &mut State) {
        let last = state.chain.last();
        if state.own.is_some() || last.index == 0 {
            return;
        }
        let is_known = |(position, at): &(Position, Instant)| {
            *position == last && at.elapsed() < self.limits.report_again
        };
        if !state.reported.as_ref().is_some_and(is_known) {
            self.log.report(&self.node, &report(last));
            state.reported = Some((last, Instant::now()));
        }
    }

    /// Whether a record that the log and this node have is settled, as far as is known.
    pub(super) fn is_settled(&self, position: Position, limit: Duration) -> bool {
        let wanted = report(position);
        self.limits.settlement == Settlement::Log
            || self.log.await_report(limit, &|node, report| self.is_standby(node) && *report == wanted)
    }

    /// Whether a node is another one that is to have a replica of the range.
    fn is_standby(&self, node: &str) -> bool {
        node != self.node
            && self.replicas.as_ref().is_none_or(|replicas| replicas.iter().any(|of| of == node))
    }

    /// Waits until a record of the owner of an epoch is settled. Nothing is held meanwhile, so that it is
    /// seen when another node takes over.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when another node has taken over, or this process stops.
    pub(super) fn await_settled(&self, epoch: Epoch, position: Position) -> Result<(), StoreError> {
        let began = Instant::now();
        let mut is_said = false;
        while !self.is_settled(position, LOOK) {
            self.go_on()?;
            let is_over = lock(&self.owner).epoch != epoch || self.is_over();
            if is_over || self.has_failed() {
                return Err(StoreError::Deposed(self.range));
            }
            if began.elapsed() >= TROUBLED && !std::mem::replace(&mut is_said, true) {
                let range = self.range;
                let why = format!(
                    "no standby has what the owner of range {range} wrote last, and before one has it on its disk nothing is \
                     acknowledged: start a node that has a replica of it, or see why none follows"
                );
                tracing::warn!(why, "a commit waits for a standby");
                self.note_trouble(why);
            }
        }
        self.settled.store(epoch.0, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until all that the owner of an epoch began with is settled.
    ///
    /// # Errors
    /// The same.
    pub(super) fn settle(&self, epoch: Epoch) -> Result<(), StoreError> {
        let own = lock(&self.state).own;
        let own = own.filter(|own| own.epoch == epoch.0).ok_or(StoreError::Deposed(self.range))?;
        let settled = self.await_settled(epoch, own);
        *lock(&self.trouble) = None;
        settled
    }

    /// Whether what the owner of an epoch began with is known to be settled.
    pub(crate) fn has_settled(&self, epoch: Epoch) -> bool {
        self.limits.settlement == Settlement::Log || self.settled.load(Ordering::Relaxed) == epoch.0
    }
}
