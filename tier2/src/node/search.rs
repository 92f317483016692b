//! One search on a node: it finds candidates, rejects most of them, and compares the others exactly.
//!
//! Candidates are entries that share a band key with the searched content, in all partitions that meet its
//! bounding space. If many entries share a band, candidates are those that share a family key
//! ([`families`](super::partition::families)). The lists of their buckets are merged, so that the oldest
//! candidate comes first. Length and parity bitmap reject a candidate without reading its signature.
//!
//! **Stars.** The cost of a search must not grow with the number of neighbours. The first verified partner of
//! a searched entry, which is the oldest, becomes its *center* and is marked as one. If a later search of x
//! has verified y, then it skips every entry z whose center is y. Such a z is *covered*: a pair of its own
//! links it to y. Every search tries the oldest candidates first, so the members of a cluster choose the same
//! center. A search verifies that center and skips the rest, even a whole run of a large bucket at one step.
//! Centers themselves are always compared, otherwise the entries around them would not be covered.
//!
//! An entry has no center before its first search, or after its center has left. The first search that
//! verifies such an entry assigns one: the oldest of the searched entry and its partners. It compares the two
//! first. Their pair may not have been reported. But tier 1 owes or has had a search of both, so they are
//! linked then at the latest. And if a center leaves, tier 1 compares its group again. A center is named by
//! its insertion sequence, so the name becomes void when the center leaves or begins anew.
//!
//! **Second centers.** If similarities in a family scatter around the threshold, its members have many
//! oldest partners. A search would compare all entries around those that it is not linked to. The few entries
//! with the least noise are partners of most others, and nearer. So a searched entry keeps a second center:
//! the nearest of its partners that were centers then. It covers like the first one, but runs ignore it.
//!
//! **One step only.** A search must not follow centers of centers, although each step is a reported pair. Say
//! z has the center c, and c has the center y, to which x is linked. x and z are linked too. Now the page of
//! c gets another content. Tier 1 compares the group again: z stays, y is put out, and the removal of c is
//! still on its way to this node. If a search of x skipped z because of c, it would report only y, and x
//! would join the new group of y. Neither z nor x would be searched for again, so their pair would be lost.
//! With one step, every center relied on is a partner in the answer for x, and tier 1 checks its page.
//!
//! **Far.** Jaccard distance is a metric; no other measure is. If x is not similar to y, an entry z with
//! center y cannot be a partner of x if d(x, y) - d(y, z) >= 1 - tau. If the bitmap rejects y, it gives a
//! lower bound of d(x, y).
//!
//! **Query order.** All searches of a pass are numbered before the first one starts. A search skips entries
//! with one page and no center that search later in the pass, because their search finds this entry. So in a
//! cluster that arrives in one pass, each search compares only with earlier ones, which have centers.
//!
//! **Owed searches.** An entry stored with an order to search for it has the query order
//! [`OWED`](super::partition::columns::OWED), which exceeds those of all searches of a pass. So searches skip
//! the entry until its own search, unless it has copies, or they come from other nodes.
//!
//! **Limits.** A search that reaches its cost limit is interrupted ([`interruption`]).
//! Until it continues, later searches treat its entry as if the search had finished. If a partner leaves
//! meanwhile, the search starts again, and is not interrupted again. It always keeps its query order.
//!
//! Invariant: let z be an entry that is linked to the searched x. Then z or one of its two centers is a
//! partner found, or z searches later in the same pass.

mod centers;
mod cursor;
pub(super) mod findings;
pub(super) mod interruption;
mod lists;
mod subject;

use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use doppel_model::pairwise::Similarity;
use doppel_model::parity;
use doppel_model::signature::Signature;
use doppel_model::{InsertSeq, Tau};
use doppel_partitioning::BoundingSpace;
use doppel_protocol::index_node::COMPARISON_COST;

use centers::distance;

