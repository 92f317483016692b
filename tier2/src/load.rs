//! The load of each partition, and what the map saves.

use std::hash::BuildHasher;

use doppel_common::api::{LengthBox, LoadReport, PartitionLoad};
use doppel_common::mapping::MappingLoad;

use crate::index::Index;

/// The load under the present map.
pub(crate) fn report(index: &Index, node: &str) -> LoadReport {
    let file_bytes = index.file.bytes();
    let tables = &index.tables;
    let contents = tables.contents.len();
    let count = tables.partitions.len();
    let mut partitions = Vec::with_capacity(count);
    for (number, (partition, bounds)) in tables.partitions.iter().zip(tables.map.bounds()).enumerate() {
        let stored = partition.columns.len();
        let directory = tables.contents.allocation_size() * stored / contents.max(1);
        partitions.push(PartitionLoad {
            partition: number as u32,
            node: node.to_owned(),
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
    // The noise floor.
    let dealer = &foldhash::fast::FixedState::with_seed(0);
    let hashes = tables.partitions.iter().flat_map(|partition| {
        let columns = &partition.columns;
        columns.slots().map(move |slot| dealer.hash_one(columns.content(slot)))
    });
    let dealt = MappingLoad::dealt(count, hashes);
    let stored = partitions.iter().map(|p| p.contents).collect();
    let broadcast = tables.looks * count as u64;
    LoadReport {
        epoch: tables.map.epoch(),
        dimensions: tables.map.lexicon().dimensions() as u32,
        partitions,
        looks: tables.looks,
        sends: tables.sends,
        imbalance: MappingLoad { stored, received: Vec::new() }.imbalance(),
        imbalance_floor: dealt.imbalance(),
        sends_saved: if broadcast == 0 { 0.0 } else { 1.0 - tables.sends as f64 / broadcast as f64 },
        file_bytes,
    }
}
