//! What is requested of the mapping as it is kept, with the plan that was answered. A request is kept from when it is
//! accepted until it is done, so a crash does not lose it.

use std::collections::VecDeque;

use doppel_partitioning::Plan;
use doppel_protocol::{IndexState, IndexStateError, IndexStateItem, RebalanceRequest};
use serde::{Deserialize, Serialize};

use super::stored_plan::LearnedFrom;

/// The version of the form.
const VERSION: u32 = 1;

/// A request that was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requested {
    /// What is requested.
    pub(crate) request: RebalanceRequest,
    /// The plan that was answered; none for a request that a start with another number of nodes
    /// makes: its plan is made in its turn.
    pub(crate) planned: Option<(Plan, LearnedFrom)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    doppel_rebalance: u32,
    requests: VecDeque<Requested>,
}

/// Why bytes are no requests.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("it is of version {0}, this reads {VERSION}")]
    Version(u32),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The stored requests. What cannot be read is reported and put aside.
///
/// # Errors
/// [`IndexStateError::Unavailable`]: there may be some.
pub(crate) fn load(state: &dyn IndexState) -> Result<VecDeque<Requested>, IndexStateError> {
    let why = match state.load(IndexStateItem::Requests) {
        Ok(None) => return Ok(VecDeque::new()),
        Ok(Some(bytes)) => match parse(&bytes) {
            Ok(requests) => return Ok(requests),
            Err(error) => error.to_string(),
        },
        Err(error @ IndexStateError::Unavailable(_)) => return Err(error),
        Err(error) => error.to_string(),
    };
    tracing::error!(why, "what was requested of the mapping cannot be read; request it again");
    if let Err(error) = state.put_aside(IndexStateItem::Requests) {
        tracing::warn!(%error, "it cannot be put aside");
    }
    Ok(VecDeque::new())
}

/// Why bytes cannot be used; none for sound ones.
pub(crate) fn damage(bytes: &[u8]) -> Option<String> {
    parse(bytes).err().map(|error| error.to_string())
}

fn parse(bytes: &[u8]) -> Result<VecDeque<Requested>, Unusable> {
    let stored: Stored = serde_json::from_slice(bytes)?;
    if stored.doppel_rebalance != VERSION {
        return Err(Unusable::Version(stored.doppel_rebalance));
    }
    Ok(stored.requests)
}

/// Stores these requests and no others.
pub(crate) fn store(state: &dyn IndexState, requests: &VecDeque<Requested>) -> Result<(), IndexStateError> {
    if requests.is_empty() {
        return state.remove(IndexStateItem::Requests);
    }
    let stored = Stored { doppel_rebalance: VERSION, requests: requests.clone() };
    let bytes = serde_json::to_vec(&stored).map_err(|error| IndexStateError::Refused(error.to_string()))?;
    state.store(IndexStateItem::Requests, &bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use doppel_model::{NodeId, PartitionId, Tau};
    use doppel_partitioning::PartitionMap;

    use super::*;
    use crate::state_files::StateFiles;

    #[test]
    fn there_until_they_end_and_damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFiles::new(dir.path());
        let path = state.path(IndexStateItem::Requests);
        assert_eq!(load(&state), Ok(VecDeque::new()));
        let plan = Plan::on_first(PartitionMap::one(3, Tau::DEFAULT).unwrap(), 2).unwrap();
        let planned = Some((plan, LearnedFrom { contents: 3, partitions: 1 }));
        let mut requests: VecDeque<Requested> = [
            RebalanceRequest::Balance,
            RebalanceRequest::Learn,
            RebalanceRequest::Drain { node: NodeId(3) },
            RebalanceRequest::Join { node: NodeId(0) },
            RebalanceRequest::Move { partition: PartitionId(9), node: NodeId(1) },
        ]
        .into_iter()
        .map(|request| Requested { request, planned: planned.clone() })
        .collect();
        requests[1].planned = None;
        while !requests.is_empty() {
            store(&state, &requests).unwrap();
            assert_eq!(load(&state).as_ref(), Ok(&requests));
            assert_eq!(damage(&fs::read(&path).unwrap()), None);
            requests.pop_front();
        }
        store(&state, &requests).unwrap();
        store(&state, &requests).unwrap();
        assert!(!path.exists());
        for text in ["", "{}", r#"{"doppel_rebalance":2,"requests":[]}"#] {
            fs::write(&path, text).unwrap();
            assert!(damage(text.as_bytes()).is_some(), "{text}");
            assert_eq!(load(&state), Ok(VecDeque::new()), "{text}");
            assert!(!path.exists() && dir.path().join("rebalance.damaged").exists(), "{text}");
        }
    }
}
