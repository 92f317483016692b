//! The handle of a database: closing the database and opening it again in place after the disk was full.
//!
//! Users keep their [`Database`](super::Database) meanwhile, because it holds the handle and not the open
//! files.
//!
//! Invariants:
//! - A reopened database has every acknowledged commit, and nothing of the commit that failed.
//! - Slow steps run while readers go on, or without a lock that readers need. So a reader waits for a bounded
//!   time and then gets an error.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use super::changes::LogRetention;
use super::mover::Mover;
use super::{Inner, lock};
use crate::storage::log::{FileLog, Position};
use crate::storage::store::{ErrorClass, StoreError};

/// Maximum time to wait for the thread that moves rows. Readers go on meanwhile.
const MOVER_WAIT_MAX: Duration = Duration::from_secs(1);

/// Maximum time to wait for readers before reopening. No new read starts meanwhile.
const READERS_WAIT_MAX: Duration = Duration::from_millis(500);
const POLL_PAUSE: Duration = Duration::from_millis(5);

/// Maximum time that a reader waits while the database is reopened.
const READ_WAIT_MAX: Duration = Duration::from_secs(2);

/// Opens the files of the database.
pub(super) type Open = dyn Fn() -> Result<Inner, StoreError> + Send + Sync;

pub(super) struct DatabaseHandle {
    state: RwLock<HandleState>,
    /// Whether the database is being reopened. `opened` signals the end.
    is_opening: Mutex<bool>,
    opened: Condvar,
    /// Locked by the thread that reopens the database.
    reopening: Mutex<()>,
    pub(super) log_retention: Arc<LogRetention>,
    open: Box<Open>,
}

enum HandleState {
    Open(Arc<OpenDatabase>),
    /// The database is being reopened.
    Opening,
    /// The last attempt to reopen the database failed.
    Closed(ClosingPosition, StoreError),
}

/// An open database, and the thread that moves its rows.
pub(super) struct OpenDatabase {
    pub(super) inner: Arc<Inner>,
    pub(super) mover: Mover,
    /// Number of readers that may take arbitrarily long.
    pub(super) long_reads: AtomicUsize,
}

/// End of the log when the database was closed.
#[derive(Clone, Copy)]
struct ClosingPosition {
    last: Position,
    epoch: u64,
}

impl DatabaseHandle {
    pub(super) fn open(open: Box<Open>) -> Result<Self, StoreError> {
        let inner = open()?;
        let log_retention = Arc::clone(&inner.log_retention);
        let state = RwLock::new(HandleState::Open(OpenDatabase::start(inner)?));
        let (is_opening, opened, reopening) = Default::default();
        Ok(Self { state, is_opening, opened, reopening, log_retention, open })
    }

