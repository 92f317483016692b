//! The status table of a range, filled step by step, and lost with its range.

use doppel_model::RangeId;

use super::Worker;
use crate::statuses::Fill;
use crate::store::{Store, StoreError, Write};

/// How far a status table is filled.
pub struct StatusFill(Option<Fill>);

impl StatusFill {
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
    /// A range starts: its table is empty, and is filled anew.
    ///
    /// # Panics
    /// When tables are not kept.
    #[must_use]
    pub fn begin_statuses(&self, range: RangeId) -> StatusFill {
        let statuses = self.tier1.statuses.as_ref().expect("the tables");
        statuses.of_range(range).clear();
        StatusFill(Some(statuses.fill(range)))
    }

    /// Makes a commit of a range, of which its table hears.
    ///
    /// # Errors
    /// When the store fails.
    pub fn commit(&self, range: RangeId, writes: Vec<Write>) -> Result<(), StoreError> {
        self.tier1.store_of(range).commit(writes)
    }
}
