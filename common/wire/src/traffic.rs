//! Counts of the bytes that a process sends to other processes and receives from them, by kind of call.
//!
//! Bodies are counted, heads are not. A request that is resent counts again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_protocol::CallTraffic;

use crate::transport::call::calls;

calls! {
    /// Returns what the called process has sent and received.
    ReportTraffic = "traffic": () => Vec<CallTraffic>;
}

/// Traffic counts of a process. Cloning is cheap, and clones share the counts.
#[derive(Clone, Default)]
pub struct WireTraffic(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The number of entries is bounded by the number of calls in the protocol.
    calls: Mutex<BTreeMap<&'static str, Arc<Counts>>>,
    external: Mutex<BTreeMap<&'static str, ExternalCounter>>,
}

/// Bytes that something other than calls has sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferredBytes {
    /// Bytes sent to other processes.
    pub sent: u64,
    /// Bytes received from other processes.
    pub received: u64,
}

type ExternalCounter = Box<dyn Fn() -> TransferredBytes + Send>;

/// Counts of one kind of call.
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

impl WireTraffic {
    /// Returns the counts of the kind of call with this name.
    pub(crate) fn of(&self, call: &'static str) -> Arc<Counts> {
        Arc::clone(lock(&self.0.calls).entry(call).or_default())
    }

    /// Adds an external counter: `bytes` returns the bytes transferred so far.
    pub fn add_source(&self, name: &'static str, bytes: impl Fn() -> TransferredBytes + Send + 'static) {
        lock(&self.0.external).insert(name, Box::new(bytes));
    }

    /// Returns all counts so far.
    #[must_use]
    pub fn totals(&self) -> Vec<CallTraffic> {
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
        let external = lock(&self.0.external);
        let of_external = |(name, bytes): (&&'static str, &ExternalCounter)| {
            let TransferredBytes { sent, received } = bytes();
            CallTraffic { call: (*name).to_owned(), requests: 0, sent, received }
        };
        of_calls
            .into_iter()
            .filter(|call| call.requests > 0)
            .chain(external.iter().map(of_external))
            .collect()
    }
}

impl std::fmt::Debug for WireTraffic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traffic").field("calls", &lock(&self.0.calls)).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
