//! What a writer says to whoever waits for it when it takes nothing any more.

use std::collections::VecDeque;

use doppel_protocol::Tier1Error;

use super::Writer;
use super::waiting::Waiting;
use crate::service::task::Task;

impl Writer<'_> {
    /// Tells all callers, also those that come later, that nothing is taken any more.
    pub(super) fn fail(mut self, refused: Tier1Error) {
        let refused = self.tier1.refusals.refuse_for_good(refused);
        self.refuse_until_end(&refused);
    }

    /// The disk of a replica is full. Its keeper ends this ownership and opens the replica anew when there is room; until then this
    /// process claims no range, so that others take them over.
    pub(super) fn leave(mut self, refused: &Tier1Error) {
        let range = self.owner.id;
        tracing::error!(%refused, range = range.0, "the disk is full; the range is left to other nodes");
        self.tier1.refusals.disk_is_full(range, refused.clone());
        if let Some(lease) = &self.owner.lease {
            lease.disk_is_full();
        }
        self.refuse_until_end(refused);
    }

    /// The process ends. What callers have handed in is still committed, unless it is held back until messages have left. Messages,
    /// searches and recomputations are in the rows, and the next start goes on with them.
    pub(super) fn leave_unowed(&mut self) {
        let holds_back = self.range.is_holding_back();
        let (kept, left) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|entry| entry.is_owed_at_the_end(holds_back));
        self.waiting = kept;
        let left: VecDeque<Waiting> = left;
        left.into_iter().for_each(|entry| entry.refuse(&Tier1Error::Stopping));
    }

    fn refuse_until_end(&mut self, refused: &Tier1Error) {
        self.refuse_all(refused);
        // The order to stop, when it was taken before, comes no second time.
        while !self.stopping {
            let Ok(task) = self.tasks.recv() else { return };
            self.refuse(task, refused);
        }
    }

    /// Tells those whose commands were taken.
    pub(super) fn refuse_waiting(&mut self, refused: &Tier1Error) {
        for entry in std::mem::take(&mut self.waiting) {
            entry.refuse(refused);
        }
        for done in std::mem::take(&mut self.posts).into_values() {
            done(Err(refused.clone().into()));
        }
    }

    /// Tells all. Whoever comes later finds nobody who takes anything.
    pub(super) fn refuse_all(&mut self, refused: &Tier1Error) {
        self.refuse_waiting(refused);
        if let Some(task) = self.set_aside.take() {
            self.refuse(task, refused);
        }
        while let Ok(task) = self.tasks.try_recv() {
            self.refuse(task, refused);
        }
    }

    pub(super) fn refuse(&mut self, task: Task, refused: &Tier1Error) {
        match Waiting::new(task) {
            Ok(waiting) => waiting.refuse(refused),
            Err(Task::Posted { done, .. }) => done(Err(refused.clone().into())),
            Err(Task::Stop) => self.stopping = true,
            Err(_) => {}
        }
    }
}
