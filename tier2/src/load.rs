//! The load of each partition, and what the map saves.

use doppel_partitioning::{MappingLoad, sends_saved};
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
    for ((number, place), bounds) in (0..).zip(cluster.plan.places()).zip(map.bounds()) {
        let tables = &cluster.node(place.node).tables;
        let Some(local) = tables.local(number) else { continue };
        let partition = &tables.partitions[local as usize];
        let stored = partition.columns.len();
        let directory = tables.contents.allocation_size() * stored / tables.contents.len().max(1);
        partitions.push(PartitionLoad {
            partition: place.id,
            node: place.node,
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
        epoch: map.epoch(),
        dimensions: map.lexicon().dimensions() as u32,
        partitions,
        looks: cluster.looks,
        sends: cluster.sends,
        imbalance: MappingLoad { stored, received: Vec::new() }.imbalance(),
        imbalance_floor: 1.0,
        sends_saved: sends_saved(cluster.looks, cluster.sends, count),
        serving: serving as u32,
        node_sends: cluster.node_sends,
        node_imbalance: cluster.plan.imbalance(&mapping::node_contents(cluster)),
        node_imbalance_floor: 1.0,
        node_sends_saved: sends_saved(cluster.looks, cluster.node_sends, serving),
        file_bytes: cluster.nodes.iter().map(|index| index.file.bytes()).sum(),
    }
}
