//! The index without its thread, for the simulation (feature `simulation`): passes, changes of the plan, deaths of
//! nodes and reopening happen when they are asked for.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

mod slot;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, NodeId, PageId, RangeId};
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::{ContentSource, IndexCommand, Orders, Pair, RebalanceError, RebalanceRequest, Repeat};
use hashbrown::HashSet;

use crate::embedded::{self, Parts, node_dir};
use crate::node::{LocalNode, SIGNATURES};
use crate::router::requests::Requested;
use crate::router::{PLAN, Pass, REQUESTS, Router, RouterError};
use crate::{Config, Error};
use slot::Slot;

pub use slot::Faults;

/// The one range.
const RANGE: RangeId = RangeId(0);

/// An open index.
pub struct Index {
    config: Config,
    source: Arc<dyn ContentSource>,
    router: Router,
    slots: Vec<Arc<Slot>>,
    /// The pass that is under way, and the orders handed over.
    pass: Mutex<(Option<Pass>, u64)>,
    _lock: std::fs::File,
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
        let Parts { router, lock, .. } = Parts::open(config.clone(), Arc::clone(&source), seen)?;
        Ok(Self { config, source, router, slots, pass: Mutex::default(), _lock: lock })
    }

    /// Calls between the router and the nodes fail like this from now on.
    pub fn set_faults(&self, faults: Faults, seed: u64) {
        (0_u64..).zip(&self.slots).for_each(|(number, slot)| slot.set_faults(faults, seed ^ number));
    }

    /// Whether a pass waits for a node.
    #[must_use]
    pub fn has_pass(&self) -> bool {
        self.pass.lock().unwrap_or_else(PoisonError::into_inner).0.is_some()
    }

    /// Makes a pass over a batch of orders, or goes on with the one that waits, and does what is due after it; whether
    /// it is done. Results go to the source.
    pub fn pass(&self, orders: Vec<IndexCommand>) -> bool {
        let mut waiting = self.pass.lock().unwrap_or_else(PoisonError::into_inner);
        let (pass, handed) = &mut *waiting;
        let pass = match pass {
            Some(pass) => {
                assert!(orders.is_empty(), "one pass at a time");
                pass
            }
            None => {
                let first = *handed + 1;
                *handed += orders.len() as u64;
                let orders = Orders { range: RANGE, plan_version: Epoch(1), first, commands: orders };
                pass.insert(Pass::new(&self.router, orders))
            }
        };
        if pass.run(&self.router).is_err() {
            drop(waiting);
            self.tend();
            return false;
        }
        waiting.0 = None;
        true
    }

    /// Searches after nodes that have died; whether all of them are what they should be.
    pub fn tend(&self) -> bool {
        self.router.check_nodes();
        if self.router.has_lost() {
            self.router.work();
        }
        !self.router.has_lost()
    }

    /// Pages that nodes say are to be searched for again.
    #[must_use]
    pub fn repeats(&self) -> Vec<(usize, Repeat)> {
        let nodes = (0..).zip(&self.slots).filter_map(|(number, slot)| Some((number, slot.get()?)));
        nodes
            .flat_map(|(number, node)| node.waiting_repeats(RANGE).into_iter().map(move |r| (number, r)))
            .collect()
    }

    /// A repeat was taken by its range, for good.
    pub fn acknowledge(&self, node: usize, through: u64) {
        if let Some(node) = self.slots[node].get() {
            node.forget_repeats(RANGE, through);
        }
    }

    /// A node dies. What is in its memory alone is gone.
    pub fn kill(&self, node: usize, flush: bool) {
        if let Some(dead) = self.slots[node].get().filter(|_| flush) {
            dead.flush();
        }
        self.slots[node].set(None);
    }

    /// A node starts, from its files.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn start(&self, node: usize) -> Result<(), Error> {
        let config = embedded::node_config(&self.config, NodeId(node as u32), None, embedded::incarnation());
        self.slots[node].set(Some(Arc::new(LocalNode::open(config, Arc::clone(&self.source))?)));
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
        let node = (dice >> 8) as u32 % self.config.nodes;
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

    /// Forgets what passes changed of the contents that were copied already: a mistake, for the proof that it is seen.
    pub fn forget_changes(&self) {
        for node in self.slots.iter().filter_map(|slot| slot.get()) {
            node.with_core(|core| {
                let changed = core.tables.partitions.iter_mut().filter_map(|one| one.changed.as_mut());
                changed.for_each(HashSet::clear);
            });
        }
    }

    /// One step of a change of the plan, or of the cleaning up after it.
    pub fn work(&self) {
        self.router.work();
    }

    /// Writes what is in memory alone to the files. Without it, it is lost with the index.
    pub fn flush(&self) {
        self.slots.iter().filter_map(|slot| slot.get()).for_each(|node| node.flush());
    }

    /// Orders that all nodes have acknowledged, and those handed over.
    #[must_use]
    pub fn acknowledged(&self) -> (u64, u64) {
        let handed = self.pass.lock().unwrap_or_else(PoisonError::into_inner).1;
        (self.router.acknowledged(RANGE), handed)
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

/// The files of an index: the signatures of each node, the plan, the request.
#[must_use]
pub fn files(config: &Config) -> Vec<PathBuf> {
    let signatures = (0..config.nodes as usize).map(|node| node_file(config, node));
    signatures.chain([PLAN, REQUESTS].map(|name| config.dir.join(name))).collect()
}

/// The file of a node.
#[must_use]
pub fn node_file(config: &Config, node: usize) -> PathBuf {
    config.dir.join(node_dir(NodeId(node as u32))).join(SIGNATURES)
}
