//! From one plan to the next while everything goes on (G7).
//!
//! Every partition of the next plan that is not there under the same id on the same node is filled beside the present
//! ones, in steps between the passes. Passes go on under the present plan; what they change of a content whose
//! partition is being copied is noted, and copied again. When nothing is left to copy, the next plan is stored and takes
//! the place of the present one between two passes. The partitions of before are dropped afterwards, in steps as
//! well. So a split, a join, a move to another node and a map learned anew are one operation.
//!
//! A crash leaves the one plan or the other on disk, and the partitions are made from tier 1's contents at the
//! next start.
//!
//! Invariants:
//! - nobody searches an incoming partition, nor an outgoing one;
//! - at the switch, every content of a partition that goes is in exactly one that comes, its home under the next plan,
//!   with the same pages and the same first page (its copies have named that one and nobody else).

use std::sync::Arc;
use std::time::Instant;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::{MappingError, Plan};
use doppel_protocol::{RebalanceOutcome, RebalanceProgress, RebalanceRequest};
use hashbrown::{HashMap, HashSet};

use crate::bands::BandKeys;
use crate::cluster::{Address, Cluster};
use crate::columns::{Center, Record};
use crate::map_file::{self, LearnedFrom};
use crate::open::MAP;
use crate::partition::State;
use crate::seed::Seeded;
use crate::service::Shared;
use crate::tables::EntryRef;

/// With no more contents left to copy again, they are copied and the switch is made before the next pass.
const LAST_MAX: usize = 8_192;

/// A change of the plan that is under way.
#[derive(Debug)]
pub(crate) struct Migration {
    next: Arc<Plan>,
    learned: LearnedFrom,
    /// Partitions that go.
    sources: Vec<(u32, u32)>,
    /// Where each partition that comes is, by its number in the next map.
    targets: HashMap<u32, (u32, u32), Seeded>,
    /// The entries to copy by node, oldest first, with their insertion sequences.
    queue: Vec<(u32, u32, EntryRef)>,
    /// How many of them were copied.
    at: usize,
    /// New node and insertion sequence of the centers that were copied.
    centers: HashMap<(u32, u32), (u32, u32), Seeded>,
    changed: u64,
    /// The request that it is for.
    request: Option<RebalanceRequest>,
    began: Instant,
}

/// An entry on its way.
struct Carried {
    node: u32,
    insert_seq: u32,
    signature: Arc<Signature>,
    /// The first one first.
    pages: Vec<PageId>,
    center: Center,
    is_center: bool,
    searched: bool,
    /// Where its signature is, unless it had to be fetched.
    record: Option<Record>,
}

/// A content to copy again: where the earlier copy is, and the entry as it is now.
type Again = (Option<(Address, Option<BandKeys>)>, Option<Carried>);

impl Migration {
    /// Prepares the partitions that come.
    ///
    /// # Errors
    /// When the plan is not one that can follow the present one.
    pub(crate) fn begin(
        shared: &Shared,
        next: Plan,
        learned: LearnedFrom,
        request: Option<RebalanceRequest>,
    ) -> Result<Self, MappingError> {
        let mut cluster = shared.write();
        let present = Arc::clone(&cluster.plan);
        next.check_succeeds(&present)?;
        if next.nodes() as usize != cluster.nodes.len() {
            return Err(MappingError::Nodes(next.nodes()));
        }
        let dimensions = next.map().lexicon().dimensions();
        let mut targets = HashMap::default();
        for (number, assignment) in (0..).zip(next.assignments()) {
            if !present.assignments().contains(assignment) {
                let tables = &mut cluster.node_mut(assignment.node).tables;
                let local = tables.add_partition(assignment.id, State::Incoming, dimensions);
                targets.insert(number, (assignment.node, local));
            }
        }
        let mut sources = Vec::new();
        for (number, assignment) in (0..).zip(present.assignments()) {
            let tables = &mut cluster.node_mut(assignment.node).tables;
            let goes = !next.assignments().contains(assignment);
            let Some(local) = tables.local(number).filter(|_| goes) else { continue };
            tables.partitions[local as usize].changed = Some(HashSet::default());
            sources.push((assignment.node, local));
        }
        drop(cluster);
        let mut queue = Vec::new();
        for (node, index) in (0..).zip(&shared.read().nodes) {
            let tables = &index.tables;
            let going = tables.entries().filter(|entry| tables.partition(*entry).changed.is_some());
            queue.extend(going.map(|entry| (node, tables.insert_seq(entry), entry)));
        }
        queue.sort_unstable();
        Ok(Self {
            next: Arc::new(next),
            learned,
            sources,
            targets,
            queue,
            at: 0,
            centers: HashMap::default(),
            changed: 0,
            request,
            began: Instant::now(),
        })
    }

