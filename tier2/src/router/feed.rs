//! Feeding: the router tells nodes which contents they must store.
//!
//! A node needs feeding after it was started anew, or if it lacks orders that the router can no longer send.
//! The router offers all contents of a range to all nodes, node by node. A node takes a content if it still
//! has the signature, in memory or in its file. The router fetches the other contents from tier 1.
//!
//! A node that was restored from a snapshot needs less. If the log of the range reaches back to the snapshot,
//! the router offers only the contents of pages that have changed since.
//!
//! At the end, the node's position in the range is that of the last order that will not be sent again. Its
//! contents are at least as new as that order. Later orders arrive as usual.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, Incarnation, NodeId, PageId, RangeId};
use doppel_partitioning::Plan;
use doppel_protocol::index_node::{
    BATCH_ORDERS_MAX, CallContext, ENTRIES_MAX, HomePartition, HostedPartition, HostingPlan, IngestBatch,
    PageContent, fitting_count,
};
use doppel_protocol::{CONTENTS_MAX, LogPosition, PageRange, SIGNATURES_MAX};

use super::{Router, RouterError, hosted, lock, version};

/// Pages and the content of each.
type Contents = Vec<(PageId, ContentHash)>;

/// A node that was told what to host and may need feeding.
struct NodeToFeed {
    node: NodeId,
    incarnation: Incarnation,
    /// Ranges that have to feed the node. For each, the moment that the node has restored from its snapshot.
    unfed_ranges: BTreeMap<RangeId, Option<LogPosition>>,
}

impl Router {
    /// Tells every lost node what to host, and has the ranges feed the nodes that lack their contents.
    pub(crate) fn feed_lost_nodes(&self) -> Result<(), RouterError> {
        self.state.check()?;
        let ranges = self.source.ranges()?;
        let mut nodes: Vec<NodeToFeed> = Vec::new();
        for handle in self.nodes.iter().filter(|handle| lock(&handle.incarnation).is_none()) {
            let node = handle.id;
            let failed = |error| RouterError::Node(node, error);
            let incarnation = handle.node.host(HostingPlan {
                renews: true,
                ..self.hosting(&self.plan(), node, (&self.plan(), Vec::new()), &ranges)
            });
            let incarnation = incarnation.map_err(failed)?;
            let mut unfed_ranges = BTreeMap::new();
            for PageRange { range, .. } in &ranges {
                let applied = handle.node.applied(*range).map_err(failed)?;
                if self.needs_feeding(*range, &applied) {
                    unfed_ranges.insert(*range, applied.resumed);
                }
                handle.record_applied(&applied);
            }
            handle.drops.store(true, Ordering::Relaxed);
            nodes.push(NodeToFeed { node, incarnation, unfed_ranges });
        }
        for PageRange { range, epoch, ordered, .. } in &ranges {
            if nodes.iter().any(|node| node.unfed_ranges.contains_key(range)) {
                self.feed_range(*range, (*epoch, *ordered), &nodes)?;
            }
        }
        for NodeToFeed { node, incarnation, .. } in nodes {
            *lock(&self.handle(node).incarnation) = Some(incarnation);
        }
        // Nodes may have pages to search for again, and perhaps no pass follows that would take them.
        self.owes_repeats.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What a node has to host under `plan`, and the incoming partitions of the next plan.
    pub(super) fn hosting(
        &self,
        plan: &Plan,
        node: NodeId,
        (next, incoming): (&Plan, Vec<HostedPartition>),
        ranges: &[PageRange],
    ) -> HostingPlan {
        HostingPlan {
            session: self.session,
            renews: false,
            version: version(plan),
            lexicon: Arc::new(plan.map().lexicon().clone()),
            serving: hosted(plan, node),
            incoming_dimensions: next.map().lexicon().dimensions(),
            incoming,
            ranges: ranges.to_vec(),
        }
    }

    /// Feeds the contents of one range to the nodes that need them.
    fn feed_range(
        &self,
        range: RangeId,
        (epoch, ordered): (Epoch, u64),
        nodes: &[NodeToFeed],
    ) -> Result<(), RouterError> {
        let index = self.fed_index(range, epoch, ordered);
        let unfed = || nodes.iter().filter(|node| node.unfed_ranges.contains_key(&range));
        let changed = self.changed_pages(range, unfed())?;
        for NodeToFeed { node, incarnation, .. } in unfed() {
            let begin = IngestBatch::Begin { range, epoch, changes: changed.is_some() };
            self.ingest(*node, *incarnation, begin)?;
            for pages in changed.iter().flat_map(|pages| pages.chunks(BATCH_ORDERS_MAX)) {
                let changed = IngestBatch::Changed { range, pages: pages.to_vec() };
                self.ingest(*node, *incarnation, changed)?;
            }
        }
        // The other nodes have their contents already. Offering contents to them too avoids fetching contents
        // that they store.
        let mut incarnations: Vec<(NodeId, Incarnation)> =
            nodes.iter().map(|node| (node.node, node.incarnation)).collect();
        for handle in &self.nodes {
            incarnations.extend(lock(&handle.incarnation).map(|incarnation| (handle.id, incarnation)));
        }
        incarnations.sort_by_key(|(node, _)| !unfed().any(|one| one.node == *node));
        match changed {
            Some(pages) => self.offer_pages(range, &pages, &incarnations)?,
            None => self.offer_all(range, &incarnations)?,
        }
        for NodeToFeed { node, incarnation, .. } in unfed() {
            self.ingest(*node, *incarnation, IngestBatch::Fed { range, epoch, index })?;
        }
        Ok(())
    }

    /// Pages of a range that have changed since the moment of the nodes' snapshots. `None` if the nodes have
    /// restored different moments or none, or if the log does not reach back that far.
    fn changed_pages<'t>(
        &self,
        range: RangeId,
        mut unfed: impl Iterator<Item = &'t NodeToFeed>,
    ) -> Result<Option<Vec<PageId>>, RouterError> {
        let resumed = |node: &NodeToFeed| node.unfed_ranges.get(&range).copied().flatten();
        let Some(moment) = unfed.next().and_then(resumed) else { return Ok(None) };
        if !unfed.all(|node| resumed(node) == Some(moment)) {
            return Ok(None);
        }
        let changed = self.source.changed_since(range, moment)?;
        if changed.is_none() {
            tracing::info!(
                range = range.0,
                "the log does not reach back to the snapshot; feeding all contents of the range"
            );
        }
        Ok(changed)
    }

