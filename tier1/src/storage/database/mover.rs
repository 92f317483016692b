//! Moving rows from memory to the store of rows, then trimming the log. The same thread compacts and erases
//! signatures.
//!
//! The order makes a crash at any moment harmless. The rows are on disk before the checkpoint covers them,
//! and the checkpoint is on disk before the log deletes their records.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use doppel_model::random_number;
use doppel_threads::{LoweredPriority, lower_priority};

use super::checkpoint::Checkpoint;
use super::{Inner, earlier_failure, lock};
use crate::storage::log::{Log as _, LogId};
use crate::storage::signatures::ReplacedFiles;
use crate::storage::store::{StoreError, Write};

/// Maximum time between a commit and the move of its rows.
const PAUSE: Duration = Duration::from_secs(5);

/// Number of rows per batch. The store serves no read during a batch, which takes 2 to 5 microseconds per
/// row.
pub(super) const BATCH_ROWS: usize = 200;

/// State that only one thread uses at a time.
pub(super) struct MoveState {
    pub(super) checkpoint: Checkpoint,
    /// Replaced files, which are removed after the next checkpoint.
    pub(super) replaced: ReplacedFiles,
}

/// The thread that moves rows.
pub(super) struct Mover {
    inner: Arc<Inner>,
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    wanted: bool,
    stopping: bool,
    /// Whether the thread must end without moving the remaining rows.
    given_up: bool,
    failed: Option<StoreError>,
}

impl Mover {
    pub(super) fn start(inner: Arc<Inner>) -> Result<Self, StoreError> {
        let signal: Arc<Signal> = Arc::default();
        let work = {
            let (inner, signal) = (Arc::clone(&inner), Arc::clone(&signal));
            move || {
                // Commits wait for this thread, so they must learn that it has ended.
                if catch_unwind(AssertUnwindSafe(|| run(&inner, &signal))).is_err() {
                    let what = "the thread that moves rows ended in a panic".to_owned();
                    lock(&signal.state).failed = Some(StoreError::Engine(what));
                    signal.changed.notify_all();
                }
            }
        };
        let thread = std::thread::Builder::new().name("tier1-rows".to_owned()).spawn(work);
        let thread = thread.map_err(|error| StoreError::Engine(format!("cannot start a thread: {error}")))?;
        Ok(Self { inner, signal, thread: Some(thread) })
    }

    /// Wakes the thread, because many rows are in memory.
    pub(super) fn wake(&self) {
        lock(&self.signal.state).wanted = true;
        self.signal.changed.notify_all();
    }

    /// Returns the failure of an earlier move, if there was one.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        lock(&self.signal.state).failed.clone().map_or(Ok(()), Err)
    }

    /// Makes the thread end soon without moving rows. Their records stay in the log.
    pub(super) fn give_up(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
        let mut state = lock(&self.signal.state);
        (state.stopping, state.given_up) = (true, true);
        self.signal.changed.notify_all();
    }

    /// Returns whether the thread has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until there is memory for the rows of another commit.
    pub(super) fn make_room(&self, inner: &Inner) -> Result<(), StoreError> {
        let mut state = lock(&self.signal.state);
        loop {
            if let Some(failure) = &state.failed {
                return Err(failure.clone());
            }
            if !inner.memtable().is_full() {
                return Ok(());
            }
            if state.given_up {
                return Err(earlier_failure());
            }
            state = self.signal.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Mover {
    /// Moves the remaining rows, and waits for the thread.
    fn drop(&mut self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
        lock(&self.signal.state).stopping = true;
        self.signal.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that moves rows ended in a panic");
        }
    }
}

fn run(inner: &Inner, signal: &Signal) {
    lower_priority(LoweredPriority::BelowAnswers);
    let (mut learned, mut last_moved) = (None, Instant::now());
    loop {
        // A database that is only read shares no signatures, and the index reads the same files at a start.
        let more = lock(&inner.commits).has_begun()
            && inner.signatures.learn_contents(&mut learned).unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot read which contents are stored; some may be stored more than once");
                true
            });
        let (wanted, stopping) = {
            let state = lock(&signal.state);
            let idle = |state: &mut State| !state.wanted && !state.stopping && !more;
            let left = PAUSE.saturating_sub(last_moved.elapsed());
            let (mut state, _) =
                signal.changed.wait_timeout_while(state, left, idle).unwrap_or_else(PoisonError::into_inner);
            if state.given_up {
                return;
            }
            (std::mem::take(&mut state.wanted) || last_moved.elapsed() >= PAUSE, state.stopping)
        };
        // A database that does not survive the process need not be moved at its end.
        if !wanted && (!stopping || lock(&inner.commits).log.is_none()) {
            if stopping {
                return;
            }
            continue;
        }
        last_moved = Instant::now();
        let moved = inner.move_rows();
        if moved.is_ok()
            && !stopping
            && let Err(error) = inner.compact_if_worth().and_then(|()| inner.erase_if_owed())
            && !inner.stopping.load(Ordering::Relaxed)
        {
            tracing::warn!(%error, dir = %inner.dir.display(), "cannot remove unused signatures from the files");
        }
        let mut state = lock(&signal.state);
        if let Err(error) = moved {
            tracing::error!(%error, dir = %inner.dir.display(), "cannot move rows to the store; all further writes are refused");
            state.failed = Some(error);
        }
        signal.changed.notify_all();
        if stopping || state.failed.is_some() {
            return;
        }
    }
}

