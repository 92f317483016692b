//! Asks many nodes at once, each on a thread of its own, with one time limit for all answers.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use doppel_model::RangeId;
use doppel_protocol::range_owner::{PeerError, RangeOwner as _, RangeState};
use doppel_wire::range_owner::RemoteRanges;

/// Time limit for the answer of a node. A node that exceeds it is reported as silent.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// The answer of a node, or the reason why there is none.
pub(super) type NodeAnswer<T> = Result<T, String>;

/// An answer that has not arrived yet.
pub(super) struct PendingAnswer<T>(mpsc::Receiver<NodeAnswer<T>>);

/// Asks a question on a thread of its own. The thread ends at the deadline of the call that `ask` makes.
pub(super) fn begin<T: Send + 'static>(
    ask: impl FnOnce() -> NodeAnswer<T> + Send + 'static,
) -> PendingAnswer<T> {
    let (sender, answer) = mpsc::channel();
    // If the system starts no thread, the sender is dropped, and `wait` reports that no answer came.
    let _ = thread::Builder::new().name("cluster-status".to_owned()).spawn(move || drop(sender.send(ask())));
    PendingAnswer(answer)
}

impl<T> PendingAnswer<T> {
    pub(super) fn wait(self, until: Instant) -> NodeAnswer<T> {
        let left = until.saturating_duration_since(Instant::now());
        self.0.recv_timeout(left).unwrap_or_else(|_| Err(format!("no answer in {} s", PATIENCE.as_secs())))
    }
}

/// Asks a node for the states of the ranges that it owns. A node that owns none is asked too, to see that it
/// answers.
pub(super) fn states_of(
    owner: &RemoteRanges,
    ranges: &[RangeId],
) -> NodeAnswer<BTreeMap<RangeId, RangeState>> {
    let mut states = BTreeMap::new();
    for range in ranges {
        match owner.state(*range) {
            Ok(state) => drop(states.insert(*range, state)),
            Err(PeerError::NotOwner(_)) => {}
            Err(error) => return Err(reason(error)),
        }
    }
    match owner.state(RangeId(0)) {
        Err(error @ PeerError::Unreachable { .. }) if ranges.is_empty() => Err(reason(error)),
        _ => Ok(states),
    }
}

/// Why a node does not answer, without the range that was asked for, which does not matter.
fn reason(error: PeerError) -> String {
    match error {
        PeerError::Unreachable { why, .. } => why,
        other => other.to_string(),
    }
}

pub(super) fn text(error: impl std::error::Error) -> String {
    error.to_string()
}
