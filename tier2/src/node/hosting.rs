//! Partitions that come and go, as the router says.

use doppel_model::Incarnation;
use doppel_protocol::index_node::{Hosting, NodeError};

use super::ingest::Origins;
use super::partition::State;
use super::{LocalNode, scan};

impl LocalNode {
    /// Takes over what the router says, and forgets all that was under way for another plan.
    pub(super) fn take_hosting(&self, hosting: Hosting) -> Result<Incarnation, NodeError> {
        let mut change = self.change();
        let before = self.hosted().plan;
        if let Some(present) = before.filter(|present| *present > hosting.version) {
            return Err(NodeError::StalePlan { present });
        }
        (change.export, change.origins) = (None, Origins::default());
        {
            let mut core = self.write();
            core.tables.host(&hosting, before != Some(hosting.version));
            if std::mem::take(&mut change.unread) {
                scan::read(&mut core, &self.stopping)
                    .map_err(|error| NodeError::Damaged(error.to_string()))?;
            }
            let mut hosted = self.hosted_mut();
            hosted.plan = Some(hosting.version);
            hosted.ranges = hosting.ranges;
        }
        Ok(self.config.incarnation)
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
