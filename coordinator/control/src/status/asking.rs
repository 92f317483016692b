//! Questions to many nodes at once, each on a thread of its own and within one time.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use doppel_model::RangeId;
use doppel_protocol::range_owner::{PeerError, RangeOwner as _, RangeState};
use doppel_wire::range_owner::RemoteRanges;

/// A node that has not answered by then is said to be away.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// What a node has said, or why it has not.
pub(super) type NodeAnswer<T> = Result<T, String>;

/// An answer that is still to come.
pub(super) struct Waiting<T>(mpsc::Receiver<NodeAnswer<T>>);

/// Asks on a thread of its own, which ends with the deadline of its call.
pub(super) fn begin<T: Send + 'static>(ask: impl FnOnce() -> NodeAnswer<T> + Send + 'static) -> Waiting<T> {
    let (sender, answer) = mpsc::channel();
    // Without a thread there is no answer.
    let _ = thread::Builder::new().name("cluster-status".to_owned()).spawn(move || drop(sender.send(ask())));
    Waiting(answer)
}

impl<T> Waiting<T> {
    pub(super) fn wait(self, until: Instant) -> NodeAnswer<T> {
        let left = until.saturating_duration_since(Instant::now());
        self.0.recv_timeout(left).unwrap_or_else(|_| Err(format!("no answer in {} s", PATIENCE.as_secs())))
    }
}

/// What a node says of the ranges that it owns. One that owns none answers, too.
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

/// Why a node does not answer; which of its ranges was asked for says nothing.
fn reason(error: PeerError) -> String {
    match error {
        PeerError::Unreachable { why, .. } => why,
        other => other.to_string(),
    }
}

pub(super) fn text(error: impl std::error::Error) -> String {
    error.to_string()
}
