//! From one plan to the next while everything goes on (G7).
//!
//! Every partition of the next plan that is not there under the same id on the same node is filled beside the present
//! ones, in steps between the passes. Passes go on under the present plan; when they change a content whose partition
//! is being copied, its node notes that, and the content is copied again. When nothing is left to copy, the next plan is
//! stored and takes the place of the present one between two passes. The partitions of before are dropped afterwards,
//! in steps as well. So a split, a join, a move to another node and a map learned anew are one operation.
//!
//! A crash leaves the one plan or the other to the next start, and the partitions are made from tier 1's contents at the
//! next start. A migration that is cancelled, or loses a node, is given up: what came is dropped.
//!
//! Invariants:
//! - nobody searches an incoming partition, nor an outgoing one;
//! - at the switch, every content of a partition that goes is in exactly one that comes, its home under the next plan,
//!   with the same pages and the same first page (its copies have named that one and nobody else).

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use doppel_model::{ContentHash, NodeId, PartitionId};
use doppel_partitioning::{MappingError, PartitionAssignment, Plan};
use doppel_protocol::index_node::{
    ENTRIES_MAX, EntriesFrom, EntriesPage, EntriesRequest, Home, HostedPartition, IngestBatch, MovedEntry,
};
use doppel_protocol::{IndexStateError, RebalanceOutcome, RebalanceProgress, RebalanceRequest};

use super::stored_plan::{self, LearnedFrom};
use super::{Router, RouterError, lock};

/// If at most this many contents are left to copy again, they are copied and the switch is made before the next pass.
const LAST_MAX: u64 = 8_192;

/// A change of the plan that is under way.
#[derive(Debug)]
pub(crate) struct Migration {
    next: Arc<Plan>,
    learned: LearnedFrom,
    /// Partitions that go, by their node.
    sources: Vec<Source>,
    /// The source that is being copied.
    at: usize,
    /// Partitions that come.
    targets: HashMap<PartitionId, NodeId>,
    copied: u64,
    contents: u64,
    changed: u64,
    /// The request that it is for.
    request: Option<RebalanceRequest>,
    began: Instant,
}

/// Partitions of one node that go.
#[derive(Debug)]
struct Source {
    node: NodeId,
    partitions: Vec<PartitionId>,
    from: EntriesFrom,
    /// Number of the last answer with what has changed.
    changes: u64,
}

impl Migration {
    /// Prepares the partitions that come.
    ///
    /// # Errors
    /// When the plan is not one that can follow the present one, or a node does not answer.
    pub(crate) fn begin(
        router: &Router,
        next: Plan,
        learned: LearnedFrom,
        request: Option<RebalanceRequest>,
    ) -> Result<Self, RouterError> {
        let present = router.plan();
        next.check_succeeds(&present)?;
        if next.nodes() as usize != router.nodes.len() {
            return Err(MappingError::Nodes(next.nodes()).into());
        }
        let mut incoming: HashMap<NodeId, Vec<HostedPartition>> = HashMap::new();
        let mut targets = HashMap::new();
        for (assignment, bounds) in next.assignments().iter().zip(next.map().bounds()) {
            if !present.assignments().contains(assignment) {
                let PartitionAssignment { node, id } = *assignment;
                incoming.entry(node).or_default().push(HostedPartition { id, bounds: *bounds });
                targets.insert(id, node);
            }
        }
        let mut going: HashMap<NodeId, Vec<PartitionId>> = HashMap::new();
        for assignment in
            present.assignments().iter().filter(|assignment| !next.assignments().contains(assignment))
        {
            going.entry(assignment.node).or_default().push(assignment.id);
        }
        let source = |(node, partitions)| Source { node, partitions, from: EntriesFrom::Start, changes: 0 };
        let mut sources: Vec<Source> = going.into_iter().map(source).collect();
        sources.sort_unstable_by_key(|source| source.node);
        let mut contents = 0;
        for Source { node, partitions, .. } in &sources {
            let load = router.call(*node, &present, |node, call| node.load(call))?;
            let here = load.partitions.iter().filter(|load| partitions.contains(&load.id));
            contents += here.map(|load| load.contents).sum::<u64>();
        }
        let this = Self {
            next: Arc::new(next),
            learned,
            sources,
            at: 0,
            targets,
            copied: 0,
            contents,
            changed: 0,
            request,
            began: Instant::now(),
        };
        for (node, partitions) in incoming {
            let hosted = this.host(router, &present, node, partitions);
            if hosted.is_err() {
                this.give_up(router);
                hosted?;
            }
        }
        Ok(this)
    }