    /// Returns the open database.
    ///
    /// # Errors
    /// Returns [`StoreError::Reopening`] if reopening takes longer than a reader waits, or will be tried
    /// again. If the disk is full or data is damaged, returns that error.
    pub(super) fn current(&self) -> Result<Arc<OpenDatabase>, StoreError> {
        let mut deadline = None;
        loop {
            match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
                HandleState::Open(current) => return Ok(Arc::clone(current)),
                HandleState::Closed(_, failure) => return Err(error_for_readers(failure)),
                HandleState::Opening => {}
            }
            let deadline = deadline.get_or_insert_with(|| Instant::now() + READ_WAIT_MAX);
            let left = deadline.saturating_duration_since(Instant::now());
            let is_opening = lock(&self.is_opening);
            let waited = self.opened.wait_timeout_while(is_opening, left, |is_opening| *is_opening);
            if waited.unwrap_or_else(PoisonError::into_inner).1.timed_out() {
                return Err(StoreError::Reopening);
            }
        }
    }

    /// Closes the database and opens it from its files, as a start does.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let _alone = lock(&self.reopening);
        let acknowledged = self.close()?;
        let (state, reopened) = match self.open_again(acknowledged) {
            Ok(current) => (HandleState::Open(current), Ok(())),
            Err(error) => (HandleState::Closed(acknowledged, error.clone()), Err(error)),
        };
        self.set_state(state);
        reopened
    }

    /// Closes the database, and makes readers wait. Afterwards the log contains nothing of a failed commit.
    fn close(&self) -> Result<ClosingPosition, StoreError> {
        let current = match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            HandleState::Open(current) => Ok(Arc::clone(current)),
            HandleState::Closed(acknowledged, _) => Err(*acknowledged),
            HandleState::Opening => return Err(StoreError::Busy),
        };
        let mut current = match current {
            Ok(current) => current,
            Err(acknowledged) => {
                self.set_state(HandleState::Opening);
                return Ok(acknowledged);
            }
        };
        let acknowledged = {
            let mut commits = lock(&current.inner.commits);
            // From here on every commit to the open database fails.
            commits.failed = true;
            commits.log.as_mut().map_or(Ok(()), FileLog::cut_failed)?;
            ClosingPosition { last: commits.last, epoch: commits.epoch }
        };
        current.mover.give_up();
        // If a write of sled has failed, only a flush wakes a thread that waits for that write.
        let _ = current.inner.rows.flush();
        let deadline = Instant::now() + MOVER_WAIT_MAX;
        while !current.mover.has_ended() {
            pause_until(deadline)?;
        }
        // Wait for slow readers while other readers can still go on.
        let deadline = Instant::now() + READERS_WAIT_MAX;
        while current.long_reads.load(Ordering::Acquire) > 0 {
            pause_until(deadline)?;
        }
        self.set_state(HandleState::Opening);
        let deadline = Instant::now() + READERS_WAIT_MAX;
        loop {
            match Arc::try_unwrap(current) {
                Ok(closed) => {
                    drop(closed);
                    return Ok(acknowledged);
                }
                Err(read) => current = read,
            }
            if let Err(busy) = pause_until(deadline) {
                self.set_state(HandleState::Open(current));
                return Err(busy);
            }
        }
    }

    /// Opens the files of a database that was closed. The owner stays the same.
    fn open_again(
        &self,
        ClosingPosition { last, epoch }: ClosingPosition,
    ) -> Result<Arc<OpenDatabase>, StoreError> {
        let mut inner = (self.open)()?;
        inner.log_retention = Arc::clone(&self.log_retention);
        {
            let commits = inner.commits.get_mut().unwrap_or_else(PoisonError::into_inner);
            let found = commits.last;
            if found != last {
                let (found, expected) = (found.index, last.index);
                let what =
                    format!("its log ends with record {found}, but the last commit was record {expected}");
                return Err(StoreError::damaged_file(&inner.dir, what));
            }
            commits.epoch = epoch;
        }
        OpenDatabase::start(inner)
    }

    /// Closes the database as if reopening it had failed because the disk is full.
    #[cfg(test)]
    pub(super) fn close_as_full(&self) {
        let acknowledged = self.close().unwrap();
        self.set_state(HandleState::Closed(acknowledged, StoreError::DiskFull));
    }

    fn set_state(&self, state: HandleState) {
        // A reader that finds the state `Opening` waits for the signal, which comes after the new state is
        // set.
        let is_opening = matches!(state, HandleState::Opening);
        if is_opening {
            *lock(&self.is_opening) = true;
        }
        let before =
            std::mem::replace(&mut *self.state.write().unwrap_or_else(PoisonError::into_inner), state);
        if !is_opening {
            *lock(&self.is_opening) = false;
            self.opened.notify_all();
        }
        drop(before);
    }
}

impl OpenDatabase {
    fn start(inner: Inner) -> Result<Arc<Self>, StoreError> {
        let inner = Arc::new(inner);
        let mover = Mover::start(Arc::clone(&inner))?;
        Ok(Arc::new(Self { inner, mover, long_reads: AtomicUsize::new(0) }))
    }
}

/// Returns the error for readers of a database that could not be reopened. A temporary error becomes
/// `Reopening`, because reopening will be tried again.
fn error_for_readers(failure: &StoreError) -> StoreError {
    match failure.class() {
        ErrorClass::DiskFull | ErrorClass::Damage => failure.clone(),
        ErrorClass::Transient | ErrorClass::Failure => StoreError::Reopening,
    }
}

/// Sleeps for a moment. Fails with `Busy` after the deadline.
fn pause_until(deadline: Instant) -> Result<(), StoreError> {
    if Instant::now() >= deadline {
        return Err(StoreError::Busy);
    }
    thread::sleep(POLL_PAUSE);
    Ok(())
}
