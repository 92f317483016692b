//! A partition that goes is forgotten piece by piece.

use std::hash::BuildHasher;

use doppel_protocol::index_node::HostedPartition;

use super::{EntryRef, LocalIndex, State, Tables};
use crate::node::columns::Record;
use crate::node::partition::Partition;

impl Tables {
    /// Forgets up to `entries` of an outgoing partition; their records, and whether that was all. Then the partition
    /// is free, and what it was is in the second part.
    pub(crate) fn drop_partition(
        &mut self,
        partition: LocalIndex,
        entries: usize,
    ) -> (Vec<Record>, Option<Partition>) {
        let host = &mut self.partitions[partition.index()];
        let slots: Vec<u32> = host.columns.slots_from(host.dropped_to).take(entries).collect();
        let mut records = Vec::with_capacity(slots.len());
        for slot in &slots {
            let entry = EntryRef { partition, slot: *slot };
            let content = self.partition(entry).columns.content(*slot);
            self.centers.remove(&self.insert_seq(entry));
            if let Ok(found) = self.contents.find_entry(self.hasher.hash_one(content), |p| *p == entry) {
                found.remove();
                records.push(self.partition(entry).columns.record(*slot));
            }
        }
        let host = &mut self.partitions[partition.index()];
        if slots.len() == entries {
            host.dropped_to = slots.last().map_or(0, |slot| slot + 1);
            return (records, None);
        }
        let gone = HostedPartition { id: host.id, bounds: host.bounds };
        let free = Partition::new(gone, State::Free, 1);
        (records, Some(std::mem::replace(host, free)))
    }
}
