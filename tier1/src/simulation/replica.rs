//! Replicas of a range without threads and clocks.
//!
//! A [`SimReplica`] wraps the product's [`Replica`] with its chain, entries, take-over, and commit. All time
//! limits are zero, so no call waits. The simulation supplies the shared log and the disk. A [`SimDisk`]
//! keeps the rows and the positions of the copied records in memory.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doppel_model::{Epoch, RangeId};
use doppel_protocol::{LogPosition, Settlement};
use doppel_shared_log::{LogEntry, Sequence, SharedLog};

use crate::ReplicaError;
use crate::replica::{
    Chain, CommitInProgress, FoldedEntry, RecordBody, RecordVisitor, Replica, ReplicaLimits, ReplicaStore,
    decode_single_part, log_id,
};
use crate::storage::log::{LogId, Payload, Position, SequencedPosition, SharedRecord};
use crate::storage::store::{Memory, Store, StoreError, Write};

/// Number of last records whose changes a disk keeps.
const CHANGES_KEPT: usize = 60;

fn id_of(range: RangeId) -> LogId {
    log_id("simulation", range)
}

fn public(range: RangeId, Position { epoch, index, hash }: Position) -> LogPosition {
    LogPosition { log: id_of(range).0, epoch, index, hash }
}

/// The disk of a replica. It survives the process, except for the last copied records.
#[derive(Debug)]
pub struct SimDisk {
    range: RangeId,
    /// Rows of the range as of the last copied record.
    pub rows: Memory,
    state: Mutex<DiskState>,
}

#[derive(Debug, Default)]
struct DiskState {
    /// Position of every copied record, and its sequence number in the shared log.
    copied: Vec<(Position, u64)>,
    /// Changes by the last records.
    last: VecDeque<RecordChange>,
    /// Number of last records that a crash may lose.
    unflushed: usize,
    /// Planted mistake: the disk stores the position of a record before its rows.
    position_first: bool,
    /// Copied records survive a crash at once.
    syncs: bool,
}

#[derive(Debug)]
struct RecordChange {
    position: Position,
    /// Hash of the previous record.
    previous: u128,
    /// Encoded payload if the record is a take-over; `None` for a commit.
    take_over: Option<Vec<u8>>,
    writes: Vec<Write>,
    /// Writes that restore the rows from before the record.
    overwritten: Vec<Write>,
}

impl SimDisk {
    /// Creates an empty disk. `position_first` plants a mistake: a crash loses rows but not their position.
    #[must_use]
    pub fn new(range: RangeId, position_first: bool) -> Self {
        let state = Mutex::new(DiskState { position_first, ..DiskState::default() });
        Self { range, rows: Memory::default(), state }
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Simulates a crash of the process. The disk loses up to `lost` of the records that were copied since
    /// the last flush.
    ///
    /// # Errors
    /// If the rows cannot be written; in memory this does not happen.
    pub fn crash(&self, lost: usize) -> Result<(), StoreError> {
        let disk = &mut *self.lock();
        for _ in 0..lost.min(disk.unflushed) {
            let Some(change) = disk.last.pop_back() else { break };
            self.rows.commit(change.overwritten)?;
            if !disk.position_first {
                disk.copied.pop();
            }
        }
        disk.unflushed = 0;
        Ok(())
    }

    /// Makes all records copied so far survive a crash.
    pub fn flush(&self) {
        self.lock().unflushed = 0;
    }

    /// Makes every record copied from now on survive a crash at once.
    pub fn set_syncs(&self) {
        self.lock().syncs = true;
    }

    /// Position of the last copied record.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        public(self.range, self.lock().copied.last().map_or(Position::default(), |(position, _)| *position))
    }

    /// Positions of all copied records.
    #[must_use]
    pub fn records(&self) -> Vec<LogPosition> {
        self.lock().copied.iter().map(|(position, _)| public(self.range, *position)).collect()
    }

