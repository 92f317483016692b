//! Buckets: the entries that share one key. Each is named by its slot, and the oldest comes first.
//!
//! Most keys have few members, so a bucket is a 32-bit value: either a slot itself, or the position of a cell
//! in an arena. Cells have 2, 4, ... 32 slots. Larger buckets are cut into runs, whose members have the same
//! center. A search that has verified this center can skip the whole run at once (see
//! [`search`](crate::node::search)).

mod crowding;
mod large_bucket;

use std::io;

use doppel_model::InsertSeq;
use doppel_snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

use super::columns::{Center, Columns};
pub use crowding::CrowdingLimits;
use large_bucket::{LargeBucket, Run, position};

/// Slots are smaller than this, so that the value of a bucket shows whether it is a slot.
pub(crate) const SLOTS_MAX: u32 = 1 << KIND_SHIFT;

const KIND_SHIFT: u32 = 29;
/// Kinds of buckets: 0 is a slot, 1 to 5 are cells of 2^kind slots, and 6 is a large bucket.
const CELLS: usize = 5;
const LARGE: u32 = CELLS as u32 + 1;

/// Marks an unused place in a cell.
const EMPTY: u32 = u32::MAX;

/// A large bucket is cut into runs again when searches have visited this many times its size.
const VISITS_PER_MEMBER: u64 = 4;

/// All buckets of a partition.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    cells: [CellArena; CELLS],
    large: Vec<LargeBucket>,
    free: Vec<u32>,
}

/// The cells of one kind.
#[derive(Debug, Default)]
struct CellArena {
    slots: Vec<u32>,
    free: Vec<u32>,
}

/// The visits of a search in a large bucket.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BucketVisits {
    /// Number of members outside of runs that were visited, or rejected without a visit.
    pub(crate) rest: u32,
    /// Number of members that length, bitmap or comparison rejected.
    pub(crate) vain: u32,
}

/// Some members of a bucket, oldest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CandidateList<'b> {
    /// The slots of the members.
    pub(crate) slots: &'b [u32],
    /// If the list is a run: the center of all members, with the largest distance of any.
    pub(crate) center: Option<Center>,
    /// Whether the bucket is large, so that visits have to be reported to [`Buckets::add_visits`].
    pub(crate) is_large: bool,
}

