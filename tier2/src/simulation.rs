//! The index without its thread, for the simulation (feature `simulation`). Passes, plan changes, deaths of
//! nodes and reopening happen when the simulation calls for them.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

mod slot;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use doppel_contract::RebalanceRequest;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, NodeId, PageId, RangeId};
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::{ContentSource, Orders, RebalanceError, RefusedOrders, Repeat, VerifiedPartner};
use hashbrown::HashSet;

use crate::embedded::Parts;
use crate::node::partition::columns::Center;
use crate::node::snapshot::SNAPSHOT;
use crate::node::{LocalNode, SIGNATURES};
use crate::router::persistence::stored_requests::StoredRequest;
use crate::router::{Pass, Router, RouterError};
use crate::setup::{self, node_dir};
use crate::state_files::{PLAN, REQUESTS};
use crate::{Config, Error};
use slot::Slot;

pub use slot::CallFaults;

/// An open index without a thread.
pub struct SimulatedIndex {
    config: Config,
    source: Arc<dyn ContentSource>,
    router: Router,
    slots: Vec<Arc<Slot>>,
    /// The pass that is under way.
    pass: Mutex<Pass>,
    _lock: std::fs::File,
}

/// A page that a node reports as to be searched for again. It waits until its range takes it.
#[derive(Debug, Clone, Copy)]
pub struct WaitingRepeat {
    pub node: usize,
    pub range: RangeId,
    pub repeat: Repeat,
}

impl SimulatedIndex {
    /// Opens the index of a directory, and feeds it the contents of tier 1, as
    /// [`Tier2::open`](crate::Tier2::open) does.
    ///
    /// # Errors
    /// Fails if the directory cannot be used.
    pub fn open(config: Config, source: Arc<dyn ContentSource>) -> Result<Self, Error> {
        let slots: Vec<Arc<Slot>> = (0..config.nodes).map(|_| Arc::default()).collect();
        let wrap = |node: &Arc<LocalNode>| {
            let free = slots.iter().find(|slot| slot.get().is_none());
            let slot = Arc::clone(free.unwrap_or(&slots[0]));
            slot.set(Some(Arc::clone(node)));
            slot as Arc<dyn IndexNode>
        };
        let Parts { router, lock, .. } = Parts::open(config.clone(), Arc::clone(&source), None, wrap)?;
        router.feed_lost_nodes()?;
        Ok(Self { config, source, router, slots, pass: Mutex::default(), _lock: lock })
    }

    /// Sets how calls between the router and the nodes fail from now on.
    pub fn set_faults(&self, faults: CallFaults, seed: u64) {
        (0_u64..).zip(&self.slots).for_each(|(number, slot)| slot.set_faults(faults, seed ^ number));
    }

    /// Whether a pass waits for a node.
    #[must_use]
    pub fn has_pass(&self) -> bool {
        self.pass.lock().unwrap_or_else(PoisonError::into_inner).has_failed()
    }

    /// Whether searches wait for their turn.
    #[must_use]
    pub fn has_searches(&self) -> bool {
        self.pass.lock().unwrap_or_else(PoisonError::into_inner).has_searches()
    }

    /// Accepts orders of a range in sequence. Returns the orders that are new and belong into a pass.
    ///
    /// # Errors
    /// Fails if earlier orders are missing, or the range has another owner by now.
    pub fn accept(&self, orders: Orders) -> Result<Option<Orders>, RefusedOrders> {
        self.router.accept(orders)
    }

