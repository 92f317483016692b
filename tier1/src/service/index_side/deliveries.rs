//! Search results on their way to ranges that other processes own, so that tier 2 never waits for a process
//! that is away.
//!
//! If ownership moves, there is a queue for every range. A queue leads to the present owner, which may be
//! this process.
//!
//! Results that are lost with this process are computed again. The router of tier 2 ends with the process,
//! and the ranges notice that and order their searches again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam::channel::{Receiver, Sender, TrySendError, bounded};
use doppel_model::RangeId;
use doppel_protocol::range_owner::PeerError;
use doppel_protocol::{SearchResult, SourceError};

use crate::service::ownership::ranges::RangeRegistry;

/// Most batches of results that wait for one range. Each batch comes from one pass.
const WAITING: usize = 256;

/// First and longest pause before a failed delivery is tried again.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Queues of search results, by range.
pub(in crate::service) struct Deliveries {
    queues: Mutex<BTreeMap<RangeId, Sender<Vec<SearchResult>>>>,
    begin: Mutex<Vec<(RangeId, Receiver<Vec<SearchResult>>)>>,
}

impl Deliveries {
    /// Creates queues to ranges that other processes own, or may come to own.
    pub(in crate::service) fn new(to: impl Iterator<Item = RangeId>) -> Self {
        let (mut queues, mut begin) = (BTreeMap::new(), Vec::new());
        for range in to {
            let (sender, receiver) = bounded(WAITING);
            queues.insert(range, sender);
            begin.push((range, receiver));
        }
        Self { queues: Mutex::new(queues), begin: Mutex::new(begin) }
    }

    /// Takes the receiving ends, for threads that [`run`] delivers from.
    pub(in crate::service) fn begin(&self) -> Vec<(RangeId, Receiver<Vec<SearchResult>>)> {
        std::mem::take(&mut *self.begin.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the threads once their queues are empty.
    pub(in crate::service) fn end(&self) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Queues results for a range.
    ///
    /// # Errors
    ///
    /// If the queue of the range is full.
    pub(in crate::service) fn put(
        &self,
        range: RangeId,
        results: Vec<SearchResult>,
    ) -> Result<(), SourceError> {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queues.get(&range);
        let queue =
            queue.ok_or_else(|| SourceError::Unavailable(format!("no queue leads to range {range}")))?;
        queue.try_send(results).map_err(|refused| match refused {
            TrySendError::Full(_) => SourceError::Unavailable(format!(
                "range {range} accepts no search results, and its queue is full"
            )),
            TrySendError::Disconnected(_) => SourceError::Unavailable("tier 1 is stopping".to_owned()),
        })
    }
}

/// Delivers results in their order, until the queue ends.
pub(in crate::service) fn run(ranges: &RangeRegistry, range: RangeId, results: &Receiver<Vec<SearchResult>>) {
    for results in results {
        let mut pause = PAUSE;
        while let Err(error) = deliver(ranges, range, results.clone()) {
            if ranges.is_stopping() {
                return;
            }
            tracing::warn!(%error, range = range.0, "cannot deliver search results; they are kept and sent again");
            thread::sleep(pause);
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }
}

/// Hands results to the present owner of a range, which may be this process by now.
fn deliver(ranges: &RangeRegistry, range: RangeId, results: Vec<SearchResult>) -> Result<(), PeerError> {
    match ranges.local_owner(range) {
        Some(owner) => Ok(owner.deliver(results)?),
        None => ranges.remote_owner(range)?.deliver(range, results),
    }
}
