//! Replicas of a range without a thread and a clock.
//!
//! The product's: [`Replica`] with its chain, its entries, its take-over and its commit, which a [`SimReplica`] only calls; it
//! waits for nothing, since its limit for an append is none. The simulation's: the disk of a replica, [`SimDisk`], which is
//! rows in memory and the positions that they are of; and the shared log, which comes from outside.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doppel_model::{Epoch, RangeId};
use doppel_protocol::{LogPosition, Settlement};
use doppel_shared_log::{Entry, Sequence, SharedLog};

use crate::ReplicaError;
use crate::log::{LogId, Payload, Position, SequencedPosition, SharedRecord};
use crate::replica::{Chain, Copies, EachCopied, Folded, Limits, Replica, Said, UnderWay, log_id, whole};
use crate::store::{Memory, Store, StoreError, Write};

/// Records of which a disk knows what they have changed.
const KEPT: usize = 60;

fn id_of(range: RangeId) -> LogId {
    log_id("simulation", range)
}

fn public(range: RangeId, Position { epoch, index, hash }: Position) -> LogPosition {
    LogPosition { log: id_of(range).0, epoch, index, hash }
}

/// The disk of a replica. It survives its process, but for the records that were copied last.
#[derive(Debug)]
pub struct SimDisk {
    range: RangeId,
    /// The range as the replica has it.
    pub rows: Memory,
    state: Mutex<Disk>,
}

#[derive(Debug, Default)]
struct Disk {
    /// The position of every record, and its place in the shared log.
    copied: Vec<(Position, u64)>,
    /// What the last records wrote, and what was there before.
    last: VecDeque<Change>,
    /// How many of them a crash may lose.
    unflushed: usize,
    /// A mistake: the position is on disk before the rows.
    position_first: bool,
    /// What was copied survives a crash at once.
    syncs: bool,
}

#[derive(Debug)]
struct Change {
    position: Position,
    /// The hash of the record before.
    previous: u128,
    /// What a take-over says; none in a commit.
    taker: Option<Vec<u8>>,
    writes: Vec<Write>,
    overwritten: Vec<Write>,
}

impl SimDisk {
    /// An empty one.
    #[must_use]
    pub fn new(range: RangeId, position_first: bool) -> Self {
        let state = Mutex::new(Disk { position_first, ..Disk::default() });
        Self { range, rows: Memory::default(), state }
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process dies: up to so many of the records that were copied since the last flush are lost.
    ///
    /// # Errors
    /// None that is known.
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

    /// A crash loses nothing of what was copied so far.
    pub fn flush(&self) {
        self.lock().unflushed = 0;
    }

    /// From now on what is copied survives a crash at once.
    pub fn set_syncs(&self) {
        self.lock().syncs = true;
    }

    /// The last record.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        public(self.range, self.lock().copied.last().map_or(Position::default(), |(position, _)| *position))
    }

    /// All records.
    #[must_use]
    pub fn records(&self) -> Vec<LogPosition> {
        self.lock().copied.iter().map(|(position, _)| public(self.range, *position)).collect()
    }

    /// What was written after a record, if that one counts and the log reaches back to it.
    #[must_use]
    pub fn written_since(&self, since: LogPosition) -> Option<Vec<Write>> {
        let disk = self.lock();
        let last = disk.last.iter().rev().take_while(|change| change.position.index > since.index);
        let last = disk.last.len() - last.count();
        let first = disk.copied.len() - (disk.last.len() - last);
        let found = first.checked_sub(1).map_or(Position::default(), |at| disk.copied[at].0);
        let is_it = public(self.range, found) == since;
        is_it.then(|| disk.last.range(last..).flat_map(|change| change.writes.clone()).collect())
    }
}

impl Copies for SimDisk {
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
        let (writes, taker) = match payload {
            Payload::Rows(rows) => (rows.into_owned(), None),
            Payload::TakeOver(taker) => (Vec::new(), Some(taker.into_owned())),
        };
        let overwritten = writes.iter().map(|(key, _)| Ok((key.clone(), self.rows.get(key)?)));
        let overwritten = overwritten.collect::<Result<_, StoreError>>()?;
        self.rows.commit(writes.clone())?;
        disk.copied.push((position, sequence));
        disk.last.push_back(Change { position, previous, taker, writes, overwritten });
        disk.unflushed = if disk.syncs { 0 } else { disk.unflushed + 1 };
        if disk.last.len() > KEPT {
            disk.last.pop_front();
            disk.unflushed = disk.unflushed.min(KEPT);
        }
        Ok(())
    }

    fn each_copied_after(
        &self,
        end: u64,
        each: &mut EachCopied<'_>,
    ) -> Result<Option<&'static str>, ReplicaError> {
        let disk = self.lock();
        let first = disk.copied.partition_point(|(_, sequence)| *sequence <= end);
        let before = disk.copied.len() - disk.last.len();
        let Some(skipped) = first.checked_sub(before) else { return Ok(Some("its changes are not kept")) };
        for (at, change) in (first..).zip(disk.last.range(skipped..)) {
            let (position, sequence) = at.checked_sub(1).map(|at| disk.copied[at]).unwrap_or_default();
            let Change { position: of, previous, taker, writes, .. } = change;
            let payload = match taker {
                Some(taker) => Payload::TakeOver(Cow::Owned(taker.clone())),
                None => Payload::Rows(Cow::Owned(writes.clone())),
            };
            let record =
                SharedRecord { position: *of, previous: *previous, sequence: disk.copied[at].1, payload };
            each(SequencedPosition { position, sequence }, record)?;
        }
        Ok(None)
    }
}

