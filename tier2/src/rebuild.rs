//! What is done between passes: the steps of a handover, learning a map, following the load, compaction of the files,
//! and making the tables of a node anew when their numbers run out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_partitioning::Plan;
use doppel_protocol::{Ended, Rebalance};
use hashbrown::HashMap;

use crate::cluster::Cluster;
use crate::columns::Center;
use crate::error::Error;
use crate::handover::{self, Handover};
use crate::index::Index;
use crate::learn;
use crate::map_file::Learned;
use crate::mapping;
use crate::partition::State;
use crate::seed::Seeded;
use crate::service::Shared;
use crate::tables::{Place, Tables};

/// A map is learned again when the contents have grown by this factor since.
const GROWTH: usize = 2;

/// With several nodes a map is learned again only while there are fewer contents per node than this: everything is
/// dealt anew then. Later the plan follows the load with few moves.
const DEALT_MAX: usize = 1_000;

/// Does what is due after a pass of `orders` orders. Called by the worker alone.
pub(crate) fn maintain(shared: &Shared, orders: usize) {
    // Faster than passes change what was copied.
    let mut steps = 1 + 2 * orders.div_ceil(shared.config.step);
    while steps > 0 && work(shared) {
        steps -= 1;
        std::thread::yield_now();
    }
    if shared.stopping.load(Ordering::Relaxed) || is_moving(shared) {
        return;
    }
    let renew: Vec<bool> = shared.read().nodes.iter().map(|index| index.tables.want_renewal()).collect();
    for (node, _) in (0..).zip(renew).filter(|(_, due)| *due) {
        renew_tables(shared, node);
    }
    compact(shared);
}

/// Compacts the files that have more of what is gone than of what is there.
fn compact(shared: &Shared) {
    let due: Vec<bool> = shared.read().nodes.iter().map(|index| index.file.wants_compaction()).collect();
    for (node, _) in (0..).zip(due).filter(|(_, due)| *due) {
        if let Err(error) = compaction(shared, node) {
            tracing::error!(%error, "cannot compact the signature file; it goes on growing");
        }
    }
}

