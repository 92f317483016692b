//! The replicas of a range: their disks and processes over one log. [`SimReplica`] and all that it calls
//! belong to the product. This module decides who takes over and when, which clocks decide in the product.

use std::sync::{Arc, Mutex};

use doppel_model::{Epoch, RangeId};
use doppel_protocol::{LogPosition, Settlement};
use doppel_tier1::simulation::{SimCommit, SimDisk, SimReplica};
use doppel_tier1::{ReplicaError, Store};

use super::action::Plan;
use super::mistake::{Mistake, PlantedMistake};
use super::random::Random;
use super::shared_log::SimLog;
use super::store::Ownership;
use super::violation::{Checked, failed};

/// Maximal number of reads until a node has caught up.
const CATCH_UP: usize = 200;

/// How often standbys follow before an owner stops waiting for one of them.
pub(crate) const SETTLING: usize = 8;

/// Maximal number of records between two flushes of a disk.
const LAZY: usize = 8;

/// The replicas of one range.
pub(crate) struct Replicas {
    range: RangeId,
    pub(crate) log: SimLog,
    nodes: Vec<Node>,
    part_bytes: usize,
    settlement: Settlement,
    /// Whether a standby must copy the beginning of an ownership before any effect leaves.
    needs_standby: bool,
    /// Whether every living node answers a candidate.
    pub(crate) all_answer: bool,
    /// Commits that owners treated as settled. If the log loses nothing, only those since the last owner
    /// began.
    pub(crate) taken: Vec<LogPosition>,
    /// Randomness for choices that no action makes.
    pub(crate) random: Random,
    position_first: bool,
    counts_void: bool,
    is_hasty: bool,
}

struct Node {
    disk: Arc<SimDisk>,
    /// `None` while the node is dead, or could not start.
    replica: Option<Arc<SimReplica>>,
    /// Index of a record up to which the node copies the range from its owner, because its own data
    /// contradicted the log. Until then the node neither answers candidates nor takes over.
    copies: Option<u64>,
    /// A planted mistake: number of log entries that were searched for void commits.
    looked: usize,
}

impl Node {
    fn new(range: RangeId, position_first: bool, settlement: Settlement) -> Self {
        let disk = SimDisk::new(range, position_first);
        if settlement == Settlement::Standby {
            // A node reports only positions that are on its disk.
            disk.set_syncs();
        }
        Self { disk: Arc::new(disk), replica: None, copies: None, looked: 0 }
    }
}

/// The result of a call, or `None` if the log did not answer.
fn answered<T>(what: &'static str, called: Result<T, ReplicaError>) -> Checked<Option<T>> {
    match called {
        Ok(done) => Ok(Some(done)),
        Err(ReplicaError::Log(_) | ReplicaError::LostRace { .. } | ReplicaError::LostTail { .. }) => Ok(None),
        Err(error) => Err(failed(what)(error.into())),
    }
}

impl Replicas {
    pub(crate) fn new(range: RangeId, plan: &Plan, planted: &PlantedMistake) -> Self {
        let Plan { replicas: count, part_bytes, seed, loses_tail, .. } = *plan;
        let position_first = planted.is(Mistake::PositionBeforeRows);
        let settlement = if loses_tail { Settlement::Standby } else { Settlement::Log };
        Self {
            range,
            log: SimLog::new(range),
            nodes: (0..count).map(|_| Node::new(range, position_first, settlement)).collect(),
            part_bytes,
            settlement,
            needs_standby: loses_tail && !planted.is(Mistake::SettledBeforeStandby),
            all_answer: false,
            taken: Vec::new(),
            random: Random::new(seed.rotate_left(40) ^ u64::from(range.0)),
            position_first,
            counts_void: planted.is(Mistake::VoidRecordCounts),
            is_hasty: planted.is(Mistake::TwoAppendsUnderWay),
        }
    }

    /// Whether the log may lose its end.
    pub(crate) fn loses_tail(&self) -> bool {
        self.settlement == Settlement::Standby
    }

