//! Tables that take up the partitions of a snapshot.

use std::io;

use doppel_model::InsertSeq;
use doppel_snapshot::Writer;
use serde::{Deserialize, Serialize};

use super::{EntryRef, LocalIndex, Tables};
use crate::node::columns::Record;
use crate::node::partition::Partition;
use crate::seed::BandSeed;

/// Numbers that go on.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Numbers {
    band_seed: u64,
    next_insert_seq: u32,
}

impl Tables {
    /// The numbers that go on from a snapshot.
    pub(crate) fn numbers(&self) -> Numbers {
        Numbers { band_seed: self.band_seed.0, next_insert_seq: self.next_insert_seq.0 }
    }

    /// The partitions that serve, in their order.
    pub(crate) fn write(&self, out: &mut Writer) -> io::Result<()> {
        self.serving().try_for_each(|partition| partition.write(out))
    }

    /// Puts these partitions in the place of the empty ones with the same ids.
    pub(crate) fn restore(&mut self, numbers: Numbers, partitions: Vec<Partition>) {
        self.band_seed = BandSeed(numbers.band_seed);
        self.next_insert_seq = InsertSeq(numbers.next_insert_seq);
        for partition in partitions {
            if let Some(at) = self.local(partition.id) {
                self.partitions[at.index()] = partition;
            }
        }
        for at in 0..self.partitions.len() {
            self.note_entries(LocalIndex::from(at));
        }
    }

    /// What is known of all entries of a partition together.
    fn note_entries(&mut self, partition: LocalIndex) {
        let columns = &self.partitions[partition.index()].columns;
        let slots: Vec<u32> = columns.slots().collect();
        let centers = slots.iter().filter(|slot| columns.is_center(**slot));
        self.centers.extend(centers.map(|slot| columns.insert_seq(*slot)));
        for slot in slots {
            self.note_content(EntryRef { partition, slot });
        }
    }

    /// The places of all signatures.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.entries().map(|entry| self.partition(entry).columns.record(entry.slot))
    }
}
