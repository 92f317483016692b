//! Tests of a router that replaces another one. It uses the same nodes and the stored state.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use doppel_contract::RebalanceRequest;
use doppel_model::NodeId;
use doppel_model::pairwise::Policy;
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::{
    ContentSource, IndexOrders as _, IndexState, IndexStateError, IndexStateItem, MappingApi, RebalanceError,
    SearchResult, SignatureSource, Tier2Api,
};
use tempfile::TempDir;

use super::mapping::{add, by_node};
use super::model::{Pages, page};
use super::service::{TIMEOUT, wait_until_idle};
use super::source::{Source, orders};
use crate::embedded::Parts;
use crate::router::persistence::stored_requests::{self, StoredRequest};
use crate::router::scheduler::StepOutcome;
use crate::{Config, NodeProcess, NodeSettings, Tier2};

const CONTENTS: usize = 2_000;

/// State that successive routers store.
type Items = Arc<Mutex<BTreeMap<IndexStateItem, Vec<u8>>>>;

/// The state as one router sees it.
#[derive(Default)]
struct RouterState {
    items: Items,
    /// Whether another router is in charge of the state.
    is_replaced: AtomicBool,
    /// Whether changes of the state report an error although they are made.
    is_unsure: AtomicBool,
}

impl RouterState {
    fn items(&self) -> Result<std::sync::MutexGuard<'_, BTreeMap<IndexStateItem, Vec<u8>>>, IndexStateError> {
        self.check().map(|()| self.items.lock().unwrap())
    }

    fn set_replaced(&self, is_replaced: bool) {
        self.is_replaced.store(is_replaced, Ordering::Relaxed);
    }

    fn set_unsure(&self, is_unsure: bool) {
        self.is_unsure.store(is_unsure, Ordering::Relaxed);
    }

    /// The result of a change that was made.
    fn change_result(&self) -> Result<(), IndexStateError> {
        let is_unsure = self.is_unsure.load(Ordering::Relaxed);
        if is_unsure { Err(IndexStateError::Unavailable("the answer is lost".to_owned())) } else { Ok(()) }
    }
}

impl IndexState for RouterState {
    fn check(&self) -> Result<(), IndexStateError> {
        let is_replaced = self.is_replaced.load(Ordering::Relaxed);
        if is_replaced {
            Err(IndexStateError::Unavailable("another router is in charge".to_owned()))
        } else {
            Ok(())
        }
    }

    fn load(&self, item: IndexStateItem) -> Result<Option<Vec<u8>>, IndexStateError> {
        Ok(self.items()?.get(&item).cloned())
    }

    fn store(&self, item: IndexStateItem, bytes: &[u8]) -> Result<(), IndexStateError> {
        self.items()?.insert(item, bytes.to_vec());
        self.change_result()
    }

    fn remove(&self, item: IndexStateItem) -> Result<(), IndexStateError> {
        self.items()?.remove(&item);
        self.change_result()
    }

    fn put_aside(&self, item: IndexStateItem) -> Result<(), IndexStateError> {
        self.remove(item)
    }
}

/// Nodes in processes of their own, and the state of their routers.
struct Cluster {
    home: TempDir,
    items: Items,
    source: Arc<Source>,
    nodes: Vec<Arc<NodeProcess>>,
    answers: mpsc::Receiver<Vec<SearchResult>>,
}

impl Cluster {
    /// Creates nodes with contents, and a plan for them.
    fn filled(nodes: u32) -> Self {
        let (home, pages) = (TempDir::new().unwrap(), Pages::default());
        let (sender, answers) = mpsc::channel();
        let source = Source::new(&pages, move |results| drop(sender.send(results)));
        *source.log.lock().unwrap() = Some(Vec::new());
        let node = |id| {
            let dir = home.path().join(format!("node-{id}"));
            let settings = NodeSettings { dir, id: NodeId(id), policy: Policy::default(), threads: 1 };
            Arc::new(NodeProcess::open(settings, Arc::clone(&source) as Arc<dyn SignatureSource>).unwrap())
        };
        let nodes = (0..nodes).map(node).collect();
        let this = Self { home, items: Items::default(), source, nodes, answers };
        let router = this.start("first", &this.state());
        let commands = add(&pages, 0, CONTENTS, 60);
        *this.source.log.lock().unwrap() = Some((0..CONTENTS).map(page).collect());
        *this.source.ordered.lock().unwrap() = (CONTENTS as u64, CONTENTS);
        router.submit(orders(0, commands)).unwrap();
        router.flush_batch().unwrap();
        let mut answered = 0;
        while answered < CONTENTS {
            answered += this.answers.recv_timeout(TIMEOUT).unwrap().len();
        }
        // Now no order has to be sent again to a node that is fed.
        this.source.ranges.lock().unwrap()[0].ordered = CONTENTS as u64;
        wait_until_idle(&router);
        router.stop();
        this
    }

