//! Beats: a node tells all nodes at short intervals which ranges it owns, how far its replicas are, and which
//! part of the log it still needs.

use std::sync::PoisonError;

use doppel_model::Epoch;
use doppel_protocol::beats::{Beat, RangeClaim};

use super::{BEAT, KeeperState, lock};

impl KeeperState {
    /// Has the next beat sent at once.
    pub(super) fn beat_soon(&self) {
        *lock(&self.beat) = true;
        self.news.notify_all();
    }

    /// Sends beats to all nodes until the process stops.
    pub(super) fn send_beats(&self) {
        while !self.is_stopping() {
            let ranges = self.replication.ranges.iter().zip(&self.kept);
            let ranges = ranges.map(|(replicated, kept)| {
                let state = lock(&kept.state);
                let replica = state.replica.as_ref();
                let epoch = replica.map_or(Epoch(0), |replica| replica.owner().0);
                let (index, sequence, needs) = match replica {
                    // Files that contradict the log are of no use to other nodes, and no node has to wait for
                    // them.
                    _ if state.contradicts => (0, 0, state.needs),
                    Some(replica) => (replica.index(), replica.sequence().0, replica.sequence().0),
                    None => (state.index, 0, state.needs),
                };
                RangeClaim {
                    range: replicated.range,
                    epoch: state.owned.unwrap_or(epoch),
                    // A node that accepts no writes leaves the range to others.
                    owns: state.owned.is_some() && self.refusals.check().is_ok(),
                    index,
                    known: state.is_known && !state.contradicts,
                    sequence,
                    needs,
                    trouble: state.trouble.clone(),
                }
            });
            let node = self.replication.node.clone();
            let beat = Beat { node, incarnation: self.incarnation, ranges: ranges.collect() };
            (self.replication.tell)(&beat);
            let soon = lock(&self.beat);
            let (mut soon, _) = self
                .news
                .wait_timeout_while(soon, BEAT, |soon| !*soon && !self.is_stopping())
                .unwrap_or_else(PoisonError::into_inner);
            *soon = false;
        }
    }
}
