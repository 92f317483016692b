//! What a front door knows of its cluster: it asks every node, and says what is not as it should be.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use doppel_model::{NodeId, PartitionId, RangeId};
use doppel_protocol::answer::{Attention, ClusterNode, ClusterRange, ClusterStatus, NodeRole};
use doppel_protocol::index_node::{Applied, IndexNode as _};
use doppel_protocol::range_owner::{RangeOwner as _, RangeState};
use doppel_protocol::{LoadReport, Tier2Api};
use doppel_tier1::RangeMap;
use doppel_wire::index_node::RemoteNode;
use doppel_wire::range_owner::RemoteRanges;
use doppel_wire::tier2::RemoteTier2;

/// A node that has not answered by then is said to be away.
const PATIENCE: Duration = Duration::from_secs(3);

/// An answer is given again for so long.
const AGE: Duration = Duration::from_millis(100);

/// The nodes of a cluster.
pub(crate) struct ClusterNodes {
    pub(crate) cluster: Arc<str>,
    pub(crate) map: RangeMap,
    pub(crate) tier1: Vec<RecordAt>,
    pub(crate) tier2: Vec<IndexAt>,
    pub(crate) router: RemoteTier2,
    pub(crate) last: Mutex<Option<(Instant, ClusterStatus)>>,
}

/// A node of tier 1.
#[derive(Clone)]
pub(crate) struct RecordAt {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) ranges: Vec<RangeId>,
    pub(crate) owner: RemoteRanges,
}

/// A node of tier 2.
#[derive(Clone)]
pub(crate) struct IndexAt {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) node: Arc<RemoteNode>,
}

/// What a node has said, or why it has not.
type Said<T> = Result<T, String>;

impl doppel_protocol::ClusterApi for ClusterNodes {
    fn status(&self) -> ClusterStatus {
        // Whoever asks meanwhile waits for the same answer.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, status)) = &*last
            && at.elapsed() < AGE
        {
            return status.clone();
        }
        let status = self.ask();
        *last = Some((Instant::now(), status.clone()));
        status
    }
}

