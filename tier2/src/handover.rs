//! From one plan to the next while everything goes on (G7).
//!
//! Every partition of the next plan that is not there under the same id on the same node is filled beside the present
//! ones, in steps between the passes. Passes go on under the present plan; what they change of a content whose
//! partition is being copied is noted, and copied again. When nothing is left to copy, the next plan is stored and takes
//! the place of the present one between two passes. The partitions of before are taken down afterwards, in steps as
//! well. So a split, a join, a move to another node and a map learned anew are one operation.
//!
//! A crash leaves the one plan or the other on disk, and the partitions are made from tier 1's contents at the
//! next start.
//!
//! Invariants:
//! - nobody looks in an incoming partition, nor in an outgoing one;
//! - at the switch, every content of a partition that goes is in exactly one that comes, its home under the next plan,
//!   with the same pages and the same first page (its copies have named that one and nobody else).

use std::sync::Arc;
use std::time::Instant;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::{MappingError, Plan};
use doppel_protocol::{Ended, Moving, Rebalance};
use hashbrown::{HashMap, HashSet};

use crate::bands::Tags;
use crate::cluster::{Address, Cluster};
use crate::columns::{Center, Record};
use crate::map_file::{self, Learned};
use crate::open::MAP;
use crate::partition::State;
use crate::seed::Seeded;
use crate::service::Shared;
use crate::tables::Place;

/// With no more contents left to copy again, they are copied and the switch is made before the next pass.
const LAST_MAX: usize = 8_192;

/// A change of the plan that is under way.
#[derive(Debug)]
pub(crate) struct Handover {
    next: Arc<Plan>,
    learned: Learned,
    /// Partitions that go.
    sources: Vec<(u32, u32)>,
    /// Where each partition that comes is, by its number in the next map.
    targets: HashMap<u32, (u32, u32), Seeded>,
    /// The entries to copy by node, oldest first, with their births.
    queue: Vec<(u32, u32, Place)>,
    /// How many of them were copied.
    at: usize,
    /// New node and birth of the centers that were copied.
    centers: HashMap<(u32, u32), (u32, u32), Seeded>,
    changed: u64,
    /// The wish that it is for.
    wish: Option<Rebalance>,
    began: Instant,
}

/// An entry on its way.
struct Carried {
    node: u32,
    birth: u32,
    signature: Arc<Signature>,
    /// The first one first.
    pages: Vec<PageId>,
    center: Center,
    hub: bool,
    looked: bool,
    /// Where its signature is, unless it had to be fetched.
    record: Option<Record>,
}

/// A content to copy again: where the earlier copy is, and the entry as it is now.
type Again = (Option<(Address, Option<Tags>)>, Option<Carried>);

