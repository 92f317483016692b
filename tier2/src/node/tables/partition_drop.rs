//! Dropping an outgoing partition piece by piece.

use std::hash::BuildHasher;

use doppel_protocol::index_node::HostedPartition;

use super::{EntryRef, IndexTables, LocalIndex, PartitionState};
use crate::node::partition::Partition;
use crate::node::partition::columns::SignatureRecord;

impl IndexTables {
    /// Drops up to `entries` entries of an outgoing partition. Returns their records. Also returns the old
    /// partition once it has no entries left; then its index is free.
    pub(crate) fn drop_partition(
        &mut self,
        partition: LocalIndex,
        entries: usize,
    ) -> (Vec<SignatureRecord>, Option<Partition>) {
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
        let free = Partition::new(gone, PartitionState::Free, 1);
        (records, Some(std::mem::replace(host, free)))
    }
}
