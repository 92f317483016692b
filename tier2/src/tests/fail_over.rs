//! A router that takes the place of another one, over the same nodes, with what that one has kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use doppel_model::NodeId;
use doppel_model::pairwise::Policy;
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::{
    ContentSource, IndexOrders as _, IndexState, IndexStateError, IndexStateItem, MappingApi, RebalanceError,
    RebalanceRequest, SearchResult, SignatureSource, Tier2Api,
};
use tempfile::TempDir;

use super::mapping::{add, by_node};
use super::model::{Pages, page};
use super::service::{LONG, come_to_rest};
use super::source::{Source, orders};
use crate::embedded::Parts;
use crate::router::scheduler::Step;
use crate::router::stored_requests::{self, Requested};
use crate::{Config, Node, NodeSettings, Tier2};

const CONTENTS: usize = 2_000;

/// What routers keep, one after the other.
type Items = Arc<Mutex<BTreeMap<IndexStateItem, Vec<u8>>>>;

/// The items as one router has them.
#[derive(Default)]
struct Place {
    items: Items,
    /// It has lost them to another router.
    lost: AtomicBool,
    /// What is kept is said not to be.
    unsure: AtomicBool,
}

impl Place {
    fn items(&self) -> Result<std::sync::MutexGuard<'_, BTreeMap<IndexStateItem, Vec<u8>>>, IndexStateError> {
        self.check().map(|()| self.items.lock().unwrap())
    }

    fn lose(&self, lost: bool) {
        self.lost.store(lost, Ordering::Relaxed);
    }

    fn doubt(&self, unsure: bool) {
        self.unsure.store(unsure, Ordering::Relaxed);
    }

    /// What is said of a change that was made.
    fn made(&self) -> Result<(), IndexStateError> {
        let unsure = self.unsure.load(Ordering::Relaxed);
        if unsure { Err(IndexStateError::Unavailable("there is no answer".to_owned())) } else { Ok(()) }
    }
}

impl IndexState for Place {
    fn check(&self) -> Result<(), IndexStateError> {
        let lost = self.lost.load(Ordering::Relaxed);
        if lost { Err(IndexStateError::Unavailable("it is lost".to_owned())) } else { Ok(()) }
    }

    fn load(&self, item: IndexStateItem) -> Result<Option<Vec<u8>>, IndexStateError> {
        Ok(self.items()?.get(&item).cloned())
    }

    fn store(&self, item: IndexStateItem, bytes: &[u8]) -> Result<(), IndexStateError> {
        self.items()?.insert(item, bytes.to_vec());
        self.made()
    }

    fn remove(&self, item: IndexStateItem) -> Result<(), IndexStateError> {
        self.items()?.remove(&item);
        self.made()
    }

    fn put_aside(&self, item: IndexStateItem) -> Result<(), IndexStateError> {
        self.remove(item)
    }
}

/// Nodes in processes of their own, and what routers keep.
struct Cluster {
    home: TempDir,
    items: Items,
    source: Arc<Source>,
    nodes: Vec<Arc<Node>>,
    answers: mpsc::Receiver<Vec<SearchResult>>,
}

impl Cluster {
    /// With contents, and a plan for them.
    fn filled(nodes: u32) -> Self {
        let (home, pages) = (TempDir::new().unwrap(), Pages::default());
        let (sender, answers) = mpsc::channel();
        let source = Source::new(&pages, move |results| drop(sender.send(results)));
        *source.log.lock().unwrap() = Some(Vec::new());
        let node = |id| {
            let dir = home.path().join(format!("node-{id}"));
            let settings = NodeSettings { dir, id: NodeId(id), policy: Policy::default(), threads: 1 };
            Arc::new(Node::open(settings, Arc::clone(&source) as Arc<dyn SignatureSource>).unwrap())
        };
        let nodes = (0..nodes).map(node).collect();
        let this = Self { home, items: Items::default(), source, nodes, answers };
        let router = this.start("first", &this.place());
        let commands = add(&pages, 0, CONTENTS, 60);
        *this.source.log.lock().unwrap() = Some((0..CONTENTS).map(page).collect());
        *this.source.ordered.lock().unwrap() = (CONTENTS as u64, CONTENTS);
        router.submit(orders(0, commands)).unwrap();
        router.flush_batch().unwrap();
        let mut answered = 0;
        while answered < CONTENTS {
            answered += this.answers.recv_timeout(LONG).unwrap().len();
        }
        // No order is sent again to a node that is fed.
        this.source.ranges.lock().unwrap()[0].ordered = CONTENTS as u64;
        come_to_rest(&router);
        router.stop();
        this
    }

