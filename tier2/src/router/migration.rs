//! Migration: changes from one plan to the next while the index goes on working (G7).
//!
//! The partitions of the next plan that no node has yet are filled beside the present partitions. The
//! migration copies entries in steps between the passes, and passes go on under the present plan. If a pass
//! changes a content of a partition that is being copied, its node notes the content, and the migration
//! copies it again. When nothing is left to copy, the migration stores the next plan, and makes the switch to
//! it between two passes. Afterwards the nodes drop the old partitions, also in steps. Splits, joins, moves
//! to another node, and a map that is learned anew are therefore one operation.
//!
//! After a crash, the next start finds either the one plan or the other, and builds its partitions from the
//! contents of tier 1. If the operator cancels a migration, or a node is lost, the migration gives up: nodes
//! drop the incoming partitions.
//!
//! Invariants:
//! - No search reads an incoming or an outgoing partition.
//! - At the switch, every content of an outgoing partition is in exactly one incoming partition, its home
//!   under the next plan. It has the same pages and the same first page. The latter matters because copies of
//!   a content name only its first page.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use doppel_contract::{RebalanceOutcome, RebalanceProgress, RebalanceRequest};
use doppel_model::{ContentHash, NodeId, PartitionId};
use doppel_partitioning::{MappingError, PartitionAssignment, Plan};
use doppel_protocol::IndexStateError;
use doppel_protocol::index_node::{
    ENTRIES_MAX, EntriesFrom, EntriesPage, EntriesRequest, HomePartition, HostedPartition, IngestBatch,
    MovedEntry,
};

use super::persistence::stored_plan::{self, LearningBasis};
use super::{Router, RouterError, lock};

/// The switch needs all changed contents copied before the next pass. It is made once at most this many are
/// left.
const SWITCH_CHANGES_MAX: u64 = 8_192;

/// A change of the plan that is under way.
#[derive(Debug)]
pub(crate) struct Migration {
    next: Arc<Plan>,
    learned: LearningBasis,
    /// The nodes with outgoing partitions, in ascending order.
    sources: Vec<OutgoingPartitions>,
    /// Index in `sources` of the node whose outgoing partitions are being copied.
    at: usize,
    /// Node of each incoming partition.
    targets: HashMap<PartitionId, NodeId>,
    copied: u64,
    contents: u64,
    changed: u64,
    /// The operator's request that this change carries out, if any.
    request: Option<RebalanceRequest>,
    began: Instant,
}

/// The outgoing partitions of one node.
#[derive(Debug)]
struct OutgoingPartitions {
    node: NodeId,
    partitions: Vec<PartitionId>,
    from: EntriesFrom,
    /// Number of the last answer with changed contents.
    changes: u64,
}

