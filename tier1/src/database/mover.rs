//! Moves rows from memory to the store of rows, then trims the log, and compacts signatures.
//!
//! The order is what makes a crash at any moment harmless: the rows are on disk before the position says so, and the
//! position is before the log lets go of their records.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use doppel_model::random_number;
use doppel_threads::{GiveWay, give_way};

use super::position::Applied;
use super::{Inner, failed_before, id_of, is_signature, lock};
use crate::log::{Log as _, LogId};
use crate::signatures::{ClosedSegments, ReplacedFiles, UsedSignatures};
use crate::store::{StoreError, Write};

/// Rows are moved at the latest so long after their commit.
const PAUSE: Duration = Duration::from_secs(5);

/// Rows that the store takes at a time. It lets nobody read meanwhile, at 2 to 5 microseconds a row.
const BATCH_ROWS: usize = 200;

/// Used share of a segment below which it is compacted, in percent.
const USED_PERCENT: u64 = 50;

/// Bytes of files that were replaced before they go.
const REPLACED_BYTES: u64 = 256 << 20;

/// Rows of which the signatures are taken out of small segments at a time, at most.
const REWRITTEN_MAX: usize = 20_000;

/// Rows gone through for compaction between two looks whether there is much to move.
const ROWS_BETWEEN: u32 = 10_000;

/// The end of the keys of a range.
const END: &[u8] = &[0xff; 8];

/// What only one thread does at a time.
pub(super) struct Moving {
    pub(super) applied: Applied,
    /// Files that go with the next position.
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
    /// Nothing is moved any more.
    given_up: bool,
    failed: Option<StoreError>,
}

