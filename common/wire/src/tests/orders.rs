//! Tests of orders and calls to a router, including a router that moves.

use std::sync::Mutex;

use doppel_contract::{LoadReport, RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest};
use doppel_model::pairwise::Similarity;
use doppel_model::{ClientId, ContentHash, Epoch, RangeId};
use doppel_partitioning::Plan;
use doppel_protocol::{
    IndexCommand, IndexError, IndexOrders, MappingApi, Orders, PartitionLookup, RebalanceError,
    RefusedOrders, Search, Tier2Api, VerifiedPartner,
};

use super::*;
use crate::orders::{CurrentRouter, RemoteOrders, RouterLocation, serve};
use crate::router_slot::RouterSlot;
use crate::tier2::{self, RemoteTier2, RoutedTier2};

/// A router that records its orders. The number identifies the router.
#[derive(Default)]
struct RouterApi(Mutex<Vec<Orders>>, u32);

impl RouterApi {
    /// Returns the index of the first command of each of the orders.
    fn firsts(&self) -> Vec<u64> {
        self.0.lock().unwrap().iter().map(|orders| orders.first).collect()
    }
}

impl IndexOrders for RouterApi {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        self.0.lock().unwrap().push(orders);
        Ok(())
    }
}

impl Tier2Api for RouterApi {
    fn probe(&self, _: &Signature) -> Result<Vec<VerifiedPartner>, IndexError> {
        let (page, content) = (PageId::from_bytes([1; 16]), ContentHash([2; 16]));
        Ok(vec![VerifiedPartner { page, content, similarity: Similarity { shared: self.1, of: 9 } }])
    }

    fn locate(&self, _: &Signature) -> Result<PartitionLookup, IndexError> {
        unreachable!("the test does not make this call")
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        unreachable!("the test does not make this call")
    }

    fn waiting(&self) -> Result<usize, IndexError> {
        Ok(self.0.lock().unwrap().iter().map(|orders| orders.commands.len()).sum())
    }

    fn flush_batch(&self) -> Result<(), IndexError> {
        self.0.lock().unwrap().clear();
        Ok(())
    }
}

impl MappingApi for RouterApi {
    fn plan(&self) -> Result<Plan, IndexError> {
        unreachable!("the test does not make this call")
    }

    fn sample(&self, _: usize) -> Result<Vec<Arc<Signature>>, IndexError> {
        unreachable!("the test does not make this call")
    }

    fn rebalance(&self, _: RebalanceRequest, _: bool) -> Result<RebalancePlan, RebalanceError> {
        unreachable!("the test does not make this call")
    }

    fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError> {
        Err(RebalanceError::NothingToCancel)
    }

    fn progress(&self) -> Result<Option<RebalanceProgress>, IndexError> {
        unreachable!("the test does not make this call")
    }

    fn request(&self) -> Result<Option<RebalanceRequest>, IndexError> {
        unreachable!("the test does not make this call")
    }

    fn outcome(&self) -> Result<Option<RebalanceOutcome>, IndexError> {
        unreachable!("the test does not make this call")
    }
}

fn router(number: u32) -> Arc<RouterApi> {
    Arc::new(RouterApi(Mutex::default(), number))
}

/// Starts a node with an empty slot for a router.
fn node_with_slot() -> (Node, Arc<RouterSlot>) {
    let slot = Arc::new(RouterSlot::new());
    let node = Node::start(|listener| {
        let tier2: Arc<dyn Tier2Api> = slot.clone();
        let mapping: Arc<dyn MappingApi> = slot.clone();
        tier2::serve(serve(listener, &slot), &tier2, &mapping)
    });
    (node, slot)
}

/// Returns the number of the router that answers.
fn answering(tier2: &dyn Tier2Api) -> Result<u32, IndexError> {
    tier2.probe(&Builder::new().build(&[1])).map(|pairs| pairs[0].similarity.shared)
}

fn until(what: impl Fn() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(begin.elapsed() < Duration::from_secs(120), "the condition is not met in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn orders_reach_the_router_unchanged() {
    let router = Arc::new(RouterApi::default());
    let (node, slot) = node_with_slot();
    slot.install(router.clone(), 7);
    let remote = RemoteOrders::start(node.peer()).unwrap();
    let (page, content) = (PageId::from_bytes([1; 16]), ContentHash([2; 16]));
    let signature = Arc::new(Builder::new().build(&[1, 2, 3]));
    let search = Search { ticket: 3, client: ClientId(7) };
    let commands = vec![
        IndexCommand::Put { page, signature, search: Some(search) },
        IndexCommand::Remove { page, content },
        IndexCommand::Search { page, content, search },
    ];
    let (range, epoch) = (RangeId(1), Epoch(2));
    let orders = [
        Orders { range, epoch, first: 5, commands: Vec::new() },
        Orders { range, epoch, first: 5, commands },
    ];
    for orders in orders.clone() {
        remote.submit(orders).unwrap();
    }
    until(|| remote.waiting() == Ok(3) && router.0.lock().unwrap().len() == 2);
    assert_eq!(format!("{:?}", router.0.lock().unwrap()), format!("{orders:?}"));
    assert!(!remote.has_lost(range));
    remote.flush_batch().unwrap();
    until(|| remote.waiting() == Ok(0));
    // Dropping the last handle ends the thread.
    drop(remote);
}

/// The location of the router, which the test sets; unknown at first.
#[derive(Default)]
struct TestLocation(Mutex<Option<Box<dyn Fn() -> RouterLocation + Send>>>);

impl TestLocation {
    fn set(&self, at: impl Fn() -> RouterLocation + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(at));
    }
}

