//! The rows of the ranges, in memory. An unreplicated range has a store of its own, which loses unflushed
//! commits in a crash. The rows of a replicated range are those that its present owner has copied from the
//! log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use doppel_model::{Epoch, PageId, RangeId};
use doppel_protocol::{LogPosition, RangeMap};
use doppel_tier1::simulation::{Intercept, Intercepted, SimCommit, SimDisk, SimReplica, page_of_row};
use doppel_tier1::{JoinedStore, Memory, ReplicaError, Store, StoreError, Write};

use super::disk::Disk;
use super::violation::Checked;

/// The store of one range.
pub(crate) enum RangeStore {
    Alone(Box<Intercepted<Flushes>>),
    Replicated(Box<Present>),
}

/// Error of a commit that counts and is not settled yet.
pub(crate) const NO_STANDBY: &str = "no standby has it";

/// The state of the present owner of a range, or of the last one.
pub(crate) struct Present {
    range: RangeId,
    state: Mutex<(Arc<SimDisk>, Option<Ownership>)>,
    /// Position of the last requested commit, if it was begun.
    begun: Mutex<Option<LogPosition>>,
    /// A planted mistake: rows are stored before their record is in the log.
    stores_first: bool,
    /// Whether settlement needs a standby.
    needs_standby: bool,
}

/// An owner of a range.
pub(crate) struct Ownership {
    pub(crate) node: usize,
    pub(crate) replica: Arc<SimReplica>,
    pub(crate) epoch: Epoch,
    /// The unfinished commit.
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

    /// Lets the owner, if there is one, check that the log has what it has written.
    pub(crate) fn look(&self) -> Option<Result<(), ReplicaError>> {
        self.lock().1.as_ref().map(|owner| owner.replica.check_log())
    }

    /// Position of the commit that was requested last. `None` if the owner was deposed before it began.
    pub(crate) fn begun(&self) -> Option<LogPosition> {
        *self.begun.lock().unwrap()
    }

    /// Makes a commit. If one is under way, resumes it; `writes` must be the same then.
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

    /// Whether the range has an owner. An unreplicated range always has one.
    pub(crate) fn is_owned(&self) -> bool {
        self.present().is_none_or(|present| present.owner().is_some())
    }

    /// Whether a call of the range's files has failed.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self, Self::Alone(store) if store.by.disk().is_some_and(|disk| disk.has_failed()))
    }

    /// Stops the failures of the range's files, or lets calls fail again.
    pub(crate) fn calm(&self, is_calm: bool) {
        if let Self::Alone(store) = self
            && let Some(mut disk) = store.by.disk()
        {
            disk.calm(is_calm);
        }
    }

    /// Position of the last record in the range's log.
    pub(crate) fn position(&self) -> LogPosition {
        match self {
            Self::Alone(store) => LogPosition { log: 1, epoch: 1, index: store.by.commits(), hash: 0 },
            Self::Replicated(present) => present.disk().position(),
        }
    }

    /// The pages that were changed after a record. `None` if the log no longer reaches back to it.
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

/// Durability of an unreplicated range: flushes at every commit, unless it is lazy.
#[derive(Default)]
pub(crate) struct Flushes {
    /// For each commit since the last flush, the rows that it replaced.
    unflushed: Mutex<Vec<Vec<Write>>>,
    /// Number of commits per flush. `None` if every commit is flushed.
    lazy: Option<usize>,
    /// The log of the range.
    log: Mutex<Changes>,
    /// The files of the range, if it has any.
    disk: Option<Mutex<Disk>>,
}

/// The number of all commits, and the writes of the last ones.
type Changes = (u64, VecDeque<Vec<Write>>);

/// Number of commits that the log keeps.
const KEPT: usize = 60;

impl Flushes {
    pub(crate) fn new(lazy: Option<usize>, disk: Option<Disk>) -> Self {
        Self { lazy, disk: disk.map(Mutex::new), ..Self::default() }
    }

    /// The files of the range.
    pub(crate) fn disk(&self) -> Option<MutexGuard<'_, Disk>> {
        self.disk.as_ref().map(|disk| disk.lock().unwrap())
    }

    /// Writes the rows with which the range begins.
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

    /// Number of commits so far.
    pub(crate) fn commits(&self) -> u64 {
        self.log.lock().unwrap().0
    }

    /// The writes after the first `commits` commits. `None` if the log no longer reaches back to them.
    pub(crate) fn written_since(&self, commits: u64) -> Option<Vec<Write>> {
        let log = self.log.lock().unwrap();
        let since = usize::try_from(log.0.checked_sub(commits)?).ok()?;
        let first = log.1.len().checked_sub(since)?;
        Some(log.1.range(first..).flatten().cloned().collect())
    }

    /// Kills the range. Commits that were not flushed are lost. Returns whether a failed commit counts.
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
    /// All stores as one store, for reading.
    pub(crate) fn joined(&self) -> JoinedStore<'_> {
        JoinedStore::new(self.map, self.stores.iter().map(|store| &**store))
    }
}