    /// Tells a node what it has, and what comes.
    fn host(
        &self,
        router: &Router,
        plan: &Plan,
        node: NodeId,
        incoming: Vec<HostedPartition>,
    ) -> Result<(), RouterError> {
        let handle = router.handle(node);
        handle.drops.store(true, Ordering::Relaxed);
        let known = *lock(&handle.incarnation);
        // A router that has lost its place tells nodes nothing: they would begin anew for it.
        let ranges = router.state.check().map_err(RouterError::from);
        let ranges = ranges.and_then(|()| router.source.ranges().map_err(RouterError::from));
        let hosted = ranges.and_then(|ranges| {
            let hosting = router.hosting(plan, node, (&self.next, incoming), &ranges);
            handle.node.host(hosting).map_err(|error| RouterError::Node(node, error))
        });
        // A node that was not told, has not answered, or was started anew, is told again when all are back.
        if hosted.as_ref().ok() != known.as_ref() {
            *lock(&handle.incarnation) = None;
        }
        hosted.map(drop)
    }

    /// The outcome of the request that it carries out, if there is one.
    pub(crate) fn outcome(
        &self,
        present: &Plan,
        failed: Option<String>,
        cancelled: bool,
    ) -> Option<RebalanceOutcome> {
        self.request.map(|request| RebalanceOutcome {
            request,
            failed,
            cancelled,
            plan_version: present.map().version(),
            copied: self.copied,
            seconds: self.began.elapsed().as_secs_f64(),
        })
    }

    /// The request that it is for.
    pub(crate) fn request(&self) -> Option<RebalanceRequest> {
        self.request
    }

    pub(crate) fn progress(&self, plan_version: u64) -> RebalanceProgress {
        RebalanceProgress {
            plan_version,
            next_version: self.next.map().version(),
            copied: self.copied,
            contents: self.contents.max(self.copied),
            changed: self.changed,
            seconds: self.began.elapsed().as_secs_f64(),
        }
    }

    /// Copies some contents, or makes the switch; then whether the next plan is the present one.
    ///
    /// # Errors
    /// When a node does not answer, or the next plan cannot be stored now. The step is made again then.
    pub(crate) fn step(&mut self, router: &Router) -> Result<Option<bool>, RouterError> {
        if let Some(source) = self.sources.get(self.at) {
            let page = self.entries(router, source, source.from)?;
            self.place(router, &page)?;
            self.copied += page.entries.len() as u64;
            match page.next {
                Some(next) => self.sources[self.at].from = next,
                None => self.at += 1,
            }
            return Ok(None);
        }
        let mut left = self.copy_changed(router)?;
        if left > LAST_MAX {
            return Ok(None);
        }
        while left > 0 {
            left = self.copy_changed(router)?;
        }
        self.switch(router).map(Some)
    }

    fn entries(&self, router: &Router, of: &Source, from: EntriesFrom) -> Result<EntriesPage, RouterError> {
        let limit = router.config.step.min(ENTRIES_MAX);
        let request = EntriesRequest { partitions: of.partitions.clone(), from, limit };
        router.call(of.node, &router.plan(), |node, call| node.entries(call, request))
    }

