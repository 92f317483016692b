//! The stored form of the plan: one line that describes the plan, and one line with the plan itself.

use doppel_model::stable_hash64;
use doppel_partitioning::Plan;
use doppel_protocol::{IndexState, IndexStateError, IndexStateItem};
use serde::{Deserialize, Serialize};

/// Version of the format in which the plan is stored.
const VERSION: u32 = 4;

/// The basis of a learned map: when and for what it was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearningBasis {
    /// Number of contents that were stored at that time.
    pub(crate) contents: usize,
    /// Number of partitions that were wanted. The map may have fewer.
    pub(crate) partitions: u32,
}

/// The first line of a stored plan, which describes the plan in the second line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanHeader {
    doppel_partition_map: u32,
    learned: LearningBasis,
    /// XXH3-64 of the second line, in hexadecimal.
    checksum: String,
}

/// Loads the stored plan. `None` if there is none. A damaged plan is reported and ignored.
///
/// # Errors
/// [`IndexStateError::Unavailable`] if it is unknown whether a plan is stored.
pub(crate) fn load(state: &dyn IndexState) -> Result<Option<(Plan, LearningBasis)>, IndexStateError> {
    let bytes = match state.load(IndexStateItem::Plan) {
        Err(error @ IndexStateError::Unavailable(_)) => return Err(error),
        Err(error) => {
            tracing::warn!(%error, "cannot read the partition map; learning it anew");
            return Ok(None);
        }
        Ok(bytes) => bytes,
    };
    let plan = bytes.map(|bytes| parse(&bytes)).transpose();
    Ok(plan.unwrap_or_else(|error| {
        tracing::warn!(%error, "the partition map is damaged; learning it anew");
        None
    }))
}

/// Returns why `bytes` are not a stored plan, or `None` if they are one.
pub(crate) fn damage(bytes: &[u8]) -> Option<String> {
    parse(bytes).err().map(|unusable| unusable.to_string())
}

fn parse(bytes: &[u8]) -> Result<(Plan, LearningBasis), StoredPlanError> {
    let (head, map) = str::from_utf8(bytes)?.split_once('\n').ok_or(StoredPlanError::Short)?;
    let head: PlanHeader = serde_json::from_str(head)?;
    if head.doppel_partition_map != VERSION {
        return Err(StoredPlanError::Version(head.doppel_partition_map));
    }
    if head.checksum != checksum(map) {
        return Err(StoredPlanError::Checksum);
    }
    Ok((serde_json::from_str(map)?, head.learned))
}

/// Stores a plan in place of the stored one.
pub(crate) fn store(
    state: &dyn IndexState,
    plan: &Plan,
    learned: LearningBasis,
) -> Result<(), IndexStateError> {
    let unwritten = |error: serde_json::Error| IndexStateError::Refused(error.to_string());
    let map = serde_json::to_string(plan).map_err(unwritten)?;
    let head = PlanHeader { doppel_partition_map: VERSION, learned, checksum: checksum(&map) };
    let head = serde_json::to_string(&head).map_err(unwritten)?;
    state.store(IndexStateItem::Plan, format!("{head}\n{map}").as_bytes())
}

fn checksum(map: &str) -> String {
    format!("{:016x}", stable_hash64(map.as_bytes()))
}

/// Why a stored plan cannot be used.
#[derive(Debug, thiserror::Error)]
enum StoredPlanError {
    #[error("it has one line instead of two")]
    Short,
    #[error("it has version {0}, but this program reads version {VERSION}")]
    Version(u32),
    #[error("the checksum does not match")]
    Checksum,
    #[error(transparent)]
    Text(#[from] std::str::Utf8Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use doppel_contract::RebalanceRequest;
    use doppel_model::{NodeId, Tau};
    use doppel_partitioning::{DIMENSIONS_MAX, NODES_MAX, PARTITIONS_MAX, PartitionIndex, PartitionMap};
    use doppel_protocol::INDEX_STATE_BYTES_MAX;

    use super::*;
    use crate::router::persistence::stored_requests::{self, StoredRequest};
    use crate::state_files::StateFiles;

    #[test]
    fn a_stored_plan_is_loaded_unless_it_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFiles::new(dir.path());
        assert_eq!(load(&state), Ok(None));
        let map = PartitionMap::one(3, Tau::DEFAULT).unwrap();
        let (plan, learned) = (Plan::on_first(map, 2).unwrap(), LearningBasis { contents: 7, partitions: 4 });
        store(&state, &plan, learned).unwrap();
        assert_eq!(load(&state), Ok(Some((plan, learned))));
        let sound = state.load(IndexStateItem::Plan).unwrap().unwrap();
        assert_eq!(damage(&sound), None);
        for at in (0..sound.len()).step_by(97).chain([sound.len() - 1]) {
            let mut bytes = sound.clone();
            bytes[at] ^= 1;
            for bytes in [&bytes, &sound[..at]] {
                state.store(IndexStateItem::Plan, bytes).unwrap();
                assert_eq!(load(&state), Ok(None), "byte {at}");
                assert!(damage(bytes).is_some(), "byte {at}");
            }
        }
    }

    /// The largest plan that can occur: all partitions have boxes in the whole space of lengths, and there
    /// are as many partitions and nodes as possible.
    fn largest() -> Plan {
        let map = PartitionMap::one(DIMENSIONS_MAX, Tau::DEFAULT).unwrap();
        let mut plan = Plan::on_first(map, NODES_MAX).unwrap();
        for round in 0..PARTITIONS_MAX.ilog2() {
            for partition in (0..1_u32 << round).rev() {
                let middle = i64::from(2 * partition + 1) << (40 - round);
                plan.split(PartitionIndex(partition), 0, middle).unwrap();
            }
        }
        for partition in PartitionIndex::first(PARTITIONS_MAX) {
            plan.place(partition, NodeId(NODES_MAX - 1 - partition.0)).unwrap();
        }
        plan.set_version(u64::MAX);
        plan
    }

    #[test]
    fn the_largest_plan_can_be_stored_alone_and_with_a_request() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFiles::new(dir.path());
        let (plan, learned) = (largest(), LearningBasis { contents: usize::MAX, partitions: u32::MAX });
        assert_eq!(plan.map().partitions(), PARTITIONS_MAX);
        store(&state, &plan, learned).unwrap();
        let request = RebalanceRequest::Learn;
        let requested = StoredRequest { request, planned: Some((plan.clone(), learned)) };
        stored_requests::store(&state, &VecDeque::from([requested])).unwrap();
        for item in IndexStateItem::ALL {
            let bytes = state.load(item).unwrap().unwrap().len();
            assert!(bytes * 3 < INDEX_STATE_BYTES_MAX, "{item:?} has {bytes} bytes");
        }
        assert_eq!(load(&state), Ok(Some((plan, learned))));
    }
}
