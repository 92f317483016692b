//! The load of each partition, and what the map saves.

use doppel_partitioning::{MappingLoad, fan_out_saved};
use doppel_protocol::{LengthBox, LoadReport, PartitionLoad};

use crate::cluster::Cluster;
use crate::mapping;
use crate::service::Shared;

/// The load under the present plan, with the noise floors: the imbalance of as many contents dealt at random.
pub(crate) fn report(shared: &Shared) -> LoadReport {
    let report = measure(&shared.read());
    // Every content is dealt, so nothing is locked meanwhile.
    let contents = report.partitions.iter().map(|partition| partition.contents).sum();
    let floor = |parts: usize| MappingLoad::at_random(parts, contents).imbalance();
    LoadReport {
        imbalance_floor: floor(report.partitions.len()),
        node_imbalance_floor: floor(report.serving as usize),
        ..report
    }
}

fn measure(cluster: &Cluster) -> LoadReport {
    let map = cluster.plan.map();
    let count = map.partitions();
    let mut partitions = Vec::with_capacity(count);
    for ((number, assignment), bounds) in (0..).zip(cluster.plan.assignments()).zip(map.bounds()) {
        let tables = &cluster.node(assignment.node).tables;
        let Some(local) = tables.local(number) else { continue };
        let partition = &tables.partitions[local as usize];
        let stored = partition.columns.len();
        let directory = tables.contents.allocation_size() * stored / tables.contents.len().max(1);
        partitions.push(PartitionLoad {
            partition: assignment.id,
            node: assignment.node,
            bounds: LengthBox {
                lo: bounds.ranges().map(|(lo, _)| lo).collect(),
                hi: bounds.ranges().map(|(_, hi)| hi).collect(),
            },
            contents: stored as u64,
            pages: (stored + partition.pages.len()) as u64,
            received: partition.received,
            comparisons: partition.comparisons,
            bytes: (partition.bytes() + directory) as u64,
        });
    }
    let serving = cluster.plan.serving().count();
    let stored = partitions.iter().map(|p| p.contents).collect();
    LoadReport {
        plan_version: map.version(),
        dimensions: map.lexicon().dimensions() as u32,
        partitions,
        searches: cluster.searches,
        fan_out: cluster.fan_out,
        imbalance: MappingLoad { stored, received: Vec::new() }.imbalance(),
        imbalance_floor: 1.0,
        fan_out_saved: fan_out_saved(cluster.searches, cluster.fan_out, count),
        serving: serving as u32,
        node_fan_out: cluster.node_fan_out,
        node_imbalance: cluster.plan.imbalance(&mapping::node_contents(cluster)),
        node_imbalance_floor: 1.0,
        node_fan_out_saved: fan_out_saved(cluster.searches, cluster.node_fan_out, serving),
        file_bytes: cluster.nodes.iter().map(|index| index.file.bytes()).sum(),
    }
}