    fn state(&self) -> Arc<RouterState> {
        Arc::new(RouterState { items: Arc::clone(&self.items), ..RouterState::default() })
    }

    fn stored(&self, item: IndexStateItem) -> Option<Vec<u8>> {
        self.items.lock().unwrap().get(&item).cloned()
    }

    fn config(&self, machine: &str) -> Config {
        Config {
            partitions: Some(8),
            threads: 1,
            step: 16,
            ..Config::new(self.home.path().join(machine), Policy::default())
        }
    }

    fn nodes(&self) -> Vec<Arc<dyn IndexNode>> {
        self.nodes.iter().map(|node| Arc::clone(node) as Arc<dyn IndexNode>).collect()
    }

    /// Starts a router on another machine, and waits until the nodes are fed.
    fn start(&self, machine: &str, state: &Arc<RouterState>) -> Arc<Tier2> {
        let source = Arc::clone(&self.source) as Arc<dyn ContentSource>;
        let state = Arc::clone(state) as Arc<dyn IndexState>;
        let router = Tier2::open_over(self.config(machine), source, self.nodes(), state).unwrap();
        let begin = Instant::now();
        while router.load().is_err() {
            assert!(begin.elapsed() < TIMEOUT, "the nodes were not fed in time");
            std::thread::sleep(Duration::from_millis(1));
        }
        wait_until_idle(&router);
        router
    }

    /// Like [`start`](Self::start), but without the thread of the router.
    fn start_parts(&self, machine: &str, state: &Arc<RouterState>) -> Parts {
        let source = Arc::clone(&self.source) as Arc<dyn ContentSource>;
        let state = Arc::clone(state) as Arc<dyn IndexState>;
        let parts = Parts::open_over(self.config(machine), source, self.nodes(), state).unwrap();
        parts.router.feed_lost_nodes().unwrap();
        parts
    }
}

#[test]
fn the_next_router_continues_with_the_plan_the_drained_nodes_and_the_requests() {
    let cluster = Cluster::filled(3);
    let second = cluster.start("second", &cluster.state());
    second.rebalance(RebalanceRequest::Drain { node: NodeId(1) }, false).unwrap();
    wait_until_idle(&second);
    let (plan, contents) = (second.plan().unwrap(), by_node(&second, 3));
    assert_eq!((plan.drained(), contents[1]), (&[NodeId(1)][..], 0), "{contents:?}");
    assert!(plan.map().partitions() > 1);
    second.stop();
    let full_reads = || cluster.source.full_reads.load(Ordering::Relaxed);
    let before = full_reads();
    let third = cluster.start("third", &cluster.state());
    assert_eq!((third.plan().unwrap(), by_node(&third, 3)), (plan.clone(), contents));
    // The nodes have snapshots with the present plan.
    assert_eq!(full_reads(), before);
    third.stop();
    // Stored like this by a router that was killed.
    let request = RebalanceRequest::Drain { node: NodeId(2) };
    let requested = StoredRequest { request, planned: None };
    stored_requests::store(&*cluster.state(), &[requested].into()).unwrap();
    let fourth = cluster.start("fourth", &cluster.state());
    assert_eq!(fourth.plan().unwrap().drained(), [NodeId(1), NodeId(2)]);
    assert_eq!(by_node(&fourth, 3), [CONTENTS as u64, 0, 0]);
    assert_eq!(fourth.outcome().unwrap().unwrap().request, request);
    assert_eq!(cluster.stored(IndexStateItem::Requests), None);
    fourth.stop();
}

#[test]
fn no_router_starts_while_the_stored_state_is_unknown() {
    let cluster = Cluster::filled(1);
    let state = cluster.state();
    state.set_replaced(true);
    let source = Arc::clone(&cluster.source) as Arc<dyn ContentSource>;
    let opened = Tier2::open_over(cluster.config("other"), source, cluster.nodes(), state);
    assert!(matches!(opened.map(drop), Err(crate::Error::State(IndexStateError::Unavailable(_)))));
}