    /// Offers the contents of these pages to the nodes.
    fn offer_pages(
        &self,
        range: RangeId,
        pages: &[PageId],
        incarnations: &[(NodeId, Incarnation)],
    ) -> Result<(), RouterError> {
        let (mut read, mut fetched) = (0, 0);
        for chunk in pages.chunks(CONTENTS_MAX) {
            self.check_running()?;
            let contents = self.source.contents_of(chunk)?;
            read += contents.len();
            fetched += self.offer(contents, incarnations)?;
        }
        tracing::info!(
            range = range.0,
            changed = pages.len(),
            read,
            fetched,
            "fed the changed contents of a range to the nodes"
        );
        Ok(())
    }

    /// Offers contents to the nodes in turn, and fetches the contents that none of them takes. Returns the
    /// number of fetched contents.
    fn offer(
        &self,
        contents: Contents,
        incarnations: &[(NodeId, Incarnation)],
    ) -> Result<usize, RouterError> {
        let mut left = contents;
        for (node, incarnation) in incarnations {
            if left.is_empty() {
                break;
            }
            let claims = IngestBatch::Claims(left.clone());
            let missing = self.ingest(*node, *incarnation, claims)?;
            left = missing.into_iter().filter_map(|at| left.get(at as usize).copied()).collect();
        }
        self.fetch(&left, incarnations)?;
        Ok(left.len())
    }

    /// Offers all contents of a range to the nodes.
    fn offer_all(&self, range: RangeId, incarnations: &[(NodeId, Incarnation)]) -> Result<(), RouterError> {
        let (mut after, mut read, mut fetched) = (None, 0, 0);
        loop {
            self.check_running()?;
            let page = self.source.contents(range, after, CONTENTS_MAX)?;
            let all = page.contents.len();
            let missing = self.offer(page.contents, incarnations)?;
            fetched += missing;
            read += all - missing;
            after = page.next;
            if after.is_none() {
                tracing::info!(range = range.0, read, fetched, "fed the contents of a range to the nodes");
                return Ok(());
            }
        }
    }

