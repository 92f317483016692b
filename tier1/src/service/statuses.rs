//! The status table of a range: filled at a start, beside the service, then written to disk from time to time.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use doppel_snapshot::{LOOK, is_due};
use doppel_threads::{GiveWay, give_way};

use super::Tier1;
use super::owner::Owner;
use super::rows::PIECE_ROWS;
use crate::database::LogConsumer;
use crate::statuses::{Basis, Fill, StatusTable, damage};

/// The least time between two looks.
const LOOK_MIN: Duration = Duration::from_millis(20);

/// Pauses before rows that could not be read are read again, as when the database is opened anew after its disk was full: the
/// first, and the longest of those that follow, each twice as long as the one before.
const RETRY: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(60);

impl Tier1 {
    /// Fills the table of a range, and writes it to disk when that is due, until the service stops or the range ends.
    pub(super) fn tend_statuses(&self, owner: &Owner, table: &Arc<StatusTable>) {
        give_way(GiveWay::ToAll);
        let fill = Fill::new(Arc::clone(table), self.map.run(owner.id));
        if !self.fill_statuses(owner, fill) {
            return;
        }
        // What commits have changed meanwhile counts from the next time on.
        let mut saved = if owner.statuses_on_disk().is_some() { table.changed() } else { None };
        let mut last = Instant::now();
        while !self.is_over(owner) {
            std::thread::park_timeout(LOOK.min(self.snapshot_pause).max(LOOK_MIN));
            let Some(changed) = table.changed() else { return };
            let (age, entries) = (last.elapsed(), table.len() as u64);
            let since = saved.map_or(entries, |saved| changed.saturating_sub(saved));
            if since > 0 && entries > 0 && is_due(age, self.snapshot_pause, since, entries) {
                self.save_statuses(owner);
                (last, saved) = (Instant::now(), Some(changed));
            }
        }
    }

    /// False when the service stops or the range ends. While rows cannot be read, they are left to whoever asks for them.
    fn fill_statuses(&self, owner: &Owner, mut fill: Fill) -> bool {
        let begun = Instant::now();
        let is_saved = begin_from_snapshot(owner, &mut fill);
        if !is_saved && let Some(database) = &owner.database {
            database.keep_log(LogConsumer::Statuses, None);
        }
        let mut pause = RETRY;
        loop {
            if self.is_over(owner) {
                return false;
            }
            if let Err(error) = fill.read(&*owner.uncached_store, PIECE_ROWS) {
                if pause == RETRY {
                    tracing::warn!(%error, range = owner.id.0, "the status table is incomplete; rows are read instead");
                }
                std::thread::park_timeout(pause);
                pause = (pause * 2).min(RETRY_MAX);
                continue;
            }
            pause = RETRY;
            if !fill.put() {
                let seconds = begun.elapsed().as_secs_f64();
                tracing::info!(
                    range = owner.id.0,
                    seconds,
                    from_snapshot = is_saved,
                    "the status table is complete"
                );
                return true;
            }
            std::thread::yield_now();
        }
    }

    /// Writes the table of a range to disk, if it is complete and there is something new.
    pub(super) fn save_statuses(&self, owner: &Owner) {
        let Some((table, database)) = owner.table.as_ref().zip(owner.database.as_ref()) else { return };
        let (Some(dir), Some(moment)) = (&owner.dir, database.log_position()) else { return };
        let mut on_disk = owner.statuses_on_disk();
        if table.changed().is_none() || *on_disk == Some(moment) {
            return;
        }
        if on_disk.is_none() {
            database.keep_log(LogConsumer::Statuses, Some(moment.index));
        }
        let Range { start, end } = self.map.run(owner.id);
        let begun = Instant::now();
        match table.save(Basis { first: start, end, moment }, dir) {
            Ok(()) => {
                *on_disk = Some(moment);
                database.keep_log(LogConsumer::Statuses, Some(moment.index));
                let seconds = begun.elapsed().as_secs_f64();
                tracing::info!(range = owner.id.0, seconds, "wrote a snapshot of the status table");
            }
            Err(error) => {
                database.keep_log(LogConsumer::Statuses, on_disk.map(|on_disk| on_disk.index));
                tracing::warn!(range = owner.id.0, %error, "a snapshot of the status table is not on disk; the one before is used");
            }
        }
    }
}

#[cfg(feature = "simulation")]
impl Tier1 {
    /// The rows of a range, to write past the range.
    pub(crate) fn store_of(&self, range: doppel_model::RangeId) -> Arc<dyn crate::store::Store> {
        Arc::clone(&self.own(range).expect("a range of this process").store)
    }
}

/// Whether the table is filled from a snapshot, and what the log says was written since.
fn begin_from_snapshot(owner: &Owner, fill: &mut Fill) -> bool {
    let saved = owner.saved_statuses.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((saved, database)) = saved.zip(owner.database.as_ref()) else { return false };
    let (moment, dir) = (saved.basis.moment, owner.dir.as_deref().unwrap_or(Path::new("")));
    match damage(dir) {
        Ok(None) => {}
        Ok(Some(damage)) => {
            tracing::warn!(range = owner.id.0, %damage, "the snapshot of the status table is not used; rows are read");
            return false;
        }
        Err(error) => {
            tracing::warn!(range = owner.id.0, %error, "the snapshot of the status table is not used; rows are read");
            return false;
        }
    }
    match fill.begin_from(saved, |each| database.written_since(moment, each)) {
        Ok(true) => {
            *owner.statuses_on_disk() = Some(moment);
            database.keep_log(LogConsumer::Statuses, Some(moment.index));
            true
        }
        Ok(false) => {
            tracing::info!(
                range = owner.id.0,
                "the log does not reach back to the snapshot of the status table; rows are read"
            );
            false
        }
        Err(error) => {
            tracing::warn!(range = owner.id.0, %error, "what has changed is not known; rows are read for the status table");
            false
        }
    }
}