    fn place(&self) -> Arc<Place> {
        Arc::new(Place { items: Arc::clone(&self.items), ..Place::default() })
    }

    fn keeps(&self, item: IndexStateItem) -> Option<Vec<u8>> {
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

    /// A router on another machine, once the nodes are fed.
    fn start(&self, machine: &str, place: &Arc<Place>) -> Arc<Tier2> {
        let source = Arc::clone(&self.source) as Arc<dyn ContentSource>;
        let place = Arc::clone(place) as Arc<dyn IndexState>;
        let router = Tier2::open_over(self.config(machine), source, self.nodes(), place).unwrap();
        let begin = Instant::now();
        while router.load().is_err() {
            assert!(begin.elapsed() < LONG, "the nodes are not fed");
            std::thread::sleep(Duration::from_millis(1));
        }
        come_to_rest(&router);
        router
    }

    /// The same without its thread.
    fn start_parts(&self, machine: &str, place: &Arc<Place>) -> Parts {
        let source = Arc::clone(&self.source) as Arc<dyn ContentSource>;
        let place = Arc::clone(place) as Arc<dyn IndexState>;
        let parts = Parts::over(self.config(machine), source, self.nodes(), place).unwrap();
        parts.router.feed_lost().unwrap();
        parts
    }
}

#[test]
fn the_next_router_goes_on_with_the_plan_the_drained_nodes_and_the_requests() {
    let cluster = Cluster::filled(3);
    let second = cluster.start("second", &cluster.place());
    second.rebalance(RebalanceRequest::Drain { node: NodeId(1) }, false).unwrap();
    come_to_rest(&second);
    let (plan, contents) = (second.plan().unwrap(), by_node(&second, 3));
    assert_eq!((plan.drained(), contents[1]), (&[NodeId(1)][..], 0), "{contents:?}");
    assert!(plan.map().partitions() > 1);
    second.stop();
    let gone_through = || cluster.source.gone_through.load(Ordering::Relaxed);
    let before = gone_through();
    let third = cluster.start("third", &cluster.place());
    assert_eq!((third.plan().unwrap(), by_node(&third, 3)), (plan.clone(), contents));
    // The nodes have their snapshots of this very plan.
    assert_eq!(gone_through(), before);
    third.stop();
    // As a router leaves it that is killed.
    let request = RebalanceRequest::Drain { node: NodeId(2) };
    let requested = Requested { request, planned: None };
    stored_requests::store(&*cluster.place(), &[requested].into()).unwrap();
    let fourth = cluster.start("fourth", &cluster.place());
    assert_eq!(fourth.plan().unwrap().drained(), [NodeId(1), NodeId(2)]);
    assert_eq!(by_node(&fourth, 3), [CONTENTS as u64, 0, 0]);
    assert_eq!(fourth.outcome().unwrap().unwrap().request, request);
    assert_eq!(cluster.keeps(IndexStateItem::Requests), None);
    fourth.stop();
}

#[test]
fn no_router_begins_while_it_is_not_known_what_is_kept() {
    let cluster = Cluster::filled(1);
    let place = cluster.place();
    place.lose(true);
    let source = Arc::clone(&cluster.source) as Arc<dyn ContentSource>;
    let opened = Tier2::open_over(cluster.config("other"), source, cluster.nodes(), place);
    assert!(matches!(opened.map(drop), Err(crate::Error::State(IndexStateError::Unavailable(_)))));
}

#[test]
fn a_plan_is_kept_before_a_node_has_it() {
    let cluster = Cluster::filled(2);
    let place = cluster.place();
    let parts = cluster.start_parts("second", &place);
    let (router, probed) = (&parts.router, cluster.source.pages.lock().unwrap()[&page(0)].clone());
    let (before, kept) = (router.plan(), cluster.keeps(IndexStateItem::Plan));
    router.rebalance(RebalanceRequest::Drain { node: NodeId(1) }, false).unwrap();
    while router.progress().unwrap().contents == 0 {
        assert_eq!(router.work(), Step::Made);
    }
    place.lose(true);
    for _ in 0..3 {
        while router.work() == Step::Made {}
        assert_eq!((router.plan(), cluster.keeps(IndexStateItem::Plan)), (before.clone(), kept.clone()));
        assert!(router.probe(&probed).is_ok(), "the nodes have the plan of before");
    }
    place.lose(false);
    while router.work() == Step::Made {}
    assert_eq!(router.plan().drained(), [NodeId(1)]);
    assert!(router.probe(&probed).is_ok() && cluster.keeps(IndexStateItem::Plan) != kept);
    assert_eq!((router.requested(), cluster.keeps(IndexStateItem::Requests)), (None, None));
}

#[test]
fn a_request_is_kept_until_it_is_done_and_no_longer() {
    let cluster = Cluster::filled(2);
    let place = cluster.place();
    let router = cluster.start_parts("second", &place).router;
    place.lose(true);
    let refused = router.rebalance(RebalanceRequest::Drain { node: NodeId(1) }, false);
    assert!(matches!(refused, Err(RebalanceError::Unavailable(_))), "{refused:?}");
    assert_eq!(router.requested(), None);
    place.lose(false);
    // There is nothing to do for it.
    router.request(Requested { request: RebalanceRequest::Join { node: NodeId(1) }, planned: None }).unwrap();
    assert!(cluster.keeps(IndexStateItem::Requests).is_some());
    place.lose(true);
    while router.work() == Step::Made {}
    assert!(router.requested().is_none() && router.outcome().is_some());
    assert!(cluster.keeps(IndexStateItem::Requests).is_some());
    place.lose(false);
    while router.work() == Step::Made {}
    assert_eq!(cluster.keeps(IndexStateItem::Requests), None);
}

#[test]
fn what_is_kept_without_an_answer_is_put_right() {
    let cluster = Cluster::filled(2);
    let place = cluster.place();
    let router = cluster.start_parts("second", &place).router;
    while router.work() == Step::Made {}
    let (before, kept) = (router.plan(), cluster.keeps(IndexStateItem::Plan));
    // A request that is refused is carried out by no later router.
    let drain = RebalanceRequest::Drain { node: NodeId(1) };
    place.doubt(true);
    assert!(matches!(router.rebalance(drain, false), Err(RebalanceError::Unavailable(_))));
    assert!(cluster.keeps(IndexStateItem::Requests).is_some());
    place.doubt(false);
    while router.work() == Step::Made {}
    assert_eq!((router.requested(), cluster.keeps(IndexStateItem::Requests)), (None, None));

    // A cancellation that is refused cancels nothing.
    router.rebalance(drain, false).unwrap();
    while router.progress().unwrap().contents == 0 {
        assert_eq!(router.work(), Step::Made);
    }
    place.doubt(true);
    assert!(matches!(router.cancel(), Err(RebalanceError::Unavailable(_))));
    assert!(cluster.keeps(IndexStateItem::Requests).is_none() && router.requested().is_some());
    // The next plan is kept at the end of the change, and nobody knows.
    while router.work() == Step::Made {}
    assert!(router.plan() == before && cluster.keeps(IndexStateItem::Plan) != kept);
    place.doubt(false);
    router.cancel().unwrap();
    while router.work() == Step::Made {}
    assert!(router.plan() == before && cluster.keeps(IndexStateItem::Plan) == kept);
    assert!(cluster.keeps(IndexStateItem::Requests).is_none());
}

#[test]
fn a_router_that_has_lost_its_place_leaves_the_nodes_to_the_next_one() {
    let cluster = Cluster::filled(2);
    let place = cluster.place();
    let deposed = cluster.start_parts("second", &place).router;
    let present = cluster.start_parts("third", &cluster.place()).router;
    place.lose(true);
    deposed.check_nodes();
    assert!(deposed.has_lost());
    assert_eq!(deposed.work(), Step::Later);
    present.check_nodes();
    assert!(!present.has_lost());
    // Had it the place, the nodes would be its own.
    place.lose(false);
    assert_eq!(deposed.work(), Step::Made);
    present.check_nodes();
    assert!(present.has_lost());
}
