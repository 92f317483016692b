//! Partitions that come and go, as the router says.

use std::sync::atomic::Ordering;

use doppel_model::{Incarnation, PlanVersion};
use doppel_protocol::index_node::{Hosting, NodeError};

use super::core::Core;
use super::file::HEADER_BYTES;
use super::ingest::Origins;
use super::partition::State;
use super::snapshot::Moments;
use super::{LocalNode, lock, scan};
use crate::error::Error;
use crate::numbers::incarnation;

impl LocalNode {
    /// Takes over what the router says, and forgets all that was under way for another plan.
    pub(super) fn take_hosting(&self, hosting: Hosting) -> Result<Incarnation, NodeError> {
        let mut change = self.change();
        let before = self.hosted().plan;
        if let Some(present) = before.filter(|present| *present > hosting.version) {
            return Err(NodeError::StalePlan { present });
        }
        (change.export, change.origins) = (None, Origins::default());
        lock(&self.interrupted).clear();
        {
            let mut core = self.write();
            core.tables.host(&hosting, before != Some(hosting.version));
            let resumed = if std::mem::take(&mut change.unread) {
                self.start_tables(&mut core, hosting.version)
                    .map_err(|error| NodeError::Damaged(error.to_string()))?
            } else {
                Moments::default()
            };
            let mut hosted = self.hosted_mut();
            if !resumed.is_empty() {
                hosted.resumed = resumed;
            }
            hosted.plan = Some(hosting.version);
            hosted.ranges = hosting.ranges;
        }
        if hosting.renews {
            self.incarnation.store(incarnation().0, Ordering::Release);
        }
        Ok(self.incarnation())
    }

    /// Fills the empty tables of a start: from the snapshot, or with all signatures there are.
    fn start_tables(&self, core: &mut Core, plan: PlanVersion) -> Result<Moments, Error> {
        let Some((moments, own_bytes)) = self.take_up_snapshot(&mut core.tables, plan) else {
            scan::read(core, &self.stopping)?;
            return Ok(Moments::default());
        };
        let Core { tables, signatures, .. } = core;
        if let Some(file) = signatures.own_mut() {
            // What is behind was stored after the snapshot, and is fetched again.
            file.resume_at(own_bytes.unwrap_or(HEADER_BYTES))?;
            tables.records().for_each(|record| file.retain(record));
        }
        Ok(moments)
    }

    /// Drops some entries of a partition that goes; whether there was one.
    pub(super) fn drop_some(&self, limit: usize) -> bool {
        let mut core = self.write();
        let goes = core.tables.partitions.iter().position(|partition| partition.state == State::Outgoing);
        let Some(partition) = goes else { return false };
        let (records, gone) = core.tables.drop_partition(partition.into(), limit);
        records.into_iter().for_each(|record| core.signatures.release(record));
        drop(core);
        // Not under the lock: it may be gigabytes.
        drop(gone);
        true
    }
}
