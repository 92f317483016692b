//! How a writer that accepts nothing more refuses its callers.

use std::collections::VecDeque;

use doppel_protocol::Tier1Error;

use super::RangeWriter;
use super::waiting::WaitingTask;
use crate::service::writer::task::Task;

impl RangeWriter<'_> {
    /// Refuses all writes of the process for good, and all tasks until the service stops.
    pub(super) fn refuse_for_good(mut self, refused: Tier1Error) {
        let refused = self.owned.refusals.refuse_for_good(refused);
        self.refuse_until_end(&refused);
    }

    /// Gives up a range of a replica whose disk is full.
    ///
    /// The keeper ends this ownership and opens the replica anew when there is room. Until then this process
    /// claims no range, so other nodes take them over.
    pub(super) fn give_up_range(mut self, refused: &Tier1Error) {
        let range = self.owner.id;
        tracing::error!(%refused, range = range.0, "the disk is full; this node gives the range up to other nodes");
        self.owned.refusals.note_full_disk(range, refused.clone());
        if let Some(lease) = &self.owner.lease {
            lease.disk_is_full();
        }
        self.refuse_until_end(refused);
    }

    /// Leaves tasks undone because the process ends.
    ///
    /// What callers have handed in is still committed, unless it is held back until messages leave. Messages,
    /// searches and recomputations are in the rows, and the next start continues with them.
    pub(super) fn drop_unowed(&mut self) {
        let holds_back = self.range.is_holding_back();
        let (kept, left) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|entry| entry.is_owed_at_the_end(holds_back));
        self.waiting = kept;
        let left: VecDeque<WaitingTask> = left;
        left.into_iter().for_each(|entry| entry.refuse(&Tier1Error::Stopping));
    }

    fn refuse_until_end(&mut self, refused: &Tier1Error) {
        self.refuse_all(refused);
        // The order to stop may have been taken already. It does not come twice.
        while !self.stopping {
            let Ok(task) = self.tasks.recv() else { return };
            self.refuse(task, refused);
        }
    }

    /// Refuses the callers whose tasks were taken, and the posts of other ranges.
    pub(super) fn refuse_waiting(&mut self, refused: &Tier1Error) {
        for entry in std::mem::take(&mut self.waiting) {
            entry.refuse(refused);
        }
        for done in std::mem::take(&mut self.posts).into_values() {
            done(Err(refused.clone().into()));
        }
    }

    /// Refuses all tasks that have come so far. Later callers find that the writer has ended.
    pub(super) fn refuse_all(&mut self, refused: &Tier1Error) {
        self.refuse_waiting(refused);
        if let Some(task) = self.postponed.take() {
            self.refuse(task, refused);
        }
        while let Ok(task) = self.tasks.try_recv() {
            self.refuse(task, refused);
        }
    }

    pub(super) fn refuse(&mut self, task: Task, refused: &Tier1Error) {
        match WaitingTask::new(task) {
            Ok(waiting) => waiting.refuse(refused),
            Err(Task::Post { done, .. }) => done(Err(refused.clone().into())),
            Err(Task::Stop) => self.stopping = true,
            Err(_) => {}
        }
    }
}
