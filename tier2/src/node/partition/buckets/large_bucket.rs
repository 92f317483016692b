//! A large bucket: its members, some of them in runs.

use doppel_model::InsertSeq;

use super::crowding::Crowding;
use crate::node::partition::columns::Columns;

/// Smallest number of members with the same center that form a run.
const RUN_MIN: usize = 16;

/// A run contains at least this part of its bucket. This limits the number of runs.
const RUN_PART: usize = 32;

/// A bucket with many members. Each member is either in `rest` or in one run. Both are sorted, oldest first.
#[derive(Debug, Default)]
pub(super) struct LargeBucket {
    pub(super) rest: Vec<u32>,
    pub(super) runs: Vec<Run>,
    /// Members of `rest` that searches have visited since the last cut into runs.
    pub(super) visits: u64,
    pub(super) crowding: Crowding,
}

/// Members with the same center.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) center: InsertSeq,
    /// The largest distance of a member from the center.
    pub(super) radius: u8,
    pub(super) slots: Vec<u32>,
}

impl LargeBucket {
    pub(super) fn len(&self) -> usize {
        self.rest.len() + self.runs.iter().map(|run| run.slots.len()).sum::<usize>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty() && self.runs.is_empty()
    }

    /// Removes `slot`. Returns whether it was a member.
    pub(super) fn remove(&mut self, slot: u32, columns: &Columns) -> bool {
        let insert_seq = columns.insert_seq(slot);
        for list in std::iter::once(&mut self.rest).chain(self.runs.iter_mut().map(|run| &mut run.slots)) {
            let position = position(list, insert_seq, columns);
            if list.get(position) == Some(&slot) {
                list.remove(position);
                self.runs.retain(|run| !run.slots.is_empty());
                return true;
            }
        }
        false
    }

    /// Cuts the members into runs by their present centers.
    pub(super) fn rebuild_runs(&mut self, columns: &Columns) {
        self.visits = 0;
        let mut all = std::mem::take(&mut self.rest);
        self.runs.drain(..).for_each(|run| all.extend(run.slots));
        let order = |slot: &u32| {
            (columns.is_center(*slot), columns.center(*slot).insert_seq, columns.insert_seq(*slot))
        };
        all.sort_unstable_by_key(order);
        let run_min = RUN_MIN.max(all.len() / RUN_PART);
        // Centers must be compared one by one, so no run contains them.
        let key = |slot: &u32| (columns.is_center(*slot), columns.center(*slot).insert_seq);
        for members in all.chunk_by(|a, b| key(a) == key(b)) {
            let center = columns.center(members[0]);
            if center.is_entry() && !columns.is_center(members[0]) && members.len() >= run_min {
                let radius =
                    members.iter().map(|slot| columns.center(*slot).distance).max().unwrap_or(u8::MAX);
                self.runs.push(Run { center: center.insert_seq, radius, slots: members.to_vec() });
            } else {
                self.rest.extend_from_slice(members);
            }
        }
        self.rest.sort_unstable_by_key(|slot| columns.insert_seq(*slot));
        self.rest.shrink_to_fit();
    }
}

/// Index at which a list has, or would have, a slot with this insertion sequence.
pub(super) fn position(list: &[u32], insert_seq: InsertSeq, columns: &Columns) -> usize {
    list.partition_point(|slot| columns.insert_seq(*slot) < insert_seq)
}
