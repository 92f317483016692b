//! The status tables of the ranges, which are kept beside their rows.

use doppel_tier1::{Store, StoreError, Write};

use super::mistake::Mistake;
use super::store::RangeStore;
use super::violation::{Checked, failed};
use super::world::{World, range_id};

impl World {
    /// Stores the rows of a commit, and updates the status table of the range.
    pub(crate) fn write_rows(&mut self, at: usize, writes: Vec<Write>) -> Result<(), StoreError> {
        if self.planted.now(Mistake::UnheardByStatusTable) {
            self.hosts[at].store.commit(writes)
        } else {
            self.worker.commit(range_id(at), writes)
        }
    }

    /// Adds the rows that were read last to the status table of a range, and reads further rows. Returns
    /// false if the table is complete.
    pub(crate) fn fill_statuses(&mut self, at: usize, rows: usize) -> Checked<bool> {
        let over = self.planted.is(Mistake::OldRowsInStatusTable);
        let host = &mut self.hosts[at];
        host.statuses.step(&*host.store, rows, over).map_err(|e| failed("the rows of statuses")(e.into()))
    }

    /// Saves snapshots of the complete tables. A node that takes over a range has none.
    pub(crate) fn save_statuses(&mut self) {
        for (at, host) in self.hosts.iter_mut().enumerate().filter(|(_, host)| host.statuses.is_complete()) {
            if let RangeStore::Alone(store) = &*host.store {
                host.saved_statuses = Some((store.by.commits(), self.worker.save_statuses(range_id(at))));
            }
        }
    }

    /// Completes all status tables.
    pub(crate) fn complete_statuses(&mut self) -> Checked {
        for at in 0..self.hosts.len() {
            while self.fill_statuses(at, 50)? {}
        }
        Ok(())
    }
}
