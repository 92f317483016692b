//! The replicas of a range: their disks and processes over one log. The product's are [`SimReplica`] and what it calls; whose
//! turn it is to take over, which clocks decide in the product, is decided here.

use std::sync::{Arc, Mutex};

use doppel_model::{Epoch, RangeId};
use doppel_protocol::{LogPosition, Settlement};
use doppel_tier1::simulation::{SimCommit, SimDisk, SimReplica};
use doppel_tier1::{ReplicaError, Store};

use super::action::Plan;
use super::mistake::{Mistake, Planted};
use super::random::Random;
use super::shared_log::SimLog;
use super::store::Ownership;
use super::violation::{Checked, failed};

/// How often a node reads on until it has what there is.
const CATCH_UP: usize = 200;

/// How often standbys follow before an owner gives up waiting for one.
pub(crate) const SETTLING: usize = 8;

/// Records after which a disk is flushed at the latest.
const LAZY: usize = 8;

/// The replicas of one range.
pub(crate) struct Replicas {
    range: RangeId,
    pub(crate) log: SimLog,
    nodes: Vec<Node>,
    part_bytes: usize,
    settlement: Settlement,
    /// Before anything leaves a standby has what its owner began with.
    needs_standby: bool,
    /// Whoever lives says what it has.
    pub(crate) all_answer: bool,
    /// What owners took for settled; since the last owner began, where the log loses nothing.
    pub(crate) taken: Vec<LogPosition>,
    /// For what no action decides.
    pub(crate) random: Random,
    position_first: bool,
    counts_void: bool,
    is_hasty: bool,
}

struct Node {
    disk: Arc<SimDisk>,
    /// None while it is dead, or could not begin.
    replica: Option<Arc<SimReplica>>,
    /// What it had contradicted the log, so it copies the range from its owner: it says nothing and takes nothing over before it
    /// has this record.
    copies: Option<u64>,
    /// A planted mistake: entries up to this one were looked at.
    looked: usize,
}

impl Node {
    fn new(range: RangeId, position_first: bool, settlement: Settlement) -> Self {
        let disk = SimDisk::new(range, position_first);
        if settlement == Settlement::Standby {
            // What is reported is on the disk.
            disk.set_syncs();
        }
        Self { disk: Arc::new(disk), replica: None, copies: None, looked: 0 }
    }
}

/// What became of a call, where the log may not answer.
fn answered<T>(what: &'static str, called: Result<T, ReplicaError>) -> Checked<Option<T>> {
    match called {
        Ok(done) => Ok(Some(done)),
        Err(ReplicaError::Log(_) | ReplicaError::LostRace { .. } | ReplicaError::LostTail { .. }) => Ok(None),
        Err(error) => Err(failed(what)(error.into())),
    }
}

impl Replicas {
    pub(crate) fn new(range: RangeId, plan: &Plan, planted: &Planted) -> Self {
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

    /// The process of a node, begun if it is not there; none when the log does not answer.
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

    /// Whether what a node has was never settled, for the log has gone on without it.
    fn is_void(&self, error: Option<&ReplicaError>) -> bool {
        self.settlement == Settlement::Standby && matches!(error, Some(ReplicaError::Contradiction { .. }))
    }

    /// A standby reads to the end, as far as the log answers.
    pub(crate) fn catch_up(&mut self, node: usize) -> Checked {
        // Each turn goes on or not, whatever fails.
        for _ in 0..CATCH_UP {
            if !self.follow(node)? {
                break;
            }
        }
        Ok(())
    }

    /// Another node of these follows, so that a commit may be settled.
    pub(crate) fn follow_one(&mut self, of: &[usize]) -> Checked {
        if of.is_empty() {
            return Ok(());
        }
        let node = of[self.random.below(of.len() as u64) as usize];
        self.catch_up(node)
    }

    /// How many records a node has on its disk.
    fn index(&self, node: usize) -> u64 {
        self.nodes[node].disk.position().index
    }

    /// A node takes over where the log may have lost what others have: all of the others but one say what they have, and then
    /// one of them has what it begins with. Those that sleep say nothing.
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

    /// What an owner began with is settled, or it gives up.
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

    /// A replica reads on; whether there may be more.
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

    /// A process dies, and up to so many of the last records are lost with it.
    pub(crate) fn crash(&mut self, node: usize, lost: usize) -> Checked {
        self.nodes[node].replica = None;
        self.nodes[node].disk.crash(lost.min(LAZY)).map_err(|e| failed("a crash")(e.into()))
    }

    pub(crate) fn flush(&self, node: usize) {
        self.nodes[node].disk.flush();
    }

    /// A node begins with an empty disk.
    pub(crate) fn wipe(&mut self, node: usize) {
        self.nodes[node] = Node::new(self.range, self.position_first, self.settlement);
    }

    /// What a node has was never settled, and makes way for what counts.
    fn copy_anew(&mut self, node: usize) {
        let counts = self.log.last().map_or(0, |last| last.index);
        self.wipe(node);
        self.nodes[node].copies = Some(counts);
    }

    /// A further node; its number.
    pub(crate) fn add(&mut self) -> usize {
        self.nodes.push(Node::new(self.range, self.position_first, self.settlement));
        self.nodes.len() - 1
    }

    /// That one goes.
    pub(crate) fn remove_last(&mut self) {
        self.nodes.pop();
    }

    /// A node takes over, with a rival another one between its last look at the log and its append; who owns the range then.
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