use super::core::Core;
use super::partition::Partition;
use super::partition::candidates::EntryKeys;
use super::partition::columns::{Center, Columns};
use super::partition::local_index::LocalIndex;
use super::signatures::fetch::MissingSignature;
use super::signatures::signature_cache::SharedSignatures;
use super::tables::EntryRef;
use findings::{AdoptedCenter, FoundPartner, SearchFindings};
use interruption::{FINDINGS_MAX, InterruptedSearch};
pub(crate) use subject::{SearchScratch, Subject};

/// Query order of a search outside passes. It comes after all others.
const LAST_QUERY_ORDER: u32 = u32::MAX - 1;

/// Number of visited candidates after which a search yields the processor. Takes some tens of microseconds. A
/// search in a giant cluster would otherwise delay questions to the service for milliseconds.
const YIELD_INTERVAL: u32 = 512;

/// Number of skipped entries that cost as much as one visit.
const SKIPS_PER_VISIT: usize = 16;

impl Core {
    /// Searches this node for the partners of a content, in the partitions that its bounding space meets. If
    /// the search is interrupted, the second value says where it continues, and the findings are incomplete.
    ///
    /// # Errors
    /// The signatures that have to be fetched from tier 1 first.
    pub(crate) fn search(
        &self,
        subject: Subject<'_>,
        shared: SharedSignatures<'_>,
        scratch: &mut SearchScratch,
    ) -> Result<(SearchFindings, Option<InterruptedSearch>), Vec<MissingSignature>> {
        let Subject { signature, lengths, own, interrupted, limit } = subject;
        let space = BoundingSpace::new(lengths, self.tables.policy.metric());
        let mut findings = SearchFindings::default();
        findings.probed_partitions.extend(self.tables.probed(&space).map(|partition| (partition, 0)));
        if !self.tables.policy.comparable(signature) {
            return Ok((findings, None));
        }
        // Only an entry with a center can be in a run that it has to leave.
        if let Some(own) = own
            && self.tables.partition(own).columns.center(own.slot).is_entry()
        {
            findings.keys = self.tables.entry_keys(own.partition, signature);
        }
        scratch.bitmap.clear();
        parity::append(signature, &mut scratch.bitmap);
        let mut search = ActiveSearch {
            index: self,
            signature,
            own: own.map(|entry| (entry, self.tables.partition(entry).columns.insert_seq(entry.slot))),
            query_order: own.map_or(LAST_QUERY_ORDER, |entry| {
                self.tables.partition(entry).columns.query_order(entry.slot)
            }),
            bitmap: &scratch.bitmap,
            oldest: None,
            far: Vec::new(),
            findings,
            shared,
            missing: Vec::new(),
            buffer: &mut scratch.buffer,
            visited: InsertSeq::default(),
            is_vain: false,
            continued_after: InsertSeq::default(),
            limit: limit.unwrap_or(u64::MAX),
        };
        if let Some(interrupted) = interrupted {
            search.resume(interrupted);
        }
        let is_finished = !search.missing.is_empty() || search.run();
        if !search.missing.is_empty() {
            return Err(search.missing);
        }
        let ActiveSearch { own, visited, mut far, findings, .. } = search;
        if is_finished {
            return Ok((findings, None));
        }
        far.drain(..far.len().saturating_sub(FINDINGS_MAX));
        let partners = findings.partners.clone();
        Ok((findings, Some(InterruptedSearch { own, before: None, visited, partners, far })))
    }
}

/// Whether a search with this query order may skip an entry, because the entry's own search comes later in the pass
/// and finds the pair.
fn searches_later(partition: &Partition, slot: u32, query_order: u32) -> bool {
    let columns = &partition.columns;
    // If the entry has copies, the page that searches later may leave while a copy stays.
    columns.query_order(slot) > query_order
        && columns.center(slot) == Center::UNKNOWN
        && !columns.is_center(slot)
        && !partition.has_copies(slot)
}

