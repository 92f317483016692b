//! The status tables of the ranges, beside their rows.

use doppel_tier1::{Store, StoreError, Write};

use super::mistake::Mistake;
use super::store::RangeStore;
use super::violation::{Checked, failed};
use super::world::{World, range_id};

impl World {
    /// Makes a commit of a range, of which its table hears.
    pub(crate) fn write_rows(&mut self, at: usize, writes: Vec<Write>) -> Result<(), StoreError> {
        if self.planted.now(Mistake::UnheardByStatusTable) {
            self.hosts[at].store.commit(writes)
        } else {
            self.worker.commit(range_id(at), writes)
        }
    }

    /// The table of a range gets what was read of its rows last, and so many are read; false when it has all.
    pub(crate) fn fill_statuses(&mut self, at: usize, rows: usize) -> Checked<bool> {
        let over = self.planted.is(Mistake::OldRowsInStatusTable);
        let host = &mut self.hosts[at];
        host.statuses.step(&*host.store, rows, over).map_err(|e| failed("the rows of statuses")(e.into()))
    }

    /// Snapshots of the tables that are complete. A node that takes a range over has none.
    pub(crate) fn save_statuses(&mut self) {
        for (at, host) in self.hosts.iter_mut().enumerate().filter(|(_, host)| host.statuses.is_complete()) {
            if let RangeStore::Alone(store) = &*host.store {
                host.saved_statuses = Some((store.by.commits(), self.worker.save_statuses(range_id(at))));
            }
        }
    }

    /// The tables get all there is.
    pub(crate) fn complete_statuses(&mut self) -> Checked {
        for at in 0..self.hosts.len() {
            while self.fill_statuses(at, 50)? {}
        }
        Ok(())
    }
}
