//! The lists that a search looks up.
//!
//! Most members of a list are no partners. A loop over nothing but their bitmaps rejects them fastest, because the
//! processor loads several bitmaps from memory at the same time. So short lists go through this loop first, and
//! the search visits the members that it leaves.

use std::collections::BinaryHeap;

use doppel_model::InsertSeq;

use super::cursor::Cursor;
use super::findings::ListVisits;
use super::{ActiveSearch, SKIPS_PER_VISIT, without_leading_owed};
use crate::node::partition::buckets::BucketVisits;
use crate::node::partition::candidates::CrowdedList;
use crate::node::partition::columns::Columns;

/// A list of more members is visited one by one, so that a search with a cost limit can be interrupted.
const SHORT_MAX: usize = 1 << 10;

/// Number of members of large buckets that go through the loop at most. It bounds the time before the search can be
/// interrupted.
const TESTS_MAX: usize = 1 << 13;

/// The members of short lists of one partition that bitmaps do not reject.
pub(super) struct ShortList {
    /// Index of the partition among the probed partitions.
    probe: u32,
    /// The slots of the members, oldest first.
    slots: Vec<u32>,
    /// Index of the list among the visits of the search. `None` for all small buckets together.
    large: Option<u32>,
}

impl<'i> ActiveSearch<'i, '_> {
    /// The candidate lists of all probed partitions, without the candidates that were visited before. Each large
    /// bucket has lists of its own. The small ones of a partition are one list, which is cheaper than many.
    pub(super) fn lists<'l>(&mut self, short: &'l mut Vec<ShortList>) -> BinaryHeap<Cursor<'l>>
    where
        'i: 'l,
    {
        let tables = &self.index.tables;
        let bands = tables.band_keys(self.signature);
        let mut cursors = Vec::new();
        let (policy, own, bitmap, visited, query_order) =
            (tables.policy, self.signature.size(), self.bitmap, self.visited, self.query_order);
        let findings = &mut self.findings;
        // Looking up a family key costs as much as rejecting a candidate.
        let (mut cost, mut tests) = (0, 0);
        for (probe, (partition, _)) in (0..).zip(&findings.probed_partitions) {
            let host = &tables.partitions[partition.index()];
            let columns = &host.columns;
            let may_count = |slot: &u32| {
                policy.metric().is_none()
                    || policy.admits(columns.shared_max(*slot, own, bitmap), own, columns.total(*slot))
                    || columns.is_center(*slot)
            };
            let mut members = Vec::new();
            let of_families = tables.search_keys(*partition, self.signature, &bands);
            host.candidates.prefetch(&bands);
            host.candidates.prefetch(&of_families);
            cost += of_families.len();
            let bands = bands.iter().map(|key| CrowdedList { key: *key, is_of_family: false });
            let of_families = of_families.iter().map(|key| CrowdedList { key: *key, is_of_family: true });
            for one in bands.chain(of_families) {
                host.candidates.lists(one.key, |list| {
                    if !list.is_large {
                        members.extend_from_slice(list.slots);
                        return;
                    }
                    let is_visited = |slot: &u32| columns.insert_seq(*slot) <= visited;
                    let slots = &list.slots[list.slots.partition_point(is_visited)..];
                    let all = slots.len();
                    let slots = without_leading_owed(host, slots, query_order);
                    cost += (all - slots.len()) / SKIPS_PER_VISIT;
                    let Some(first) = slots.first() else { return };
                    let mut visits = BucketVisits::default();
                    let large = Some(findings.list_visits.len() as u32);
                    let may_test = slots.len() <= SHORT_MAX.min(TESTS_MAX - tests);
                    if list.center.is_none() && may_test {
                        tests += slots.len();
                        let left: Vec<u32> = slots.iter().copied().filter(may_count).collect();
                        let rejected = slots.len() - left.len();
                        cost += rejected;
                        if !findings.continues {
                            visits = BucketVisits { rest: rejected as u32, vain: rejected as u32 };
                        }
                        short.push(ShortList { probe, slots: left, large });
                    } else {
                        let insert_seq = columns.insert_seq(*first);
                        cursors.push(Cursor { insert_seq, probe, slots, center: list.center, large });
                    }
                    findings.list_visits.push(ListVisits { partition: *partition, list: one, visits });
                });
            }
            cost += members.len();
            members.retain(may_count);
            cost -= members.len();
            short.push(ShortList { probe, slots: by_age(members, visited, columns), large: None });
        }
        findings.cost += cost as u64;
        std::thread::yield_now();
        for ShortList { probe, slots, large } in &*short {
            if let Some(first) = slots.first() {
                let (partition, _) = findings.probed_partitions[*probe as usize];
                let insert_seq = tables.partitions[partition.index()].columns.insert_seq(*first);
                cursors.push(Cursor { insert_seq, probe: *probe, slots, center: None, large: *large });
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
