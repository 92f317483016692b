//! What is requested of the mapping, with the plan that was answered. A request is on disk from when it is accepted
//! until it is done, so a crash does not lose it.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;

use doppel_partitioning::Plan;
use doppel_protocol::RebalanceRequest;
use serde::{Deserialize, Serialize};

use super::plan_file::LearnedFrom;
use super::replace;
use crate::error::Error;

/// The version of the file.
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

/// The stored requests. A damaged file is reported and put aside.
pub(crate) fn read(path: &Path) -> VecDeque<Requested> {
    parse(path).unwrap_or_else(|error| {
        let aside = path.with_extension("damaged");
        tracing::error!(path = %path.display(), aside = %aside.display(), %error,
            "what was requested of the mapping cannot be read; request it again");
        if let Err(error) = fs::rename(path, &aside) {
            tracing::warn!(%error, "it cannot be put aside");
        }
        VecDeque::new()
    })
}

/// Why a file cannot be used; none for a sound one, or where there is none.
pub(crate) fn damage(path: &Path) -> Option<String> {
    parse(path).err().map(|error| error.to_string())
}

fn parse(path: &Path) -> io::Result<VecDeque<Requested>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(VecDeque::new()),
        text => text?,
    };
    let stored: Stored = serde_json::from_slice(&text)?;
    if stored.doppel_rebalance != VERSION {
        let text = format!("it is of version {}, this reads {VERSION}", stored.doppel_rebalance);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(stored.requests)
}

/// Stores these requests and no others.
pub(crate) fn write(path: &Path, requests: &VecDeque<Requested>) -> Result<(), Error> {
    let fail = |error| Error::io("write the requests for the mapping", path, error);
    if requests.is_empty() {
        return replace::remove(path).map_err(fail);
    }
    let stored = Stored { doppel_rebalance: VERSION, requests: requests.clone() };
    let text = serde_json::to_string(&stored).map_err(|error| fail(error.into()))?;
    replace::replace(path, &text).map_err(fail)
}

#[cfg(test)]
mod tests {
    use doppel_model::{NodeId, PartitionId, Tau};
    use doppel_partitioning::PartitionMap;

    use super::*;

    #[test]
    fn there_until_they_end_and_damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rebalance.json");
        assert_eq!((read(&path), damage(&path)), (VecDeque::new(), None));
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
            write(&path, &requests).unwrap();
            assert_eq!((&read(&path), damage(&path)), (&requests, None));
            requests.pop_front();
        }
        write(&path, &requests).unwrap();
        write(&path, &requests).unwrap();
        assert!(!path.exists());
        for text in ["", "{}", r#"{"doppel_rebalance":2,"requests":[]}"#] {
            fs::write(&path, text).unwrap();
            assert!(damage(&path).is_some() && read(&path).is_empty(), "{text}");
            assert!(!path.exists() && dir.path().join("rebalance.damaged").exists(), "{text}");
        }
    }
}