    /// Whether a commit of an owner is settled.
    pub(crate) fn has_settled(&self, owner: &SimReplica, commit: &SimCommit) -> bool {
        !self.needs_standby || owner.is_settled(commit)
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn disk(&self, node: usize) -> &Arc<SimDisk> {
        &self.nodes[node].disk
    }

    /// The process of a node, started if necessary. `None` if the log does not answer.
    fn open(&mut self, node: usize) -> Checked<Option<Arc<SimReplica>>> {
        if self.nodes[node].replica.is_none() {
            let (name, log) = (format!("node-{node}"), self.log.reached_by(node));
            let how = (self.part_bytes, self.settlement);
            let opened = SimReplica::open(self.range, &name, log, &self.nodes[node].disk, how);
            if self.is_void(opened.as_ref().err()) {
                self.copy_anew(node);
                return Ok(None);
            }
            self.nodes[node].replica = answered("a start of a replica", opened)?.map(Arc::new);
        }
        Ok(self.nodes[node].replica.clone())
    }

    /// Whether the data of a node was never settled, because the log continued without it.
    fn is_void(&self, error: Option<&ReplicaError>) -> bool {
        self.settlement == Settlement::Standby && matches!(error, Some(ReplicaError::Contradiction { .. }))
    }

    /// Lets a standby read to the end, as far as the log answers.
    pub(crate) fn catch_up(&mut self, node: usize) -> Checked {
        // Each turn may fail, so only the number of turns is limited.
        for _ in 0..CATCH_UP {
            if !self.follow(node)? {
                break;
            }
        }
        Ok(())
    }

    /// Lets one of these nodes follow, so that a commit may become settled.
    pub(crate) fn follow_one(&mut self, of: &[usize]) -> Checked {
        if of.is_empty() {
            return Ok(());
        }
        let node = of[self.random.below(of.len() as u64) as usize];
        self.catch_up(node)
    }

    /// Index of the last record on a node's disk.
    fn index(&self, node: usize) -> u64 {
        self.nodes[node].disk.position().index
    }

    /// Lets a node take over a log that may have lost entries. All other nodes, or all but one, must answer
    /// with their positions, and none may be ahead. Then one of them must copy the beginning of the
    /// ownership. Sleeping nodes do not answer.
    pub(crate) fn take_over_by_answers(
        &mut self,
        node: usize,
        asleep: &[usize],
    ) -> Checked<Option<Ownership>> {
        if self.settlement == Settlement::Log {
            return self.take_over(node, None);
        }
        let mut others: Vec<usize> =
            (0..self.count()).filter(|other| *other != node && !asleep.contains(other)).collect();
        for awake in (0..self.count()).filter(|awake| !asleep.contains(awake)) {
            if self.nodes[awake].copies.is_some() {
                self.catch_up(awake)?;
            }
        }
        others.retain(|other| self.nodes[*other].copies.is_none());
        if self.nodes[node].copies.is_some() {
            return Ok(None);
        }
        if !self.all_answer && !others.is_empty() && self.random.once_in(2) {
            others.remove(self.random.below(others.len() as u64) as usize);
        }
        if others.len() + 1 < self.settlement.answers(self.count()) {
            return Ok(None);
        }
        for other in &others {
            self.catch_up(*other)?;
        }
        self.catch_up(node)?;
        if others.iter().any(|other| self.index(*other) > self.index(node)) {
            return Ok(None);
        }
        let Some(owner) = self.take_over(node, None)? else { return Ok(None) };
        self.settled_beginning(owner, &others)
    }

    /// Waits until the beginning of an ownership is settled. If that does not happen, the owner dies.
    pub(crate) fn settled_beginning(
        &mut self,
        owner: Ownership,
        others: &[usize],
    ) -> Checked<Option<Ownership>> {
        let others: Vec<usize> = others.iter().copied().filter(|other| *other != owner.node).collect();
        for _ in 0..SETTLING {
            if !self.needs_standby || owner.replica.is_own_last_settled() {
                return Ok(Some(owner));
            }
            self.follow_one(&others)?;
        }
        self.crash(owner.node, 0)?;
        Ok(None)
    }

    /// Lets a replica read on. Returns whether there may be more to read.
    pub(crate) fn follow(&mut self, node: usize) -> Checked<bool> {
        let Some(replica) = self.open(node)? else { return Ok(false) };
        let followed = replica.follow();
        if self.is_void(followed.as_ref().err()) {
            self.copy_anew(node);
            return Ok(true);
        }
        let goes_on = answered("a replica", followed)?.unwrap_or(false);
        let index = self.index(node);
        self.nodes[node].copies.take_if(|needs| index >= *needs);
        let of = &mut self.nodes[node];
        if self.counts_void {
            let (rows, looked) = self.log.void_behind(of.looked);
            of.looked = looked;
            of.disk.rows.commit(rows).map_err(|e| failed("a commit")(e.into()))?;
        }
        Ok(goes_on)
    }

    /// Kills a process, and loses up to `lost` of its last records.
    pub(crate) fn crash(&mut self, node: usize, lost: usize) -> Checked {
        self.nodes[node].replica = None;
        self.nodes[node].disk.crash(lost.min(LAZY)).map_err(|e| failed("a crash")(e.into()))
    }

    pub(crate) fn flush(&self, node: usize) {
        self.nodes[node].disk.flush();
    }

    /// Replaces a node by one with an empty disk.
    pub(crate) fn wipe(&mut self, node: usize) {
        self.nodes[node] = Node::new(self.range, self.position_first, self.settlement);
    }

    /// Discards the data of a node that was never settled, so that the node copies what counts.
    fn copy_anew(&mut self, node: usize) {
        let counts = self.log.last().map_or(0, |last| last.index);
        self.wipe(node);
        self.nodes[node].copies = Some(counts);
    }

    /// Adds a node, and returns its number.
    pub(crate) fn add(&mut self) -> usize {
        self.nodes.push(Node::new(self.range, self.position_first, self.settlement));
        self.nodes.len() - 1
    }

    /// Removes the node that was added last.
    pub(crate) fn remove_last(&mut self) {
        self.nodes.pop();
    }

    /// Lets a node take over. A rival takes over between the node's last look at the log and its append.
    /// Returns the ownership that results.
    pub(crate) fn take_over(&mut self, node: usize, rival: Option<usize>) -> Checked<Option<Ownership>> {
        let Some(replica) = self.open(node)? else { return Ok(None) };
        let outcome: Arc<Mutex<Option<Result<Epoch, ReplicaError>>>> = Arc::default();
        let rival = rival.map(|rival| Ok(Some((rival, self.open(rival)?)))).transpose()?.flatten();
        let rival = rival.and_then(|(rival, replica)| Some((rival, replica?)));
        if let Some((_, rival)) = &rival {
            let (rival, outcome) = (Arc::clone(rival), Arc::clone(&outcome));
            let take_over = move || *outcome.lock().unwrap() = Some(rival.take_over());
            self.log.before_append_of(node, Box::new(take_over));
        }
        let taken = replica.take_over();
        if self.is_void(taken.as_ref().err()) {
            self.log.forget_rival();
            self.copy_anew(node);
            return Ok(None);
        }
        let epoch = answered("a take-over", taken)?;
        self.log.forget_rival();
        let of_rival = outcome.lock().unwrap().take();
        let of_rival = of_rival.map(|taken| answered("a take-over", taken)).transpose()?.flatten();
        let by_rival = rival.zip(of_rival).map(|((node, replica), epoch)| (node, replica, epoch));
        let owners = [epoch.map(|epoch| (node, replica, epoch)), by_rival];
        let owner = owners.into_iter().flatten().max_by_key(|(_, _, epoch)| *epoch);
        let Some((node, replica, epoch)) = owner else { return Ok(None) };
        if self.is_hasty {
            self.log.set_hasty(node);
        }
        Ok(Some(Ownership { node, replica, epoch, commit: None }))
    }
}
