//! The form of the tables in a snapshot.

use std::io;

use doppel_model::InsertSeq;
use doppel_snapshot::SnapshotWriter;
use serde::{Deserialize, Serialize};

use super::{EntryRef, IndexTables, LocalIndex};
use crate::node::partition::Partition;
use crate::node::partition::columns::SignatureRecord;
use crate::seed::BandSeed;

/// Numbers that must continue after a snapshot is restored.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct TableNumbers {
    band_seed: u64,
    next_insert_seq: u32,
}

impl IndexTables {
    /// The numbers that continue after a snapshot is restored.
    pub(crate) fn numbers(&self) -> TableNumbers {
        TableNumbers { band_seed: self.band_seed.0, next_insert_seq: self.next_insert_seq.0 }
    }

    /// Writes the serving partitions in their order.
    pub(crate) fn write(&self, out: &mut SnapshotWriter) -> io::Result<()> {
        self.serving().try_for_each(|partition| partition.write(out))
    }

    /// Replaces the empty partitions that have the same ids.
    pub(crate) fn restore(&mut self, numbers: TableNumbers, partitions: Vec<Partition>) {
        self.band_seed = BandSeed(numbers.band_seed);
        self.next_insert_seq = InsertSeq(numbers.next_insert_seq);
        for partition in partitions {
            if let Some(at) = self.local(partition.id) {
                self.partitions[at.index()] = partition;
            }
        }
        for at in 0..self.partitions.len() {
            self.add_entries(LocalIndex::from(at));
        }
    }

    /// Adds the entries of a partition to the directories of the node.
    fn add_entries(&mut self, partition: LocalIndex) {
        let columns = &self.partitions[partition.index()].columns;
        let slots: Vec<u32> = columns.slots().collect();
        let centers = slots.iter().filter(|slot| columns.is_center(**slot));
        self.centers.extend(centers.map(|slot| columns.insert_seq(*slot)));
        for slot in slots {
            self.add_content(EntryRef { partition, slot });
        }
    }

    /// The records of all signatures.
    pub(crate) fn records(&self) -> impl Iterator<Item = SignatureRecord> + '_ {
        self.entries().map(|entry| self.partition(entry).columns.record(entry.slot))
    }
}
