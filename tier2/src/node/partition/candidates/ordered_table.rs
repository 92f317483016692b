//! An ordered hash table of 32-bit keys, which are hashes themselves, and 32-bit values. The table uses
//! linear probing. Source: O. Amble and D. E. Knuth, "Ordered hash tables", The Computer Journal 17, 1974.
//!
//! The home of a key grows with the key, so the whole array is sorted by key. A lookup therefore ends at the
//! first key that is not smaller, which is close behind the home even in a nearly full table. Growing is one
//! pass over two arrays. The table can afford to grow often and by little: by a seventh when it is seven
//! eighths full. It uses 9.2 to 10.5 bytes an item, 9.8 on average.
//!
//! Invariants:
//! - An item is in its home or behind it, and no cell between the two is empty.
//! - The keys of the items ascend.
//! - There is a cell for every home. There are further cells behind the last home only if items did not fit.
//!
//! Keys must be spread evenly. Unevenly spread keys are correct but slow, because a lookup visits all items
//! whose homes are close by.

use std::hint::black_box;
use std::mem;

use crate::node::partition::columns;

/// A value that no item may have.
pub(super) const NO_VALUE: u32 = u32::MAX;

/// An empty cell. It has the largest key, so a lookup ends there without a separate check.
const EMPTY: Cell = Cell { key: u32::MAX, value: NO_VALUE };

/// Spare capacity for items that do not fit before the end. More is seldom needed.
const TAIL: usize = 32;

/// Number of cells that are examined together: the size of a cache line.
const WINDOW: usize = 8;

/// An item, or [`EMPTY`].
#[derive(Debug, Clone, Copy)]
struct Cell {
    key: u32,
    value: u32,
}

impl Cell {
    fn is_empty(self) -> bool {
        self.value == NO_VALUE
    }
}

/// Map from 32-bit hashes to 32-bit values.
#[derive(Debug, Default)]
pub(super) struct OrderedTable {
    cells: Vec<Cell>,
    homes: usize,
    items: usize,
}

impl OrderedTable {
    /// Creates a table from items in ascending order of their keys. `None` if the keys do not ascend, or an
    /// item has the value [`NO_VALUE`].
    pub(super) fn from_sorted(items: impl ExactSizeIterator<Item = (u32, u32)>) -> Option<Self> {
        let mut table = Self::with_homes(homes_for(items.len()));
        let mut next = 0;
        for (key, value) in items {
            if u64::from(key) < next || value == NO_VALUE {
                return None;
            }
            next = u64::from(key) + 1;
            table.append(Cell { key, value });
        }
        table.fill_up();
        Some(table)
    }

    /// Number of items in the table.
    pub(super) fn len(&self) -> usize {
        self.items
    }

