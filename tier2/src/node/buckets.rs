//! The members of one band key: slots, oldest first.
//!
//! Most keys have one member or a few, so a bucket is a 32-bit value: a slot itself, or a place in an
//! arena of cells of 2, 4, .. 32 slots. Larger buckets are cut into runs, so that a search can pass over
//! the members that are proven by one verified page at once (see [`search`](super::search)).

use std::io;

use doppel_model::InsertSeq;
use doppel_snapshot::{Reader, Unreadable, Writer};

use super::columns::{Center, Columns};

/// Slots are below this, so that a bucket that is a slot can be told from one that is not.
pub(crate) const SLOTS_MAX: u32 = 1 << KIND_SHIFT;

const KIND_SHIFT: u32 = 29;
/// Kinds: 0 is a slot, 1 to 5 a cell of 2^kind slots, 6 a large bucket.
const CELLS: usize = 5;
const LARGE: u32 = CELLS as u32 + 1;

/// No slot.
const EMPTY: u32 = u32::MAX;

/// Fewer members of one center do not make a run.
const RUN_MIN: usize = 16;

/// A run has at least this part of its bucket: so a bucket has few runs.
const RUN_PART: usize = 32;

/// A large bucket is cut into runs anew when searches have passed this many times its size.
const PASSES: u64 = 4;

/// All buckets of a partition.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    cells: [Cells; CELLS],
    large: Vec<Large>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Cells {
    slots: Vec<u32>,
    free: Vec<u32>,
}

/// A bucket of many members: each is in `rest` or in one run, and each of those is oldest first.
#[derive(Debug, Default)]
struct Large {
    rest: Vec<u32>,
    runs: Vec<Run>,
    /// Members of `rest` that searches have passed since the runs were made.
    passed: u64,
}

/// Members of one center.
#[derive(Debug)]
struct Run {
    center: InsertSeq,
    /// The largest distance from the center.
    radius: u8,
    slots: Vec<u32>,
}

/// Some members of a bucket, oldest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'b> {
    /// The members.
    pub(crate) slots: &'b [u32],
    /// What all of them have as their center, if they are a run.
    pub(crate) center: Option<Center>,
    /// Whether to count what is passed of it ([`Buckets::passed`]).
    pub(crate) counted: bool,
}

impl Buckets {
    /// Calls `each` for the lists of a bucket.
    #[inline]
    pub(crate) fn lists<'b>(&'b self, bucket: &'b u32, mut each: impl FnMut(List<'b>)) {
        let (kind, at) = split(*bucket);
        match kind {
            0 => each(List { slots: std::slice::from_ref(bucket), center: None, counted: false }),
            LARGE => {
                let Some(large) = self.large.get(at) else { return };
                each(List { slots: &large.rest, center: None, counted: true });
                for run in &large.runs {
                    let center = Some(Center { insert_seq: run.center, distance: run.radius });
                    each(List { slots: &run.slots, center, counted: false });
                }
            }
            _ => each(List { slots: self.cell(kind, at), center: None, counted: false }),
        }
    }

    /// The bucket of `bucket` and `slot`, which is younger than all in it.
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

    /// The bucket without `slot`; none when it was the last. `columns` still has the slot's insertion sequence.
    pub(crate) fn remove(&mut self, bucket: u32, slot: u32, columns: &Columns) -> Option<u32> {
        let (kind, at) = split(bucket);
        match kind {
            0 => (bucket != slot).then_some(bucket),
            LARGE => {
                let large = self.large.get_mut(at)?;
                large.remove(slot, columns);
                if large.is_empty() {
                    *large = Large::default();
                    self.free.push(at as u32);
                    return None;
                }
                Some(bucket)
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

    /// `slot` no longer has the center it had, or is a center now: it leaves its run.
    pub(crate) fn loosen(&mut self, bucket: u32, slot: u32, columns: &Columns) {
        if let (LARGE, at) = split(bucket)
            && let Some(large) = self.large.get_mut(at)
            && large.remove(slot, columns)
        {
            let position = position(&large.rest, columns.insert_seq(slot), columns);
            large.rest.insert(position, slot);
        }
    }

    /// Many members have another center now.
    pub(crate) fn recut(&mut self, bucket: u32, columns: &Columns) {
        if let (LARGE, at) = split(bucket)
            && let Some(large) = self.large.get_mut(at)
        {
            large.cut(columns);
        }
    }

    /// A search passed `steps` members of the counted list of a bucket.
    pub(crate) fn passed(&mut self, bucket: u32, steps: u32, columns: &Columns) {
        if let (LARGE, at) = split(bucket)
            && let Some(large) = self.large.get_mut(at)
        {
            large.passed += u64::from(steps);
            if large.passed > PASSES * large.len() as u64 {
                large.cut(columns);
            }
        }
    }

    pub(crate) fn write(&self, out: &mut Writer) -> io::Result<()> {
        for cells in &self.cells {
            out.column(&cells.slots)?;
            out.column(&cells.free)?;
        }
        out.number(self.large.len() as u64)?;
        for large in &self.large {
            out.column(&large.rest)?;
            out.number(large.passed)?;
            out.number(large.runs.len() as u64)?;
            for run in &large.runs {
                out.column(&[run.center.0, run.radius.into()])?;
                out.column(&run.slots)?;
            }
        }
        out.column(&self.free)
    }

    pub(crate) fn read(input: &mut Reader) -> Result<Self, Unreadable> {
        let mut buckets = Self::default();
        for cells in &mut buckets.cells {
            (cells.slots, cells.free) = (input.column()?, input.column()?);
        }
        for _ in 0..input.number()? {
            let mut large = Large { rest: input.column()?, passed: input.number()?, runs: Vec::new() };
            for _ in 0..input.number()? {
                let [center, radius] = *input.column::<u32>()? else { return Err(Unreadable::Damaged) };
                let radius = u8::try_from(radius).map_err(|_| Unreadable::Damaged)?;
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
        4 * (cells + self.free.capacity()) + self.large.capacity() * size_of::<Large>() + large.sum::<usize>()
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
            self.large.push(Large::default());
            self.large.len() as u32 - 1
        });
        self.large[at as usize].rest = members;
        LARGE << KIND_SHIFT | at
    }
}

impl Large {
    fn len(&self) -> usize {
        self.rest.len() + self.runs.iter().map(|run| run.slots.len()).sum::<usize>()
    }

    fn is_empty(&self) -> bool {
        self.rest.is_empty() && self.runs.is_empty()
    }

    /// Whether `slot` was there.
    fn remove(&mut self, slot: u32, columns: &Columns) -> bool {
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
    fn cut(&mut self, columns: &Columns) {
        self.passed = 0;
        let mut all = std::mem::take(&mut self.rest);
        self.runs.drain(..).for_each(|run| all.extend(run.slots));
        let order = |slot: &u32| {
            (columns.is_center(*slot), columns.center(*slot).insert_seq, columns.insert_seq(*slot))
        };
        all.sort_unstable_by_key(order);
        let run_min = RUN_MIN.max(all.len() / RUN_PART);
        // Centers are compared one by one, so they are in no run.
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

/// Where a slot of that insertion sequence is or belongs in a list.
fn position(list: &[u32], insert_seq: InsertSeq, columns: &Columns) -> usize {
    list.partition_point(|slot| columns.insert_seq(*slot) < insert_seq)
}

fn split(bucket: u32) -> (u32, usize) {
    (bucket >> KIND_SHIFT, (bucket & (SLOTS_MAX - 1)) as usize)
}