    /// Writes of all records after `since`. `None` if the disk has no record at that position, or no longer
    /// keeps the changes.
    #[must_use]
    pub fn written_since(&self, since: LogPosition) -> Option<Vec<Write>> {
        let disk = self.lock();
        let last = disk.last.iter().rev().take_while(|change| change.position.index > since.index);
        let last = disk.last.len() - last.count();
        let first = disk.copied.len() - (disk.last.len() - last);
        let found = first.checked_sub(1).map_or(Position::default(), |at| disk.copied[at].0);
        let is_found = public(self.range, found) == since;
        is_found.then(|| disk.last.range(last..).flat_map(|change| change.writes.clone()).collect())
    }
}

impl ReplicaStore for SimDisk {
    fn last_copied(&self) -> SequencedPosition {
        let (position, sequence) = self.lock().copied.last().copied().unwrap_or_default();
        SequencedPosition { position, sequence }
    }

    fn copy(&self, copied: SharedRecord<'_>) -> Result<(), StoreError> {
        let SharedRecord { position, previous, sequence, payload } = copied;
        let mut disk = self.lock();
        let (last, at) = disk.copied.last().copied().unwrap_or_default();
        if previous != last.hash || position.index != last.index + 1 || sequence <= at {
            return Err(StoreError::Engine(format!("{position:?} does not continue {last:?}")));
        }
        let (writes, take_over) = match payload {
            Payload::Rows(rows) => (rows.into_owned(), None),
            Payload::TakeOver(payload) => (Vec::new(), Some(payload.into_owned())),
        };
        let overwritten = writes.iter().map(|(key, _)| Ok((key.clone(), self.rows.get(key)?)));
        let overwritten = overwritten.collect::<Result<_, StoreError>>()?;
        self.rows.commit(writes.clone())?;
        disk.copied.push((position, sequence));
        disk.last.push_back(RecordChange { position, previous, take_over, writes, overwritten });
        disk.unflushed = if disk.syncs { 0 } else { disk.unflushed + 1 };
        if disk.last.len() > CHANGES_KEPT {
            disk.last.pop_front();
            disk.unflushed = disk.unflushed.min(CHANGES_KEPT);
        }
        Ok(())
    }

    fn records_after(
        &self,
        end: u64,
        each: &mut RecordVisitor<'_>,
    ) -> Result<Option<&'static str>, ReplicaError> {
        let disk = self.lock();
        let first = disk.copied.partition_point(|(_, sequence)| *sequence <= end);
        let before = disk.copied.len() - disk.last.len();
        let Some(skipped) = first.checked_sub(before) else { return Ok(Some("its changes are not kept")) };
        for (at, change) in (first..).zip(disk.last.range(skipped..)) {
            let (position, sequence) = at.checked_sub(1).map(|at| disk.copied[at]).unwrap_or_default();
            let RecordChange { position: own, previous, take_over, writes, .. } = change;
            let payload = match take_over {
                Some(payload) => Payload::TakeOver(Cow::Owned(payload.clone())),
                None => Payload::Rows(Cow::Owned(writes.clone())),
            };
            let record =
                SharedRecord { position: *own, previous: *previous, sequence: disk.copied[at].1, payload };
            each(SequencedPosition { position, sequence }, record)?;
        }
        Ok(None)
    }
}

/// A replica as its process runs it.
pub struct SimReplica {
    replica: Replica<SimDisk>,
    range: RangeId,
}

/// A commit of an owner that is not yet known to count.
pub struct SimCommit {
    commit: CommitInProgress,
    range: RangeId,
}

impl SimCommit {
    /// Position of the commit's record, if the record counts.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        public(self.range, self.commit.position())
    }
}