    /// Stores accepted orders, or repeats a step that failed, and makes one round of searches. Results go to
    /// the source. Returns `false` if a node has failed.
    pub fn pass(&self, orders: Option<Orders>) -> bool {
        let mut pass = self.pass.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orders) = orders {
            assert!(!pass.has_failed(), "a failed step must be repeated before the pass takes new orders");
            pass.take(&self.router, orders);
        }
        let made = pass.store(&self.router).and_then(|()| pass.search(&self.router));
        if made.is_err() {
            drop(pass);
            self.tend();
        }
        made.is_ok()
    }

    /// Has the router feed the nodes that were started anew. Returns `false` if a node still has to be told
    /// what to host.
    pub fn tend(&self) -> bool {
        self.router.check_nodes();
        if self.router.has_lost_nodes() {
            self.router.run_step();
        }
        !self.router.has_lost_nodes()
    }

    /// Pages of these ranges that nodes report as to be searched for again.
    #[must_use]
    pub fn repeats(&self, ranges: &[RangeId]) -> Vec<WaitingRepeat> {
        let mut all = Vec::new();
        for (node, slot) in self.slots.iter().enumerate() {
            let Some(alive) = slot.get() else { continue };
            for range in ranges.iter().copied() {
                let repeats = alive.waiting_repeats(range).into_iter();
                all.extend(repeats.map(|repeat| WaitingRepeat { node, range, repeat }));
            }
        }
        all
    }

    /// Tells a node that a range has taken its repeats up to this number.
    pub fn acknowledge(&self, node: usize, range: RangeId, through: u64) {
        if let Some(node) = self.slots[node].get() {
            node.forget_repeats(range, through);
        }
    }

    /// Kills a node at once. The node loses what is only in memory, unless `flush`.
    pub fn kill(&self, node: usize, flush: bool) {
        if let Some(dead) = self.slots[node].get().filter(|_| flush) {
            dead.flush();
        }
        self.slots[node].set(None);
    }

    /// Whether a node is running.
    #[must_use]
    pub fn is_alive(&self, node: usize) -> bool {
        self.slots[node].get().is_some()
    }

    /// Starts a node from its files.
    ///
    /// # Errors
    /// Fails if the files cannot be used.
    pub fn start(&self, node: usize) -> Result<(), Error> {
        let config = setup::node_config(
            &self.config,
            NodeId(node as u32),
            None,
            crate::incarnations::next_incarnation(),
        );
        self.slots[node].set(Some(Arc::new(LocalNode::open(config, self.source.clone())?)));
        Ok(())
    }

    /// Compares a signature, which need not be stored, with the stored contents. `None` if a node does not
    /// answer.
    #[must_use]
    pub fn probe(&self, signature: &Signature) -> Option<Vec<VerifiedPartner>> {
        self.router.probe(signature).ok()
    }

    /// Begins a random change of the plan, or requests or cancels one.
    ///
    /// # Errors
    /// Fails if there is no such plan, or a request cannot be stored.
    pub fn change(&self, dice: u64) -> Result<(), Error> {
        let node = NodeId((dice >> 8) as u32 % self.config.nodes);
        let request = |request| -> Result<(), Error> {
            match self.router.rebalance(request, false) {
                Err(RebalanceError::Mapping(error)) => Err(error.into()),
                Ok(_) | Err(_) => Ok(()),
            }
        };
        match dice % 16 {
            3 => drop(self.router.cancel()),
            // Fails for the last serving node, which cannot be drained.
            7 => drop(request(RebalanceRequest::Drain { node })),
            11 => {
                let learn = StoredRequest { request: RebalanceRequest::Learn, planned: None };
                self.router.request(learn)?;
            }
            15 => request(RebalanceRequest::Join { node })?,
            _ => {
                if let Err(RouterError::Mapping(error)) = self.router.begin_random_change(dice) {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Forgets which of the copied contents have changed. This is a planted mistake, which the checks must
    /// find.
    pub fn forget_changes(&self) {
        for node in self.slots.iter().filter_map(|slot| slot.get()) {
            node.with_core(|core| {
                let changed = core.tables.partitions.iter_mut().filter_map(|one| one.changed.as_mut());
                changed.for_each(HashSet::clear);
            });
        }
    }

    /// Sets the second center of every entry to the next older entry, even if they are not partners. This is
    /// a planted mistake, which the checks must find.
    pub fn name_false_centers(&self) {
        for node in self.slots.iter().filter_map(|slot| slot.get()) {
            node.with_core(|core| {
                let tables = &mut core.tables;
                let mut entries: Vec<_> = tables.entries().map(|at| (tables.insert_seq(at), at)).collect();
                entries.sort_unstable();
                for (before, (_, entry)) in entries.iter().zip(entries.iter().skip(1)) {
                    let center = Center { insert_seq: before.0, distance: 0 };
                    tables.partition_mut(*entry).columns.set_second_center(entry.slot, center);
                }
            });
        }
    }

    /// Makes one step of a plan change, or of the dropping that follows it.
    pub fn work(&self) {
        self.router.run_step();
    }

    /// Writes snapshots on all nodes that can write one now.
    pub fn save(&self) {
        drop(self.router.save_now());
        self.slots.iter().filter_map(|slot| slot.get()).for_each(|node| node.finish_snapshot());
    }

    /// Writes to the files what is only in memory. Otherwise it is lost with the index.
    pub fn flush(&self) {
        self.slots.iter().filter_map(|slot| slot.get()).for_each(|node| node.flush());
    }

    /// Index of the last order of a range that all nodes have acknowledged.
    #[must_use]
    pub fn acknowledged(&self, range: RangeId) -> u64 {
        self.router.acknowledged(range)
    }

    /// Whether the index stores a page, with any content.
    #[must_use]
    pub fn has(&self, page: PageId) -> bool {
        self.pages().iter().any(|(stored, _)| *stored == page)
    }

    /// All stored pages with their contents.
    #[must_use]
    pub fn pages(&self) -> Vec<(PageId, ContentHash)> {
        let mut pages = Vec::new();
        for node in self.slots.iter().filter_map(|slot| slot.get()) {
            let core = node.read();
            for entry in core.tables.entries() {
                let partition = core.tables.partition(entry);
                let content = partition.columns.content(entry.slot);
                pages.extend(partition.pages_of(entry.slot).map(|page| (page, content)));
            }
        }
        pages.sort_unstable();
        pages
    }
}

/// The files of an index: those of each node, the plan, and the requests.
#[must_use]
pub fn files(config: &Config) -> Vec<PathBuf> {
    let nodes = (0..config.nodes as usize).flat_map(|node| node_files(config, node));
    nodes.chain([PLAN, REQUESTS].map(|name| config.dir.join(name))).collect()
}

/// The files of a node: its signatures and its snapshot.
#[must_use]
pub fn node_files(config: &Config, node: usize) -> [PathBuf; 2] {
    let dir = config.dir.join(node_dir(NodeId(node as u32)));
    [SIGNATURES, SNAPSHOT].map(|name| dir.join(name))
}
