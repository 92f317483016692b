//! The load of each partition, and what the map saves.

use std::hash::{BuildHasher, Hash};

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
    // The noise floor: the same contents dealt by their hashes.
    let mut dealt = MappingLoad { stored: vec![0; count], received: Vec::new() };
    let dealer = foldhash::fast::FixedState::with_seed(0);
    for (number, (partition, bounds)) in tables.partitions.iter().zip(tables.map.bounds()).enumerate() {
        for slot in partition.columns.slots() {
            let hash = deal(&dealer, partition.columns.content(slot));
            dealt.stored[(hash % count as u64) as usize] += 1;
        }
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

fn deal(dealer: &impl BuildHasher, content: impl Hash) -> u64 {
    dealer.hash_one(content)
}
