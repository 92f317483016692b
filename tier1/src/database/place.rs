//! Where a database is open, and how it is opened anew in place after a disk was full.
//!
//! Everybody who has the [`Database`](super::Database) goes on with it: what they hold is the place, and not what is open there.
//!
//! Invariants:
//! - opened anew it has what was acknowledged, and nothing of the commit that failed;
//! - whatever takes long is done while others read, or while no lock is held that they want: whoever reads waits for a bounded
//!   time, and is then told why.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use super::changes::KeptAfter;
use super::mover::Mover;
use super::{Inner, lock};
use crate::log::{Local, Position};
use crate::store::{StoreError, Trouble};

/// How long the thread that moves rows is waited for. Others read meanwhile.
const MOVER: Duration = Duration::from_secs(1);

/// How long those are waited for that read in a database that is to be opened anew. Nobody begins to read meanwhile.
const READERS: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(5);

/// How long a reader waits for a database that is being opened anew.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens the files.
pub(super) type Open = dyn Fn() -> Result<Inner, StoreError> + Send + Sync;

pub(super) struct Place {
    state: RwLock<State>,
    /// Whether it is being opened anew, and news of the end of that.
    is_opening: Mutex<bool>,
    opened: Condvar,
    /// Held by the one who opens it anew.
    reopening: Mutex<()>,
    pub(super) kept_after: Arc<KeptAfter>,
    open: Box<Open>,
}

enum State {
    Open(Arc<Live>),
    /// It is being opened anew.
    Opening,
    /// It could not be opened.
    Closed(Acknowledged, StoreError),
}

/// What is open, and the thread that moves its rows.
pub(super) struct Live {
    pub(super) inner: Arc<Inner>,
    pub(super) mover: Mover,
    /// Those that read for as long as they want.
    pub(super) long_reads: AtomicUsize,
}

/// How far a database was when it was closed.
#[derive(Clone, Copy)]
struct Acknowledged {
    last: Position,
    epoch: u64,
}

impl Place {
    pub(super) fn open(open: Box<Open>) -> Result<Self, StoreError> {
        let inner = open()?;
        let kept_after = Arc::clone(&inner.kept_after);
        let state = RwLock::new(State::Open(Live::start(inner)?));
        let (is_opening, opened, reopening) = Default::default();
        Ok(Self { state, is_opening, opened, reopening, kept_after, open })
    }

    /// What is open.
    ///
    /// # Errors
    /// [`StoreError::Reopening`] when it is being opened anew for longer than a reader waits, or is to be tried again. Where the
    /// disk is full, or what is on it damaged, that.
    pub(super) fn live(&self) -> Result<Arc<Live>, StoreError> {
        let mut deadline = None;
        loop {
            match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
                State::Open(live) => return Ok(Arc::clone(live)),
                State::Closed(_, failure) => return Err(as_read(failure)),
                State::Opening => {}
            }
            let deadline = deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            let left = deadline.saturating_duration_since(Instant::now());
            let is_opening = lock(&self.is_opening);
            let waited = self.opened.wait_timeout_while(is_opening, left, |is_opening| *is_opening);
            if waited.unwrap_or_else(PoisonError::into_inner).1.timed_out() {
                return Err(StoreError::Reopening);
            }
        }
    }

    /// Closes what is open and opens it from its files, as a start does.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when somebody reads for too long, or rows are being moved; it stays open then. Otherwise it may be
    /// closed. It is tried again by another call.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let _alone = lock(&self.reopening);
        let acknowledged = self.close()?;
        let (state, reopened) = match self.open_behind(acknowledged) {
            Ok(live) => (State::Open(live), Ok(())),
            Err(error) => (State::Closed(acknowledged, error.clone()), Err(error)),
        };
        self.put(state);
        reopened
    }

    /// Ends what is open, and has readers wait. Nothing of a commit that failed is in the log then.
    fn close(&self) -> Result<Acknowledged, StoreError> {
        let live = match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Open(live) => Ok(Arc::clone(live)),
            State::Closed(acknowledged, _) => Err(*acknowledged),
            State::Opening => return Err(StoreError::Busy),
        };
        let mut live = match live {
            Ok(live) => live,
            Err(acknowledged) => {
                self.put(State::Opening);
                return Ok(acknowledged);
            }
        };
        let acknowledged = {
            let mut commits = lock(&live.inner.commits);
            // Nothing more is committed here.
            commits.failed = true;
            commits.log.as_mut().map_or(Ok(()), Local::cut_failed)?;
            Acknowledged { last: commits.last, epoch: commits.epoch }
        };
        live.mover.give_up();
        // Where a write of the engine has failed, this alone wakes a thread that waits for its end.
        let _ = live.inner.rows.flush();
        let deadline = Instant::now() + MOVER;
        while !live.mover.has_ended() {
            pause_until(deadline)?;
        }
        // Others are not to wait for them.
        let deadline = Instant::now() + READERS;
        while live.long_reads.load(Ordering::Acquire) > 0 {
            pause_until(deadline)?;
        }
        self.put(State::Opening);
        let deadline = Instant::now() + READERS;
        loop {
            match Arc::try_unwrap(live) {
                Ok(closed) => {
                    drop(closed);
                    return Ok(acknowledged);
                }
                Err(read) => live = read,
            }
            if let Err(busy) = pause_until(deadline) {
                self.put(State::Open(live));
                return Err(busy);
            }
        }
    }

    /// Opens the files of a database that was closed, which has the same owner.
    fn open_behind(&self, Acknowledged { last, epoch }: Acknowledged) -> Result<Arc<Live>, StoreError> {
        let mut inner = (self.open)()?;
        inner.kept_after = Arc::clone(&self.kept_after);
        {
            let commits = inner.commits.get_mut().unwrap_or_else(PoisonError::into_inner);
            let found = commits.last;
            if found != last {
                let (found, expected) = (found.index, last.index);
                let what = format!("its log ends with record {found}, and record {expected} was the last");
                return Err(StoreError::damaged_file(&inner.dir, what));
            }
            commits.epoch = epoch;
        }
        Live::start(inner)
    }

    /// Closes it as if it could not be opened anew on a full disk.
    #[cfg(test)]
    pub(super) fn close_as_full(&self) {
        let acknowledged = self.close().unwrap();
        self.put(State::Closed(acknowledged, StoreError::DiskFull));
    }

    fn put(&self, state: State) {
        // Whoever finds that it is being opened waits for the end of that, which is told afterwards.
        let is_opening = matches!(state, State::Opening);
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

impl Live {
    fn start(inner: Inner) -> Result<Arc<Self>, StoreError> {
        let inner = Arc::new(inner);
        let mover = Mover::start(Arc::clone(&inner))?;
        Ok(Arc::new(Self { inner, mover, long_reads: AtomicUsize::new(0) }))
    }
}

/// What a reader is told of a database that could not be opened anew. It is tried again, and may be open then.
fn as_read(failure: &StoreError) -> StoreError {
    match failure.trouble() {
        Trouble::DiskFull | Trouble::Damage => failure.clone(),
        Trouble::Passing | Trouble::Failure => StoreError::Reopening,
    }
}

/// Waits for a moment; an error after the deadline.
fn pause_until(deadline: Instant) -> Result<(), StoreError> {
    if Instant::now() >= deadline {
        return Err(StoreError::Busy);
    }
    thread::sleep(LOOK);
    Ok(())
}
