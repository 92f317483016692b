//! The status of a cluster as a coordinator sees it. The coordinator asks every node, and reports what needs
//! attention together with a remedy.

pub(crate) mod log;
mod questions;
mod running;
mod troubles;

pub mod processes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use doppel_contract::LoadReport;
use doppel_contract::answer::{Attention, ClusterNode, ClusterRange, ClusterStatus, NodeRole, Standby};
use doppel_model::{NodeId, PartitionId, RangeId};
use doppel_protocol::beats::ClusterMembership;
use doppel_protocol::index_node::{AppliedState, IndexNode as _};
use doppel_protocol::range_owner::RangeState;
use doppel_protocol::{CallTraffic, NodeTraffic, RangeMap, TakeOverError, Tier2Api};
use doppel_wire::Peer;
use doppel_wire::index_node::RemoteNode;
use doppel_wire::range_owner::RemoteRanges;
use doppel_wire::take_over::take_over;
use doppel_wire::tier2::RoutedTier2;
use doppel_wire::traffic::WireTraffic;

use crate::status::processes::Processes;
use log::{LogAt, LogReport};
use questions::{NodeAnswer, PATIENCE, PendingAnswer, begin, states_of, text};
use running::{Running, waiting_for_contents};

/// Time limit for questions to the log: a little less than the [`PATIENCE`] for nodes.
const LOG_PATIENCE: Duration = Duration::from_millis(2_800);

/// A node that was heard within this time counts as running, and its replicas can count as following.
const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// Time for which an answer is reused.
const AGE: Duration = Duration::from_millis(100);

/// All nodes of a cluster and its log, with the connections to them.
pub struct ClusterNodes {
    /// Id of the cluster.
    pub cluster: Arc<str>,
    /// The shards of each range.
    pub map: RangeMap,
    /// Nodes of tier 1, with the connections to them.
    pub tier1: Vec<RecordAt>,
    /// Nodes of tier 2, with the connections to them.
    pub tier2: Vec<IndexAt>,
    /// Client of the router of the index, at whichever node it runs.
    pub router: Arc<RoutedTier2>,
    /// Replicas of the ranges, as their nodes report them. `None` if the cluster has no log.
    pub replicas: Option<Replicas>,
    /// The log of the cluster, if it has one.
    pub log: Option<LogAt>,
    /// Warning about the file of the cluster that this process has read.
    pub(crate) file: Option<Attention>,
    /// Name of this process, and its traffic.
    pub(crate) own: (String, WireTraffic),
    /// The last answers and when they were given.
    pub(crate) last: Mutex<Option<(Instant, Answers)>>,
}

/// The answers of all nodes to one round of questions.
#[derive(Clone)]
pub struct Answers {
    status: ClusterStatus,
    traffic: Vec<NodeTraffic>,
}

/// The replicas of all ranges, and the reports about them.
pub struct Replicas {
    /// Latest beats of the nodes of tier 1.
    pub membership: Arc<ClusterMembership>,
    /// Latest presence of each process. It names the version of the description that the process runs with.
    pub processes: Arc<Processes>,
    /// Names of the nodes that store a replica, for each range.
    pub nodes: Vec<Vec<String>>,
}

/// A node of tier 1 and the connection to it.
#[derive(Clone)]
pub struct RecordAt {
    /// Name of the node.
    pub name: String,
    /// Address of the node in the description.
    pub address: String,
    /// Ranges that the node owns by the description. In a cluster with a log, claims decide instead.
    pub ranges: Vec<RangeId>,
    /// Client of the node's ranges.
    pub owner: RemoteRanges,
    /// Connection to the node.
    pub peer: Peer,
}

/// A node of tier 2 and the connection to it.
#[derive(Clone)]
pub struct IndexAt {
    /// Name of the node.
    pub name: String,
    /// Address of the node in the description.
    pub address: String,
    pub(crate) node: Arc<RemoteNode>,
    /// Connection to the node.
    pub peer: Peer,
}

impl doppel_protocol::ClusterApi for ClusterNodes {
    fn status(&self) -> ClusterStatus {
        self.present().status
    }

