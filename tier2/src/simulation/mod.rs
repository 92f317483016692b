//! The index without its thread, for the simulation (feature `simulation`): passes, changes of the plan, deaths of
//! nodes and reopening happen when they are asked for.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

mod slot;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, NodeId, PageId, RangeId};
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::{ContentSource, Orders, Pair, RebalanceError, RebalanceRequest, RefusedOrders, Repeat};
use hashbrown::HashSet;

use crate::embedded::Parts;
use crate::node::columns::Center;
use crate::node::snapshot::SNAPSHOT;
use crate::node::{LocalNode, SIGNATURES};
use crate::router::stored_requests::Requested;
use crate::router::{Pass, Router, RouterError};
use crate::setup::{self, node_dir};
use crate::state_files::{PLAN, REQUESTS};
use crate::{Config, Error};
use slot::Slot;

pub use slot::Faults;

/// An open index.
pub struct Index {
    config: Config,
    source: Arc<dyn ContentSource>,
    router: Router,
    slots: Vec<Arc<Slot>>,
    /// The pass that is under way.
    pass: Mutex<Pass>,
    _lock: std::fs::File,
}

/// A page that a node says is to be searched for again, until its range has taken it.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    pub node: usize,
    pub range: RangeId,
    pub repeat: Repeat,
}

