//! Answers that the writer of a range has not sent yet, and why an answer may never come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError};
use doppel_model::RangeId;
use doppel_protocol::Tier1Error;
use doppel_protocol::range_owner::PeerError;

/// How long a caller waits for the writer: longer than the largest commit takes on a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);

/// An answer that the writer will send.
pub(in crate::service) struct PendingReply<T> {
    range: RangeId,
    /// Whether the ownership is over, see [`why_ended`].
    stopping: Arc<AtomicBool>,
    answer: Receiver<T>,
    deadline: Instant,
}

impl<T> PendingReply<T> {
    /// An answer for which callers wait two minutes at most.
    pub(super) fn new(range: RangeId, stopping: Arc<AtomicBool>, answer: Receiver<T>) -> Self {
        Self { range, stopping, answer, deadline: Instant::now() + PATIENCE }
    }

    /// Waits for the answer. If none comes in time, the writer may still do what was asked.
    pub(in crate::service) fn wait(self) -> Result<T, Tier1Error> {
        self.answer.recv_deadline(self.deadline).map_err(|failed| match failed {
            RecvTimeoutError::Timeout => {
                PeerError::unreachable(self.range, "its writer has not answered in time").into()
            }
            RecvTimeoutError::Disconnected => why_ended(self.range, &self.stopping),
        })
    }

    /// Like [`wait`](Self::wait), but waits until `deadline`.
    pub(in crate::service) fn wait_until(self, deadline: Instant) -> Result<T, Tier1Error> {
        Self { deadline, ..self }.wait()
    }
}

/// Why an answer of the range's threads does not come.
pub(super) fn why_ended(range: RangeId, stopping: &AtomicBool) -> Tier1Error {
    if stopping.load(Ordering::Acquire) { PeerError::NotOwner(range).into() } else { Tier1Error::Stopping }
}
