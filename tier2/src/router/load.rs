//! The load of each partition, and how much the map reduces the fan-out.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use doppel_contract::{LengthBox, LoadReport, PartitionLoad};
use doppel_model::PartitionId;
use doppel_partitioning::{MappingLoad, fan_out_saved};
use doppel_protocol::index_node::{HostedLoad, NodeError};

use super::{Router, RouterError};

/// Number of attempts to measure the load while the plan changes.
const TRIES: u32 = 200;
/// Pause between two attempts.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

impl Router {
    /// Measures the load under the present plan. The report also has the imbalance floors: the imbalance if
    /// the same number of contents were distributed at random.
    pub(crate) fn load(&self) -> Result<LoadReport, RouterError> {
        for _ in 0..TRIES {
            match self.measure() {
                Err(RouterError::Node(_, NodeError::StalePlan { .. })) => std::thread::sleep(PAUSE),
                measured => return measured.map(with_floors),
            }
        }
        Err(RouterError::Replanned)
    }

    fn measure(&self) -> Result<LoadReport, RouterError> {
        let plan = self.plan();
        let map = plan.map();
        let count = map.partitions();
        let mut loads: HashMap<PartitionId, HostedLoad> = HashMap::new();
        let (mut by_node, mut file_bytes) = (vec![0; self.nodes.len()], 0);
        for (handle, contents) in self.nodes.iter().zip(&mut by_node) {
            let load = self.call(handle.id, &plan, |node, call| node.load(call))?;
            file_bytes += load.file_bytes;
            *contents = load.partitions.iter().map(|partition| partition.contents).sum();
            loads.extend(load.partitions.into_iter().map(|partition| (partition.id, partition)));
        }
        let mut partitions = Vec::with_capacity(count);
        for (assignment, bounds) in plan.assignments().iter().zip(map.bounds()) {
            let Some(load) = loads.get(&assignment.id) else { continue };
            partitions.push(PartitionLoad {
                partition: assignment.id,
                node: assignment.node,
                bounds: LengthBox {
                    lo: bounds.ranges().map(|(lo, _)| lo).collect(),
                    hi: bounds.ranges().map(|(_, hi)| hi).collect(),
                },
                contents: load.contents,
                pages: load.pages,
                received: load.received,
                comparisons: load.comparisons,
                bytes: load.bytes,
            });
        }
        let serving = plan.serving().count();
        let stored = partitions.iter().map(|p| p.contents).collect();
        let counts = [&self.counts.searches, &self.counts.fan_out, &self.counts.node_fan_out];
        let [searches, fan_out, node_fan_out] = counts.map(|count| count.load(Ordering::Relaxed));
        Ok(LoadReport {
            plan_version: map.version(),
            dimensions: map.lexicon().dimensions() as u32,
            partitions,
            searches,
            fan_out,
            imbalance: MappingLoad { stored, received: Vec::new() }.imbalance(),
            imbalance_floor: 1.0,
            fan_out_saved: fan_out_saved(searches, fan_out, count),
            serving_nodes: serving as u32,
            node_fan_out,
            node_imbalance: plan.imbalance(&by_node),
            node_imbalance_floor: 1.0,
            node_fan_out_saved: fan_out_saved(searches, node_fan_out, serving),
            file_bytes,
        })
    }
}

/// Adds the imbalance floors. The calculation assigns every content to a random partition and node, so it
/// takes a while.
fn with_floors(report: LoadReport) -> LoadReport {
    let contents = report.partitions.iter().map(|partition| partition.contents).sum();
    let floor = |parts: usize| MappingLoad::at_random(parts, contents).imbalance();
    LoadReport {
        imbalance_floor: floor(report.partitions.len()),
        node_imbalance_floor: floor(report.serving_nodes as usize),
        ..report
    }
}