impl Index {
    /// Opens the index of a directory for exactly tier 1's contents, as [`Tier2::open`](crate::Tier2::open) does.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub fn open(config: Config, source: Arc<dyn ContentSource>) -> Result<Self, Error> {
        let slots: Vec<Arc<Slot>> = (0..config.nodes).map(|_| Arc::default()).collect();
        let seen = |node: &Arc<LocalNode>| {
            let free = slots.iter().find(|slot| slot.get().is_none());
            let slot = Arc::clone(free.unwrap_or(&slots[0]));
            slot.set(Some(Arc::clone(node)));
            slot as Arc<dyn IndexNode>
        };
        let Parts { router, lock, .. } = Parts::open(config.clone(), Arc::clone(&source), None, seen)?;
        router.feed_lost()?;
        Ok(Self { config, source, router, slots, pass: Mutex::default(), _lock: lock })
    }

    /// Calls between the router and the nodes fail like this from now on.
    pub fn set_faults(&self, faults: Faults, seed: u64) {
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

    /// Takes orders of a range in their order; those that were not handed over before are to be part of a pass.
    ///
    /// # Errors
    /// When some are missing before them, or the range has another owner by now.
    pub fn accept(&self, orders: Orders) -> Result<Option<Orders>, RefusedOrders> {
        self.router.accept(orders)
    }

    /// Stores orders that were accepted, or goes on with those that wait for a node, and makes one round of searches. Whether no node has
    /// failed. Results go to the source.
    pub fn pass(&self, orders: Option<Orders>) -> bool {
        let mut pass = self.pass.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orders) = orders {
            assert!(!pass.has_failed(), "one step at a time");
            pass.take(&self.router, orders);
        }
        let made = pass.store(&self.router).and_then(|()| pass.search(&self.router));
        if made.is_err() {
            drop(pass);
            self.tend();
        }
        made.is_ok()
    }

    /// Feeds the nodes that have died and come back; whether all nodes are what they should be.
    pub fn tend(&self) -> bool {
        self.router.check_nodes();
        if self.router.has_lost() {
            self.router.work();
        }
        !self.router.has_lost()
    }

    /// Pages of these ranges that nodes say are to be searched for again.
    #[must_use]
    pub fn repeats(&self, ranges: &[RangeId]) -> Vec<Waiting> {
        let mut all = Vec::new();
        for (node, slot) in self.slots.iter().enumerate() {
            let Some(alive) = slot.get() else { continue };
            for range in ranges.iter().copied() {
                let repeats = alive.waiting_repeats(range).into_iter();
                all.extend(repeats.map(|repeat| Waiting { node, range, repeat }));
            }
        }
        all
    }

    /// A repeat was taken by its range, for good.
    pub fn acknowledge(&self, node: usize, range: RangeId, through: u64) {
        if let Some(node) = self.slots[node].get() {
            node.forget_repeats(range, through);
        }
    }

    /// A node dies. What is in its memory alone is gone.
    pub fn kill(&self, node: usize, flush: bool) {
        if let Some(dead) = self.slots[node].get().filter(|_| flush) {
            dead.flush();
        }
        self.slots[node].set(None);
    }

    /// Whether a node is there.
    #[must_use]
    pub fn is_alive(&self, node: usize) -> bool {
        self.slots[node].get().is_some()
    }

    /// A node starts, from its files.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn start(&self, node: usize) -> Result<(), Error> {
        let config =
            setup::node_config(&self.config, NodeId(node as u32), None, crate::numbers::incarnation());
        self.slots[node].set(Some(Arc::new(LocalNode::open(config, self.source.clone())?)));
        Ok(())
    }

    /// Compares a signature that is not stored; none where a node does not answer.
    #[must_use]
    pub fn probe(&self, signature: &Signature) -> Option<Vec<Pair>> {
        self.router.probe(signature).ok()
    }

    /// Begins a change of the plan, whichever, or requests or cancels one.
    ///
    /// # Errors
    /// When there cannot be such a plan, or a request cannot be stored.
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
            // The last node that serves cannot be drained.
            7 => drop(request(RebalanceRequest::Drain { node })),
            11 => drop(self.router.request(Requested { request: RebalanceRequest::Learn, planned: None })?),
            15 => request(RebalanceRequest::Join { node })?,
            _ => {
                if let Err(RouterError::Mapping(error)) = self.router.begin_any(dice) {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Forgets which of the copied contents passes have changed: a planted mistake, which the checks must find.
    pub fn forget_changes(&self) {
        for node in self.slots.iter().filter_map(|slot| slot.get()) {
            node.with_core(|core| {
                let changed = core.tables.partitions.iter_mut().filter_map(|one| one.changed.as_mut());
                changed.for_each(HashSet::clear);
            });
        }
    }

    /// Makes every entry name the one before it as its second center, whether or not they are partners: a planted
    /// mistake, which the checks must find.
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

    /// One step of a change of the plan, or of the cleaning up after it.
    pub fn work(&self) {
        self.router.work();
    }

    /// Writes snapshots, as far as nodes can now.
    pub fn save(&self) {
        drop(self.router.save_now());
        self.slots.iter().filter_map(|slot| slot.get()).for_each(|node| node.finish_snapshot());
    }

    /// Writes what is in memory alone to the files. Without it, it is lost with the index.
    pub fn flush(&self) {
        self.slots.iter().filter_map(|slot| slot.get()).for_each(|node| node.flush());
    }

    /// Index of the last order of a range that all nodes have acknowledged.
    #[must_use]
    pub fn acknowledged(&self, range: RangeId) -> u64 {
        self.router.acknowledged(range)
    }

    /// Whether a page is in the index, under any content.
    #[must_use]
    pub fn has(&self, page: PageId) -> bool {
        self.pages().iter().any(|(stored, _)| *stored == page)
    }

    /// Every content and page that is stored.
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

/// The files of an index: those of each node, the plan, the request.
#[must_use]
pub fn files(config: &Config) -> Vec<PathBuf> {
    let nodes = (0..config.nodes as usize).flat_map(|node| node_files(config, node));
    nodes.chain([PLAN, REQUESTS].map(|name| config.dir.join(name))).collect()
}

/// The files of a node: its signatures, its snapshot.
#[must_use]
pub fn node_files(config: &Config, node: usize) -> [PathBuf; 2] {
    let dir = config.dir.join(node_dir(NodeId(node as u32)));
    [SIGNATURES, SNAPSHOT].map(|name| dir.join(name))
}
