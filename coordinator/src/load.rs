//! `GET /v1/reports/load-balance`: who has how much to do, now and in the last hours.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use doppel_model::Timestamp;
use doppel_partitioning::Plan;
use doppel_protocol::answer::{LoadBalance, LoadPoint, NodeLoad};
use doppel_protocol::{LoadReport, MappingApi};

use crate::app::App;
use crate::limits::HISTORY_POINTS;
use crate::problem::Problem;

/// The points of the last hours.
#[derive(Debug, Clone, Default)]
pub(crate) struct History(Arc<Mutex<VecDeque<LoadPoint>>>);

impl History {
    /// Adds a point, once there are contents; the oldest one goes when there are too many.
    pub(crate) fn note(&self, at: Timestamp, load: &LoadReport) {
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

    fn points(&self) -> Vec<LoadPoint> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// How evenly is the load spread?
#[utoipa::path(get, path = "/v1/reports/load-balance", tag = "reports", responses((status = 200, body = LoadBalance)))]
pub(crate) async fn load_balance(State(app): State<App>) -> Result<Json<LoadBalance>, Problem> {
    app.blocking(|app| {
        let load = app.tier2().load()?;
        let mapping = app.tier2().mapping();
        let plan = mapping.map(MappingApi::plan).transpose()?;
        let all = plan.as_ref().map_or(0, Plan::nodes);
        let history = app.history().points();
        let table = app.shard_map();
        Ok(Json(LoadBalance {
            nodes: per_node(&load, all),
            load,
            drained: plan.map_or_else(Vec::new, |plan| plan.drained().to_vec()),
            progress: mapping.map(MappingApi::progress).transpose()?.flatten(),
            variation: variation(history.iter().map(|point| point.node_imbalance)),
            history,
            shard_map_version: table.version(),
            shards: table.rows(),
        }))
    })
    .await
}

/// Adds up, with a row for each of `all` nodes of a plan, whether or not it has partitions.
fn per_node(load: &LoadReport, all: u32) -> Vec<NodeLoad> {
    let mut nodes: BTreeMap<u32, NodeLoad> = (0..all).map(|node| (node, NodeLoad::default())).collect();
    for partition in &load.partitions {
        let node = nodes.entry(partition.node).or_default();
        node.partitions += 1;
        node.contents += partition.contents;
        node.pages += partition.pages;
        node.received += partition.received;
        node.comparisons += partition.comparisons;
        node.bytes += partition.bytes;
    }
    nodes.into_iter().map(|(node, load)| NodeLoad { node, ..load }).collect()
}

/// Standard deviation over mean.
fn variation(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let square = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (count > 0.0 && mean > 0.0).then(|| square.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use doppel_protocol::{LengthBox, PartitionLoad};

    use super::*;

    #[test]
    fn the_history_is_bounded_and_its_variation_right() {
        assert_eq!(variation([].into_iter()), None);
        assert_eq!(variation([2.0, 2.0].into_iter()), Some(0.0));
        assert_eq!(variation([1.0, 3.0].into_iter()), Some(0.5));
        let history = History::default();
        let partition = PartitionLoad {
            partition: 0,
            node: 0,
            bounds: LengthBox { lo: Vec::new(), hi: Vec::new() },
            contents: 1,
            pages: 1,
            received: 0,
            comparisons: 0,
            bytes: 0,
        };
        let load = |plan_version| LoadReport {
            plan_version,
            dimensions: 3,
            partitions: vec![partition.clone()],
            searches: 0,
            fan_out: 0,
            imbalance: 1.0,
            imbalance_floor: 1.0,
            fan_out_saved: None,
            serving: 1,
            node_fan_out: 0,
            node_imbalance: 1.0,
            node_imbalance_floor: 1.0,
            node_fan_out_saved: None,
            file_bytes: 0,
        };
        let count = HISTORY_POINTS as u64 + 10;
        for plan_version in 0..count {
            history.note(Timestamp::from_millis(plan_version as i64), &load(plan_version));
        }
        history.note(Timestamp::from_millis(0), &LoadReport { partitions: Vec::new(), ..load(1) });
        let points = history.points();
        assert_eq!(points.len(), HISTORY_POINTS);
        assert_eq!((points[0].plan_version, points[HISTORY_POINTS - 1].plan_version), (10, count - 1));
    }
}
