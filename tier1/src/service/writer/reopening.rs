//! A range whose disk is full: it accepts nothing until there is room, and then continues from the disk.
//!
//! The commit that failed has left the shards in memory ahead of the store. The database is therefore opened
//! anew, and the shards are read from it as at a start. Work that earlier commits have left to do is kept.
//! Work that the failed commit had taken is found again in the records.

use std::time::{Duration, Instant};

use crossbeam::channel::RecvTimeoutError;
use doppel_protocol::Tier1Error;

use super::RangeWriter;
use crate::service::ownership::disk_space::ensure_room;
use crate::service::writer::task::Task;
use crate::storage::progress;
use crate::storage::store::StoreError;

/// First and longest pause between two checks for room. Each pause is twice as long as the one before.
const LOOK: Duration = Duration::from_millis(250);
const LOOK_MAX: Duration = Duration::from_secs(5);

/// How long a reader may delay the reopening before callers are told.
const HELD_UP: Duration = Duration::from_secs(5);

/// A range that stops again sooner than this has not found the room that the check promised.
const STEADY: Duration = Duration::from_millis(500);

impl RangeWriter<'_> {
    /// Whether the range can be opened anew here. The range of a replica is opened anew together with the
    /// replica, by its keeper.
    pub(super) fn can_reopen(&self) -> bool {
        self.owner.lease.is_none()
            && self.owner.database.as_ref().is_some_and(|database| database.can_reopen())
    }

    /// Refuses everything until the range continues. Returns false if the range has to end before.
    pub(super) fn wait_for_room(&mut self, mut refused: Tier1Error) -> bool {
        let range = self.owner.id;
        tracing::error!(%refused, range = range.0, "the disk is full; the range takes no writes until there is room");
        self.owned.refusals.note_full_disk(range, refused.clone());
        self.refuse_waiting(&refused);
        if let Some(task) = self.postponed.take() {
            self.take_while_full(task, &refused);
        }
        // If the file system reports room and yet accepts no writes, the checks become rarer.
        let relapse = self.last_recovery.take().filter(|(at, _)| at.elapsed() < STEADY);
        let mut pause = relapse.map_or(LOOK, |(_, pause)| pause.saturating_mul(2).min(LOOK_MAX));
        let mut next = Instant::now() + pause;
        let mut held_up_since = None;
        while !self.stopping && !self.owned.ranges.is_over(self.owner) {
            match self.tasks.recv_deadline(next) {
                Ok(task) => self.take_while_full(task, &refused),
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => match self.reopen() {
                    Ok(true) => {
                        let seconds =
                            self.owned.refusals.note_recovery(range).map_or(0.0, |time| time.as_secs_f64());
                        tracing::info!(range = range.0, seconds, "there is room again; the range goes on");
                        self.last_recovery = Some((Instant::now(), pause));
                        return true;
                    }
                    // Another range is being opened, which is soon done.
                    Ok(false) => next = Instant::now() + LOOK,
                    // There is room, but another thread reads the database or another process has its files.
                    // Both are mostly short.
                    Err(error @ (StoreError::Busy | StoreError::InUse)) => {
                        next = Instant::now() + LOOK;
                        if held_up_since.get_or_insert_with(Instant::now).elapsed() >= HELD_UP {
                            self.note_still_full(&error, &mut refused);
                        }
                    }
                    Err(error) => {
                        held_up_since = None;
                        pause = pause.saturating_mul(2).min(LOOK_MAX);
                        next = Instant::now() + pause;
                        self.note_still_full(&error, &mut refused);
                    }
                },
            }
        }
        self.owned.refusals.forget(range);
        false
    }

    /// Notes why the range cannot continue yet, and logs it if the reason is new.
    fn note_still_full(&self, error: &StoreError, refused: &mut Tier1Error) {
        let range = self.owner.id;
        if let Some(why) = self.owned.refusals.note_refusal(range, error) {
            tracing::warn!(%error, range = range.0, "the range cannot continue yet");
            *refused = why;
        }
    }

    /// Takes a task while nothing is committed.
    ///
    /// Background work is only noted as done. It is found again in the records.
    fn take_while_full(&mut self, task: Task, refused: &Tier1Error) {
        match task {
            Task::RecomputationDone { group, took } => self.background.end_recomputation(group, took),
            Task::CoverDone { group, took } => self.background.end_cover(group, took),
            Task::SweepDone => self.background.end_sweep(),
            Task::OwedWork(found) => drop(self.background.take_owed(found)),
            Task::FlushBatch => {
                self.owner.clear_hurry();
                self.background.flush_batch();
            }
            Task::Spill(request) => self.spills.take_request(request),
            Task::Hold { reply } => {
                self.holds.count += 1;
                drop(reply);
            }
            Task::Release => self.holds.count = self.holds.count.saturating_sub(1),
            other => self.refuse(other, refused),
        }
    }

    /// Opens the database anew and reads the shards from it. Returns false if another range has its turn.
    fn reopen(&mut self) -> Result<bool, StoreError> {
        let Some((database, dir)) = self.owner.database.as_ref().zip(self.owner.dir.as_ref()) else {
            return Err(StoreError::Engine("the range has no database that could be reopened".to_owned()));
        };
        let Some(_alone) = self.owned.refusals.try_reopening_turn() else { return Ok(false) };
        ensure_room(dir)?;
        database.reopen()?;
        let range = self.owned.read_range(self.owner.id, &*self.owner.uncached_store)?;
        progress::verify(dir, progress::of(&range.shards().metas))?;
        self.range = range;
        self.holds.waiting.clear();
        self.delete_confirmed_at = None;
        self.owner.restart_figures(&self.range);
        self.background.restart();
        Ok(true)
    }
}
