//! The replicas of a range: their disks and processes over one log. The product's are [`SimReplica`] and what it calls; whose
//! turn it is to take over, which clocks decide in the product, is decided here.

use std::sync::{Arc, Mutex};

use doppel_model::{Epoch, RangeId};
use doppel_protocol::LogPosition;
use doppel_tier1::simulation::{SimDisk, SimReplica};
use doppel_tier1::{ReplicaError, Store};

use super::mistake::{Mistake, Planted};
use super::random::Random;
use super::shared_log::SimLog;
use super::store::Ownership;
use super::violation::{Checked, failed};

/// Records after which a disk is flushed at the latest.
const LAZY: usize = 8;

/// The replicas of one range.
pub(crate) struct Replicas {
    range: RangeId,
    pub(crate) log: SimLog,
    nodes: Vec<Node>,
    part_bytes: usize,
    /// What owners took for counted.
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
    /// A planted mistake: entries up to this one were looked at.
    looked: usize,
}

impl Node {
    fn new(range: RangeId, position_first: bool) -> Self {
        Self { disk: Arc::new(SimDisk::new(range, position_first)), replica: None, looked: 0 }
    }
}

/// What became of a call, where the log may not answer.
fn answered<T>(what: &'static str, called: Result<T, ReplicaError>) -> Checked<Option<T>> {
    match called {
        Ok(done) => Ok(Some(done)),
        Err(ReplicaError::Log(_) | ReplicaError::Outrun { .. }) => Ok(None),
        Err(error) => Err(failed(what)(error.into())),
    }
}

impl Replicas {
    pub(crate) fn new(range: RangeId, count: usize, part_bytes: usize, seed: u64, planted: &Planted) -> Self {
        let position_first = planted.is(Mistake::PositionBeforeRows);
        Self {
            range,
            log: SimLog::new(range),
            nodes: (0..count).map(|_| Node::new(range, position_first)).collect(),
            part_bytes,
            taken: Vec::new(),
            random: Random::new(seed.rotate_left(40) ^ u64::from(range.0)),
            position_first,
            counts_void: planted.is(Mistake::VoidRecordCounts),
            is_hasty: planted.is(Mistake::TwoAppendsUnderWay),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn disk(&self, node: usize) -> &Arc<SimDisk> {
        &self.nodes[node].disk
    }

    /// The process of a node, begun if it is not there; none when the log does not answer.
    fn open(&mut self, node: usize) -> Checked<Option<Arc<SimReplica>>> {
        let of = &mut self.nodes[node];
        if of.replica.is_none() {
            let (name, log) = (format!("node-{node}"), self.log.reached_by(node));
            let opened = SimReplica::open(self.range, &name, log, &of.disk, self.part_bytes);
            of.replica = answered("a start of a replica", opened)?.map(Arc::new);
        }
        Ok(of.replica.clone())
    }

    /// A replica reads on; whether there may be more.
    pub(crate) fn follow(&mut self, node: usize) -> Checked<bool> {
        let Some(replica) = self.open(node)? else { return Ok(false) };
        let goes_on = answered("a replica", replica.follow())?.unwrap_or(false);
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
        self.nodes[node] = Node::new(self.range, self.position_first);
    }

    /// A further node; its number.
    pub(crate) fn add(&mut self) -> usize {
        self.nodes.push(Node::new(self.range, self.position_first));
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
        let epoch = answered("a take-over", replica.take_over())?;
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
