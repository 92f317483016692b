//! Results of searches on their way to ranges that are not here, so that tier 2 does not wait for one that is away. Where
//! ownership moves, there is a queue for each range; it leads to the present owner, be it this process.
//!
//! What is lost here with the process is asked for again: the router of tier 2 ends with it, and the ranges notice that.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam::channel::{Receiver, Sender, TrySendError, bounded};
use doppel_model::RangeId;
use doppel_protocol::{SearchResult, SourceError};

use super::Tier1;

/// Answers that wait for a range at most: each is of one pass.
const WAITING: usize = 256;

/// Pauses before what has failed is tried again: the first, and the longest of those that follow.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The queues, by range.
pub(super) struct Deliveries {
    queues: Mutex<BTreeMap<RangeId, Sender<Vec<SearchResult>>>>,
    begin: Mutex<Vec<(RangeId, Receiver<Vec<SearchResult>>)>>,
}

impl Deliveries {
    /// To ranges that other processes own, or may own.
    pub(super) fn new(to: impl Iterator<Item = RangeId>) -> Self {
        let (mut queues, mut begin) = (BTreeMap::new(), Vec::new());
        for range in to {
            let (sender, receiver) = bounded(WAITING);
            queues.insert(range, sender);
            begin.push((range, receiver));
        }
        Self { queues: Mutex::new(queues), begin: Mutex::new(begin) }
    }

    /// What threads are to [run](run).
    pub(super) fn begin(&self) -> Vec<(RangeId, Receiver<Vec<SearchResult>>)> {
        std::mem::take(&mut *self.begin.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the threads.
    pub(super) fn end(&self) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes results for a range.
    ///
    /// # Errors
    /// When too many wait: the range does not take them.
    pub(super) fn put(&self, range: RangeId, results: Vec<SearchResult>) -> Result<(), SourceError> {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queues.get(&range);
        let queue = queue.ok_or_else(|| SourceError::Unavailable(format!("range {range} is not reached")))?;
        queue.try_send(results).map_err(|refused| match refused {
            TrySendError::Full(_) => SourceError::Unavailable(format!("range {range} takes no results")),
            TrySendError::Disconnected(_) => SourceError::Unavailable("tier 1 is stopping".to_owned()),
        })
    }
}

/// Hands results over, in order, until there are no more.
pub(super) fn run(tier1: &Tier1, range: RangeId, results: &Receiver<Vec<SearchResult>>) {
    for results in results {
        let mut pause = PAUSE;
        while let Err(error) = tier1.at(range).and_then(|node| node.deliver(range, results.clone())) {
            if tier1.stopping.load(Ordering::Relaxed) {
                return;
            }
            tracing::warn!(%error, range = range.0, "results of searches are kept");
            thread::sleep(pause);
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }
}