    /// How the request that it is for has ended, now that the next plan is the present one, or cannot be.
    pub(crate) fn outcome(&self, present: &Plan, is_stored: bool) -> Option<RebalanceOutcome> {
        let failed =
            "the next plan could not be stored; the server's log says why, and the next start tries again";
        self.request.map(|request| RebalanceOutcome {
            request,
            failed: (!is_stored).then(|| failed.to_owned()),
            plan_version: present.map().version(),
            copied: self.queue.len() as u64,
            seconds: self.began.elapsed().as_secs_f64(),
        })
    }

    pub(crate) fn progress(&self, plan_version: u64) -> RebalanceProgress {
        RebalanceProgress {
            plan_version,
            next_version: self.next.map().version(),
            copied: self.at as u64,
            contents: self.queue.len() as u64,
            changed: self.changed,
            seconds: self.began.elapsed().as_secs_f64(),
        }
    }

    /// Copies some contents, or makes the switch; then whether the next plan is the present one.
    pub(crate) fn step(&mut self, shared: &Shared) -> Option<bool> {
        if self.at < self.queue.len() {
            let end = self.queue.len().min(self.at + shared.config.step);
            let copies = {
                let cluster = shared.read();
                let live = |(node, insert_seq, entry): &(u32, u32, EntryRef)| {
                    let tables = &cluster.node(*node).tables;
                    // One that is gone or began anew is among the changed.
                    tables.is_alive(*entry, *insert_seq).then_some(Address { node: *node, entry: *entry })
                };
                let addresses = self.queue[self.at..end].iter().filter_map(live);
                addresses.map(|address| (None, Carried::read(&cluster, address))).collect()
            };
            self.at = end;
            self.place(&mut shared.write(), copies);
            return None;
        }
        let mut left = self.take_changed(shared, shared.config.step);
        if left > LAST_MAX {
            return None;
        }
        while left > 0 {
            left = self.take_changed(shared, shared.config.step);
        }
        Some(self.switch(shared))
    }

    /// Copies up to `limit` contents again that changed; how many are left.
    fn take_changed(&mut self, shared: &Shared, limit: usize) -> usize {
        let mut contents: Vec<ContentHash> = Vec::new();
        let mut left = 0;
        {
            let mut cluster = shared.write();
            for (node, local) in &self.sources {
                let source = &mut cluster.node_mut(*node).tables.partitions[*local as usize];
                let Some(changed) = &mut source.changed else { continue };
                let some: Vec<ContentHash> = changed.iter().take(limit - contents.len()).copied().collect();
                for content in &some {
                    changed.remove(content);
                }
                left += changed.len();
                contents.extend(some);
            }
        }
        // The same run of the same orders gives the same index.
        contents.sort_unstable();
        self.changed += contents.len() as u64;
        let copies = {
            let cluster = shared.read();
            contents.into_iter().map(|content| again(&cluster, content)).collect()
        };
        self.place(&mut shared.write(), copies);
        left
    }

    /// Stores copies in the partitions that come, in the place of earlier ones.
    fn place(&mut self, cluster: &mut Cluster, copies: Vec<Again>) {
        for (earlier, carried) in copies {
            if let Some((Address { node, entry }, band_keys)) = earlier {
                let index = cluster.node_mut(node);
                index.release(entry);
                index.tables.partition_mut(entry).pages.clear(entry.slot);
                match band_keys {
                    Some(band_keys) => index.tables.remove(entry, &band_keys),
                    None => index.tables.abandon(entry),
                }
            }
            if let Some(carried) = carried {
                self.store(cluster, carried);
            }
        }
    }

