//! The condition under which a commit of the owner is settled. Only then does the owner acknowledge it, and
//! only then do its effects leave the range.
//!
//! A standby reports the last record on its disk at once, and repeats the report, because reports may be
//! lost. A report names the epoch, index, and hash of the record. The hash covers all earlier records, so the
//! report also confirms those.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use doppel_model::Epoch;
use doppel_protocol::Settlement;

use super::{Replica, ReplicaState, ReplicaStore, lock};
use crate::storage::log::Position;
use crate::storage::store::StoreError;

/// How long an owner waits for a report before it checks whether it still owns the range.
const REPORT_WAIT: Duration = Duration::from_millis(50);

/// After this time a commit without a report is logged, and the range says why it waits.
const REPORT_OVERDUE: Duration = Duration::from_millis(500);

/// Encodes the report of a standby whose last record on disk is at this position.
fn encode_report(Position { epoch, index, hash }: Position) -> Bytes {
    let mut report = Vec::with_capacity(32);
    report.extend(epoch.to_le_bytes());
    report.extend(index.to_le_bytes());
    report.extend(hash.to_le_bytes());
    Bytes::from(report)
}

impl<D: ReplicaStore> Replica<D> {
    /// Reports the last record on this node's disk, if the record is new or the last report is old. An owner
    /// reports nothing. A standby reports under both settlements: while an operator changes the settlement,
    /// the nodes may have different ones.
    pub(super) fn report(&self, state: &mut ReplicaState) {
        let last = state.chain.last();
        if state.own_last.is_some() || last.index == 0 {
            return;
        }
        let is_known = |(position, at): &(Position, Instant)| {
            *position == last && at.elapsed() < self.limits.report_interval
        };
        if !state.last_report.as_ref().is_some_and(is_known) {
            self.log.report(&self.node, &encode_report(last));
            state.last_report = Some((last, Instant::now()));
        }
    }

    /// Whether a record that is in the log and on this node's disk is settled. Under
    /// [`Standby`](Settlement::Standby) waits at most `limit` for the report of a standby.
    pub(super) fn is_settled(&self, position: Position, limit: Duration) -> bool {
        let wanted = encode_report(position);
        self.limits.settlement == Settlement::Log
            || self.log.await_report(limit, &|node, report| self.is_standby(node) && *report == wanted)
    }

    /// Whether `node` is a node other than this one that is configured to have a replica of the range.
    fn is_standby(&self, node: &str) -> bool {
        node != self.node
            && self.replicas.as_ref().is_none_or(|replicas| replicas.iter().any(|replica| replica == node))
    }

    /// Waits until a record of the owner of `epoch` is settled. Holds no lock while waiting, so that the
    /// keeper can read the take-over of another node.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] if another node has taken over, the database has failed, or this process
    /// stops.
    pub(super) fn await_settled(&self, epoch: Epoch, position: Position) -> Result<(), StoreError> {
        let began = Instant::now();
        let mut is_logged = false;
        while !self.is_settled(position, REPORT_WAIT) {
            self.ensure_running()?;
            let is_over = lock(&self.last_owner).epoch != epoch || self.is_ownership_over();
            if is_over || self.has_failed() {
                return Err(StoreError::Deposed(self.range));
            }
            if began.elapsed() >= REPORT_OVERDUE && !std::mem::replace(&mut is_logged, true) {
                let range = self.range;
                let why = format!(
                    "no standby has reported the last commit of range {range}, so the owner cannot acknowledge it; \
                     start a node with a replica of the range, or find out why its standbys do not follow"
                );
                tracing::warn!(why, "a commit waits for a standby");
                self.note_wait_reason(why);
            }
        }
        self.settled_epoch.store(epoch.0, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until the take-over of the owner of `epoch`, and with it every earlier record, is settled. The
    /// owner calls this before it uses the range.
    ///
    /// # Errors
    /// Fails as [`await_settled`](Self::await_settled) does.
    pub(super) fn settle(&self, epoch: Epoch) -> Result<(), StoreError> {
        let own = lock(&self.state).own_last;
        let own = own.filter(|own| own.epoch == epoch.0).ok_or(StoreError::Deposed(self.range))?;
        let settled = self.await_settled(epoch, own);
        *lock(&self.wait) = None;
        settled
    }

    /// Whether the take-over of the owner of `epoch`, and with it every earlier record, is known to be
    /// settled.
    pub(crate) fn has_settled(&self, epoch: Epoch) -> bool {
        self.limits.settlement == Settlement::Log || self.settled_epoch.load(Ordering::Relaxed) == epoch.0
    }
}