    /// Keys and values, in ascending order of the keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.items().map(|cell| (cell.key, cell.value))
    }

    /// The value of a key.
    #[inline]
    pub(super) fn get(&self, key: u32) -> Option<&u32> {
        let cell = self.cells.get(self.place(key))?;
        (cell.key == key && !cell.is_empty()).then_some(&cell.value)
    }

    /// Loads the cells around the home of a key into the cache. A caller that looks up many keys then waits
    /// for memory once, and not once for each key.
    #[inline]
    pub(super) fn prefetch(&self, key: u32) {
        // The first cache line and the next one. Nearly all lookups end there.
        for place in [self.home(key), self.home(key) + WINDOW] {
            black_box(self.cells.get(place).map(|cell| cell.key));
        }
    }

    /// Changes the value of a key, or adds the key with the value `new`.
    pub(super) fn upsert(&mut self, key: u32, new: u32, change: impl FnOnce(u32) -> u32) {
        debug_assert_ne!(new, NO_VALUE, "no item has this value");
        let mut place = self.place(key);
        if let Some(cell) = self.item_mut(place, key) {
            cell.value = change(cell.value);
            return;
        }
        if self.items == items_max(self.homes) {
            self.rebuild(next_homes(self.homes));
            place = self.place(key);
        }
        let end = self.next_empty(place);
        if end == self.cells.len() {
            columns::push(&mut self.cells, EMPTY);
        }
        self.cells.copy_within(place..end, place + 1);
        self.cells[place] = Cell { key, value: new };
        self.items += 1;
    }

    /// Changes the value of a key. Removes the key if `change` returns `None`. Does nothing if the key does
    /// not exist.
    pub(super) fn update(&mut self, key: u32, change: impl FnOnce(u32) -> Option<u32>) {
        let place = self.place(key);
        let Some(cell) = self.item_mut(place, key) else { return };
        match change(cell.value) {
            Some(value) => cell.value = value,
            None => self.remove(place),
        }
    }

    /// Empties a cell. Following items that are not in their homes move back by one.
    fn remove(&mut self, place: usize) {
        let behind = (place + 1..).zip(&self.cells[place + 1..]);
        let moving = behind.take_while(|(at, cell)| !cell.is_empty() && self.home(cell.key) < *at);
        let end = place + 1 + moving.count();
        self.cells.copy_within(place + 1..end, place);
        self.cells[end - 1] = EMPTY;
        self.items -= 1;
        if 2 * self.items < self.homes {
            self.rebuild(homes_for(self.items));
        }
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }

    #[inline]
    fn home(&self, key: u32) -> usize {
        ((u64::from(key) * self.homes as u64) >> 32) as usize
    }

    /// Index of the cell that has the key, or where the key belongs.
    #[inline]
    fn place(&self, key: u32) -> usize {
        let mut place = self.home(key);
        // Keys ascend, and empty cells have the largest key. So the number of smaller keys is the position of
        // the first larger one, and counting needs no branch that depends on the data.
        while let Some(cells) = self.cells[place..].first_chunk::<WINDOW>() {
            let smaller = cells.iter().filter(|cell| cell.key < key).count();
            place += smaller;
            if smaller < WINDOW {
                return place;
            }
        }
        place + self.cells[place..].iter().filter(|cell| cell.key < key).count()
    }

    /// Index of the first empty cell at or behind `place`. If there is none, the number of cells.
    fn next_empty(&self, mut place: usize) -> usize {
        while let Some(cells) = self.cells[place..].first_chunk::<WINDOW>()
            && !cells.iter().fold(false, |any, cell| any | cell.is_empty())
        {
            place += WINDOW;
        }
        let cells = &self.cells[place..];
        place + cells.iter().position(|cell| cell.is_empty()).unwrap_or(cells.len())
    }

    fn item_mut(&mut self, place: usize, key: u32) -> Option<&mut Cell> {
        self.cells.get_mut(place).filter(|cell| cell.key == key && !cell.is_empty())
    }

    fn items(&self) -> impl Iterator<Item = Cell> + '_ {
        self.cells.iter().copied().filter(|cell| !cell.is_empty())
    }

    fn rebuild(&mut self, homes: usize) {
        let old = mem::replace(self, Self::with_homes(homes));
        old.items().for_each(|cell| self.append(cell));
        self.fill_up();
    }

    /// Creates a table without items. It has capacity for its cells.
    fn with_homes(homes: usize) -> Self {
        Self { cells: Vec::with_capacity(homes + TAIL.min(homes / 8)), homes, items: 0 }
    }

    /// Adds an item behind all others.
    fn append(&mut self, cell: Cell) {
        let home = self.home(cell.key);
        if self.cells.len() < home {
            self.cells.resize(home, EMPTY);
        }
        columns::push(&mut self.cells, cell);
        self.items += 1;
    }

    /// Adds empty cells behind the last item until the table has a cell for each home.
    fn fill_up(&mut self) {
        self.cells.resize(self.homes.max(self.cells.len()), EMPTY);
    }
}

/// Largest number of items in a table with this many homes.
fn items_max(homes: usize) -> usize {
    homes - homes.div_ceil(8)
}

/// Number of homes after the table grows.
fn next_homes(homes: usize) -> usize {
    homes + homes / 7 + 8
}