impl Migration {
    /// Prepares the incoming partitions on their nodes.
    ///
    /// # Errors
    /// Fails if the plan cannot follow the present one, or a node does not answer.
    pub(crate) fn begin(
        router: &Router,
        next: Plan,
        learned: LearningBasis,
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
        let mut outgoing: HashMap<NodeId, Vec<PartitionId>> = HashMap::new();
        for assignment in
            present.assignments().iter().filter(|assignment| !next.assignments().contains(assignment))
        {
            outgoing.entry(assignment.node).or_default().push(assignment.id);
        }
        let source = |(node, partitions)| OutgoingPartitions {
            node,
            partitions,
            from: EntriesFrom::Start,
            changes: 0,
        };
        let mut sources: Vec<OutgoingPartitions> = outgoing.into_iter().map(source).collect();
        sources.sort_unstable_by_key(|source| source.node);
        let mut contents = 0;
        for OutgoingPartitions { node, partitions, .. } in &sources {
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

    /// Tells a node which partitions to host under `plan`, and which come for the next plan.
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
        // A router that is no longer in charge must not call `host`: nodes would start anew for it.
        let ranges = router.state.check().map_err(RouterError::from);
        let ranges = ranges.and_then(|()| router.source.ranges().map_err(RouterError::from));
        let hosted = ranges.and_then(|ranges| {
            let hosting = router.hosting(plan, node, (&self.next, incoming), &ranges);
            handle.node.host(hosting).map_err(|error| RouterError::Node(node, error))
        });
        // If the node was not told, did not answer, or was started anew, the router tells it again later.
        if hosted.as_ref().ok() != known.as_ref() {
            *lock(&handle.incarnation) = None;
        }
        hosted.map(drop)
    }

    /// Outcome of the request that this change carries out. `None` if the change was not requested.
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

    /// The operator's request that this change carries out, if any.
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

    /// Copies some contents, or makes the switch. After the switch, returns whether the next plan is now the
    /// present one.
    ///
    /// # Errors
    /// Fails if a node does not answer, or if it is unknown whether the next plan is stored. The caller
    /// repeats the step.
    pub(crate) fn step(&mut self, router: &Router) -> Result<Option<bool>, RouterError> {
        if let Some(source) = self.sources.get(self.at) {
            let page = self.entries(router, source, source.from)?;
            self.store_copies(router, &page)?;
            self.copied += page.entries.len() as u64;
            match page.next {
                Some(next) => self.sources[self.at].from = next,
                None => self.at += 1,
            }
            return Ok(None);
        }
        let mut left = self.copy_changed(router)?;
        if left > SWITCH_CHANGES_MAX {
            return Ok(None);
        }
        while left > 0 {
            left = self.copy_changed(router)?;
        }
        self.switch(router).map(Some)
    }

    fn entries(
        &self,
        router: &Router,
        of: &OutgoingPartitions,
        from: EntriesFrom,
    ) -> Result<EntriesPage, RouterError> {
        let limit = router.config.step.min(ENTRIES_MAX);
        let request = EntriesRequest { partitions: of.partitions.clone(), from, limit };
        router.call(of.node, &router.plan(), |node, call| node.entries(call, request))
    }

    /// Copies some of the changed contents again. Returns how many are left.
    fn copy_changed(&mut self, router: &Router) -> Result<u64, RouterError> {
        let mut left = 0;
        for at in 0..self.sources.len() {
            let source = &self.sources[at];
            let page = self.entries(router, source, EntriesFrom::Changes(source.changes))?;
            self.store_copies(router, &page)?;
            self.changed += page.changed.len() as u64;
            left += page.left;
            if let Some(EntriesFrom::Changes(number)) = page.next {
                self.sources[at].changes = number;
            }
        }
        Ok(left)
    }

    /// Stores copies in the incoming partitions, where they replace earlier copies.
    fn store_copies(&self, router: &Router, page: &EntriesPage) -> Result<(), RouterError> {
        let mut by_node: HashMap<NodeId, Vec<(MovedEntry, HomePartition)>> = HashMap::new();
        for entry in &page.entries {
            let lengths = self.next.map().lexicon().lengths(&entry.signature);
            let (_, partition) = Router::assignment(&self.next, self.next.map().home(&lengths));
            if let Some(node) = self.targets.get(&partition) {
                by_node.entry(*node).or_default().push((entry.clone(), HomePartition { partition, lengths }));
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
            router.handle(node).record_ingested(&ingested);
        }
        Ok(())
    }

    /// Stores the next plan and makes it the present one. Returns `false` if the plan cannot be stored. Then
    /// the present plan stays.
    ///
    /// # Errors
    /// Fails if the plan may or may not be stored, or another router may be in charge. Nothing has changed
    /// then, and the copies stay for the next attempt.
    fn switch(&self, router: &Router) -> Result<bool, RouterError> {
        let stored = stored_plan::store(&*router.state, &self.next, self.learned);
        if let Err(error @ IndexStateError::Unavailable(_)) = stored {
            // Even if this change is cancelled later, the stored plan must be the one that is served.
            router.plan_is_unsure.store(true, Ordering::Relaxed);
            return Err(error.into());
        }
        if let Err(error) = stored {
            tracing::error!(%error, "cannot store the next plan; keeping the present one");
            self.give_up(router);
            // A retry would copy everything again, and probably fail again. Wait until the contents have
            // changed.
            let mut map_history = lock(&router.map_history);
            map_history.learned = Some(self.learned);
            map_history.contents_when_planned = router.contents();
            return Ok(false);
        }
        for handle in &router.nodes {
            if let Err(error) = self.host(router, &self.next, handle.id, Vec::new()) {
                tracing::warn!(
                    node = %handle.id,
                    %error,
                    "cannot tell a node the next plan; trying again later"
                );
            }
        }
        router.plan_is_unsure.store(false, Ordering::Relaxed);
        router.adopt(Arc::clone(&self.next), self.learned);
        let (plan_version, seconds) = (self.next.map().version(), self.began.elapsed().as_secs_f64());
        let (copied, again) = (self.copied, self.changed);
        tracing::info!(plan_version, copied, again, seconds, "switched to the next plan");
        Ok(true)
    }

    /// Keeps the present plan, and has the nodes drop the incoming partitions.
    pub(crate) fn give_up(&self, router: &Router) {
        let present = router.plan();
        for handle in &router.nodes {
            if let Err(error) = self.host(router, &present, handle.id, Vec::new()) {
                tracing::warn!(
                    node = %handle.id,
                    %error,
                    "cannot tell a node that a plan change ended; trying again later"
                );
            }
        }
    }
}

impl Router {
    /// Makes the next plan the present one.
    fn adopt(&self, plan: Arc<Plan>, learned: LearningBasis) {
        lock(&self.map_history).learned = Some(learned);
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = plan;
        self.counts.reset();
        // Each node now stores other contents, so ask for their numbers again.
        let range = lock(&self.positions).keys().next().copied().unwrap_or_default();
        for handle in &self.nodes {
            if let Ok(applied) = handle.node.applied(range) {
                handle.record_applied(&applied);
            }
        }
    }
}
