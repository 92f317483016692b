//! One search: candidates, rejection, exact comparison.
//!
//! Candidates are the entries that share a band key, in all partitions that meet the bounding space,
//! oldest first: the lists of their buckets are merged in the order of insertion. Each is rejected by its length
//! or its parity bitmap, or compared exactly.
//!
//! **Stars.** The cost of a search must not grow with the number of its neighbours. The first, that is
//! oldest, verified partner of a searched entry becomes its *center*, and is marked as one from then on. When a
//! later search of x has verified y, an entry z whose center is y is *covered*: it need not be compared, nor
//! answered, because z is linked to y by a pair of its own. Every search tries the oldest first, so the
//! members of a cluster choose the same center, and a search verifies that one and passes over the rest; a
//! run of a large bucket at one step. Centers themselves are always compared, or the entries around them
//! would not be covered.
//! An entry that was never searched for since it came has no center, and one whose center has left has none any
//! more; the first search that verifies it gives it one, the oldest of the partners and the entry that searches, after
//! comparing these two. (Their pair may not have been reported, but tier 1 owes or has had a search of both, and the
//! two are linked at the latest then; and when a center leaves, tier 1 compares its group again.) A center is named
//! by its insertion sequence, so it is void as soon as that entry is gone or begins anew.
//!
//! **Second centers.** Where the similarities of a family scatter around the threshold, its members have many different
//! oldest partners, and a search would compare all entries around those that it is not linked to. The few entries with
//! the least noise are partners of most others, and nearer than the rest. So a searched entry keeps a second partner,
//! the nearest of those that were centers by then. It covers as the first one does; no list is cut by it.
//!
//! **One step only.** The rule must not go on from an entry's center to the center's center, up to a root, although all
//! steps are reported pairs. Say z has the center c, and c has y, to which x is linked as it is to z. The page of c
//! gets another content: tier 1 compares the group again, z stays and y is put out, and the removal of c is still on
//! its way to this node. A search of x that left z out on the strength of c would report y alone, and x would join the
//! new group of y. z, which stayed, is not searched for again, and neither is x, whose only partner is current: the
//! pair of the two would be lost. In one step every entry relied on is a partner in the answer for x, and tier 1 asks
//! its page.
//!
//! **Far.** Jaccard distance is a metric, which no other measure is. Where x was compared with y in vain, z with center y cannot be a
//! partner of x if d(x, y) - d(y, z) >= 1 - tau. Where the bitmap rejects y, it says how far x and y are at least.
//!
//! **Query order.** All searches of a pass are numbered before the first of them. A search passes over the entries
//! that search later in the same pass, have no center yet and one page: their search meets this one. So of a
//! cluster that arrives in one pass nobody compares more than those before, and these have centers.
//!
//! **Owed searches.** An entry that was stored with the order to search for it waits for that search under the query order
//! [`OWED`](super::columns::OWED), which is greater than that of every search of a pass. So in whatever order searches are made, none compares
//! with entries that are still to be searched for, except entries with copies, and except searches from other nodes.
//!
//! **Limits.** A search of a pass that has cost as much as it may is interrupted ([`interrupted`](super::interrupted)) and keeps its query
//! order. Until it continues, searches with a later query order compare with its entry as if its search had finished. When a partner has
//! left meanwhile, the search begins anew and is not interrupted again.
//!
//! Invariant: for a search of x and an entry z that is linked to x, z is a partner found, or one of its two centers
//! is, or it searches later in the same pass.

mod centers;

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use doppel_model::pairwise::Similarity;
use doppel_model::parity;
use doppel_model::signature::Signature;
use doppel_model::{InsertSeq, Tau};
use doppel_partitioning::{BoundingSpace, LengthVector};
use doppel_protocol::index_node::COMPARISON_COST;

use centers::distance;

use super::bands::BandKeys;
use super::columns::{Center, Columns};
use super::core::Core;
use super::cursor::Cursor;
use super::decoded::Shared;
use super::fetched::Wanted;
use super::found::{Found, Partner, Passed};
use super::interrupted::{FINDINGS_MAX, Interrupted};
use super::local_index::LocalIndex;
use super::tables::EntryRef;

