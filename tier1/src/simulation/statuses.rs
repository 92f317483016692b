//! The status table of a range, filled step by step, and lost with its range.

use std::io::Cursor;

use doppel_model::RangeId;
use doppel_protocol::LogPosition;

use super::Worker;
use crate::statuses::{Basis, Fill, Snapshot, Statuses};
use crate::store::{Store, StoreError, Write};

/// How far a status table is filled.
pub struct StatusFill(Option<Fill>);

impl StatusFill {
    /// Whether the table has all rows.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.is_none()
    }

    /// Puts the rows read last in the table, with `over` also over what has changed since: a mistake. Then reads up to so
    /// many. False when the table is complete.
    ///
    /// # Errors
    /// When the store fails.
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
    /// A range starts: its table is empty, and is filled anew, from a snapshot and what was written since if there is one.
    ///
    /// # Panics
    /// When tables are not kept, or the snapshot is not one of [`save_statuses`](Self::save_statuses).
    #[must_use]
    pub fn begin_statuses(&self, range: RangeId, saved: Option<(Vec<u8>, Vec<Write>)>) -> StatusFill {
        let statuses = self.statuses();
        statuses.of_range(range).clear();
        let mut fill = statuses.fill(range);
        if let Some((snapshot, since)) = saved {
            let length = snapshot.len() as u64;
            let snapshot = Snapshot::read(Box::new(Cursor::new(snapshot)), length).expect("a snapshot");
            fill.begin_from(snapshot, |each| {
                since.iter().for_each(|(key, row)| each(key, row.as_deref()));
                Ok(true)
            })
            .expect("what was written");
        }
        StatusFill(Some(fill))
    }

    /// A snapshot of the table of a range.
    ///
    /// # Panics
    /// When tables are not kept.
    #[must_use]
    pub fn save_statuses(&self, range: RangeId) -> Vec<u8> {
        let (statuses, moment) = (self.statuses(), LogPosition { log: 1, epoch: 1, index: 0, hash: 0 });
        let run = statuses.run(range);
        let basis = Basis { first: run.start, end: run.end, moment };
        statuses.of_range(range).snapshot_bytes(basis).expect("memory takes all")
    }

    fn statuses(&self) -> &Statuses {
        self.tier1.statuses.as_ref().expect("the tables")
    }

    /// Makes a commit of a range, of which its table hears.
    ///
    /// # Errors
    /// When the store fails.
    pub fn commit(&self, range: RangeId, writes: Vec<Write>) -> Result<(), StoreError> {
        self.tier1.store_of(range).commit(writes)
    }
}