impl Mover {
    pub(super) fn start(inner: Arc<Inner>) -> Result<Self, StoreError> {
        let signal: Arc<Signal> = Arc::default();
        let work = {
            let (inner, signal) = (Arc::clone(&inner), Arc::clone(&signal));
            move || {
                // Commits wait for this thread, so they have to know.
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

    /// There is much to move.
    pub(super) fn wake(&self) {
        lock(&self.signal.state).wanted = true;
        self.signal.changed.notify_all();
    }

    /// Whether rows can be moved.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        lock(&self.signal.state).failed.clone().map_or(Ok(()), Err)
    }

    /// Leaves what is in memory to the log. The thread ends soon.
    pub(super) fn give_up(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
        let mut state = lock(&self.signal.state);
        (state.stopping, state.given_up) = (true, true);
        self.signal.changed.notify_all();
    }

    /// Whether the thread has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until a commit has room.
    pub(super) fn make_room(&self, inner: &Inner) -> Result<(), StoreError> {
        let mut state = lock(&self.signal.state);
        loop {
            if let Some(failure) = &state.failed {
                return Err(failure.clone());
            }
            if !inner.unmoved().is_full() {
                return Ok(());
            }
            if state.given_up {
                return Err(failed_before());
            }
            state = self.signal.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Mover {
    /// Moves what is left.
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
    give_way(GiveWay::ToAnswers);
    let (mut learned, mut last_moved) = (None, Instant::now());
    loop {
        // Whoever only reads has nothing to share, and the index reads the same files at a start.
        let more = lock(&inner.commits).has_begun()
            && inner.signatures.learn_contents(&mut learned).unwrap_or_else(|error| {
                tracing::warn!(%error, "pages with the same content may be stored more than once");
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
        // What is thrown away with the process is not moved at its end.
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
            tracing::warn!(%error, dir = %inner.dir.display(), "signatures that nobody uses stay on disk");
        }
        let mut state = lock(&signal.state);
        if let Err(error) = moved {
            tracing::error!(%error, dir = %inner.dir.display(), "rows cannot be moved; no more is written");
            state.failed = Some(error);
        }
        signal.changed.notify_all();
        if stopping || state.failed.is_some() {
            return;
        }
    }
}

impl Inner {
    /// Moves the rows of all commits so far.
    pub(super) fn move_rows(&self) -> Result<(), StoreError> {
        let mut moving = lock(&self.moving);
        let begun = {
            let commits = lock(&self.commits);
            if commits.failed {
                return Err(failed_before());
            }
            let begun = self.unmoved_mut().begin_to_move();
            // What the rows name is on disk.
            if commits.log.is_none() {
                self.signatures.write(true)?;
            }
            begun.map(|(rows, reached)| (rows, reached, self.signatures.checkpoints()))
        };
        let Some((rows, reached, signatures)) = begun else { return Ok(()) };
        let mut batch: Vec<Write> = Vec::with_capacity(BATCH_ROWS);
        for (key, row) in &*rows {
            // Most rows that are deleted never got there.
            if row.is_some() || self.rows.get(key)?.is_some() {
                batch.push((key.clone(), row.clone()));
            }
            if batch.len() == BATCH_ROWS {
                self.turns.write(|| self.rows.commit(std::mem::take(&mut batch)))?;
                std::thread::yield_now();
            }
        }
        self.turns.write(|| self.rows.commit(batch))?;
        // Until here they were read from memory.
        rows.keys().for_each(|key| self.row_cache.forget(key));
        self.rows.flush()?;
        let compacted_bytes = self.signatures.compacted_bytes();
        let applied = Applied { reached, signatures, compacted_bytes, ..moving.applied.clone() };
        self.note(&mut moving, applied)?;
        self.unmoved_mut().moved();
        Ok(())
    }

    /// The store of rows has everything up to a position.
    pub(super) fn note(&self, moving: &mut Moving, applied: Applied) -> Result<(), StoreError> {
        self.rows.commit(vec![applied.write()?])?;
        self.rows.flush()?;
        let through = applied.reached.position.index;
        moving.applied = applied;
        self.signatures.remove(&mut moving.replaced);
        if let Some(log) = &mut lock(&self.commits).log {
            log.trim(through, self.kept_after.least())?;
        }
        Ok(())
    }

    /// Moves everything; it survives a crash then.
    pub(super) fn move_all(&self) -> Result<(), StoreError> {
        self.signatures.write(true)?;
        while !self.unmoved().is_empty() {
            self.move_rows()?;
        }
        Ok(())
    }

    fn compact_if_worth(&self) -> Result<(), StoreError> {
        if self.signatures.wants_compaction() { self.compact(USED_PERCENT).map(drop) } else { Ok(()) }
    }

    /// Compacts segments of which less than `percent` is used. Whether something of the last one is not, which commits write
    /// to.
    pub(super) fn compact(&self, percent: u64) -> Result<bool, StoreError> {
        let closed = {
            // No commit is under way that has an id of a closed segment and is not yet to be seen.
            let _commits = lock(&self.commits);
            self.signatures.close_segments()
        };
        // A start reads the log from the moved rows on, and wants the segments that its records name. So no record behind
        // them may name one that is compacted away, though no row may name it any more.
        let moved = self.move_set_aside().and_then(|()| self.move_rows());
        let used = match moved.and_then(|()| self.find_used(&closed)) {
            Ok(used) => used,
            Err(error) => {
                self.signatures.end_compaction();
                // It would be found again after the next move.
                self.signatures.note_unused(0);
                return Err(error);
            }
        };
        let has_unused = closed.has_unused(&used);
        let mut between = |replaced: &mut ReplacedFiles| {
            if replaced.bytes() >= REPLACED_BYTES {
                self.let_go(std::mem::take(replaced))?;
            }
            self.go_on()
        };
        let (replaced, compacted) = self.signatures.compact(closed, used, percent, &mut between);
        self.let_go(replaced)?;
        compacted.map(|()| has_unused)
    }

    /// Moves the rows of a move that has failed. Those of later commits are still to be moved.
    fn move_set_aside(&self) -> Result<(), StoreError> {
        if self.unmoved().has_set_aside() { self.move_rows() } else { Ok(()) }
    }

    /// Goes through the rows. Where there are many small segments, what rows name of them is written to the last one.
    fn find_used(&self, closed: &ClosedSegments) -> Result<UsedSignatures, StoreError> {
        let (mut used, mut rows) = (UsedSignatures::default(), 0_u32);
        let small = self.signatures.small_segments(closed);
        let mut in_small: Vec<Vec<u8>> = Vec::new();
        self.raw_range(&[], END, &mut |key, row| {
            if is_signature(key) {
                let id = id_of(key, row)?;
                if small.contains(&id.segment) && in_small.len() <= REWRITTEN_MAX {
                    in_small.push(key.to_owned());
                }
                used.add(id);
            }
            rows = rows.wrapping_add(1);
            if rows.is_multiple_of(ROWS_BETWEEN) {
                self.go_on()?;
            }
            Ok(true)
        })?;
        if !small.is_empty() && in_small.len() <= REWRITTEN_MAX {
            self.rewrite(&in_small, &small)?;
            // The rows on disk name nothing in them then.
            self.move_rows()?;
            small.iter().for_each(|segment| used.forget(*segment));
        }
        Ok(used)
    }

    /// Writes signatures anew that are in these segments, which are closed, for the rows that still name them. The log does not
    /// say so: other replicas have other segments.
    fn rewrite(&self, keys: &[Vec<u8>], segments: &BTreeSet<u32>) -> Result<(), StoreError> {
        let mut rewritten = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            if at % BATCH_ROWS == 0 {
                self.go_on()?;
            }
            let id = self.row(key, false)?.map(|row| id_of(key, &row)).transpose()?;
            if let Some(id) = id.filter(|id| segments.contains(&id.segment)) {
                rewritten.push((key, id, self.signatures.add(&self.signatures.read(id)?)?));
            }
        }
        if rewritten.is_empty() {
            return Ok(());
        }
        self.signatures.write(true)?;
        // A start cuts off what is neither noted nor named by the log, so it is noted before a row names it.
        self.let_go(ReplacedFiles::default())?;
        for some in rewritten.chunks(BATCH_ROWS) {
            // No commit gives the pages other contents meanwhile.
            let commits = lock(&self.commits);
            if commits.failed {
                return Err(failed_before());
            }
            let mut writes: Vec<Write> = Vec::new();
            for (key, old, new) in some {
                let now = self.row(key, false)?.map(|row| id_of(key, &row)).transpose()?;
                if now == Some(*old) {
                    writes.push(((*key).clone(), Some(new.to_bytes().to_vec())));
                }
            }
            self.unmoved_mut().insert(writes, commits.reached());
        }
        Ok(())
    }

    /// Has files go that were replaced.
    fn let_go(&self, replaced: ReplacedFiles) -> Result<(), StoreError> {
        let mut moving = lock(&self.moving);
        let signatures = {
            // What a commit under way has written is not on disk yet.
            let commits = lock(&self.commits);
            if commits.failed {
                return Err(failed_before());
            }
            self.signatures.checkpoints()
        };
        // Rows that are moved later name nothing in the files that go.
        let compacted_bytes = self.signatures.compacted_bytes();
        let applied = Applied { signatures, compacted_bytes, ..moving.applied.clone() };
        moving.replaced.extend(replaced);
        self.note(&mut moving, applied)
    }

    /// Moves rows where commits would have to wait. An error where the process stops.
    fn go_on(&self) -> Result<(), StoreError> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(StoreError::Engine("the process stops".to_owned()));
        }
        self.move_much()
    }

    /// Moves rows where commits would have to wait.
    fn move_much(&self) -> Result<(), StoreError> {
        if self.unmoved().is_large() { self.move_rows() } else { Ok(()) }
    }
}

/// The first position of a new log.
pub(super) fn new_log() -> LogId {
    LogId(random_number())
}
