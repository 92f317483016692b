//! Hosting: partitions that come and go, as the router tells the node.

use std::sync::atomic::Ordering;

use doppel_model::{Incarnation, PlanVersion};
use doppel_protocol::index_node::{HostingPlan, NodeError};

use super::core::Core;
use super::partition::PartitionState;
use super::signatures::file::HEADER_BYTES;
use super::snapshot::SnapshotMoments;
use super::transfer::MovedCenters;
use super::{LocalNode, lock, scan};
use crate::error::Error;
use crate::incarnations::next_incarnation;

impl LocalNode {
    /// Adopts what the router tells the node to host, and discards everything that was under way for another
    /// plan.
    pub(super) fn take_hosting(&self, hosting: HostingPlan) -> Result<Incarnation, NodeError> {
        let mut change = self.change();
        let before = self.hosted().plan;
        if let Some(present) = before.filter(|present| *present > hosting.version) {
            return Err(NodeError::StalePlan { present });
        }
        (change.export, change.moved_centers) = (None, MovedCenters::default());
        lock(&self.interrupted).clear();
        {
            let mut core = self.write();
            core.tables.host(&hosting, before != Some(hosting.version));
            let resumed = if std::mem::take(&mut change.is_unfilled) {
                self.start_tables(&mut core, hosting.version)
                    .map_err(|error| NodeError::Damaged(error.to_string()))?
            } else {
                SnapshotMoments::default()
            };
            let mut hosted = self.hosted_mut();
            if !resumed.is_empty() {
                hosted.resumed = resumed;
            }
            hosted.plan = Some(hosting.version);
            hosted.ranges = hosting.ranges;
        }
        if hosting.renews {
            self.incarnation.store(next_incarnation().0, Ordering::Release);
        }
        Ok(self.incarnation())
    }

    /// Fills the empty tables after a start, from the snapshot or from all signatures.
    fn start_tables(&self, core: &mut Core, plan: PlanVersion) -> Result<SnapshotMoments, Error> {
        let Some((moments, own_bytes)) = self.restore_snapshot(&mut core.tables, plan) else {
            scan::read(core, self.config.pool.as_deref(), &self.stopping)?;
            return Ok(SnapshotMoments::default());
        };
        let Core { tables, signatures, .. } = core;
        if let Some(file) = signatures.own_mut() {
            // Signatures behind this offset were stored after the snapshot. They are fetched again.
            file.resume_at(own_bytes.unwrap_or(HEADER_BYTES))?;
            tables.records().for_each(|record| file.retain(record));
        }
        Ok(moments)
    }

    /// Drops some entries of an outgoing partition. Returns whether there was such a partition.
    pub(super) fn drop_outgoing(&self, limit: usize) -> bool {
        let mut core = self.write();
        let outgoing =
            core.tables.partitions.iter().position(|partition| partition.state == PartitionState::Outgoing);
        let Some(partition) = outgoing else { return false };
        let (records, gone) = core.tables.drop_partition(partition.into(), limit);
        records.into_iter().for_each(|record| core.signatures.release(record));
        drop(core);
        // Freed without the lock, because it may be gigabytes.
        drop(gone);
        true
    }
}
