//! Where a database is open, and how it is opened anew in place after a disk was full.
//!
//! Everybody who has the [`Database`](super::Database) goes on with it: what they hold is the place, and not what is open there.
//!
//! Invariants:
//! - opened anew it has what was acknowledged, and nothing of the commit that failed;
//! - nobody reads meanwhile. When it cannot be opened, whoever reads is told that the disk is full, until it can.

use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::changes::KeptAfter;
use super::mover::Mover;
use super::{Inner, lock};
use crate::log::{Local, Position};
use crate::store::StoreError;

/// How long those are waited for that read in a database that is to be opened anew.
const READERS: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(5);

/// Opens the files.
pub(super) type Open = dyn Fn() -> Result<Inner, StoreError> + Send + Sync;

pub(super) struct Place {
    state: RwLock<State>,
    pub(super) kept_after: Arc<KeptAfter>,
    open: Box<Open>,
}

enum State {
    Open(Arc<Live>),
    Closed(Acknowledged),
}

/// What is open, and the thread that moves its rows.
pub(super) struct Live {
    pub(super) inner: Arc<Inner>,
    pub(super) mover: Mover,
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
        Ok(Self { state, kept_after, open })
    }

    /// What is open.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] when nothing is.
    pub(super) fn live(&self) -> Result<Arc<Live>, StoreError> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Open(live) => Ok(Arc::clone(live)),
            State::Closed(_) => Err(StoreError::DiskFull),
        }
    }

    /// Closes what is open and opens it from its files, as a start does.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when somebody reads for too long; it stays open then. Otherwise it may be closed. It is tried again by
    /// another call.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let acknowledged = close(&mut state)?;
        let mut inner = (self.open)()?;
        inner.kept_after = Arc::clone(&self.kept_after);
        {
            let commits = inner.commits.get_mut().unwrap_or_else(PoisonError::into_inner);
            let (found, expected) = (commits.last, acknowledged.last);
            if found != expected {
                let (found, expected) = (found.index, expected.index);
                let what = format!("its log ends with record {found}, and record {expected} was the last");
                return Err(StoreError::damaged_file(&inner.dir, what));
            }
            // It has the same owner.
            commits.epoch = acknowledged.epoch;
        }
        *state = State::Open(Live::start(inner)?);
        Ok(())
    }
}

impl Live {
    fn start(inner: Inner) -> Result<Arc<Self>, StoreError> {
        let inner = Arc::new(inner);
        let mover = Mover::start(Arc::clone(&inner))?;
        Ok(Arc::new(Self { inner, mover }))
    }
}

/// Ends what is open. Nothing of a commit that failed is in the log then.
fn close(state: &mut RwLockWriteGuard<'_, State>) -> Result<Acknowledged, StoreError> {
    let live = match &**state {
        State::Closed(acknowledged) => return Ok(*acknowledged),
        State::Open(live) => live,
    };
    let acknowledged = {
        let mut commits = lock(&live.inner.commits);
        // Nothing more is committed here.
        commits.failed = true;
        commits.log.as_mut().map_or(Ok(()), Local::cut_failed)?;
        Acknowledged { last: commits.last, epoch: commits.epoch }
    };
    let deadline = Instant::now() + READERS;
    while Arc::strong_count(live) > 1 {
        if Instant::now() >= deadline {
            return Err(StoreError::InUse);
        }
        thread::sleep(LOOK);
    }
    let closed = std::mem::replace(&mut **state, State::Closed(acknowledged));
    if let State::Open(live) = closed {
        live.mover.give_up();
        // Where a write of the engine has failed, this alone wakes a thread that waits for its end.
        let _ = live.inner.rows.flush();
        drop(live);
    }
    Ok(acknowledged)
}
