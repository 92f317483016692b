//! The rows of the ranges, in memory. Those of a range alone are a store of its own, and what was not flushed is gone after a
//! crash; those of a replicated range are what its present owner has copied from the log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use doppel_model::{Epoch, PageId, RangeId};
use doppel_protocol::{LogPosition, RangeMap};
use doppel_tier1::simulation::{Intercept, Intercepted, SimCommit, SimDisk, SimReplica, page_of_row};
use doppel_tier1::{Joined, Memory, ReplicaError, Store, StoreError, Write};

use super::disk::Disk;
use super::violation::Checked;

/// The store of one range.
pub(crate) enum RangeStore {
    Alone(Box<Intercepted<Flushes>>),
    Replicated(Box<Present>),
}

/// Why a commit waits that counts and is not settled.
pub(crate) const NO_STANDBY: &str = "no standby has it";

/// What the present owner of a range has, or the last one had.
pub(crate) struct Present {
    range: RangeId,
    state: Mutex<(Arc<SimDisk>, Option<Ownership>)>,
    /// The last commit that was begun, if one was when it was last wanted.
    begun: Mutex<Option<LogPosition>>,
    /// A mistake: rows are stored before their record is in the log.
    stores_first: bool,
    /// A commit is settled when a standby has it.
    needs_standby: bool,
}

/// An owner of a range.
pub(crate) struct Ownership {
    pub(crate) node: usize,
    pub(crate) replica: Arc<SimReplica>,
    pub(crate) epoch: Epoch,
    /// The commit that is not known to count yet.
    pub(crate) commit: Option<SimCommit>,
}

impl Present {
    pub(crate) fn new(range: RangeId, stores_first: bool, needs_standby: bool) -> Self {
        let nobody = (Arc::new(SimDisk::new(range, false)), None);
        Self { range, state: Mutex::new(nobody), begun: Mutex::default(), stores_first, needs_standby }
    }

    fn lock(&self) -> MutexGuard<'_, (Arc<SimDisk>, Option<Ownership>)> {
        self.state.lock().unwrap()
    }

    pub(crate) fn begin(&self, disk: Arc<SimDisk>, owner: Ownership) {
        *self.lock() = (disk, Some(owner));
    }

    pub(crate) fn end(&self) -> Option<Ownership> {
        self.lock().1.take()
    }

    /// The node that owns the range.
    pub(crate) fn owner(&self) -> Option<usize> {
        self.lock().1.as_ref().map(|owner| owner.node)
    }

    pub(crate) fn disk(&self) -> Arc<SimDisk> {
        Arc::clone(&self.lock().0)
    }

    /// Whether a commit is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.lock().1.as_ref().is_some_and(|owner| owner.commit.is_some())
    }

    /// The owner, if there is one, looks whether the log has what it has written.
    pub(crate) fn look(&self) -> Option<Result<(), ReplicaError>> {
        self.lock().1.as_ref().map(|owner| owner.replica.check_log())
    }

    /// The commit that was wanted last; none where the owner was deposed before it began.
    pub(crate) fn begun(&self) -> Option<LogPosition> {
        *self.begun.lock().unwrap()
    }

    /// Makes a commit, or goes on with the one that is under way, which is the same then.
    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        *self.begun.lock().unwrap() = None;
        let (disk, owner) = &mut *self.lock();
        let owner = owner.as_mut().ok_or(StoreError::Deposed(self.range))?;
        if self.stores_first {
            disk.rows.commit(writes.clone())?;
        }
        let mut commit = match owner.commit.take() {
            Some(commit) => commit,
            None => owner.replica.begin_commit(owner.epoch, writes)?,
        };
        *self.begun.lock().unwrap() = Some(commit.position());
        let counts = owner.replica.advance_commit(&mut commit)?;
        if counts && (!self.needs_standby || owner.replica.is_settled(&commit)) {
            return Ok(());
        }
        owner.commit = Some(commit);
        if counts {
            return Err(StoreError::Engine(NO_STANDBY.to_owned()));
        }
        Err(StoreError::Engine("the log has not answered".to_owned()))
    }
}

impl RangeStore {
    /// The present owner of a replicated range.
    pub(crate) fn present(&self) -> Option<&Present> {
        if let Self::Replicated(present) = self { Some(present) } else { None }
    }

    /// Whether somebody answers for the range.
    pub(crate) fn is_owned(&self) -> bool {
        self.present().is_none_or(|present| present.owner().is_some())
    }