    /// Copies some contents again that changed; how many are left.
    fn copy_changed(&mut self, router: &Router) -> Result<u64, RouterError> {
        let mut left = 0;
        for at in 0..self.sources.len() {
            let source = &self.sources[at];
            let page = self.entries(router, source, EntriesFrom::Changes(source.changes))?;
            self.place(router, &page)?;
            self.changed += page.changed.len() as u64;
            left += page.left;
            if let Some(EntriesFrom::Changes(number)) = page.next {
                self.sources[at].changes = number;
            }
        }
        Ok(left)
    }

    /// Stores copies in the partitions that come, in the place of earlier ones.
    fn place(&self, router: &Router, page: &EntriesPage) -> Result<(), RouterError> {
        let mut by_node: HashMap<NodeId, Vec<(MovedEntry, Home)>> = HashMap::new();
        for entry in &page.entries {
            let lengths = self.next.map().lexicon().lengths(&entry.signature);
            let (_, partition) = Router::place(&self.next, self.next.map().home(&lengths));
            if let Some(node) = self.targets.get(&partition) {
                by_node.entry(*node).or_default().push((entry.clone(), Home { partition, lengths }));
            }
        }
        let mut nodes: Vec<NodeId> = self.targets.values().copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let entries = by_node.remove(&node).unwrap_or_default();
            if entries.is_empty() && page.changed.is_empty() {
                continue;
            }
            let replaced: Vec<ContentHash> = page.changed.clone();
            let batch = IngestBatch::Entries { replaced, entries };
            let ingested = router.call(node, &router.plan(), |node, call| node.ingest(call, batch))?;
            router.handle(node).ingested(&ingested);
        }
        Ok(())
    }

    /// Stores the next plan and makes it the present one. When it cannot be stored, everything stays as it is: false.
    ///
    /// # Errors
    /// When it may be stored, or be another router's. Nothing has changed, and what was copied stays for the next try.
    fn switch(&self, router: &Router) -> Result<bool, RouterError> {
        let stored = stored_plan::store(&*router.state, &self.next, self.learned);
        if let Err(error @ IndexStateError::Unavailable(_)) = stored {
            // Whatever becomes of this change, what is kept is to be the plan that is served.
            router.plan_is_unsure.store(true, Ordering::Relaxed);
            return Err(error.into());
        }
        if let Err(error) = stored {
            tracing::error!(%error, "the next plan cannot be stored; the present one stays");
            self.give_up(router);
            // Not again at once: it would copy everything for nothing, for ever.
            let mut mapped = lock(&router.mapped);
            mapped.learned = Some(self.learned);
            mapped.contents_when_planned = router.contents();
            return Ok(false);
        }
        for handle in &router.nodes {
            if let Err(error) = self.host(router, &self.next, handle.id, Vec::new()) {
                tracing::warn!(node = %handle.id, %error, "a node has not heard of the next plan; it is told again");
            }
        }
        router.plan_is_unsure.store(false, Ordering::Relaxed);
        router.adopt(Arc::clone(&self.next), self.learned);
        let (plan_version, seconds) = (self.next.map().version(), self.began.elapsed().as_secs_f64());
        let (copied, again) = (self.copied, self.changed);
        tracing::info!(plan_version, copied, again, seconds, "the next plan is the present one");
        Ok(true)
    }

    /// The present plan stays: what came goes again.
    pub(crate) fn give_up(&self, router: &Router) {
        let present = router.plan();
        for handle in &router.nodes {
            if let Err(error) = self.host(router, &present, handle.id, Vec::new()) {
                tracing::warn!(node = %handle.id, %error, "a node has not heard that nothing comes; it is told again");
            }
        }
    }
}

impl Router {
    /// The next plan is the present one.
    fn adopt(&self, plan: Arc<Plan>, learned: LearnedFrom) {
        lock(&self.mapped).learned = Some(learned);
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = plan;
        self.counts.reset();
        // What a node had is not what it has.
        let range = lock(&self.positions).keys().next().copied().unwrap_or_default();
        for handle in &self.nodes {
            if let Ok(applied) = handle.node.applied(range) {
                handle.told(&applied);
            }
        }
    }
}