/// The query order of a search that does not belong to a pass: it is after all others.
const LAST_QUERY_ORDER: u32 = u32::MAX - 1;

/// Candidates passed between two offers to let other threads run: some tens of microseconds. A search in a giant cluster
/// would take a processor for milliseconds, and a question to the service would wait for it.
const STEPS: u32 = 512;

/// A thread's scratch.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    buffer: Vec<u8>,
    bitmap: Vec<u64>,
}

/// Who is searched for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) lengths: LengthVector,
    /// Where it is stored, if that is on this node.
    pub(crate) own: Option<EntryRef>,
    /// Where the search continues; none where it begins.
    pub(crate) interrupted: Option<&'a Interrupted>,
    /// The cost at which it is interrupted; none where it is not.
    pub(crate) limit: Option<u64>,
}

impl Core {
    /// Searches the partitions of this node that its bounding space meets for the partners of a content. If the search is interrupted,
    /// the second value says where it continues, and the partners are not all.
    ///
    /// # Errors
    /// The signatures that are neither here nor among those that were fetched.
    pub(crate) fn search(
        &self,
        subject: Subject<'_>,
        shared: Shared<'_>,
        scratch: &mut Scratch,
    ) -> Result<(Found, Option<Interrupted>), Vec<Wanted>> {
        let Subject { signature, lengths, own, interrupted, limit } = subject;
        let space = BoundingSpace::new(lengths, self.tables.policy.metric());
        let mut found = Found::default();
        found.probed_partitions.extend(self.tables.probed(&space).map(|partition| (partition, 0)));
        if !self.tables.policy.comparable(signature) {
            return Ok((found, None));
        }
        found.band_keys = self.tables.band_keys(signature);
        scratch.bitmap.clear();
        parity::append(signature, &mut scratch.bitmap);
        let mut search = NodeSearch {
            index: self,
            signature,
            own: own.map(|entry| (entry, self.tables.partition(entry).columns.insert_seq(entry.slot))),
            query_order: own.map_or(LAST_QUERY_ORDER, |entry| {
                self.tables.partition(entry).columns.query_order(entry.slot)
            }),
            bitmap: &scratch.bitmap,
            oldest: None,
            far: Vec::new(),
            found,
            shared,
            wanted: Vec::new(),
            buffer: &mut scratch.buffer,
            visited: InsertSeq::default(),
            continued_after: InsertSeq::default(),
            limit: limit.unwrap_or(u64::MAX),
        };
        if let Some(interrupted) = interrupted {
            search.resume(interrupted);
        }
        let is_finished = !search.wanted.is_empty() || search.run();
        if !search.wanted.is_empty() {
            return Err(search.wanted);
        }
        let NodeSearch { own, visited, mut far, found, .. } = search;
        if is_finished {
            return Ok((found, None));
        }
        far.drain(..far.len().saturating_sub(FINDINGS_MAX));
        let partners = found.partners.clone();
        Ok((found, Some(Interrupted { own, before: None, visited, partners, far })))
    }
}

struct NodeSearch<'i, 's> {
    index: &'i Core,
    signature: &'s Signature,
    /// Where it is stored, and its insertion sequence.
    own: Option<(EntryRef, InsertSeq)>,
    query_order: u32,
    bitmap: &'s [u64],
    /// The signature of the oldest partner.
    oldest: Option<Arc<Signature>>,
    /// Centers that are no partners, oldest first, and at most their distance.
    far: Vec<Center>,
    found: Found,
    shared: Shared<'s>,
    /// Signatures that have to be fetched.
    wanted: Vec<Wanted>,
    buffer: &'s mut Vec<u8>,
    /// The last candidate that was visited.
    visited: InsertSeq,
    /// The last candidate that was visited before it was interrupted.
    continued_after: InsertSeq,
    /// The cost at which it is interrupted.
    limit: u64,
}