    fn store(&mut self, cluster: &mut Cluster, carried: Carried) {
        let Carried { node: from, insert_seq, signature, pages, center, is_center, searched, record } =
            carried;
        let lengths = self.next.map().lexicon().lengths(&signature);
        let number = self.next.map().home(&lengths);
        let (Some((node, local)), Some((first, further))) =
            (self.targets.get(&number).copied(), pages.split_first())
        else {
            return;
        };
        let index = cluster.node_mut(node);
        let record = match record.filter(|_| node == from) {
            Some(record) => {
                index.file.retain(record);
                record
            }
            None => index.file.append(&signature),
        };
        let tables = &mut index.tables;
        let at = tables.insert((local, lengths), *first, &signature, record);
        let center = match self.centers.get(&(from, center.insert_seq)) {
            Some((there, insert_seq)) if *there == node => Center { insert_seq: *insert_seq, ..center },
            None if node == from && !tables.has_left(center) => center,
            _ if center.is_entry() => Center::UNKNOWN,
            _ => center,
        };
        let partition = tables.partition_mut(at);
        further.iter().for_each(|page| partition.add_page(at.slot, *page));
        partition.columns.set_center(at.slot, center);
        partition.columns.set_query_order(at.slot, searched.into());
        if is_center {
            tables.keep_center(at);
            self.centers.insert((from, insert_seq), (node, tables.insert_seq(at)));
        }
    }

    /// Stores the next plan and makes it the present one. When it cannot be stored, everything stays as it is: false.
    fn switch(&self, shared: &Shared) -> bool {
        let stored = map_file::write(&shared.config.dir.join(MAP), &self.next, self.learned);
        let mut cluster = shared.write();
        match stored {
            Ok(()) => {
                cluster.adopt(Arc::clone(&self.next));
                cluster.learned = Some(self.learned);
                let (plan_version, seconds) = (self.next.map().version(), self.began.elapsed().as_secs_f64());
                let (copied, again) = (self.queue.len(), self.changed);
                tracing::info!(plan_version, copied, again, seconds, "the next plan is the present one");
                true
            }
            Err(error) => {
                tracing::error!(%error, "the next plan cannot be stored; the present one stays");
                cluster.nodes.iter_mut().for_each(|index| index.tables.give_up());
                // Not again at once: it would copy everything for nothing, for ever.
                cluster.learned = Some(self.learned);
                cluster.declined_at = cluster.len();
                false
            }
        }
    }
}

impl Carried {
    /// An entry as it is now; none when no page has its content any more.
    fn read(cluster: &Cluster, Address { node, entry }: Address) -> Option<Self> {
        let index = cluster.node(node);
        let partition = index.tables.partition(entry);
        let columns = &partition.columns;
        let Some(read) = index.read(entry, &mut Vec::new()) else {
            tracing::warn!(content = %columns.content(entry.slot), "no page has this content any more; it is dropped");
            return None;
        };
        Some(Self {
            node,
            insert_seq: columns.insert_seq(entry.slot),
            signature: read.signature,
            pages: partition.pages_of(entry.slot).collect(),
            center: columns.center(entry.slot),
            is_center: columns.is_center(entry.slot),
            searched: columns.query_order(entry.slot) != 0,
            record: (!read.fetched).then(|| columns.record(entry.slot)),
        })
    }
}

/// A content that changed: its earlier copy, and what it is now.
fn again(cluster: &Cluster, content: ContentHash) -> Again {
    let carried = cluster.find(content).and_then(|address| Carried::read(cluster, address));
    let mut nodes = (0..).zip(&cluster.nodes);
    let earlier = nodes.find_map(|(node, index)| {
        let entry = index.tables.find_in(State::Incoming, content)?;
        let signature = match &carried {
            Some(carried) => Some(Arc::clone(&carried.signature)),
            None => index.read(entry, &mut Vec::new()).map(|read| read.signature),
        };
        let comparable = index.tables.partition(entry).columns.comparable(entry.slot);
        let band_keys =
            signature.map(|s| if comparable { index.tables.band_keys(&s) } else { BandKeys::new() });
        Some((Address { node, entry }, band_keys))
    });
    (earlier, carried)
}

/// Drops a piece of a partition that was replaced; whether there was one.
pub(crate) fn drop_partition(shared: &Shared) -> bool {
    let mut cluster = shared.write();
    for index in &mut cluster.nodes {
        let outgoing =
            index.tables.partitions.iter().position(|partition| partition.state == State::Outgoing);
        let Some(outgoing) = outgoing else { continue };
        let (records, gone) = index.tables.drop_partition(outgoing as u32, shared.config.step);
        records.into_iter().for_each(|record| index.file.release(record));
        drop(cluster);
        // Not under the lock: it may be gigabytes.
        drop(gone);
        return true;
    }
    false
}