    /// Whether a call of its files has failed.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self, Self::Alone(store) if store.by.disk().is_some_and(|disk| disk.has_failed()))
    }

    /// No call of its files fails, or some do again.
    pub(crate) fn calm(&self, is_calm: bool) {
        if let Self::Alone(store) = self
            && let Some(mut disk) = store.by.disk()
        {
            disk.calm(is_calm);
        }
    }

    /// How far its log goes.
    pub(crate) fn position(&self) -> LogPosition {
        match self {
            Self::Alone(store) => LogPosition { log: 1, epoch: 1, index: store.by.commits(), hash: 0 },
            Self::Replicated(present) => present.disk().position(),
        }
    }

    /// The pages that were changed after a record, if the log reaches back to it.
    pub(crate) fn changed_since(&self, since: LogPosition) -> Option<Vec<PageId>> {
        let written = match self {
            Self::Alone(store) => store.by.written_since(since.index),
            Self::Replicated(present) => present.disk().written_since(since),
        };
        let mut pages: Vec<PageId> = written?.iter().filter_map(|(key, _)| page_of_row(key)).collect();
        pages.sort_unstable();
        pages.dedup();
        Some(pages)
    }
}

impl Store for RangeStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self {
            Self::Alone(store) => store.get(key),
            Self::Replicated(present) => present.disk().rows.get(key),
        }
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        match self {
            Self::Alone(store) => store.range(from, to, each),
            Self::Replicated(present) => present.disk().rows.range(from, to, each),
        }
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        match self {
            Self::Alone(store) => store.commit(writes),
            Self::Replicated(present) => present.commit(writes),
        }
    }
}

/// Flushes at every commit, unless it is lazy.
#[derive(Default)]
pub(crate) struct Flushes {
    /// What each commit since the last flush has overwritten.
    unflushed: Mutex<Vec<Vec<Write>>>,
    /// Commits to one flush.
    lazy: Option<usize>,
    /// The log of the range.
    log: Mutex<Changes>,
    /// The files of the range, where it has some.
    disk: Option<Mutex<Disk>>,
}

/// The number of all commits, and what the last of them wrote.
type Changes = (u64, VecDeque<Vec<Write>>);

/// Commits that the log reaches back.
const KEPT: usize = 60;

impl Flushes {
    pub(crate) fn new(lazy: Option<usize>, disk: Option<Disk>) -> Self {
        Self { lazy, disk: disk.map(Mutex::new), ..Self::default() }
    }

    /// The files of the range.
    pub(crate) fn disk(&self) -> Option<MutexGuard<'_, Disk>> {
        self.disk.as_ref().map(|disk| disk.lock().unwrap())
    }

    /// The range has these rows from its beginning on.
    pub(crate) fn begin(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        if let Some(mut disk) = self.disk() {
            disk.begin(writes.clone())?;
        }
        rows.commit(writes)
    }

    fn note(&self, writes: &[Write]) {
        let mut log = self.log.lock().unwrap();
        log.0 += 1;
        log.1.push_back(writes.to_vec());
        if log.1.len() > KEPT {
            log.1.pop_front();
        }
    }

    /// Commits so far.
    pub(crate) fn commits(&self) -> u64 {
        self.log.lock().unwrap().0
    }

    /// What was written after so many commits, if the log reaches back to them.
    pub(crate) fn written_since(&self, commits: u64) -> Option<Vec<Write>> {
        let log = self.log.lock().unwrap();
        let since = usize::try_from(log.0.checked_sub(commits)?).ok()?;
        let first = log.1.len().checked_sub(since)?;
        Some(log.1.range(first..).flatten().cloned().collect())
    }

    /// The range dies: commits that were not flushed are gone. Whether one counts that has failed.
    pub(crate) fn crash(&self, rows: &Memory) -> Checked<bool> {
        if let Some(mut disk) = self.disk() {
            let counts = disk.start(rows)?;
            if let Some(writes) = &counts {
                self.note(writes);
                rows.commit(writes.clone()).unwrap();
            }
            return Ok(counts.is_some());
        }
        for overwritten in self.unflushed.lock().unwrap().drain(..).rev() {
            rows.commit(overwritten).unwrap();
        }
        Ok(false)
    }
}

impl Intercept for Flushes {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        if let Some(mut disk) = self.disk() {
            disk.commit(&writes)?;
        }
        self.note(&writes);
        if let Some(every) = self.lazy {
            let before = writes.iter().map(|(key, _)| Ok((key.clone(), rows.get(key)?)));
            let mut unflushed = self.unflushed.lock().unwrap();
            unflushed.push(before.collect::<Result<_, StoreError>>()?);
            if unflushed.len() >= every {
                unflushed.clear();
            }
        }
        rows.commit(writes)
    }
}

/// The stores of all ranges.
pub(crate) struct AllStores {
    pub(crate) map: RangeMap,
    pub(crate) stores: Vec<Arc<RangeStore>>,
}

impl AllStores {
    /// As one, to read.
    pub(crate) fn joined(&self) -> Joined<'_> {
        Joined::new(self.map, self.stores.iter().map(|store| &**store))
    }
}