    fn has_answering_node(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        let (sender, answers) = mpsc::channel();
        for at in self.tier1.iter().cloned() {
            let sender = sender.clone();
            let ask = move || sender.send(states_of(&at.owner, &[]).is_ok());
            // If the system starts no thread, the node counts as silent.
            let _ = thread::Builder::new().name("cluster-answers".to_owned()).spawn(ask);
        }
        drop(sender);
        // The channel also closes, and so ends the loop, when all nodes have failed to answer.
        std::iter::from_fn(|| answers.recv_timeout(until.saturating_duration_since(Instant::now())).ok())
            .any(|answers| answers)
    }

    fn traffic(&self) -> Vec<NodeTraffic> {
        self.present().traffic
    }

    fn take_over(&self, range: RangeId, node: &str) -> Result<(), TakeOverError> {
        let Replicas { nodes, .. } = self.replicas.as_ref().ok_or(TakeOverError::NotReplicated)?;
        let replicas = nodes.get(usize::from(range.0)).ok_or(TakeOverError::NoRange(range))?;
        let at = self.tier1.iter().find(|at| at.name == node && replicas.contains(&at.name));
        let none = || {
            let (node, replicas) = (node.to_owned(), replicas.join(", "));
            TakeOverError::NoReplica { range, node, replicas }
        };
        let taken = take_over(&at.ok_or_else(none)?.peer, range);
        taken.map_err(|error| TakeOverError::Unavailable(error.to_string()))
    }
}

impl ClusterNodes {
    /// Returns the last answers if they are younger than [`AGE`]; otherwise asks all nodes.
    fn present(&self) -> Answers {
        // Concurrent callers wait for the lock and share one answer.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, answers)) = &*last
            && at.elapsed() < AGE
        {
            return answers.clone();
        }
        let answers = self.ask();
        *last = Some((Instant::now(), answers.clone()));
        answers
    }

    fn ask(&self) -> Answers {
        let until = Instant::now() + PATIENCE;
        let states: Vec<_> = self
            .tier1
            .iter()
            .map(|at| {
                let (ranges, owner) = (self.owned_by(at), at.owner.clone());
                begin(move || states_of(&owner, &ranges))
            })
            .collect();
        let applied: Vec<_> = self
            .tier2
            .iter()
            .map(|IndexAt { node, .. }| {
                let (ranges, node) = (self.map.ranges(), Arc::clone(node));
                begin(move || ranges.map(|range| Ok((range, node.applied(range).map_err(text)?))).collect())
            })
            .collect();
        let log = self.log.clone().map(|log| begin(move || Ok(log.ask(LOG_PATIENCE))));
        let traffic = self.begin_traffic();
        let router = Arc::clone(&self.router);
        let load = begin(move || router.load().map_err(text));
        let router = Arc::clone(&self.router);
        let waiting = begin(move || router.waiting().map_err(text));
        let states: Vec<NodeAnswer<BTreeMap<RangeId, RangeState>>> =
            states.into_iter().map(|answer| answer.wait(until)).collect();
        let applied: Vec<NodeAnswer<BTreeMap<RangeId, AppliedState>>> =
            applied.into_iter().map(|answer| answer.wait(until)).collect();
        let (load, waiting) = (load.wait(until).ok(), waiting.wait(until).ok());
        let log = self
            .log
            .as_ref()
            .zip(log)
            .map(|(at, log)| log.wait(until).unwrap_or_else(|why| at.unknown(&why)));
        let status = self.report(&states, &applied, load.as_ref(), waiting, log);
        let others = traffic
            .into_iter()
            .filter_map(|(node, told)| Some(NodeTraffic { node, calls: told.wait(until).ok()? }));
        let (node, traffic) = &self.own;
        let own = NodeTraffic { node: node.clone(), calls: traffic.totals() };
        Answers { status, traffic: std::iter::once(own).chain(others).collect() }
    }

    /// Begins to ask all nodes for their traffic.
    fn begin_traffic(&self) -> Vec<(String, PendingAnswer<Vec<CallTraffic>>)> {
        let tier1 = self.tier1.iter().map(|at| (&at.name, &at.peer));
        let tier2 = self.tier2.iter().map(|at| (&at.name, &at.peer));
        let ask = |(name, peer): (&String, &Peer)| {
            let peer = peer.clone();
            (name.clone(), begin(move || peer.read_traffic().map_err(text)))
        };
        tier1.chain(tier2).map(ask).collect()
    }