impl SimReplica {
    /// Opens the replica of a node. Its entries have at most `part_bytes` bytes of payload.
    ///
    /// # Errors
    /// If the log does not answer, or contradicts the records on the disk.
    pub fn open(
        range: RangeId,
        node: &str,
        log: Arc<dyn SharedLog>,
        disk: &Arc<SimDisk>,
        (part_bytes, settlement): (usize, Settlement),
    ) -> Result<Self, ReplicaError> {
        let nothing = Duration::ZERO;
        // With settlement `log` the simulated log loses nothing, so the owner may always trust it.
        let trusted = if settlement == Settlement::Log { Duration::MAX } else { nothing };
        let limits = ReplicaLimits {
            append_retry: nothing,
            part_bytes,
            settlement,
            tail_loss_grace: nothing,
            trusted_for: trusted,
            report_interval: nothing,
        };
        let (id, node, disk) = ((range, id_of(range)), node.to_owned(), Arc::clone(disk));
        Ok(Self { replica: Replica::open(limits, id, node, log, disk)?, range })
    }

    /// Copies new records of the log. Returns whether there were new entries.
    ///
    /// # Errors
    /// If the log does not answer or contradicts the copied records.
    pub fn follow(&self) -> Result<bool, ReplicaError> {
        self.replica.follow()
    }

    /// Verifies, as the owner, that the log still has all written records, and puts lost records back.
    ///
    /// # Errors
    /// If the log does not answer, or this process no longer owns the range.
    pub fn check_log(&self) -> Result<(), ReplicaError> {
        self.replica.check_log()
    }

    /// Appends a take-over, which makes this node the owner of the range.
    ///
    /// # Errors
    /// If another node takes over first, or the log does not answer.
    pub fn take_over(&self) -> Result<Epoch, ReplicaError> {
        self.replica.take_over()
    }

    /// Epoch of the last record that was copied.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.replica.owner().0
    }

    /// Begins a commit as the owner of `epoch`. Appends nothing yet.
    ///
    /// # Errors
    /// If another node has taken over.
    pub fn begin_commit(&self, epoch: Epoch, writes: Vec<Write>) -> Result<SimCommit, StoreError> {
        Ok(SimCommit { commit: self.replica.begin_commit(epoch, writes)?, range: self.range })
    }

    /// Appends the remaining parts of a commit. Returns whether the commit is known to count.
    ///
    /// # Errors
    /// If another node has taken over.
    pub fn advance_commit(&self, commit: &mut SimCommit) -> Result<bool, StoreError> {
        Ok(self.replica.try_commit(&mut commit.commit)?.is_none())
    }

    /// Whether a commit that counts is known to be settled.
    #[must_use]
    pub fn is_settled(&self, commit: &SimCommit) -> bool {
        self.replica.is_settled_now(commit.commit.position())
    }

    /// Whether the last record of this process as the owner, and with it every earlier record, is known to be
    /// settled.
    #[must_use]
    pub fn is_own_last_settled(&self) -> bool {
        self.replica.is_own_last_settled_now()
    }
}

/// The records that count in a log, from its beginning.
pub struct SimChain {
    range: RangeId,
    chain: Chain,
}

impl fmt::Debug for SimChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chain.fmt(f)
    }
}

impl SimChain {
    #[must_use]
    pub fn new(range: RangeId) -> Self {
        Self { range, chain: Chain::after(id_of(range), Position::default(), Sequence(0)) }
    }

    /// Folds the next entry. Returns the position of the record that the entry completes, if any.
    pub fn fold(&mut self, entry: &LogEntry) -> Option<LogPosition> {
        match self.chain.fold(entry) {
            FoldedEntry::Record(record) => Some(public(self.range, record.position)),
            FoldedEntry::Part | FoldedEntry::Void => None,
        }
    }

    /// Decodes the rows of an entry that contains a whole commit, whether or not the entry counts. A planted
    /// mistake needs it.
    #[must_use]
    pub fn decode_commit(&self, entry: &LogEntry) -> Option<Vec<Write>> {
        match decode_single_part(id_of(self.range), &entry.bytes)? {
            RecordBody::Rows(rows) => Some(rows),
            RecordBody::TakeOver { .. } => None,
        }
    }
}
