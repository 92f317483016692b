//! Nodes that were started anew, or lack orders that are not sent any more, are told what they must have.
//!
//! All contents of a range are offered to all nodes first: a node that has the signature, in its file or since before,
//! takes the content. What no node has is fetched. To nodes that have taken up a snapshot, only the contents of pages that
//! have changed since are offered, where the log of the range tells which. Then the node's position is that of the last order that is not sent
//! any more: the contents are at least as new, and what follows is sent as always.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, Incarnation, NodeId, PageId, RangeId};
use doppel_partitioning::Plan;
use doppel_protocol::index_node::{
    BATCH_MAX, CallContext, ENTRIES_MAX, Home, HostedPartition, Hosting, IngestBatch, fitting,
};
use doppel_protocol::{CONTENTS_MAX, LogPosition, PageRange, SIGNATURES_MAX};

use super::{Router, RouterError, hosted, lock, version};

/// Pages and what they have.
type Contents = Vec<(PageId, ContentHash)>;

/// A node that was told what it has.
struct Told {
    node: NodeId,
    incarnation: Incarnation,
    /// The ranges that have to feed it, and the moment of each that it has taken up.
    unfed_ranges: BTreeMap<RangeId, Option<LogPosition>>,
}

impl Router {
    /// Tells the nodes that need it what they have, and feeds those that have forgotten it.
    pub(crate) fn feed_lost(&self) -> Result<(), RouterError> {
        self.state.check()?;
        let ranges = self.source.ranges()?;
        let mut told: Vec<Told> = Vec::new();
        for handle in self.nodes.iter().filter(|handle| lock(&handle.incarnation).is_none()) {
            let node = handle.id;
            let failed = |error| RouterError::Node(node, error);
            let incarnation = handle.node.host(Hosting {
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
                handle.told(&applied);
            }
            handle.drops.store(true, Ordering::Relaxed);
            told.push(Told { node, incarnation, unfed_ranges });
        }
        for PageRange { range, epoch, ordered, .. } in &ranges {
            if told.iter().any(|node| node.unfed_ranges.contains_key(range)) {
                self.feed_range(*range, (*epoch, *ordered), &told)?;
            }
        }
        for Told { node, incarnation, .. } in told {
            *lock(&self.handle(node).incarnation) = Some(incarnation);
        }
        // What a node was told may be searched for again, and perhaps no pass comes.
        self.owes_repeats.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What a node has under a plan, and what comes to it from the next one.
    pub(super) fn hosting(
        &self,
        plan: &Plan,
        node: NodeId,
        (next, incoming): (&Plan, Vec<HostedPartition>),
        ranges: &[PageRange],
    ) -> Hosting {
        Hosting {
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

    /// Feeds the nodes that need it what a range has.
    fn feed_range(
        &self,
        range: RangeId,
        (epoch, ordered): (Epoch, u64),
        told: &[Told],
    ) -> Result<(), RouterError> {
        let index = self.fed_index(range, epoch, ordered);
        let unfed = || told.iter().filter(|node| node.unfed_ranges.contains_key(&range));
        let changed = self.changed(range, unfed())?;
        for Told { node, incarnation, .. } in unfed() {
            let begin = IngestBatch::Begin { range, epoch, changes: changed.is_some() };
            self.give(*node, *incarnation, begin)?;
            for pages in changed.iter().flat_map(|pages| pages.chunks(BATCH_MAX)) {
                let changed = IngestBatch::Changed { range, pages: pages.to_vec() };
                self.give(*node, *incarnation, changed)?;
            }
        }
        // The others have what is theirs: what they have is not fetched.
        let mut lives: Vec<(NodeId, Incarnation)> =
            told.iter().map(|node| (node.node, node.incarnation)).collect();
        for handle in &self.nodes {
            lives.extend(lock(&handle.incarnation).map(|incarnation| (handle.id, incarnation)));
        }
        lives.sort_by_key(|(node, _)| !unfed().any(|one| one.node == *node));
        match changed {
            Some(pages) => self.offer_of(range, &pages, &lives)?,
            None => self.offer_all(range, &lives)?,
        }
        for Told { node, incarnation, .. } in unfed() {
            self.give(*node, *incarnation, IngestBatch::Fed { range, epoch, index })?;
        }
        Ok(())
    }

    /// The pages of a range that have changed since the moment that all of these nodes have taken up; none where there is
    /// no such moment, or the log does not tell.
    fn changed<'t>(
        &self,
        range: RangeId,
        mut unfed: impl Iterator<Item = &'t Told>,
    ) -> Result<Option<Vec<PageId>>, RouterError> {
        let resumed = |node: &Told| node.unfed_ranges.get(&range).copied().flatten();
        let Some(moment) = unfed.next().and_then(resumed) else { return Ok(None) };
        if !unfed.all(|node| resumed(node) == Some(moment)) {
            return Ok(None);
        }
        let changed = self.source.changed_since(range, moment)?;
        if changed.is_none() {
            tracing::info!(
                range = range.0,
                "the log does not reach back to the snapshot; all contents are compared"
            );
        }
        Ok(changed)
    }

    /// Offers the contents of these pages.
    fn offer_of(
        &self,
        range: RangeId,
        pages: &[PageId],
        lives: &[(NodeId, Incarnation)],
    ) -> Result<(), RouterError> {
        let (mut read, mut fetched) = (0, 0);
        for some in pages.chunks(CONTENTS_MAX) {
            self.check_running()?;
            let contents = self.source.contents_of(some)?;
            read += contents.len();
            fetched += self.offer(contents, lives)?;
        }
        tracing::info!(
            range = range.0,
            changed = pages.len(),
            read,
            fetched,
            "tier 2 knows what has changed in a range"
        );
        Ok(())
    }

    /// Offers contents to these nodes in turn, and fetches what none of them has: so many.
    fn offer(&self, contents: Contents, lives: &[(NodeId, Incarnation)]) -> Result<usize, RouterError> {
        let mut left = contents;
        for (node, incarnation) in lives {
            if left.is_empty() {
                break;
            }
            let claims = IngestBatch::Claims(left.clone());
            let missing = self.give(*node, *incarnation, claims)?;
            left = missing.into_iter().filter_map(|at| left.get(at as usize).copied()).collect();
        }
        self.fetch(&left, lives)?;
        Ok(left.len())
    }

    /// Offers all contents of a range.
    fn offer_all(&self, range: RangeId, lives: &[(NodeId, Incarnation)]) -> Result<(), RouterError> {
        let (mut after, mut read, mut fetched) = (None, 0, 0);
        loop {
            self.check_running()?;
            let page = self.source.contents(range, after, CONTENTS_MAX)?;
            let all = page.contents.len();
            let missing = self.offer(page.contents, lives)?;
            fetched += missing;
            read += all - missing;
            after = page.next;
            if after.is_none() {
                tracing::info!(range = range.0, read, fetched, "tier 2 knows the contents of a range");
                return Ok(());
            }
        }
    }

    /// Fetches contents and stores them at home, where that is among these nodes.
    fn fetch(&self, wanted: &Contents, lives: &[(NodeId, Incarnation)]) -> Result<(), RouterError> {
        let plan = self.plan();
        for some in wanted.chunks(SIGNATURES_MAX.min(ENTRIES_MAX)) {
            let mut by_node: Vec<Vec<(PageId, Arc<Signature>, Home)>> = vec![Vec::new(); self.nodes.len()];
            for (page, signature) in self.signatures(some)? {
                let (node, home) = self.home(&plan, &signature);
                by_node[node.index()].push((page, signature, home));
            }
            for (node, incarnation) in lives {
                for part in bounded(std::mem::take(&mut by_node[node.index()])) {
                    self.give(*node, *incarnation, IngestBatch::Contents(part))?;
                }
            }
        }
        Ok(())
    }

    /// The signatures of contents. Of the pages of a content, one is asked for; the others only if it has another
    /// content by now.
    fn signatures(
        &self,
        wanted: &[(PageId, ContentHash)],
    ) -> Result<Vec<(PageId, Arc<Signature>)>, RouterError> {
        let mut known: HashMap<ContentHash, Arc<Signature>> = HashMap::new();
        let mut left: Vec<(PageId, ContentHash)> = wanted.to_vec();
        while !left.is_empty() {
            let (mut asked, mut others) = (HashMap::new(), Vec::new());
            for (page, content) in left {
                match asked.entry(content) {
                    Entry::Occupied(_) => others.push((page, content)),
                    Entry::Vacant(free) => drop(free.insert(page)),
                }
            }
            let pages: Vec<PageId> = asked.values().copied().collect();
            let signatures = self.source.signatures(&pages)?;
            known.extend(signatures.into_iter().flatten().map(|signature| (signature.content(), signature)));
            left = others.into_iter().filter(|(_, content)| !known.contains_key(content)).collect();
        }
        let mut found = Vec::with_capacity(wanted.len());
        for (page, content) in wanted {
            match known.get(content) {
                Some(signature) if signature.tokens() > 0 => found.push((*page, Arc::clone(signature))),
                Some(_) => {}
                None => tracing::debug!(%content, "no page has this content any more; it is left out"),
            }
        }
        Ok(found)
    }

    /// The node of a signature, and its home there.
    pub(super) fn home(&self, plan: &Plan, signature: &Signature) -> (NodeId, Home) {
        let lengths = plan.map().lexicon().lengths(signature);
        let (node, partition) = Self::place(plan, plan.map().home(&lengths));
        (node, Home { partition, lengths })
    }

    /// Gives something to a node that may not be fed yet. Returns what the node lacks.
    fn give(
        &self,
        node: NodeId,
        incarnation: Incarnation,
        batch: IngestBatch,
    ) -> Result<Vec<u32>, RouterError> {
        let handle = self.handle(node);
        let call = CallContext { plan: version(&self.plan()), incarnation };
        let ingested = handle.node.ingest(call, batch).map_err(|error| {
            handle.is_lost_by(&error, incarnation);
            RouterError::Node(node, error)
        })?;
        handle.ingested(&ingested);
        Ok(ingested.missing)
    }

    /// Stores pages that a node should have: it has missed an order. Returns those that tier 1 still has.
    pub(super) fn store_missing(
        &self,
        plan: &Plan,
        pages: &[(PageId, ContentHash)],
    ) -> Result<Vec<(PageId, ContentHash)>, RouterError> {
        let mut stored = Vec::new();
        for some in pages.chunks(SIGNATURES_MAX.min(ENTRIES_MAX)) {
            let ids: Vec<PageId> = some.iter().map(|(page, _)| *page).collect();
            let signatures = self.source.signatures(&ids)?;
            for ((page, content), signature) in some.iter().zip(signatures) {
                let Some(signature) = signature.filter(|s| s.content() == *content && s.tokens() > 0) else {
                    continue;
                };
                tracing::warn!(?page, "a page to search for was not in the index; it is now");
                let (node, home) = self.home(plan, &signature);
                let batch = IngestBatch::Contents(vec![(*page, signature, home)]);
                let ingested = self.call(node, plan, |node, call| node.ingest(call, batch))?;
                self.handle(node).ingested(&ingested);
                stored.push((*page, *content));
            }
        }
        Ok(stored)
    }
}

/// Parts that a call may bring.
fn bounded(mut all: Vec<(PageId, Arc<Signature>, Home)>) -> Vec<Vec<(PageId, Arc<Signature>, Home)>> {
    let mut parts = Vec::new();
    while !all.is_empty() {
        let rest = all.split_off(fitting(all.iter().map(|one| one.1.as_bytes().len())));
        parts.push(std::mem::replace(&mut all, rest));
    }
    parts
}
