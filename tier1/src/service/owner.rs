//! A range that this process owns, as its threads and its callers share it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use crossbeam::channel::{Receiver, Sender, unbounded};
use doppel_model::RangeId;
use doppel_protocol::{Backlog, Counters};

use super::job::Job;
use super::stuck::Stuck;
use super::task::Task;
use crate::range::Range;
use crate::store::Store;
use crate::totals;

/// A range: its rows, its queues, its totals.
pub(crate) struct Owner {
    pub(super) id: RangeId,
    pub(super) store: Arc<dyn Store>,
    /// What the machine reads: the same rows, without those kept for questions, which its reading would drive out.
    pub(super) beneath: Arc<dyn Store>,
    pub(super) tasks: Sender<Task>,
    pub(super) jobs: Sender<Job>,
    totals: RwLock<(Counters, Backlog)>,
    /// A page was asked for since the last commit.
    pub(super) asked: AtomicBool,
    /// Work that could not be done.
    pub(super) stuck: Stuck,
    /// Where it is noted how far the range has come; none where commits are not flushed.
    pub(super) progress: Option<PathBuf>,
}

/// What waits for the threads to be started.
pub(super) struct Start {
    pub(super) range: Range,
    pub(super) tasks: Receiver<Task>,
    pub(super) jobs: Receiver<Job>,
}

impl Owner {
    pub(super) fn new(
        range: Range,
        store: Arc<dyn Store>,
        beneath: Arc<dyn Store>,
        progress: Option<PathBuf>,
    ) -> (Arc<Self>, Start) {
        let ((task_sender, tasks), (job_sender, jobs)) = (unbounded(), unbounded());
        let this = Self {
            id: range.id(),
            store,
            beneath,
            tasks: task_sender,
            jobs: job_sender,
            totals: RwLock::new(totals_of(&range)),
            asked: AtomicBool::new(false),
            stuck: Stuck::default(),
            progress,
        };
        (Arc::new(this), Start { range, tasks, jobs })
    }

    pub(super) fn totals(&self) -> (Counters, Backlog) {
        *self.totals.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_totals(&self, range: &Range) {
        *self.totals.write().unwrap_or_else(PoisonError::into_inner) = totals_of(range);
    }
}

fn totals_of(range: &Range) -> (Counters, Backlog) {
    totals::sum(&range.shards().metas, range.backlog().messages)
}