impl Inner {
    /// Moves the rows of all commits made so far.
    pub(super) fn move_rows(&self) -> Result<(), StoreError> {
        let mut moving = lock(&self.moving);
        let begun = {
            let commits = lock(&self.commits);
            if commits.failed {
                return Err(earlier_failure());
            }
            let begun = self.memtable_mut().begin_move();
            // Without a log, no commit has synced the signatures that the rows name.
            if commits.log.is_none() {
                self.signatures.write(true)?;
            }
            begun.map(|(rows, reached)| (rows, reached, self.signatures.checkpoints()))
        };
        let Some((rows, reached, signatures)) = begun else { return Ok(()) };
        let mut batch: Vec<Write> = Vec::with_capacity(BATCH_ROWS);
        for (key, row) in &*rows {
            // Most deleted rows never reached the store.
            if row.is_some() || self.rows.get(key)?.is_some() {
                batch.push((key.clone(), row.clone()));
            }
            if batch.len() == BATCH_ROWS {
                self.batch_gate.run_batch(|| self.rows.commit(std::mem::take(&mut batch)))?;
                std::thread::yield_now();
            }
        }
        self.batch_gate.run_batch(|| self.rows.commit(batch))?;
        // Until now, readers got these rows from memory.
        rows.keys().for_each(|key| self.row_cache.forget(key));
        self.rows.flush()?;
        let compacted_bytes = self.signatures.compacted_bytes();
        let checkpoint = Checkpoint { reached, signatures, compacted_bytes, ..moving.checkpoint.clone() };
        self.store_checkpoint(&mut moving, checkpoint)?;
        self.memtable_mut().end_move();
        Ok(())
    }

    /// Stores a checkpoint. Then removes replaced files and trims the log.
    pub(super) fn store_checkpoint(
        &self,
        moving: &mut MoveState,
        checkpoint: Checkpoint,
    ) -> Result<(), StoreError> {
        self.rows.commit(vec![checkpoint.write()?])?;
        self.rows.flush()?;
        let through = checkpoint.reached.position.index;
        moving.checkpoint = checkpoint;
        self.signatures.remove(&mut moving.replaced);
        if let Some(log) = &mut lock(&self.commits).log {
            log.trim(through, self.log_retention.min())?;
        }
        Ok(())
    }

    /// Moves all rows, including those of commits made meanwhile. The rows survive a crash on return.
    pub(super) fn move_all(&self) -> Result<(), StoreError> {
        self.signatures.write(true)?;
        while !self.memtable().is_empty() {
            self.move_rows()?;
        }
        Ok(())
    }
}

/// Chooses the id of a new log at random.
pub(super) fn new_log() -> LogId {
    LogId(random_number())
}
