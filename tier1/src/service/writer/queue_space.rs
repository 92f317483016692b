//! Space in memory for tasks that wait for a writer. A task reserves space when it is handed in, and keeps it
//! until it is done.
//!
//! A writer may take no task for hours while its commit waits for the log or a standby. Its callers give up
//! after a while and come again, but their tasks stay in the queue. The bound therefore counts waiting tasks,
//! not waiting callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::channel::Sender;
use doppel_model::PageUrl;
use doppel_protocol::{Body, Submission};

/// Most bytes that wait for all writers of a process: as much as the calls of many coordinators bring at
/// once.
const BYTES_MAX: u64 = 512 << 20;

/// Bytes that every task takes besides its data.
const LEAST: usize = 256;

/// The memory that all queue spaces of a process share. Each space gets an equal part, so a writer that is
/// stuck for hours leaves the parts of the others alone.
#[derive(Debug, Clone)]
pub(in crate::service) struct QueueBudget {
    spaces: Arc<AtomicU64>,
    bytes: u64,
}

impl Default for QueueBudget {
    fn default() -> Self {
        Self { spaces: Arc::default(), bytes: BYTES_MAX }
    }
}

impl QueueBudget {
    /// Creates one more queue space. It counts until its last reservation is dropped.
    pub(in crate::service) fn new_space(&self) -> Arc<QueueSpace> {
        self.spaces.fetch_add(1, Ordering::AcqRel);
        Arc::new(QueueSpace { reserved: AtomicU64::new(0), budget: self.clone() })
    }

    /// Bytes that each queue space may use.
    fn share(&self) -> u64 {
        self.bytes / self.spaces.load(Ordering::Acquire).max(1)
    }
}

/// The space of one queue. A task that is larger than the space is accepted if the queue is empty.
#[derive(Debug)]
pub(in crate::service) struct QueueSpace {
    reserved: AtomicU64,
    budget: QueueBudget,
}

impl Drop for QueueSpace {
    fn drop(&mut self) {
        self.budget.spaces.fetch_sub(1, Ordering::AcqRel);
    }
}

impl QueueSpace {
    /// Reserves space for a task of `bytes`. `None` if the queue is full.
    pub(in crate::service) fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let bytes = bytes.saturating_add(LEAST) as u64;
        let before = self.reserved.fetch_add(bytes, Ordering::AcqRel);
        let reservation = Reservation { space: Some(Arc::clone(self)), bytes };
        (before == 0 || before.saturating_add(bytes) <= self.budget.share()).then_some(reservation)
    }

    /// Bytes that are reserved at present.
    #[cfg(test)]
    pub(in crate::service) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Acquire)
    }
}

/// Reserved space in a queue, as long as this value is kept.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    space: Option<Arc<QueueSpace>>,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(space) = &self.space {
            space.reserved.fetch_sub(self.bytes, Ordering::AcqRel);
        }
    }
}

/// Where to send an answer, and the space that the task keeps until then.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    to: Sender<T>,
    reservation: Reservation,
}

impl<T> Reply<T> {
    pub(crate) fn new(to: Sender<T>, reservation: Reservation) -> Self {
        Self { to, reservation }
    }

    /// Sends the answer. A caller that has gone away does not receive it.
    pub(crate) fn send(self, answer: T) {
        let Self { to, reservation } = self;
        drop(reservation);
        drop(to.send(answer));
    }
}

/// The approximate size of a submission in memory.
pub(in crate::service) fn size(submission: &Submission) -> usize {
    let url = |url: &PageUrl| url.as_str().len();
    let body = match &submission.body {
        Body::Content(signature) => signature.as_bytes().len(),
        Body::Redirect(target) => url(target),
        Body::Dead => 0,
    };
    LEAST + url(&submission.url) + submission.canonical.as_ref().map_or(0, url) + body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_space_is_bounded_but_takes_one_large_task() {
        let space = QueueBudget { bytes: 1_000, ..QueueBudget::default() }.new_space();
        let large = space.reserve(5_000).unwrap();
        assert!(space.reserve(0).is_none());
        drop(large);
        let reservations: Vec<Reservation> = std::iter::from_fn(|| space.reserve(0)).collect();
        assert_eq!((reservations.len(), space.reserved()), (3, 768));
        drop(reservations);
        assert_eq!(space.reserved(), 0);
    }

    #[test]
    fn the_queue_spaces_of_a_process_share_its_budget() {
        let budget = QueueBudget { bytes: 10_240, ..QueueBudget::default() };
        let fill = |space: &Arc<QueueSpace>| -> Vec<Reservation> {
            std::iter::from_fn(|| space.reserve(0)).collect()
        };
        let [first, second] = [budget.new_space(), budget.new_space()];
        // A full space uses nothing of the other's part.
        let reservations = [&first, &second].map(&fill);
        assert_eq!(reservations.each_ref().map(Vec::len), [20, 20]);
        let others: Vec<Arc<QueueSpace>> = (0..6).map(|_| budget.new_space()).collect();
        assert_eq!(
            others.iter().map(&fill).map(|reservations| reservations.len()).collect::<Vec<_>>(),
            [5; 6]
        );
        assert!(first.reserve(0).is_none());
        // A space counts as long as anything is reserved in it.
        drop(others);
        drop(second);
        assert_eq!(budget.share(), 5_120);
        drop(reservations);
        assert_eq!((budget.share(), fill(&first).len()), (10_240, 40));
    }
}