    /// Fetches contents from tier 1. Stores each content at its home, if the home is on a node in
    /// `incarnations`.
    fn fetch(&self, wanted: &Contents, incarnations: &[(NodeId, Incarnation)]) -> Result<(), RouterError> {
        let plan = self.plan();
        for chunk in wanted.chunks(SIGNATURES_MAX.min(ENTRIES_MAX)) {
            let mut by_node: Vec<Vec<PageContent>> = vec![Vec::new(); self.nodes.len()];
            for (page, signature) in self.signatures(chunk)? {
                let (node, home) = self.home(&plan, &signature);
                by_node[node.index()].push(PageContent { page, signature, home });
            }
            for (node, incarnation) in incarnations {
                for part in split_by_size(std::mem::take(&mut by_node[node.index()])) {
                    self.ingest(*node, *incarnation, IngestBatch::Contents(part))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the signatures of contents. Of all pages with the same content, tier 1 is asked for the
    /// signature of one. The others are asked only if that page has another content by now.
    fn signatures(
        &self,
        wanted: &[(PageId, ContentHash)],
    ) -> Result<Vec<(PageId, Arc<Signature>)>, RouterError> {
        let mut known: HashMap<ContentHash, Arc<Signature>> = HashMap::new();
        let mut left: Vec<(PageId, ContentHash)> = wanted.to_vec();
        while !left.is_empty() {
            let (mut requested, mut others) = (HashMap::new(), Vec::new());
            for (page, content) in left {
                match requested.entry(content) {
                    Entry::Occupied(_) => others.push((page, content)),
                    Entry::Vacant(free) => drop(free.insert(page)),
                }
            }
            let pages: Vec<PageId> = requested.values().copied().collect();
            let signatures = self.source.signatures(&pages)?;
            known.extend(signatures.into_iter().flatten().map(|signature| (signature.content(), signature)));
            left = others.into_iter().filter(|(_, content)| !known.contains_key(content)).collect();
        }
        let mut found = Vec::with_capacity(wanted.len());
        for (page, content) in wanted {
            match known.get(content) {
                Some(signature) if signature.tokens() > 0 => found.push((*page, Arc::clone(signature))),
                Some(_) => {}
                None => tracing::debug!(%content, "no page has this content any more; skipping it"),
            }
        }
        Ok(found)
    }

    /// Returns the node and the partition where a signature belongs.
    pub(super) fn home(&self, plan: &Plan, signature: &Signature) -> (NodeId, HomePartition) {
        let lengths = plan.map().lexicon().lengths(signature);
        let (node, partition) = Self::assignment(plan, plan.map().home(&lengths));
        (node, HomePartition { partition, lengths })
    }

    /// Sends a batch to a node, which may not be fed yet. Returns the positions of the claims that the node
    /// did not take.
    fn ingest(
        &self,
        node: NodeId,
        incarnation: Incarnation,
        batch: IngestBatch,
    ) -> Result<Vec<u32>, RouterError> {
        let handle = self.handle(node);
        let call = CallContext { plan: version(&self.plan()), incarnation };
        let ingested = handle.node.ingest(call, batch).map_err(|error| {
            handle.mark_lost_on(&error, incarnation);
            RouterError::Node(node, error)
        })?;
        handle.record_ingested(&ingested);
        Ok(ingested.missing)
    }

    /// Stores pages that their nodes should have but lack, because an order was lost. Returns the pages that
    /// still have the same content in tier 1.
    pub(super) fn store_missing(
        &self,
        plan: &Plan,
        pages: &[(PageId, ContentHash)],
    ) -> Result<Vec<(PageId, ContentHash)>, RouterError> {
        let mut stored = Vec::new();
        for chunk in pages.chunks(SIGNATURES_MAX.min(ENTRIES_MAX)) {
            let ids: Vec<PageId> = chunk.iter().map(|(page, _)| *page).collect();
            let signatures = self.source.signatures(&ids)?;
            for ((page, content), signature) in chunk.iter().zip(signatures) {
                let Some(signature) = signature.filter(|s| s.content() == *content && s.tokens() > 0) else {
                    continue;
                };
                tracing::warn!(?page, "a page to search for was missing in the index; storing it");
                let (node, home) = self.home(plan, &signature);
                let batch = IngestBatch::Contents(vec![PageContent { page: *page, signature, home }]);
                let ingested = self.call(node, plan, |node, call| node.ingest(call, batch))?;
                self.handle(node).record_ingested(&ingested);
                stored.push((*page, *content));
            }
        }
        Ok(stored)
    }
}

/// Splits contents into parts that fit into a call.
fn split_by_size(mut all: Vec<PageContent>) -> Vec<Vec<PageContent>> {
    let mut parts = Vec::new();
    while !all.is_empty() {
        let rest = all.split_off(fitting_count(all.iter().map(|one| one.signature.as_bytes().len())));
        parts.push(std::mem::replace(&mut all, rest));
    }
    parts
}
