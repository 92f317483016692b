//! Holds back calls of the tiers, so that a test can examine the service while they are in progress.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Maximum time for which a call is held, so that a failing test still ends.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Default)]
pub(super) struct CallGate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    closed_for: Option<&'static str>,
    begun: BTreeMap<&'static str, usize>,
}

/// Guard that keeps a gate closed until it is dropped.
pub(super) struct ClosedGate<'g>(&'g CallGate);

impl CallGate {
    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap()
    }

    /// Counts a call at its beginning, and holds it while its gate is closed.
    pub(super) fn pass(&self, call: &'static str) {
        let mut state = self.state();
        *state.begun.entry(call).or_default() += 1;
        let is_held = |state: &mut GateState| state.closed_for == Some(call);
        drop(self.changed.wait_timeout_while(state, PATIENCE, is_held).unwrap());
    }

    /// Holds every call of this name.
    pub(super) fn close(&self, call: &'static str) -> ClosedGate<'_> {
        self.state().closed_for = Some(call);
        ClosedGate(self)
    }

    /// Waits until this number of calls of this name have begun since the start of the test.
    pub(super) async fn begun(&self, call: &'static str, count: usize) {
        until(async || self.count(call) >= count).await;
    }

    /// Returns how many calls of this name have begun since the start of the test.
    pub(super) fn count(&self, call: &'static str) -> usize {
        self.state().begun.get(call).copied().unwrap_or_default()
    }
}

impl Drop for ClosedGate<'_> {
    fn drop(&mut self) {
        self.0.state().closed_for = None;
        self.0.changed.notify_all();
    }
}

/// Repeats a check for some seconds, until it succeeds.
pub(super) async fn until(condition: impl AsyncFn() -> bool) {
    let asking = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE / 2, asking).await.expect("it should have happened by now");
}