#[test]
fn a_plan_is_stored_before_a_node_hosts_it() {
    let cluster = Cluster::filled(2);
    let state = cluster.state();
    let parts = cluster.start_parts("second", &state);
    let (router, probed) = (&parts.router, cluster.source.pages.lock().unwrap()[&page(0)].clone());
    let (before, kept) = (router.plan(), cluster.stored(IndexStateItem::Plan));
    router.rebalance(RebalanceRequest::Drain { node: NodeId(1) }, false).unwrap();
    while router.progress().unwrap().contents == 0 {
        assert_eq!(router.run_step(), StepOutcome::Advanced);
    }
    state.set_replaced(true);
    for _ in 0..3 {
        while router.run_step() == StepOutcome::Advanced {}
        assert_eq!((router.plan(), cluster.stored(IndexStateItem::Plan)), (before.clone(), kept.clone()));
        assert!(router.probe(&probed).is_ok(), "the nodes do not serve the previous plan");
    }
    state.set_replaced(false);
    while router.run_step() == StepOutcome::Advanced {}
    assert_eq!(router.plan().drained(), [NodeId(1)]);
    assert!(router.probe(&probed).is_ok() && cluster.stored(IndexStateItem::Plan) != kept);
    assert_eq!((router.requested(), cluster.stored(IndexStateItem::Requests)), (None, None));
}

#[test]
fn a_request_is_stored_until_it_is_done_and_no_longer() {
    let cluster = Cluster::filled(2);
    let state = cluster.state();
    let router = cluster.start_parts("second", &state).router;
    state.set_replaced(true);
    let refused = router.rebalance(RebalanceRequest::Drain { node: NodeId(1) }, false);
    assert!(matches!(refused, Err(RebalanceError::Unavailable(_))), "{refused:?}");
    assert_eq!(router.requested(), None);
    state.set_replaced(false);
    // The request requires no change.
    router
        .request(StoredRequest { request: RebalanceRequest::Join { node: NodeId(1) }, planned: None })
        .unwrap();
    assert!(cluster.stored(IndexStateItem::Requests).is_some());
    state.set_replaced(true);
    while router.run_step() == StepOutcome::Advanced {}
    assert!(router.requested().is_none() && router.outcome().is_some());
    assert!(cluster.stored(IndexStateItem::Requests).is_some());
    state.set_replaced(false);
    while router.run_step() == StepOutcome::Advanced {}
    assert_eq!(cluster.stored(IndexStateItem::Requests), None);
}

#[test]
fn state_that_was_stored_without_an_answer_is_corrected() {
    let cluster = Cluster::filled(2);
    let state = cluster.state();
    let router = cluster.start_parts("second", &state).router;
    while router.run_step() == StepOutcome::Advanced {}
    let (before, kept) = (router.plan(), cluster.stored(IndexStateItem::Plan));
    // No later router carries out a request that was refused.
    let drain = RebalanceRequest::Drain { node: NodeId(1) };
    state.set_unsure(true);
    assert!(matches!(router.rebalance(drain, false), Err(RebalanceError::Unavailable(_))));
    assert!(cluster.stored(IndexStateItem::Requests).is_some());
    state.set_unsure(false);
    while router.run_step() == StepOutcome::Advanced {}
    assert_eq!((router.requested(), cluster.stored(IndexStateItem::Requests)), (None, None));

    // A cancellation that is refused cancels nothing.
    router.rebalance(drain, false).unwrap();
    while router.progress().unwrap().contents == 0 {
        assert_eq!(router.run_step(), StepOutcome::Advanced);
    }
    state.set_unsure(true);
    assert!(matches!(router.cancel(), Err(RebalanceError::Unavailable(_))));
    assert!(cluster.stored(IndexStateItem::Requests).is_none() && router.requested().is_some());
    // The next plan is stored at the end of the change, but the router does not know.
    while router.run_step() == StepOutcome::Advanced {}
    assert!(router.plan() == before && cluster.stored(IndexStateItem::Plan) != kept);
    state.set_unsure(false);
    router.cancel().unwrap();
    while router.run_step() == StepOutcome::Advanced {}
    assert!(router.plan() == before && cluster.stored(IndexStateItem::Plan) == kept);
    assert!(cluster.stored(IndexStateItem::Requests).is_none());
}

#[test]
fn a_replaced_router_leaves_the_nodes_to_its_successor() {
    let cluster = Cluster::filled(2);
    let state = cluster.state();
    let deposed = cluster.start_parts("second", &state).router;
    let present = cluster.start_parts("third", &cluster.state()).router;
    state.set_replaced(true);
    deposed.check_nodes();
    assert!(deposed.has_lost_nodes());
    assert_eq!(deposed.run_step(), StepOutcome::Retry);
    present.check_nodes();
    assert!(!present.has_lost_nodes());
    // If the router is in charge again, it takes the nodes over.
    state.set_replaced(false);
    assert_eq!(deposed.run_step(), StepOutcome::Advanced);
    present.check_nodes();
    assert!(present.has_lost_nodes());
}
