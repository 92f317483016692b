//! The status table of a range. The simulation fills it step by step, and loses it with the range.

use std::io::Cursor;

use doppel_model::RangeId;
use doppel_protocol::LogPosition;

use super::Worker;
use crate::statuses::{Basis, Fill, Snapshot, Statuses};
use crate::storage::store::{Store, StoreError, Write};

/// Progress of filling a status table; `None` if the table is complete.
pub struct StatusFill(Option<Fill>);

impl StatusFill {
    /// Whether the table has all rows.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.is_none()
    }

    /// Puts the rows of the last step into the table, and reads up to `rows` more rows. Returns false when
    /// the table is complete. With `over`, the rows also replace entries that have changed since they were
    /// read, which is a planted mistake.
    ///
    /// # Errors
    /// If the store fails.
    pub fn step(&mut self, store: &dyn Store, rows: usize, over: bool) -> Result<bool, StoreError> {
        let Some(fill) = &mut self.0 else { return Ok(false) };
        let goes_on = if over { fill.put_over() } else { fill.put() };
        if goes_on {
            fill.read(store, rows)?;
        } else {
            self.0 = None;
        }
        Ok(goes_on)
    }
}

impl Worker {
    /// Starts with an empty table, as a range does. If there is a snapshot, fills the table from it and from
    /// the writes since.
    ///
    /// # Panics
    /// If there are no status tables, or the snapshot was not made by [`save_statuses`](Self::save_statuses).
    #[must_use]
    pub fn begin_statuses(&self, range: RangeId, saved: Option<(Vec<u8>, Vec<Write>)>) -> StatusFill {
        let statuses = self.statuses();
        statuses.of_range(range).clear();
        let mut fill = statuses.fill(range);
        if let Some((snapshot, since)) = saved {
            let length = snapshot.len() as u64;
            let snapshot =
                Snapshot::read(Box::new(Cursor::new(snapshot)), length).expect("the snapshot is valid");
            fill.begin_from(snapshot, |each| {
                since.iter().for_each(|(key, row)| each(key, row.as_deref()));
                Ok(true)
            })
            .expect("the writes are in memory");
        }
        StatusFill(Some(fill))
    }

    /// Makes a snapshot of the status table of a range.
    ///
    /// # Panics
    /// If there are no status tables.
    #[must_use]
    pub fn save_statuses(&self, range: RangeId) -> Vec<u8> {
        let (statuses, moment) = (self.statuses(), LogPosition { log: 1, epoch: 1, index: 0, hash: 0 });
        let run = statuses.run(range);
        let basis = Basis { first: run.start, end: run.end, moment };
        statuses.of_range(range).snapshot_bytes(basis).expect("a write to memory succeeds")
    }

    fn statuses(&self) -> &Statuses {
        self.tier1.statuses()
    }

    /// Makes a commit of a range, which also updates the range's status table.
    ///
    /// # Errors
    /// If the store fails.
    pub fn commit(&self, range: RangeId, writes: Vec<Write>) -> Result<(), StoreError> {
        self.tier1.store_of(range).commit(writes)
    }
}
