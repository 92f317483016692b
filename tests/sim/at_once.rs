//! Grouping a collection at once, either to create the rows with which a run begins, or to compare the result
//! at rest.

use std::sync::Arc;

use doppel_protocol::WinnerOrder;
use doppel_tier1::bulk::{BulkConfig, BulkError, BulkOutput, GroupedCollection, Unit};
use doppel_tier1::{Store, Write, simulation};

use super::action::Files;
use super::clients::submission;
use super::model::Version;
use super::restart::Killed;
use super::store::RangeStore;
use super::violation::{Checked, failed, holds};
use super::world::World;

impl World {
    /// Groups versions at once. Returns the groups, and the rows of each range.
    pub(crate) fn at_once(
        &self,
        versions: &[Version],
        winners: WinnerOrder,
        group_members_max: u64,
    ) -> Result<(GroupedCollection, Vec<Vec<Write>>), BulkError> {
        let config = BulkConfig {
            policy: self.contents.policy,
            winners,
            market: None,
            group_members_max,
            unit: Unit::Page,
            keep: BulkOutput::Answer { memory_max: usize::MAX, temp_dir: &std::env::temp_dir() },
        };
        let submissions = versions.iter().map(|version| submission(version, self.contents));
        simulation::at_once(&config, self.map, submissions)
    }

    /// Begins the run with the collection of these versions. Has no effect if the run has begun before.
    pub(crate) fn begin_at_once(&mut self, versions: &[Version]) -> Checked {
        if !self.rows()?.is_empty() {
            return Ok(());
        }
        let made = self.at_once(versions, self.settings.winners, self.settings.group_members_max);
        let (_, rows) = made.map_err(|e| failed("grouping at once")(e.into()))?;
        for (at, rows) in rows.into_iter().enumerate() {
            let store = Arc::clone(&self.hosts[at].store);
            let begun = match &*store {
                RangeStore::Alone(store) => store.by.begin(&store.rows, rows),
                RangeStore::Replicated(_) if rows.is_empty() => Ok(()),
                // Repeat the commit until a standby has it, if that is required.
                RangeStore::Replicated(_) => match store.commit(rows.clone()) {
                    Err(_) => {
                        let standbys = self.standbys(at);
                        if let Some(replicas) = &mut self.hosts[at].replicas {
                            replicas.follow_one(&standbys)?;
                        }
                        store.commit(rows)
                    }
                    written => written,
                },
            };
            begun.map_err(|e| failed("a commit")(e.into()))?;
        }
        versions.iter().for_each(|version| self.model.accept(version));
        self.acknowledged.extend_from_slice(versions);
        // As at the first start of a collection that was created at once, there is no index yet.
        for at in 0..self.hosts.len() {
            self.kill(at, Killed::WithTier2(Files::Lost), false)?;
            let backlog = self.hosts[at].range.backlog();
            holds!("what was grouped at once is at rest", backlog.is_quiescent(), "range {at}: {backlog:?}");
        }
        Ok(())
    }
}