/// The process of a replica.
pub struct SimReplica {
    replica: Replica<SimDisk>,
    range: RangeId,
}

/// A commit of an owner that is not known to count yet.
pub struct SimCommit {
    commit: UnderWay,
    range: RangeId,
}

impl SimCommit {
    /// The position that it has if it counts.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        public(self.range, self.commit.position())
    }
}

impl SimReplica {
    /// Starts one, with entries of so many bytes of payload at most, whose commits are settled so.
    ///
    /// # Errors
    /// When the log does not answer, or has another record in the place of one that the disk has.
    pub fn open(
        range: RangeId,
        node: &str,
        log: Arc<dyn SharedLog>,
        disk: &Arc<SimDisk>,
        (part_bytes, settlement): (usize, Settlement),
    ) -> Result<Self, ReplicaError> {
        let nothing = Duration::ZERO;
        // A log that loses nothing is always the one that was read.
        let trusted = if settlement == Settlement::Log { Duration::MAX } else { nothing };
        let limits =
            Limits { append: nothing, part_bytes, settlement, lost: nothing, trusted, report_again: nothing };
        let (id, node, disk) = ((range, id_of(range)), node.to_owned(), Arc::clone(disk));
        Ok(Self { replica: Replica::open(limits, id, node, log, disk)?, range })
    }

    /// Copies some of what is new; whether there was anything.
    ///
    /// # Errors
    /// When the log does not answer.
    pub fn follow(&self) -> Result<bool, ReplicaError> {
        self.replica.follow()
    }

    /// Looks, as the owner, whether the log still has what was written, and puts back what it has lost.
    ///
    /// # Errors
    /// When the log does not answer, and when this process does not own the range any more.
    pub fn look(&self) -> Result<(), ReplicaError> {
        self.replica.look()
    }

    /// Says in the log that this node owns the range.
    ///
    /// # Errors
    /// When another node was first, or the log does not answer.
    pub fn take_over(&self) -> Result<Epoch, ReplicaError> {
        self.replica.take_over()
    }

    /// The epoch of the last owner that it has read of.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.replica.owner().0
    }

    /// Begins a commit as the owner of an epoch.
    ///
    /// # Errors
    /// When another node has taken over.
    pub fn begin(&self, epoch: Epoch, writes: Vec<Write>) -> Result<SimCommit, StoreError> {
        Ok(SimCommit { commit: self.replica.begin_commit(epoch, writes)?, range: self.range })
    }

    /// Goes on with a commit; false while it is not known whether it counts.
    ///
    /// # Errors
    /// When another node has taken over.
    pub fn go_on(&self, commit: &mut SimCommit) -> Result<bool, StoreError> {
        Ok(self.replica.try_commit(&mut commit.commit)?.is_none())
    }

    /// Whether a commit that counts is settled, as far as this process has heard.
    #[must_use]
    pub fn is_settled(&self, commit: &SimCommit) -> bool {
        self.replica.is_settled_now(commit.commit.position())
    }

    /// Whether all that the present owner began with is settled, as far as this process has heard.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.replica.has_begun_now()
    }
}

/// All that counts in a log, from its beginning.
pub struct SimFold {
    range: RangeId,
    chain: Chain,
}

impl fmt::Debug for SimFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chain.fmt(f)
    }
}

impl SimFold {
    #[must_use]
    pub fn new(range: RangeId) -> Self {
        Self { range, chain: Chain::behind(id_of(range), Position::default(), Sequence(0)) }
    }

    /// Takes the next entry; the position of the record that counts with it.
    pub fn take(&mut self, entry: &Entry) -> Option<LogPosition> {
        match self.chain.take(entry) {
            Folded::Record(record) => Some(public(self.range, record.position)),
            Folded::Part | Folded::Void => None,
        }
    }

    /// The rows of an entry that is a commit by itself, whether or not it counts: for a planted mistake.
    #[must_use]
    pub fn rows_of(&self, entry: &Entry) -> Option<Vec<Write>> {
        match whole(id_of(self.range), &entry.bytes)? {
            Said::Rows(rows) => Some(rows),
            Said::TakeOver { .. } => None,
        }
    }
}
