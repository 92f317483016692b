//! The load of each partition, and what the map saves.

use std::hash::BuildHasher;

use doppel_common::api::{LengthBox, LoadReport, PartitionLoad};
use doppel_common::mapping::MappingLoad;

use crate::cluster::Cluster;
use crate::mapping;

/// The load under the present plan.
pub(crate) fn report(cluster: &Cluster) -> LoadReport {
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
            node: place.node.to_string(),
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
        imbalance_floor: floor(cluster, count),
        sends_saved: saved(cluster.sends, cluster.looks, count),
        serving: serving as u32,
        node_sends: cluster.node_sends,
        node_imbalance: mapping::imbalance(&cluster.plan, &mapping::node_contents(cluster)),
        node_imbalance_floor: floor(cluster, serving),
        node_sends_saved: saved(cluster.node_sends, cluster.looks, serving),
        file_bytes: cluster.nodes.iter().map(|index| index.file.bytes()).sum(),
    }
}

/// The noise floor: the imbalance of the same contents dealt at random to so many.
fn floor(cluster: &Cluster, parts: usize) -> f64 {
    let dealer = &foldhash::fast::FixedState::with_seed(0);
    let serving = cluster.nodes.iter().flat_map(|index| index.tables.serving());
    let hashes = serving.flat_map(|partition| {
        let columns = &partition.columns;
        columns.slots().map(move |slot| dealer.hash_one(columns.content(slot)))
    });
    MappingLoad::dealt(parts, hashes).imbalance()
}

/// Share of sends saved against sending every look to all of so many.
fn saved(sends: u64, looks: u64, parts: usize) -> f64 {
    let broadcast = looks * parts as u64;
    if broadcast == 0 { 0.0 } else { 1.0 - sends as f64 / broadcast as f64 }
}