/// One step of what changes the mapping; whether there was anything to do.
pub(crate) fn work(shared: &Shared) -> bool {
    if shared.stopping.load(Ordering::Relaxed) {
        return false;
    }
    {
        let mut handover = shared.handover();
        if let Some(present) = handover.as_mut() {
            let Some(is_stored) = present.step(shared) else { return true };
            let ended = present.ended(&shared.read().plan, is_stored);
            *handover = None;
            drop(handover);
            if let Some(ended) = ended {
                shared.end_wish(ended, !is_stored);
            }
            return true;
        }
    }
    if handover::take_down(shared) {
        if !is_moving(shared) {
            compact(shared);
        }
        return true;
    }
    // To make a plan takes a while, for which the lock of the handover is not held.
    if let Some(wish) = shared.wished() {
        // Contents are even on a new map, and are not copied twice.
        let map_due = wish == Rebalance::Balance && is_map_due(&shared.read(), shared.config.wanted());
        let next = mapping::wished(shared, if map_due { Rebalance::Learn } else { wish });
        let failed = match next {
            Ok(Some((plan, learned))) => match begin(shared, plan, learned, Some(wish)) {
                true => return true,
                false => Some("its plan cannot be carried out; the server's log says why".to_owned()),
            },
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = &failed {
            tracing::warn!(?wish, error, "what was wished is not possible any more");
        }
        let epoch = shared.read().plan.map().epoch();
        shared.end_wish(Ended { wish, failed, epoch, copied: 0, seconds: 0.0 }, false);
        return true;
    }
    due(shared).is_some_and(|(plan, learned)| begin(shared, plan, learned, None))
}

fn begin(shared: &Shared, plan: Plan, learned: Learned, wish: Option<Rebalance>) -> bool {
    let (epoch, partitions) = (plan.map().epoch(), plan.map().partitions());
    match Handover::begin(shared, plan, learned, wish) {
        Ok(begun) => {
            let to_copy = begun.progress(epoch).contents;
            tracing::info!(epoch, partitions, to_copy, "a new plan begins");
            *shared.handover() = Some(begun);
            true
        }
        Err(error) => {
            tracing::error!(%error, "a plan cannot be carried out");
            false
        }
    }
}

fn is_moving(shared: &Shared) -> bool {
    let outgoing = |index: &Index| index.tables.partitions.iter().any(|p| p.state == State::Outgoing);
    shared.handover().is_some() || shared.read().nodes.iter().any(outgoing)
}

/// The plan that the load asks for, if any.
fn due(shared: &Shared) -> Option<(Plan, Learned)> {
    let cluster = shared.read();
    let learned = cluster.learned.filter(|_| mapping::is_due(&cluster));
    let map_due = is_map_due(&cluster, shared.config.wanted());
    drop(cluster);
    if map_due {
        let learned = learn::now(shared);
        return learn::learn(shared)
            .map(|followed| (followed.plan, learned))
            .map_err(|error| {
                tracing::error!(%error, "cannot learn a partition map");
                shared.write().learned = Some(learned);
            })
            .ok();
    }
    let learned = learned?;
    mapping::follow(shared).map(|plan| (plan, learned))
}

fn is_map_due(cluster: &Cluster, wanted: u32) -> bool {
    let contents = cluster.len();
    let enough = wanted > 1 && contents >= learn::contents_min(wanted);
    match cluster.learned {
        None => enough,
        Some(learned) => {
            let deals = cluster.nodes.len() == 1 || contents < DEALT_MAX * cluster.nodes.len();
            let grown = deals && contents >= GROWTH * learned.contents;
            enough && (learned.partitions != wanted || grown)
        }
    }
}

/// Makes the tables of a node anew under the same plan. Entries keep their order of birth and their centers; births and
/// turns start again.
pub(crate) fn renew_tables(shared: &Shared, node: u32) {
    let cluster = shared.read();
    let index = cluster.node(node);
    let old = &index.tables;
    let mut new = Tables::new(old.policy, Arc::clone(&cluster.plan), node);
    let birth = |place: &Place| old.birth(*place);
    let mut places: Vec<Place> = old.places().collect();
    places.sort_unstable_by_key(birth);

    let mut births: HashMap<u32, u32, Seeded> = HashMap::default();
    let mut fetched = Vec::new();
    let mut buffer = Vec::new();
    for place in places {
        let host = old.partition(place);
        let Some(read) = index.read(place, &mut buffer) else {
            let content = host.columns.content(place.slot);
            tracing::warn!(%content, "no page has this content any more; it is dropped");
            continue;
        };
        let lengths = old.map().lexicon().lengths(&read.signature);
        let Some(home) = new.local(old.map().home(&lengths)) else { continue };
        let page = host.columns.page(place.slot);
        let at = new.insert((home, lengths), page, &read.signature, host.columns.record(place.slot));
        if read.fetched {
            fetched.push((at, read.signature));
        }
        let partition = new.partition_mut(at);
        host.pages.of(place.slot).for_each(|page| partition.add_page(at.slot, page));
        births.insert(birth(&place), partition.columns.birth(at.slot));
        let center = host.columns.center(place.slot);
        // A center is older, so it has its new birth already, if it is still there.
        let center = match births.get(&center.birth) {
            Some(birth) => Center { birth: *birth, ..center },
            None if center.is_entry() => Center::UNKNOWN,
            None => center,
        };
        partition.columns.set_center(at.slot, center);
        partition.columns.set_turn(at.slot, host.columns.turn(place.slot).min(1));
        if host.columns.is_hub(place.slot) {
            new.keep_hub(at);
        }
    }
    drop(cluster);
    let mut cluster = shared.write();
    let index = cluster.node_mut(node);
    let old = std::mem::replace(&mut index.tables, new);
    for (place, signature) in fetched {
        index.heal(place, &signature);
    }
    drop(cluster);
    // Not under the lock: it may be gigabytes.
    drop(old);
}

/// Writes the signatures in use to a new file, in their order.
fn compaction(shared: &Shared, node: u32) -> Result<(), Error> {
    let cluster = shared.read();
    let index = cluster.node(node);
    let tables = &index.tables;
    let record = |place: &Place| tables.partition(*place).columns.record(place.slot);
    let mut places: Vec<Place> = tables.contents.iter().copied().collect();
    places.sort_unstable_by_key(|place| record(place).offset);
    let mut file = index.file.successor()?;
    let mut buffer = Vec::new();
    let mut moved = Vec::with_capacity(places.len());
    for place in places {
        // What cannot be had now keeps a place where nothing is, and is fetched when it is needed.
        if let Some(read) = index.read(place, &mut buffer) {
            moved.push((place, file.append(&read.signature)));
        }
    }
    drop(cluster);
    let mut cluster = shared.write();
    let index = cluster.node_mut(node);
    let before = index.file.bytes();
    index.file.replace(file)?;
    for (place, record) in moved {
        index.tables.partition_mut(place).columns.set_record(place.slot, record);
    }
    tracing::info!(before, after = index.file.bytes(), "compacted the signature file");
    Ok(())
}
