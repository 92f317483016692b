//! The lists that a search looks up.

use std::collections::BinaryHeap;

use doppel_model::InsertSeq;

use super::ActiveSearch;
use super::cursor::Cursor;
use super::findings::ListVisits;
use crate::node::partition::buckets::BucketVisits;
use crate::node::partition::candidates::CrowdedList;
use crate::node::partition::columns::Columns;

/// The members of all small buckets that a search looks up: the slots of each probed partition, oldest first.
pub(super) type SmallBuckets = Vec<Vec<u32>>;

impl<'i> ActiveSearch<'i, '_> {
    /// The candidate lists of all probed partitions, without the candidates that were visited before. Each large
    /// bucket has lists of its own. The small ones of a partition are one list, which is cheaper than many. It
    /// leaves out members of families that are neither partners nor centers by their bitmaps.
    pub(super) fn lists<'l>(&mut self, small: &'l mut SmallBuckets) -> BinaryHeap<Cursor<'l>>
    where
        'i: 'l,
    {
        let tables = &self.index.tables;
        let bands = tables.band_keys(self.signature);
        let mut cursors = Vec::new();
        let (probed_partitions, list_visits) =
            (&self.findings.probed_partitions, &mut self.findings.list_visits);
        let visited = self.visited;
        for (probe, (partition, _)) in (0..).zip(probed_partitions) {
            let host = &tables.partitions[partition.index()];
            let (mut members, mut of_family) = (Vec::new(), Vec::new());
            let of_families = tables.search_keys(*partition, self.signature, &bands);
            let of_family_keys = of_families.len();
            host.candidates.prefetch(&bands);
            host.candidates.prefetch(&of_families);
            let bands = bands.iter().map(|key| CrowdedList { key: *key, is_of_family: false });
            let of_families = of_families.iter().map(|key| CrowdedList { key: *key, is_of_family: true });
            for one in bands.chain(of_families) {
                host.candidates.lists(one.key, |list| {
                    if !list.is_large {
                        let small = if one.is_of_family { &mut of_family } else { &mut members };
                        small.extend_from_slice(list.slots);
                        return;
                    }
                    let is_visited = |slot: &u32| host.columns.insert_seq(*slot) <= visited;
                    let slots = &list.slots[list.slots.partition_point(is_visited)..];
                    let Some(first) = slots.first() else { return };
                    let visits = BucketVisits::default();
                    list_visits.push(ListVisits { partition: *partition, list: one, visits });
                    let (insert_seq, large) =
                        (host.columns.insert_seq(*first), Some(list_visits.len() as u32 - 1));
                    cursors.push(Cursor { insert_seq, probe, slots, center: list.center, large });
                });
            }
            // Most members of a family are no partners. A loop that does nothing else rejects them fastest.
            let (policy, own) = (tables.policy, self.signature.size());
            let may_count = |slot: &u32| {
                let shared_max = host.columns.shared_max(*slot, own, self.bitmap);
                policy.admits(shared_max, own, host.columns.total(*slot)) || host.columns.is_center(*slot)
            };
            if !self.findings.continues {
                self.findings.cost += (of_family_keys + of_family.len()) as u64;
            }
            members.extend(of_family.into_iter().filter(may_count));
            small.push(by_age(members, visited, &host.columns));
        }
        for ((probe, slots), (partition, _)) in (0..).zip(&*small).zip(probed_partitions) {
            if let Some(first) = slots.first() {
                let insert_seq = tables.partitions[partition.index()].columns.insert_seq(*first);
                cursors.push(Cursor { insert_seq, probe, slots, center: None, large: None });
            }
        }
        BinaryHeap::from(cursors)
    }
}

/// Sorts entries by age, and leaves out repeated ones and those up to `visited`.
fn by_age(slots: Vec<u32>, visited: InsertSeq, columns: &Columns) -> Vec<u32> {
    let with_age = |slot: u32| u64::from(columns.insert_seq(slot).0) << 32 | u64::from(slot);
    let mut aged: Vec<u64> = slots.into_iter().map(with_age).collect();
    aged.sort_unstable();
    aged.dedup();
    let first = aged.partition_point(|aged| aged >> 32 <= u64::from(visited.0));
    aged[first..].iter().map(|aged| *aged as u32).collect()
}