impl<'i> NodeSearch<'i, '_> {
    /// Takes up what an earlier part of the search has found. If a partner has left, the search begins anew.
    fn resume(&mut self, interrupted: &Interrupted) {
        let Interrupted { visited, partners, far, .. } = interrupted;
        let tables = &self.index.tables;
        let is_alive = |partner: &Partner| tables.is_alive(partner.entry, partner.insert_seq);
        let oldest = match partners.first() {
            None => None,
            Some(_) if !partners.iter().all(is_alive) => return self.limit = u64::MAX,
            Some(oldest) => match self.read(oldest.entry, oldest.insert_seq) {
                Ok(None) => return self.limit = u64::MAX,
                Ok(signature) => signature,
                Err(wanted) => return self.wanted.push(wanted),
            },
        };
        self.oldest = oldest;
        self.found.continues = true;
        (self.visited, self.continued_after) = (*visited, *visited);
        self.far.clone_from(far);
        self.found.partners.clone_from(partners);
    }

    /// Visits candidates until there are none, or the limit is reached. Whether there are none.
    fn run(&mut self) -> bool {
        let mut lists = self.lists();
        let mut steps = 0_u32;
        while let Some(mut cursor) = lists.peek_mut() {
            if self.found.cost >= self.limit && self.can_be_interrupted() {
                return false;
            }
            self.found.cost += 1;
            steps += 1;
            if steps.is_multiple_of(STEPS) {
                std::thread::yield_now();
            }
            let (probe, insert_seq) = (cursor.probe as usize, cursor.insert_seq);
            let partition = self.found.probed_partitions[probe].0;
            if cursor.center.is_some_and(|center| self.is_covered(center)) {
                PeekMut::pop(cursor);
                continue;
            }
            let Some((slot, rest)) = cursor.slots.split_first() else {
                PeekMut::pop(cursor);
                continue;
            };
            if let Some(counted) = cursor.counted {
                self.found.passed[counted as usize].steps += 1;
            }
            let slot = *slot;
            match rest.first() {
                Some(next) => {
                    cursor.insert_seq = self.columns(partition).insert_seq(*next);
                    cursor.slots = rest;
                }
                None => drop(PeekMut::pop(cursor)),
            }
            // The same entry in several lists comes up several times running.
            if insert_seq != self.visited {
                self.visited = insert_seq;
                self.consider(probe, EntryRef { partition, slot }, insert_seq);
            }
        }
        self.choose_centers();
        true
    }

    fn can_be_interrupted(&self) -> bool {
        // Lists that are covered as a whole are passed over without a visit.
        let has_advanced = self.visited != self.continued_after;
        has_advanced && self.found.partners.len() <= FINDINGS_MAX
    }

    /// The lists of candidates in every probed partition, without those that were visited before.
    fn lists(&mut self) -> BinaryHeap<Cursor<'i>> {
        let mut cursors = Vec::with_capacity(self.found.band_keys.len());
        let (band_keys, probed_partitions, passed) =
            (&self.found.band_keys, &self.found.probed_partitions, &mut self.found.passed);
        let visited = self.visited;
        for (probe, (partition, _)) in probed_partitions.iter().enumerate() {
            let host = &self.index.tables.partitions[partition.index()];
            host.bands.prefetch(band_keys);
            for band_key in band_keys {
                host.bands.lists(*band_key, |list| {
                    let mut slots = list.slots;
                    if visited != InsertSeq::default() {
                        let is_visited = |slot: &u32| host.columns.insert_seq(*slot) <= visited;
                        slots = &slots[slots.partition_point(is_visited)..];
                    }
                    let Some(first) = slots.first() else { return };
                    let counted = list.counted.then(|| {
                        passed.push(Passed { partition: *partition, band_key: *band_key, steps: 0 });
                        passed.len() as u32 - 1
                    });
                    cursors.push(Cursor {
                        insert_seq: host.columns.insert_seq(*first),
                        probe: probe as u32,
                        slots,
                        center: list.center,
                        counted,
                    });
                });
            }
        }
        BinaryHeap::from(cursors)
    }

    fn consider(&mut self, probe: usize, entry: EntryRef, insert_seq: InsertSeq) {
        let columns = self.columns(entry.partition);
        let (slot, center) = (entry.slot, columns.center(entry.slot));
        let (policy, own, other) = (self.index.tables.policy, self.signature.size(), columns.total(slot));
        // With copies, the page that searches later need not be the one that stays.
        let searches_later = center == Center::UNKNOWN
            && columns.query_order(slot) > self.query_order
            && !self.index.tables.partition(entry).has_copies(slot);
        if self.own.is_some_and(|(at, _)| at == entry)
            || !columns.is_center(slot)
                && (searches_later || self.is_covered(center) || self.is_covered(columns.second_center(slot)))
            || !policy.admits(own.min(other), own, other)
        {
            return;
        }
        let shared_max = columns.shared_max(slot, own, self.bitmap);
        if !policy.admits(shared_max, own, other) {
            if columns.is_center(slot) {
                let of = own.saturating_add(other).saturating_sub(shared_max);
                self.far
                    .push(Center { insert_seq, distance: distance(Similarity { shared: shared_max, of }).0 });
            }
            return;
        }
        let candidate = match self.read(entry, insert_seq) {
            Ok(Some(candidate)) => candidate,
            // No page has the content any more, and the order to remove it is under way.
            Ok(None) => return,
            Err(wanted) => return self.wanted.push(wanted),
        };
        self.found.probed_partitions[probe].1 += 1;
        self.found.cost += COMPARISON_COST;
        self.compare(entry, insert_seq, center, &candidate);
    }

    /// The signature of a candidate.
    fn read(&mut self, entry: EntryRef, insert_seq: InsertSeq) -> Result<Option<Arc<Signature>>, Wanted> {
        if let Some(signature) = self.shared.decoded.get(insert_seq) {
            return Ok(Some(signature));
        }
        let Some(read) = self.index.read(entry, self.shared.fetched, self.buffer)? else { return Ok(None) };
        if read.fetched {
            self.found.fetched.push((entry, Arc::clone(&read.signature)));
        }
        self.shared.decoded.insert(insert_seq, &read.signature);
        Ok(Some(read.signature))
    }

    fn compare(
        &mut self,
        entry: EntryRef,
        insert_seq: InsertSeq,
        center: Center,
        candidate: &Arc<Signature>,
    ) {
        let policy = self.index.tables.policy;
        let comparison = policy.compare(self.signature, candidate);
        let similarity = comparison.similarity;
        if !comparison.similar {
            // Only a center says something about other entries.
            if self.columns(entry.partition).is_center(entry.slot) {
                self.far.push(Center { insert_seq, distance: distance(similarity).0 });
            }
            return;
        }
        // Only hashes of keys are kept: two keys that differ may share a bucket.
        if !policy.meets(self.signature, candidate) {
            return;
        }
        let tables = &self.index.tables;
        let has_left = tables.has_left(center);
        if (center == Center::UNKNOWN || has_left)
            && let Some(center) = self.adopt(insert_seq, &comparison, candidate)
        {
            let band_keys = if has_left { tables.band_keys(candidate) } else { BandKeys::new() };
            self.found.adopted.push((entry, center, band_keys));
        }
        self.oldest.get_or_insert_with(|| Arc::clone(candidate));
        self.found.partners.push(Partner { entry, insert_seq, similarity });
    }

    /// Whether an entry, or all of a run, of that center need not be compared.
    #[inline]
    fn is_covered(&self, center: Center) -> bool {
        if !center.is_entry() {
            return false;
        }
        // Both lists are in order of insertion.
        if self.found.partners.binary_search_by_key(&center.insert_seq, |partner| partner.insert_seq).is_ok()
        {
            return true;
        }
        let Some(tau) = self.index.tables.policy.metric() else { return false };
        let far = self.far.binary_search_by_key(&center.insert_seq, |far| far.insert_seq);
        far.is_ok_and(|at| {
            let gap = u64::from(self.far[at].distance.saturating_sub(center.distance));
            gap * Tau::DENOMINATOR >= (Tau::DENOMINATOR - tau.numerator()) * 255
        })
    }

    #[inline]
    fn columns(&self, partition: LocalIndex) -> &'i Columns {
        &self.index.tables.partitions[partition.index()].columns
    }
}