/// Cuts off the first entries of a list whose own searches come later in the pass. If many members of a cluster
/// arrive in one pass, these are most entries of their lists.
fn without_leading_owed<'l>(partition: &Partition, slots: &'l [u32], query_order: u32) -> &'l [u32] {
    let is_later = |slot: &&u32| searches_later(partition, **slot, query_order);
    &slots[slots.iter().take_while(is_later).count()..]
}

/// A search under way.
struct ActiveSearch<'i, 's> {
    index: &'i Core,
    signature: &'s Signature,
    /// The searched entry and its insertion sequence, if this node stores it.
    own: Option<(EntryRef, InsertSeq)>,
    query_order: u32,
    bitmap: &'s [u64],
    /// Signature of the oldest partner.
    oldest: Option<Arc<Signature>>,
    /// Centers that are not partners, oldest first. Each has a lower bound of its distance.
    far: Vec<Center>,
    findings: SearchFindings,
    shared: SharedSignatures<'s>,
    /// Signatures that have to be fetched.
    missing: Vec<MissingSignature>,
    buffer: &'s mut Vec<u8>,
    /// The last visited candidate.
    visited: InsertSeq,
    /// Whether length, bitmap or comparison rejected the last visited candidate.
    is_vain: bool,
    /// The last candidate visited before the interruption.
    continued_after: InsertSeq,
    /// The cost at which the search is interrupted.
    limit: u64,
}

