//! Orders to a router.

use std::sync::Mutex;

use doppel_model::{ContentHash, Epoch, RangeId};
use doppel_protocol::{
    IndexCommand, IndexError, IndexOrders, LoadReport, Orders, Pair, PartitionLookup, RefusedOrders, Search,
    Tier2Api,
};

use super::*;
use crate::orders::{RemoteOrders, serve};

/// A router that keeps the orders.
#[derive(Default)]
struct Router(Mutex<Vec<Orders>>);

impl IndexOrders for Router {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        self.0.lock().unwrap().push(orders);
        Ok(())
    }
}

impl Tier2Api for Router {
    fn probe(&self, _: &Signature) -> Result<Vec<Pair>, IndexError> {
        unreachable!("nobody asks")
    }

    fn locate(&self, _: &Signature) -> Result<PartitionLookup, IndexError> {
        unreachable!("nobody asks")
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        unreachable!("nobody asks")
    }

    fn waiting(&self) -> Result<usize, IndexError> {
        Ok(self.0.lock().unwrap().iter().map(|orders| orders.commands.len()).sum())
    }

    fn flush_batch(&self) -> Result<(), IndexError> {
        self.0.lock().unwrap().clear();
        Ok(())
    }
}

fn until(what: impl Fn() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it does not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn orders_come_to_the_router_as_they_were_given() {
    let router = Arc::new(Router::default());
    let served: Arc<dyn IndexOrders> = router.clone();
    let node = Node::start(|listener| serve(listener, &served, 7));
    let remote = RemoteOrders::start(node.peer()).unwrap();
    let (page, content) = (PageId::from_bytes([1; 16]), ContentHash([2; 16]));
    let signature = Arc::new(Builder::new().build(&[1, 2, 3]));
    let search = Search { ticket: 3 };
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
    // The last handle ends the thread.
    drop(remote);
}
