//! The load of the index over the last hours: one point per minute, up to a fixed number of points.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use doppel_contract::LoadReport;
use doppel_contract::answer::LoadPoint;
use doppel_model::Timestamp;

use crate::limits::HISTORY_POINTS;

/// History of the load balance: the recorded points, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct BalanceHistory(Arc<Mutex<VecDeque<LoadPoint>>>);

impl BalanceHistory {
    /// Adds a point, unless the index is empty. If the history is full, the oldest point is removed.
    pub(crate) fn record(&self, at: Timestamp, load: &LoadReport) {
        if load.partitions.iter().all(|partition| partition.contents == 0) {
            return;
        }
        let point = LoadPoint {
            at: at.to_string(),
            plan_version: load.plan_version,
            contents: load.partitions.iter().map(|partition| partition.contents).sum(),
            node_imbalance: load.node_imbalance,
            node_imbalance_floor: load.node_imbalance_floor,
            node_fan_out_saved: load.node_fan_out_saved,
        };
        let mut points = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if points.len() >= HISTORY_POINTS {
            points.pop_front();
        }
        points.push_back(point);
    }

    /// Returns all points, oldest first.
    pub(crate) fn points(&self) -> Vec<LoadPoint> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use doppel_contract::{LengthBox, PartitionLoad};
    use doppel_model::{NodeId, PartitionId};

    use super::*;

    #[test]
    fn the_history_is_bounded() {
        let history = BalanceHistory::default();
        let partition = PartitionLoad {
            partition: PartitionId(0),
            node: NodeId(0),
            bounds: LengthBox { lo: Vec::new(), hi: Vec::new() },
            contents: 1,
            pages: 1,
            received: 0,
            comparisons: 0,
            bytes: 0,
        };
        let load = |plan_version| LoadReport {
            plan_version,
            partitions: vec![partition.clone()],
            ..LoadReport::default()
        };
        let count = HISTORY_POINTS as u64 + 10;
        for plan_version in 0..count {
            history.record(Timestamp::from_millis(plan_version as i64), &load(plan_version));
        }
        history.record(Timestamp::from_millis(0), &LoadReport { partitions: Vec::new(), ..load(1) });
        let points = history.points();
        assert_eq!(points.len(), HISTORY_POINTS);
        assert_eq!((points[0].plan_version, points[HISTORY_POINTS - 1].plan_version), (10, count - 1));
    }
}
