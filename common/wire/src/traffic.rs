//! How much a process has sent to the others, and received from them, by kind of request.
//!
//! Bodies are counted and heads are not. A request that is sent again counts again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_protocol::CallTraffic;

use crate::call::{Call, calls};

calls! {
    /// What the asked process has sent and received.
    Tell = "traffic": () => Vec<CallTraffic>;
}

/// Counts what a process sends and receives. Cheap to clone; clones count together.
#[derive(Clone, Default)]
pub struct Traffic(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// There are only as many kinds as the protocol has.
    calls: Mutex<BTreeMap<&'static str, Arc<Counts>>>,
    others: Mutex<BTreeMap<&'static str, Other>>,
}

/// Bytes that something else than a call has sent and received.
type Other = Box<dyn Fn() -> (u64, u64) + Send>;

/// Of one kind.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Counts {
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Traffic {
    /// The counts of a kind of request.
    pub(crate) fn of<C: Call>(&self) -> Arc<Counts> {
        Arc::clone(lock(&self.0.calls).entry(C::NAME).or_default())
    }

    /// Has something else counted, too: `bytes` says how many it has sent and received so far.
    pub fn also(&self, name: &'static str, bytes: impl Fn() -> (u64, u64) + Send + 'static) {
        lock(&self.0.others).insert(name, Box::new(bytes));
    }

    /// All that was counted so far.
    #[must_use]
    pub fn so_far(&self) -> Vec<CallTraffic> {
        let of_calls: Vec<CallTraffic> = {
            let calls = lock(&self.0.calls);
            let of_call = |(call, counts): (&&'static str, &Arc<Counts>)| CallTraffic {
                call: (*call).to_owned(),
                requests: counts.requests.load(Ordering::Relaxed),
                sent: counts.sent.load(Ordering::Relaxed),
                received: counts.received.load(Ordering::Relaxed),
            };
            calls.iter().map(of_call).collect()
        };
        let others = lock(&self.0.others);
        let of_other = |(name, bytes): (&&'static str, &Other)| {
            let (sent, received) = bytes();
            CallTraffic { call: (*name).to_owned(), requests: 0, sent, received }
        };
        of_calls.into_iter().filter(|call| call.requests > 0).chain(others.iter().map(of_other)).collect()
    }
}

impl std::fmt::Debug for Traffic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traffic").field("calls", &lock(&self.0.calls)).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