/// Number of homes of a table that has grown to this many items.
fn homes_for(items: usize) -> usize {
    let mut homes = 0;
    while items_max(homes) < items {
        homes = next_homes(homes);
    }
    homes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        /// Adds `count` keys `first`, `first + step`, ..., or adds `add` to their values.
        Upsert {
            first: u32,
            step: u32,
            count: u32,
            add: u32,
        },
        /// Doubles the value of a key, if it exists.
        Change(Key),
        Remove(Key),
        /// Removes all items except every n-th.
        Thin(usize),
        /// Recreates the table from its items.
        Read,
    }

    /// An existing key, or any key.
    #[derive(Debug, Clone, Copy)]
    enum Key {
        There(prop::sample::Index),
        Any(u32),
    }

    /// Keys from the whole range, and keys that crowd at both ends or at one home.
    fn key() -> impl Strategy<Value = u32> {
        prop_oneof![
            any::<u32>(),
            0..100u32,
            (0..100u32).prop_map(|below| u32::MAX - below),
            (0..100u32).prop_map(|above| 0x8000_0000 + above),
        ]
    }

    fn some_key() -> impl Strategy<Value = Key> {
        prop_oneof![any::<prop::sample::Index>().prop_map(Key::There), key().prop_map(Key::Any)]
    }

    fn step() -> impl Strategy<Value = Step> {
        let step = prop_oneof![Just(0), Just(1u32), Just(0x9e37_79b9), Just(u32::MAX)];
        prop_oneof![
            4 => (key(), step, 1..200u32, 0..1_000u32)
                .prop_map(|(first, step, count, add)| Step::Upsert { first, step, count, add }),
            2 => some_key().prop_map(Step::Change),
            4 => some_key().prop_map(Step::Remove),
            1 => (1..9usize).prop_map(Step::Thin),
            1 => Just(Step::Read),
        ]
    }

    impl Key {
        fn pick(self, model: &BTreeMap<u32, u32>) -> u32 {
            match self {
                Self::There(at) if !model.is_empty() => *model.keys().nth(at.index(model.len())).unwrap(),
                Self::There(_) => 0,
                Self::Any(key) => key,
            }
        }
    }

    fn check(table: &OrderedTable, model: &BTreeMap<u32, u32>) {
        assert_eq!(table.len(), model.len());
        assert!(
            table.iter().eq(model.iter().map(|(key, value)| (*key, *value))),
            "the items or their order differ from the model"
        );
        for (key, value) in model {
            assert_eq!(table.get(*key), Some(value));
            for other in [key.wrapping_sub(1), key.wrapping_add(1)] {
                assert_eq!(table.get(other), model.get(&other));
            }
        }
        assert!(table.cells.len() >= table.homes && table.items <= items_max(table.homes));
        assert!(table.homes <= 2 * table.items + 8, "{} homes for {} items", table.homes, table.items);
        for (at, cell) in table.cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let before = table.cells.get(table.home(cell.key)..at);
            assert!(
                before.is_some_and(|cells| cells.iter().all(|cell| !cell.is_empty())),
                "an empty cell separates an item from its home"
            );
        }
    }

    proptest! {
        #[test]
        fn the_table_behaves_like_a_map(steps in vec(step(), 1..40)) {
            let (mut table, mut model) = (OrderedTable::default(), BTreeMap::new());
            check(&table, &model);
            for step in steps {
                match step {
                    Step::Upsert { first, step, count, add } => for number in 0..count {
                        let key = first.wrapping_add(number.wrapping_mul(step));
                        table.upsert(key, add, |value| (value + add) % 1_000_000);
                        model.entry(key).and_modify(|value| *value = (*value + add) % 1_000_000).or_insert(add);
                    },
                    Step::Change(key) => {
                        let key = key.pick(&model);
                        table.update(key, |value| Some(2 * value % 1_000_000));
                        model.entry(key).and_modify(|value| *value = 2 * *value % 1_000_000);
                    }
                    Step::Remove(key) => {
                        let key = key.pick(&model);
                        let mut value = None;
                        table.update(key, |is| { value = Some(is); None });
                        prop_assert_eq!(value, model.remove(&key));
                    }
                    Step::Thin(part) => {
                        let gone: Vec<u32> = (0..).zip(model.keys()).filter(|(at, _)| at % part != 0).map(|(_, key)| *key).collect();
                        for key in gone {
                            model.remove(&key);
                            table.update(key, |_| None);
                        }
                    }
                    Step::Read => table = OrderedTable::from_sorted(table.iter().collect::<Vec<_>>().into_iter()).unwrap(),
                }
                check(&table, &model);
            }
            for key in mem::take(&mut model).into_keys() {
                table.update(key, |_| None);
            }
            check(&table, &model);
            prop_assert_eq!(table.bytes(), 0);
        }

        #[test]
        fn items_out_of_order_are_refused(
            mut items in vec((key(), prop_oneof![20 => 0..9u32, 1 => Just(NO_VALUE)]), 0..30), sort in any::<bool>(),
        ) {
            if sort {
                items.sort_unstable();
            }
            let ascend = items.is_sorted_by(|a, b| a.0 < b.0) && items.iter().all(|item| item.1 != NO_VALUE);
            prop_assert_eq!(OrderedTable::from_sorted(items.into_iter()).is_some(), ascend);
        }
    }

    #[test]
    fn the_table_needs_little_more_memory_than_its_items() {
        let (mut table, mut bytes, mut sizes) = (OrderedTable::default(), 0.0, 0.0);
        for number in 1..=300_000u32 {
            table.upsert(number.wrapping_mul(0x9e37_79b9) ^ 0x5555_5555, number, |value| value);
            assert_eq!(table.len(), number as usize);
            if number >= 3_000 {
                let of_item = table.bytes() as f64 / f64::from(number);
                assert!((8.8..11.2).contains(&of_item), "{of_item} bytes an item of {number}");
                // Weighted so that each doubling of the size counts equally.
                bytes += of_item / f64::from(number);
                sizes += 1.0 / f64::from(number);
            }
        }
        let mean = bytes / sizes;
        assert!((9.6..9.9).contains(&mean), "{mean} bytes an item on average");
    }
}