    fn report(
        &self,
        states: &[NodeAnswer<BTreeMap<RangeId, RangeState>>],
        applied: &[NodeAnswer<BTreeMap<RangeId, AppliedState>>],
        load: Option<&LoadReport>,
        waiting: Option<usize>,
        engine: Option<LogReport>,
    ) -> ClusterStatus {
        let (mut attention, mut causes) = (Vec::new(), Vec::new());
        let running = Running::of(self.replicas.as_ref(), Instant::now());
        let all_states: BTreeMap<RangeId, &RangeState> =
            states.iter().flatten().flatten().map(|(range, state)| (*range, state)).collect();
        let mut nodes = Vec::new();
        for (at, said) in self.tier1.iter().zip(states) {
            if let Err(reason) = said {
                attention.push(running.tier1(at.into(), &self.owned_by(at), reason));
            }
            nodes.push(ClusterNode {
                name: at.name.clone(),
                role: NodeRole::Tier1,
                address: at.address.clone(),
                answers: said.is_ok(),
                reason: said.as_ref().err().cloned(),
                router: self.owned_by(at).contains(&RangeId(0)),
                partitions: None,
                contents: None,
                lag: None,
            });
        }
        for ((id, at), said) in (0..).map(NodeId).zip(&self.tier2).zip(applied) {
            let lag = said.as_ref().ok().and_then(|applied| lag(applied, &all_states));
            match said {
                Err(reason) => attention.push(running.tier2(at.into(), reason)),
                Ok(applied) if lag.is_none() => {
                    let by = applied.iter().filter(|(_, applied)| applied.position.is_none());
                    let by: Vec<RangeId> = by.map(|(range, _)| *range).collect();
                    let silent: Vec<RangeId> =
                        by.iter().filter(|range| !all_states.contains_key(range)).copied().collect();
                    attention.push(waiting_for_contents(&at.name, &by, &silent));
                }
                Ok(_) => {}
            }
            nodes.push(ClusterNode {
                name: at.name.clone(),
                role: NodeRole::Tier2,
                address: at.address.clone(),
                answers: said.is_ok(),
                reason: said.as_ref().err().cloned(),
                router: false,
                partitions: load.map(|load| partitions(load, id)),
                contents: said
                    .as_ref()
                    .ok()
                    .and_then(|applied| applied.values().map(|one| one.contents).next()),
                lag,
            });
        }
        let ranges = self.map.ranges().map(|range| self.range(range, all_states.get(&range).copied()));
        let ranges: Vec<ClusterRange> = ranges.collect();
        if let Some(Replicas { membership, processes, .. }) = &self.replicas {
            let known = (&running, engine.as_ref().map(|log| &log.status));
            attention.extend(troubles::of_replicas(membership, &ranges, known, Instant::now()));
            attention.extend(processes.attention(Instant::now()));
        }
        for (range, state) in &all_states {
            if let Some(refused) = &state.refused {
                attention.push(Attention {
                    what: format!("range {range} takes no writes: {refused}"),
                    remedy: "do what the reason says; the node takes writes again after a start".to_owned(),
                });
            }
        }
        // A failure of the log causes most other failures, so it is listed first.
        causes.extend(self.file.clone());
        causes.extend(engine.iter().flat_map(|log| log::troubles(&log.status, &ranges)));
        let (engine, meta) = engine.map(|LogReport { status, meta }| (status, meta)).unzip();
        causes.extend(meta.flatten());
        causes.append(&mut attention);
        let orders_waiting = waiting.map(|waiting| waiting as u64);
        ClusterStatus {
            cluster: Some(self.cluster.to_string()),
            replicated: self.replicas.is_some(),
            nodes,
            ranges,
            engine,
            orders_waiting,
            attention: causes,
        }
    }