impl Handover {
    /// Prepares the partitions that come.
    ///
    /// # Errors
    /// When the plan is not one that can follow the present one.
    pub(crate) fn begin(
        shared: &Shared,
        next: Plan,
        learned: Learned,
        wish: Option<Rebalance>,
    ) -> Result<Self, MappingError> {
        let mut cluster = shared.write();
        let present = Arc::clone(&cluster.plan);
        next.check_follows(&present)?;
        if next.nodes() as usize != cluster.nodes.len() {
            return Err(MappingError::Nodes(next.nodes()));
        }
        let dimensions = next.map().lexicon().dimensions();
        let mut targets = HashMap::default();
        for (number, place) in (0..).zip(next.places()) {
            if !present.places().contains(place) {
                let tables = &mut cluster.node_mut(place.node).tables;
                let local = tables.add_partition(place.id, State::Incoming, dimensions);
                targets.insert(number, (place.node, local));
            }
        }
        let mut sources = Vec::new();
        for (number, place) in (0..).zip(present.places()) {
            let tables = &mut cluster.node_mut(place.node).tables;
            let goes = !next.places().contains(place);
            let Some(local) = tables.local(number).filter(|_| goes) else { continue };
            tables.partitions[local as usize].changed = Some(HashSet::default());
            sources.push((place.node, local));
        }
        drop(cluster);
        let mut queue = Vec::new();
        for (node, index) in (0..).zip(&shared.read().nodes) {
            let tables = &index.tables;
            let going = tables.places().filter(|place| tables.partition(*place).changed.is_some());
            queue.extend(going.map(|place| (node, tables.birth(place), place)));
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
            wish,
            began: Instant::now(),
        })
    }

    /// How the wish that it is for has ended, now that the next plan is the present one, or cannot be.
    pub(crate) fn ended(&self, present: &Plan, is_stored: bool) -> Option<Ended> {
        let failed =
            "the next plan could not be stored; the server's log says why, and the next start tries again";
        self.wish.map(|wish| Ended {
            wish,
            failed: (!is_stored).then(|| failed.to_owned()),
            epoch: present.map().epoch(),
            copied: self.queue.len() as u64,
            seconds: self.began.elapsed().as_secs_f64(),
        })
    }

    pub(crate) fn progress(&self, epoch: u64) -> Moving {
        Moving {
            epoch,
            next_epoch: self.next.map().epoch(),
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
                let live = |(node, birth, place): &(u32, u32, Place)| {
                    let tables = &cluster.node(*node).tables;
                    // One that is gone or began anew is among the changed.
                    tables.is_alive(*place, *birth).then_some(Address { node: *node, place: *place })
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
            if let Some((Address { node, place }, tags)) = earlier {
                let index = cluster.node_mut(node);
                index.release(place);
                index.tables.partition_mut(place).pages.clear(place.slot);
                match tags {
                    Some(tags) => index.tables.remove(place, &tags),
                    None => index.tables.abandon(place),
                }
            }
            if let Some(carried) = carried {
                self.store(cluster, carried);
            }
        }
    }

    fn store(&mut self, cluster: &mut Cluster, carried: Carried) {
        let Carried { node: from, birth, signature, pages, center, hub, looked, record } = carried;
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
        let center = match self.centers.get(&(from, center.birth)) {
            Some((there, birth)) if *there == node => Center { birth: *birth, ..center },
            None if node == from && !tables.has_left(center) => center,
            _ if center.is_entry() => Center::UNKNOWN,
            _ => center,
        };
        let partition = tables.partition_mut(at);
        further.iter().for_each(|page| partition.add_page(at.slot, *page));
        partition.columns.set_center(at.slot, center);
        partition.columns.set_turn(at.slot, looked.into());
        if hub {
            tables.keep_hub(at);
            self.centers.insert((from, birth), (node, tables.birth(at)));
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
                let (epoch, seconds) = (self.next.map().epoch(), self.began.elapsed().as_secs_f64());
                let (copied, again) = (self.queue.len(), self.changed);
                tracing::info!(epoch, copied, again, seconds, "the next plan is the present one");
                true
            }
            Err(error) => {
                tracing::error!(%error, "the next plan cannot be stored; the present one stays");
                cluster.nodes.iter_mut().for_each(|index| index.tables.give_up());
                // Not again at once: it would copy everything for nothing, for ever.
                cluster.learned = Some(self.learned);
                cluster.followed = cluster.len();
                false
            }
        }
    }
}

impl Carried {
    /// An entry as it is now; none when no page has its content any more.
    fn read(cluster: &Cluster, Address { node, place }: Address) -> Option<Self> {
        let index = cluster.node(node);
        let partition = index.tables.partition(place);
        let columns = &partition.columns;
        let Some(read) = index.read(place, &mut Vec::new()) else {
            tracing::warn!(content = %columns.content(place.slot), "no page has this content any more; it is dropped");
            return None;
        };
        Some(Self {
            node,
            birth: columns.birth(place.slot),
            signature: read.signature,
            pages: partition.pages_of(place.slot).collect(),
            center: columns.center(place.slot),
            hub: columns.is_hub(place.slot),
            looked: columns.turn(place.slot) != 0,
            record: (!read.fetched).then(|| columns.record(place.slot)),
        })
    }
}

/// A content that changed: its earlier copy, and what it is now.
fn again(cluster: &Cluster, content: ContentHash) -> Again {
    let carried = cluster.find(content).and_then(|address| Carried::read(cluster, address));
    let mut nodes = (0..).zip(&cluster.nodes);
    let earlier = nodes.find_map(|(node, index)| {
        let place = index.tables.find_in(State::Incoming, content)?;
        let signature = match &carried {
            Some(carried) => Some(Arc::clone(&carried.signature)),
            None => index.read(place, &mut Vec::new()).map(|read| read.signature),
        };
        let comparable = index.tables.partition(place).columns.comparable(place.slot);
        let tags = signature.map(|s| if comparable { index.tables.tags(&s) } else { Tags::new() });
        Some((Address { node, place }, tags))
    });
    (earlier, carried)
}

/// Takes down a piece of a partition that was replaced; whether there was one.
pub(crate) fn take_down(shared: &Shared) -> bool {
    let mut cluster = shared.write();
    for index in &mut cluster.nodes {
        let outgoing =
            index.tables.partitions.iter().position(|partition| partition.state == State::Outgoing);
        let Some(outgoing) = outgoing else { continue };
        let (records, gone) = index.tables.take_down(outgoing as u32, shared.config.step);
        records.into_iter().for_each(|record| index.file.release(record));
        drop(cluster);
        // Not under the lock: it may be gigabytes.
        drop(gone);
        return true;
    }
    false
}
