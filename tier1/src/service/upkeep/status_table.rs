//! Upkeep of the status table of a range. The table is filled after a start while the service runs, and then
//! written to disk from time to time.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use doppel_snapshot::{LOOK, is_due};
use doppel_threads::{LoweredPriority, lower_priority};

use crate::service::ownership::owner::Owner;
use crate::service::questions::rows::PIECE_ROWS;
use crate::service::upkeep::Upkeep;
use crate::statuses::{Basis, Fill, StatusTable, damage};
use crate::storage::database::LogConsumer;

/// Least time between two checks.
const LOOK_MIN: Duration = Duration::from_millis(20);

/// First and longest pause before rows are read again that could not be read. Each pause is twice as long as
/// the one before. Reads fail, for example, while the database is opened anew after its disk was full.
const RETRY: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(60);

impl Upkeep {
    /// Fills the status table of a range and writes it to disk when that is due. Returns when the service
    /// stops or the range ends.
    pub(in crate::service) fn tend_statuses(&self, owner: &Owner, table: &Arc<StatusTable>) {
        lower_priority(LoweredPriority::BelowAll);
        let fill = Fill::new(Arc::clone(table), self.collection.map.run(owner.id));
        if !self.fill_statuses(owner, fill) {
            return;
        }
        // Changes that commits have made so far count from the next snapshot on.
        let mut saved = if owner.statuses_on_disk().is_some() { table.changed() } else { None };
        let mut last = Instant::now();
        while !self.ranges.is_over(owner) {
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

    /// Fills the table from the rows. Returns false if the service stops or the range ends. Questions read
    /// the rows themselves until the table is complete.
    fn fill_statuses(&self, owner: &Owner, mut fill: Fill) -> bool {
        let begun = Instant::now();
        let is_saved = begin_from_snapshot(owner, &mut fill);
        if !is_saved && let Some(database) = &owner.database {
            database.keep_log(LogConsumer::Statuses, None);
        }
        let mut pause = RETRY;
        loop {
            if self.ranges.is_over(owner) {
                return false;
            }
            if let Err(error) = fill.read(&*owner.uncached_store, PIECE_ROWS) {
                if pause == RETRY {
                    tracing::warn!(%error, range = owner.id.0, "cannot fill the status table yet; questions read the rows instead");
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

    /// Writes the status table of a range to disk, if it is complete and has changed.
    pub(in crate::service) fn save_statuses(&self, owner: &Owner) {
        let Some((table, database)) = owner.table.as_ref().zip(owner.database.as_ref()) else { return };
        let (Some(dir), Some(moment)) = (&owner.dir, database.log_position()) else { return };
        let mut on_disk = owner.statuses_on_disk();
        if table.changed().is_none() || *on_disk == Some(moment) {
            return;
        }
        if on_disk.is_none() {
            database.keep_log(LogConsumer::Statuses, Some(moment.index));
        }
        let Range { start, end } = self.collection.map.run(owner.id);
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
                tracing::warn!(range = owner.id.0, %error, "cannot write a snapshot of the status table; the previous one stays in use");
            }
        }
    }
}

/// Fills the table from the snapshot on disk and from what the log says was written since. Returns false if
/// that is not possible.
fn begin_from_snapshot(owner: &Owner, fill: &mut Fill) -> bool {
    let saved = owner.saved_statuses.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((saved, database)) = saved.zip(owner.database.as_ref()) else { return false };
    let (moment, dir) = (saved.basis.moment, owner.dir.as_deref().unwrap_or(Path::new("")));
    match damage(dir) {
        Ok(None) => {}
        Ok(Some(damage)) => {
            tracing::warn!(range = owner.id.0, %damage, "cannot use the snapshot of the status table; the table is filled from the rows");
            return false;
        }
        Err(error) => {
            tracing::warn!(range = owner.id.0, %error, "cannot use the snapshot of the status table; the table is filled from the rows");
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
                "the log does not reach back to the snapshot of the status table; the table is filled from the rows"
            );
            false
        }
        Err(error) => {
            tracing::warn!(range = owner.id.0, %error, "cannot read from the log what has changed since the snapshot; the status table is filled from the rows");
            false
        }
    }
}
