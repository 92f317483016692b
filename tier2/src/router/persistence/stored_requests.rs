//! The stored form of requests to change the plan, each with the plan that the operator was shown. A request
//! is stored from its acceptance to its end, so a crash does not lose it.

use std::collections::VecDeque;

use doppel_contract::RebalanceRequest;
use doppel_partitioning::Plan;
use doppel_protocol::{IndexState, IndexStateError, IndexStateItem};
use serde::{Deserialize, Serialize};

use super::stored_plan::LearningBasis;

/// Version of the format in which requests are stored.
const VERSION: u32 = 1;

/// A request that was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredRequest {
    /// What was requested.
    pub(crate) request: RebalanceRequest,
    /// The plan that the operator was shown. `None` for a request that a start with another number of nodes
    /// made. The router plans that request when it begins.
    pub(crate) planned: Option<(Plan, LearningBasis)>,
}

/// The stored form of all requests.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestsFile {
    doppel_rebalance: u32,
    requests: VecDeque<StoredRequest>,
}

/// Why stored requests cannot be used.
#[derive(Debug, thiserror::Error)]
enum StoredRequestsError {
    #[error("it has version {0}, but this program reads version {VERSION}")]
    Version(u32),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Loads the stored requests. Requests that cannot be read are reported and put aside.
///
/// # Errors
/// [`IndexStateError::Unavailable`] if it is unknown whether requests are stored.
pub(crate) fn load(state: &dyn IndexState) -> Result<VecDeque<StoredRequest>, IndexStateError> {
    let why = match state.load(IndexStateItem::Requests) {
        Ok(None) => return Ok(VecDeque::new()),
        Ok(Some(bytes)) => match parse(&bytes) {
            Ok(requests) => return Ok(requests),
            Err(error) => error.to_string(),
        },
        Err(error @ IndexStateError::Unavailable(_)) => return Err(error),
        Err(error) => error.to_string(),
    };
    tracing::error!(why, "cannot read the stored rebalance requests; request the rebalance again");
    if let Err(error) = state.put_aside(IndexStateItem::Requests) {
        tracing::warn!(%error, "cannot put the stored rebalance requests aside");
    }
    Ok(VecDeque::new())
}

/// Returns why `bytes` are not stored requests, or `None` if they are.
pub(crate) fn damage(bytes: &[u8]) -> Option<String> {
    parse(bytes).err().map(|error| error.to_string())
}

fn parse(bytes: &[u8]) -> Result<VecDeque<StoredRequest>, StoredRequestsError> {
    let stored: RequestsFile = serde_json::from_slice(bytes)?;
    if stored.doppel_rebalance != VERSION {
        return Err(StoredRequestsError::Version(stored.doppel_rebalance));
    }
    Ok(stored.requests)
}

/// Stores these requests in place of all stored ones.
pub(crate) fn store(
    state: &dyn IndexState,
    requests: &VecDeque<StoredRequest>,
) -> Result<(), IndexStateError> {
    if requests.is_empty() {
        return state.remove(IndexStateItem::Requests);
    }
    let stored = RequestsFile { doppel_rebalance: VERSION, requests: requests.clone() };
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
    fn requests_are_stored_until_they_end_and_damage_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFiles::new(dir.path());
        let path = state.path(IndexStateItem::Requests);
        assert_eq!(load(&state), Ok(VecDeque::new()));
        let plan = Plan::on_first(PartitionMap::one(3, Tau::DEFAULT).unwrap(), 2).unwrap();
        let planned = Some((plan, LearningBasis { contents: 3, partitions: 1 }));
        let mut requests: VecDeque<StoredRequest> = [
            RebalanceRequest::Balance,
            RebalanceRequest::Learn,
            RebalanceRequest::Drain { node: NodeId(3) },
            RebalanceRequest::Join { node: NodeId(0) },
            RebalanceRequest::Move { partition: PartitionId(9), node: NodeId(1) },
        ]
        .into_iter()
        .map(|request| StoredRequest { request, planned: planned.clone() })
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