impl Buckets {
    /// Calls `each` for the lists of a bucket.
    #[inline]
    pub(crate) fn lists<'b>(&'b self, bucket: &'b u32, mut each: impl FnMut(CandidateList<'b>)) {
        let (kind, at) = split(*bucket);
        match kind {
            0 => each(CandidateList { slots: std::slice::from_ref(bucket), center: None, is_large: false }),
            LARGE => {
                let Some(large) = self.large.get(at) else { return };
                each(CandidateList { slots: &large.rest, center: None, is_large: true });
                for run in &large.runs {
                    let center = Some(Center { insert_seq: run.center, distance: run.radius });
                    each(CandidateList { slots: &run.slots, center, is_large: true });
                }
            }
            _ => each(CandidateList { slots: self.cell(kind, at), center: None, is_large: false }),
        }
    }

    /// Adds `slot`, which is younger than all members. Returns the new value of the bucket.
    pub(crate) fn push(&mut self, bucket: u32, slot: u32) -> u32 {
        let (kind, at) = split(bucket);
        match kind {
            0 if bucket == slot => bucket,
            0 => self.make_cell(1, &[bucket, slot]),
            LARGE => {
                if let Some(large) = self.large.get_mut(at)
                    && large.rest.last() != Some(&slot)
                {
                    large.rest.push(slot);
                }
                bucket
            }
            _ => {
                let members = self.cell(kind, at);
                let (width, count) = (1 << kind, members.len());
                if members.last() == Some(&slot) {
                    return bucket;
                }
                if count < width {
                    self.cells[kind as usize - 1].slots[at * width + count] = slot;
                    return bucket;
                }
                let mut all = Vec::with_capacity(2 * width);
                all.extend_from_slice(members);
                all.push(slot);
                self.free_cell(kind, at);
                if kind as usize == CELLS { self.make_large(all) } else { self.make_cell(kind + 1, &all) }
            }
        }
    }

    /// Adds `slot`, which may be older than some members. Returns the new value of the bucket.
    pub(crate) fn insert(&mut self, bucket: u32, slot: u32, columns: &Columns) -> u32 {
        let (kind, at) = split(bucket);
        let insert_seq = columns.insert_seq(slot);
        if let (LARGE, Some(large)) = (kind, self.large.get_mut(at)) {
            let position = position(&large.rest, insert_seq, columns);
            if large.rest.get(position) != Some(&slot) {
                large.rest.insert(position, slot);
            }
            return bucket;
        }
        let mut younger: Vec<u32> = Vec::new();
        self.lists(&bucket, |list| {
            younger.extend_from_slice(&list.slots[position(list.slots, insert_seq, columns)..]);
        });
        if younger.first() == Some(&slot) {
            return bucket;
        }
        let older = younger.iter().try_fold(bucket, |bucket, slot| self.remove(bucket, *slot, columns));
        let with = older.map_or(slot, |bucket| self.push(bucket, slot));
        younger.into_iter().fold(with, |bucket, slot| self.push(bucket, slot))
    }

    /// Removes `slot`. Returns the new value of the bucket, or `None` if it is empty. Must be called while
    /// `columns` still has the insertion sequence of the slot.
    pub(crate) fn remove(&mut self, bucket: u32, slot: u32, columns: &Columns) -> Option<u32> {
        let (kind, at) = split(bucket);
        match kind {
            0 => (bucket != slot).then_some(bucket),
            LARGE => {
                self.large.get_mut(at)?.remove(slot, columns);
                self.unless_empty(bucket, at)
            }
            _ => {
                let width = 1 << kind;
                let cell = &mut self.cells[kind as usize - 1].slots[at * width..][..width];
                if let Some(position) = cell.iter().position(|s| *s == slot) {
                    cell.copy_within(position + 1.., position);
                    cell[width - 1] = EMPTY;
                }
                match *cell {
                    [EMPTY, ..] => {
                        self.free_cell(kind, at);
                        None
                    }
                    [only, EMPTY, ..] => {
                        self.free_cell(kind, at);
                        Some(only)
                    }
                    _ => Some(bucket),
                }
            }
        }
    }

    /// Removes many slots, which must ascend. Returns the new value of the bucket, or `None` if it is empty.
    pub(crate) fn remove_all(&mut self, bucket: u32, slots: &[u32], columns: &Columns) -> Option<u32> {
        if let (LARGE, at) = split(bucket)
            && let Some(large) = self.large.get_mut(at)
        {
            let stays = |slot: &u32| slots.binary_search(slot).is_err();
            large.rest.retain(stays);
            large.runs.iter_mut().for_each(|run| run.slots.retain(stays));
            large.runs.retain(|run| !run.slots.is_empty());
            return self.unless_empty(bucket, at);
        }
        slots.iter().try_fold(bucket, |bucket, slot| self.remove(bucket, *slot, columns))
    }

    /// Frees a large bucket if it is empty. Otherwise returns it.
    fn unless_empty(&mut self, bucket: u32, at: usize) -> Option<u32> {
        if self.large[at].is_empty() {
            self.large[at] = LargeBucket::default();
            self.free.push(at as u32);
            return None;
        }
        Some(bucket)
    }

    /// Takes `slot` out of its run. Its center changes, or it becomes a center itself.
    pub(crate) fn leave_run(&mut self, bucket: u32, slot: u32, columns: &Columns) {
        if let (LARGE, at) = split(bucket)
            && let Some(large) = self.large.get_mut(at)
            && large.remove(slot, columns)
        {
            let position = position(&large.rest, columns.insert_seq(slot), columns);
            large.rest.insert(position, slot);
        }
    }

    /// Cuts the bucket into runs again. Called after many members got another center.
    pub(crate) fn rebuild_runs(&mut self, bucket: u32, columns: &Columns) {
        if let (LARGE, at) = split(bucket)
            && let Some(large) = self.large.get_mut(at)
        {
            large.rebuild_runs(columns);
        }
    }

    /// Notes the visits of a search in a bucket. Returns whether the bucket has become crowded.
    pub(crate) fn add_visits(
        &mut self,
        bucket: u32,
        visits: BucketVisits,
        limits: CrowdingLimits,
        columns: &Columns,
    ) -> bool {
        let (LARGE, at) = split(bucket) else { return false };
        let Some(large) = self.large.get_mut(at) else { return false };
        large.visits += u64::from(visits.rest);
        let members = large.len() as u64;
        if large.visits > VISITS_PER_MEMBER * members {
            large.rebuild_runs(columns);
        }
        large.crowding.add(visits.vain, members, limits)
    }

    pub(crate) fn write(&self, out: &mut SnapshotWriter) -> io::Result<()> {
        for cells in &self.cells {
            out.column(&cells.slots)?;
            out.column(&cells.free)?;
        }
        out.number(self.large.len() as u64)?;
        for large in &self.large {
            out.column(&large.rest)?;
            out.number(large.visits)?;
            out.number(large.runs.len() as u64)?;
            for run in &large.runs {
                out.column(&[run.center.0, run.radius.into()])?;
                out.column(&run.slots)?;
            }
        }
        out.column(&self.free)
    }

    pub(crate) fn read(input: &mut SnapshotReader) -> Result<Self, SnapshotError> {
        let mut buckets = Self::default();
        for cells in &mut buckets.cells {
            (cells.slots, cells.free) = (input.column()?, input.column()?);
        }
        for _ in 0..input.number()? {
            let mut large =
                LargeBucket { rest: input.column()?, visits: input.number()?, ..LargeBucket::default() };
            for _ in 0..input.number()? {
                let [center, radius] = *input.column::<u32>()? else { return Err(SnapshotError::Damaged) };
                let radius = u8::try_from(radius).map_err(|_| SnapshotError::Damaged)?;
                large.runs.push(Run { center: InsertSeq(center), radius, slots: input.column()? });
            }
            buckets.large.push(large);
        }
        buckets.free = input.column()?;
        Ok(buckets)
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let cells = self.cells.iter().map(|c| c.slots.capacity() + c.free.capacity()).sum::<usize>();
        let large = self.large.iter().map(|large| {
            let runs = large.runs.iter().map(|run| 4 * run.slots.capacity()).sum::<usize>();
            4 * large.rest.capacity() + runs + large.runs.capacity() * size_of::<Run>()
        });
        4 * (cells + self.free.capacity())
            + self.large.capacity() * size_of::<LargeBucket>()
            + large.sum::<usize>()
    }

    fn cell(&self, kind: u32, at: usize) -> &[u32] {
        let width = 1 << kind;
        let cell = &self.cells[kind as usize - 1].slots[at * width..][..width];
        let count = cell.iter().position(|s| *s == EMPTY).unwrap_or(width);
        &cell[..count]
    }

    fn make_cell(&mut self, kind: u32, members: &[u32]) -> u32 {
        let width = 1 << kind;
        let cells = &mut self.cells[kind as usize - 1];
        let at = cells.free.pop().map_or(cells.slots.len() / width, |at| at as usize);
        if at >= SLOTS_MAX as usize {
            // The value of a bucket has no more bits. There is no limit for large buckets but memory.
            return self.make_large(members.to_vec());
        }
        if at * width == cells.slots.len() {
            super::columns::make_room(&mut cells.slots, width);
            cells.slots.resize((at + 1) * width, EMPTY);
        }
        let cell = &mut cells.slots[at * width..][..width];
        cell.fill(EMPTY);
        cell[..members.len()].copy_from_slice(members);
        kind << KIND_SHIFT | at as u32
    }

    fn free_cell(&mut self, kind: u32, at: usize) {
        self.cells[kind as usize - 1].free.push(at as u32);
    }

    fn make_large(&mut self, members: Vec<u32>) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.large.push(LargeBucket::default());
            self.large.len() as u32 - 1
        });
        self.large[at as usize].rest = members;
        LARGE << KIND_SHIFT | at
    }
}

/// The kind of a bucket, and its slot or index.
fn split(bucket: u32) -> (u32, usize) {
    (bucket >> KIND_SHIFT, (bucket & (SLOTS_MAX - 1)) as usize)
}