    /// Ranges that a node owns, by the description or by the claims that this process has heard.
    fn owned_by(&self, at: &RecordAt) -> Vec<RangeId> {
        match &self.replicas {
            None => at.ranges.clone(),
            Some(_) => {
                self.map.ranges().filter(|range| self.owner(*range).as_deref() == Some(&at.name)).collect()
            }
        }
    }

    fn owner(&self, range: RangeId) -> Option<String> {
        match &self.replicas {
            None => self.tier1.iter().find(|node| node.ranges.contains(&range)).map(|node| node.name.clone()),
            Some(Replicas { membership, .. }) => membership.owner(range).map(|(_, owner)| owner),
        }
    }

    fn range(&self, range: RangeId, state: Option<&RangeState>) -> ClusterRange {
        let run = self.map.run(range);
        let owner = self.owner(range);
        let standbys = self.standbys(range, owner.as_deref());
        ClusterRange {
            range,
            first_shard: run.start.0,
            last_shard: run.end.0 - 1,
            served: state.is_some_and(|state| state.refused.is_none())
                && !self.waits(range, owner.as_deref()),
            owner,
            epoch: state.map(|state| state.epoch.0),
            replicas: self.replicas_of(range),
            live_replicas: standbys.iter().filter(|standby| standby.follows).count() as u64
                + u64::from(state.is_some()),
            standbys,
            live: state.map(|state| state.counters.live),
            pending: state.map(|state| state.backlog.pending),
        }
    }

    /// Number of replicas that a range should have.
    fn replicas_of(&self, range: RangeId) -> u64 {
        let nodes = self.replicas.as_ref().and_then(|replicas| replicas.nodes.get(usize::from(range.0)));
        nodes.map_or(1, |nodes| nodes.len() as u64)
    }

    /// Whether the owner of a range reports that writes wait for the log or a standby.
    fn waits(&self, range: RangeId, owner: Option<&str>) -> bool {
        let Some(Replicas { membership, .. }) = &self.replicas else { return false };
        let heard = membership.replicas(range, Instant::now());
        heard.iter().any(|replica| Some(&*replica.node) == owner && replica.claim.trouble.is_some())
    }

    /// The replicas of a range at other nodes than its owner.
    fn standbys(&self, range: RangeId, owner: Option<&str>) -> Vec<Standby> {
        let Some(Replicas { membership, nodes, .. }) = &self.replicas else { return Vec::new() };
        let now = Instant::now();
        let heard = membership.replicas(range, now);
        let of = |node: &str| heard.iter().find(|replica| replica.node == node);
        let last = owner.and_then(of).map(|replica| replica.claim.index);
        let nodes = nodes.get(usize::from(range.0)).into_iter().flatten();
        let standby = |node: &String| {
            let replica = of(node);
            let is_heard = replica.is_some_and(|replica| replica.age < HEARD_WITHIN);
            let trouble = replica.and_then(|replica| replica.claim.trouble.clone());
            let silence = membership.silence(node, now);
            let unheard = match silence.filter(|silence| *silence < HEARD_WITHIN) {
                Some(_) if replica.is_none() => "the node runs, and has no replica of the range yet",
                _ => "the node was not heard lately",
            };
            Standby {
                node: node.clone(),
                follows: is_heard && trouble.is_none(),
                lag: last.zip(replica).map(|(last, replica)| last.saturating_sub(replica.claim.index)),
                reason: if is_heard { trouble } else { Some(unheard.to_owned()) },
            }
        };
        nodes.filter(|node| owner != Some(node)).map(standby).collect()
    }
}

/// Largest number of orders of one range that a node of tier 2 has not applied yet. `None` if a range has
/// still to send the node its contents.
fn lag(applied: &BTreeMap<RangeId, AppliedState>, states: &BTreeMap<RangeId, &RangeState>) -> Option<u64> {
    let behind = |(range, applied): (&RangeId, &AppliedState)| {
        let (_, index) = applied.position?;
        Some(states.get(range).map_or(0, |state| state.ordered.saturating_sub(index)))
    };
    applied.iter().map(behind).collect::<Option<Vec<u64>>>()?.into_iter().max()
}

fn partitions(load: &LoadReport, node: NodeId) -> Vec<PartitionId> {
    load.partitions.iter().filter(|one| one.node == node).map(|one| one.partition).collect()
}