impl ClusterNodes {
    fn ask(&self) -> ClusterStatus {
        let until = Instant::now() + PATIENCE;
        let states: Vec<_> = self
            .tier1
            .iter()
            .map(|RecordAt { ranges, owner, .. }| {
                let (ranges, owner) = (ranges.clone(), owner.clone());
                begin(move || {
                    ranges.iter().map(|range| Ok((*range, owner.state(*range).map_err(text)?))).collect()
                })
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
        let router = self.router.clone();
        let load = begin(move || router.load().map_err(text));
        let router = self.router.clone();
        let waiting = begin(move || router.waiting().map_err(text));
        let states: Vec<Said<BTreeMap<RangeId, RangeState>>> =
            states.into_iter().map(|answer| answer.wait(until)).collect();
        let applied: Vec<Said<BTreeMap<RangeId, Applied>>> =
            applied.into_iter().map(|answer| answer.wait(until)).collect();
        self.report(&states, &applied, load.wait(until).ok().as_ref(), waiting.wait(until).ok())
    }

    fn report(
        &self,
        states: &[Said<BTreeMap<RangeId, RangeState>>],
        applied: &[Said<BTreeMap<RangeId, Applied>>],
        load: Option<&LoadReport>,
        waiting: Option<usize>,
    ) -> ClusterStatus {
        let mut attention = Vec::new();
        let all_states: BTreeMap<RangeId, &RangeState> =
            states.iter().flatten().flatten().map(|(range, state)| (*range, state)).collect();
        let mut nodes = Vec::new();
        for (at, said) in self.tier1.iter().zip(states) {
            if let Err(reason) = said {
                let ranges: Vec<String> = at.ranges.iter().map(RangeId::to_string).collect();
                attention.push(Attention {
                    what: format!(
                        "tier-1 node {} does not answer, and ranges {} are not served: {reason}",
                        at.name,
                        ranges.join(", ")
                    ),
                    remedy: format!("start `doppel tier1 --name {}` on its directory", at.name),
                });
            }
            nodes.push(ClusterNode {
                name: at.name.clone(),
                role: NodeRole::Tier1,
                address: at.address.clone(),
                answers: said.is_ok(),
                reason: said.as_ref().err().cloned(),
                router: at.ranges.contains(&RangeId(0)),
                partitions: None,
                contents: None,
                lag: None,
            });
        }
        for ((id, at), said) in (0..).map(NodeId).zip(&self.tier2).zip(applied) {
            let lag = said.as_ref().ok().and_then(|applied| lag(applied, &all_states));
            match said {
                Err(reason) => attention.push(Attention {
                    what: format!(
                        "tier-2 node {} does not answer, and new pages stay pending: {reason}",
                        at.name
                    ),
                    remedy: format!(
                        "start `doppel tier2 --name {}`, with an empty directory if its own is lost",
                        at.name
                    ),
                }),
                Ok(_) if lag.is_none() => attention.push(Attention {
                    what: format!(
                        "tier-2 node {} is still to be told what it has, and new pages stay pending",
                        at.name
                    ),
                    remedy: "wait; all nodes of tier 1 have to be there".to_owned(),
                }),
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
        for (range, state) in &all_states {
            if let Some(refused) = &state.refused {
                attention.push(Attention {
                    what: format!("range {range} takes no writes: {refused}"),
                    remedy: "do what the reason says; the node takes writes again after a start".to_owned(),
                });
            }
        }
        let orders_waiting = waiting.map(|waiting| waiting as u64);
        ClusterStatus {
            cluster: Some(self.cluster.to_string()),
            replicated: false,
            nodes,
            ranges,
            orders_waiting,
            attention,
        }
    }

    fn range(&self, range: RangeId, state: Option<&RangeState>) -> ClusterRange {
        let run = self.map.run(range);
        let owner = self.tier1.iter().find(|node| node.ranges.contains(&range));
        ClusterRange {
            range,
            first_shard: run.start.0,
            last_shard: run.end.0 - 1,
            owner: owner.map(|node| node.name.clone()).unwrap_or_default(),
            served: state.is_some_and(|state| state.refused.is_none()),
            epoch: state.map(|state| state.epoch.0),
            live: state.map(|state| state.counters.live),
            pending: state.map(|state| state.backlog.pending),
        }
    }
}

/// How far a node is behind the range that is furthest ahead; none where one has not told it what it has.
fn lag(applied: &BTreeMap<RangeId, Applied>, states: &BTreeMap<RangeId, &RangeState>) -> Option<u64> {
    let behind = |(range, applied): (&RangeId, &Applied)| {
        let (_, index) = applied.position?;
        Some(states.get(range).map_or(0, |state| state.ordered.saturating_sub(index)))
    };
    applied.iter().map(behind).collect::<Option<Vec<u64>>>()?.into_iter().max()
}

fn partitions(load: &LoadReport, node: NodeId) -> Vec<PartitionId> {
    load.partitions.iter().filter(|one| one.node == node).map(|one| one.partition).collect()
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

/// An answer that is still to come.
struct Waiting<T>(mpsc::Receiver<Said<T>>);

/// Asks on a thread of its own, which ends with the deadline of its call.
fn begin<T: Send + 'static>(ask: impl FnOnce() -> Said<T> + Send + 'static) -> Waiting<T> {
    let (sender, answer) = mpsc::channel();
    // Without a thread there is no answer.
    let _ = thread::Builder::new().name("cluster-status".to_owned()).spawn(move || drop(sender.send(ask())));
    Waiting(answer)
}

impl<T> Waiting<T> {
    fn wait(self, until: Instant) -> Said<T> {
        let left = until.saturating_duration_since(Instant::now());
        self.0.recv_timeout(left).unwrap_or_else(|_| Err(format!("no answer in {} s", PATIENCE.as_secs())))
    }
}