impl CurrentRouter for TestLocation {
    fn current(&self) -> Result<RouterLocation, IndexError> {
        let at = self.0.lock().unwrap();
        at.as_ref()
            .map(|at| at())
            .ok_or_else(|| IndexError::Unavailable("the location is unknown".to_owned()))
    }
}

#[test]
fn orders_follow_a_router_that_moves_and_losses_are_reported_once() {
    let range = RangeId(1);
    let (a, b, c) = (router(1), router(2), router(3));
    let ((first, first_slot), (second, second_slot)) = (node_with_slot(), node_with_slot());
    let place = Arc::new(TestLocation::default());
    let remote = RemoteOrders::start_at(place.clone()).unwrap();
    let submit = |from: u64, to: u64| {
        for first in from..=to {
            let remove =
                IndexCommand::Remove { page: PageId::from_bytes([1; 16]), content: ContentHash([2; 16]) };
            remote.submit(Orders { range, epoch: Epoch(1), first, commands: vec![remove] }).unwrap();
        }
    };
    // The location of the router is unknown, so the orders wait.
    submit(1, 2);
    assert_eq!(answering(&*remote), Err(IndexError::Unavailable("the location is unknown".to_owned())));
    first_slot.install(a.clone(), 11);
    let peer = first.peer();
    place.set(move || RouterLocation::There(peer.clone()));
    submit(3, 3);
    until(|| a.firsts() == [1, 2, 3]);
    assert_eq!(answering(&*remote), Ok(1));
    assert!(!remote.has_lost(range), "the first known router has lost nothing");
    // The router leaves, and appears on another node later. In between, no order is accepted, and none is
    // dropped.
    first_slot.clear();
    submit(4, 4);
    let peer = second.peer();
    place.set(move || RouterLocation::There(peer.clone()));
    let not_here = IndexError::Unavailable("the router of the index is not at this node".to_owned());
    assert_eq!(answering(&*remote), Err(not_here));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!remote.has_lost(range) && remote.waiting().is_ok_and(|waiting| waiting >= 1));
    second_slot.install(b.clone(), 12);
    until(|| remote.has_lost(range));
    submit(1, 5);
    until(|| b.firsts() == [1, 2, 3, 4, 5]);
    assert!(!remote.has_lost(range), "the loss was reported before");
    // A router in this process is called directly.
    let here = c.clone();
    place.set(move || RouterLocation::Here(here.clone(), 13));
    until(|| remote.has_lost(range));
    drop((first, second));
    submit(1, 6);
    until(|| c.firsts() == [1, 2, 3, 4, 5, 6]);
    assert_eq!(answering(&*remote), Ok(3));
    assert!(!remote.has_lost(range), "the loss was reported before");
    assert_eq!((a.firsts().len(), b.firsts().len()), (3, 5));
}

#[test]
fn calls_go_to_the_present_router() {
    let ((first, first_slot), (second, second_slot)) = (node_with_slot(), node_with_slot());
    let place = Arc::new(Mutex::new(None));
    let at = Arc::clone(&place);
    let nodes = [&first, &second].map(|node| RemoteTier2::new(node.peer()));
    let routed = RoutedTier2::new(nodes.to_vec(), move || *at.lock().unwrap());
    let unknown = || IndexError::Unavailable("it is not known where the router of the index is".to_owned());
    let not_here = || IndexError::Unavailable("the router of the index is not at this node".to_owned());
    for nowhere in [None, Some(2)] {
        *place.lock().unwrap() = nowhere;
        assert_eq!(answering(&routed), Err(unknown()));
        assert_eq!(routed.cancel(), Err(RebalanceError::Unavailable(unknown())));
    }
    first_slot.install(router(1), 11);
    *place.lock().unwrap() = Some(0);
    assert_eq!((answering(&routed), routed.cancel()), (Ok(1), Err(RebalanceError::NothingToCancel)));
    *place.lock().unwrap() = Some(1);
    assert_eq!(answering(&routed), Err(not_here()));
    assert_eq!(routed.cancel(), Err(RebalanceError::Unavailable(not_here())));
    first_slot.clear();
    second_slot.install(router(2), 12);
    assert_eq!((answering(&routed), answering(&*first_slot)), (Ok(2), Err(not_here())));
    second_slot.install(router(3), 13);
    assert_eq!(answering(&routed), Ok(3));
    let orders = Orders { range: RangeId(1), epoch: Epoch(1), first: 1, commands: Vec::new() };
    assert_eq!(first_slot.submit(orders.clone()).unwrap_err().error, not_here());
    second_slot.submit(orders).unwrap();
    assert!(!second_slot.has_lost(RangeId(1)));
}