impl<'i> ActiveSearch<'i, '_> {
    /// Continues with the findings of an earlier part of the search. If a partner has left, the search begins
    /// anew.
    fn resume(&mut self, interrupted: &InterruptedSearch) {
        let InterruptedSearch { visited, partners, far, .. } = interrupted;
        let tables = &self.index.tables;
        let is_alive = |partner: &FoundPartner| tables.is_alive(partner.entry, partner.insert_seq);
        let oldest = match partners.first() {
            None => None,
            Some(_) if !partners.iter().all(is_alive) => return self.limit = u64::MAX,
            Some(oldest) => match self.read(oldest.entry, oldest.insert_seq) {
                Ok(None) => return self.limit = u64::MAX,
                Ok(signature) => signature,
                Err(missing) => return self.missing.push(missing),
            },
        };
        self.oldest = oldest;
        self.findings.continues = true;
        (self.visited, self.continued_after) = (*visited, *visited);
        self.far.clone_from(far);
        self.findings.partners.clone_from(partners);
    }

    /// Visits candidates until there are no more, or the limit is reached. Returns whether there are no more.
    fn run(&mut self) -> bool {
        let mut short = Vec::new();
        let mut lists = self.lists(&mut short);
        let mut steps = 0_u32;
        while let Some(mut cursor) = lists.peek_mut() {
            if self.findings.cost >= self.limit && self.can_be_interrupted() {
                return false;
            }
            self.findings.cost += 1;
            steps += 1;
            if steps >= YIELD_INTERVAL {
                std::thread::yield_now();
                steps = 0;
            }
            let (probe, insert_seq) = (cursor.probe as usize, cursor.insert_seq);
            let partition = self.findings.probed_partitions[probe].0;
            if cursor.center.is_some_and(|center| self.is_covered(center)) {
                PeekMut::pop(cursor);
                continue;
            }
            let Some((slot, rest)) = cursor.slots.split_first() else {
                PeekMut::pop(cursor);
                continue;
            };
            let (slot, large, is_of_run) = (*slot, cursor.large, cursor.center.is_some());
            let host = &self.index.tables.partitions[partition.index()];
            let rest = without_leading_owed(host, rest, self.query_order);
            let skips = (cursor.slots.len() - rest.len()) / SKIPS_PER_VISIT;
            self.findings.cost += skips as u64;
            steps += skips as u32;
            match rest.first() {
                Some(next) => {
                    cursor.insert_seq = self.columns(partition).insert_seq(*next);
                    cursor.slots = rest;
                }
                None => drop(PeekMut::pop(cursor)),
            }
            // An entry that is in several lists comes up several times in succession.
            if insert_seq != self.visited {
                self.visited = insert_seq;
                self.is_vain = false;
                self.visit(probe, EntryRef { partition, slot }, insert_seq);
            }
            if let Some(large) = large {
                let visits = &mut self.findings.list_visits[large as usize].visits;
                visits.rest += u32::from(!is_of_run);
                visits.vain += u32::from(self.is_vain);
            }
        }
        self.choose_centers();
        true
    }

    fn can_be_interrupted(&self) -> bool {
        // A list that is covered as a whole is skipped without a visit.
        let has_advanced = self.visited != self.continued_after;
        has_advanced && self.findings.partners.len() <= FINDINGS_MAX
    }

    fn visit(&mut self, probe: usize, entry: EntryRef, insert_seq: InsertSeq) {
        let columns = self.columns(entry.partition);
        let (slot, center) = (entry.slot, columns.center(entry.slot));
        let (policy, own, other) = (self.index.tables.policy, self.signature.size(), columns.total(slot));
        if self.own.is_some_and(|(at, _)| at == entry)
            || searches_later(self.index.tables.partition(entry), slot, self.query_order)
            || !columns.is_center(slot)
                && (self.is_covered(center) || self.is_covered(columns.second_center(slot)))
        {
            return;
        }
        if !policy.admits(own.min(other), own, other) {
            self.is_vain = true;
            return;
        }
        let shared_max = columns.shared_max(slot, own, self.bitmap);
        if !policy.admits(shared_max, own, other) {
            self.is_vain = true;
            if columns.is_center(slot) {
                let of = own.saturating_add(other).saturating_sub(shared_max);
                self.far
                    .push(Center { insert_seq, distance: distance(Similarity { shared: shared_max, of }).0 });
            }
            return;
        }
        let candidate = match self.read(entry, insert_seq) {
            Ok(Some(candidate)) => candidate,
            // No page has the content any more. The order to remove the entry is on its way.
            Ok(None) => return,
            Err(missing) => return self.missing.push(missing),
        };
        self.findings.probed_partitions[probe].1 += 1;
        self.findings.cost += COMPARISON_COST;
        self.compare(entry, insert_seq, center, &candidate);
    }

    fn read(
        &mut self,
        entry: EntryRef,
        insert_seq: InsertSeq,
    ) -> Result<Option<Arc<Signature>>, MissingSignature> {
        if let Some(signature) = self.shared.cache.get(insert_seq) {
            return Ok(Some(signature));
        }
        let Some(read) = self.index.read(entry, self.shared.fetched, self.buffer)? else { return Ok(None) };
        if read.fetched {
            self.findings.fetched.push((entry, Arc::clone(&read.signature)));
        }
        self.shared.cache.insert(insert_seq, &read.signature);
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
            self.is_vain = true;
            // Only a center says something about other entries.
            if self.columns(entry.partition).is_center(entry.slot) {
                self.far.push(Center { insert_seq, distance: distance(similarity).0 });
            }
            return;
        }
        // Candidate tables store only hashes of band keys, so different keys may share a bucket.
        if !policy.meets(self.signature, candidate) {
            return;
        }
        let tables = &self.index.tables;
        let has_left = tables.has_left(center);
        if (center == Center::UNKNOWN || has_left)
            && let Some(center) = self.adoptable_center(insert_seq, &comparison, candidate)
        {
            let keys =
                if has_left { tables.entry_keys(entry.partition, candidate) } else { EntryKeys::new() };
            self.findings.adopted_centers.push(AdoptedCenter { entry, center, keys });
        }
        self.oldest.get_or_insert_with(|| Arc::clone(candidate));
        self.findings.partners.push(FoundPartner { entry, insert_seq, similarity });
    }

    /// Whether an entry with this center, or a whole run, need not be compared.
    #[inline]
    fn is_covered(&self, center: Center) -> bool {
        if !center.is_entry() {
            return false;
        }
        // Both lists are sorted by insertion sequence.
        let partners = &self.findings.partners;
        if partners.binary_search_by_key(&center.insert_seq, |partner| partner.insert_seq).is_ok() {
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
