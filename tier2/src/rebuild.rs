//! What is done between passes: the steps of a handover, learning a map, following the load, compaction of the files,
//! and making the tables of a node anew when their numbers run out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_common::api::Rebalance;
use doppel_common::give_way;
use doppel_common::mapping::{MappingError, PARTITIONS_MAX, Plan};
use hashbrown::HashMap;

use crate::cluster::Cluster;
use crate::columns::Center;
use crate::error::Error;
use crate::handover::{self, Handover};
use crate::index::Index;
use crate::map_file::Learned;
use crate::mapping::{self, Sample};
use crate::partition::State;
use crate::seed::Seeded;
use crate::service::Shared;
use crate::tables::{Place, Tables};

/// Contents a map is learned from, at most.
const SAMPLE_MAX: usize = 20_000;

/// A map is learned when there are this many contents per wanted partition, and not for fewer in all.
const CONTENTS_PER_PARTITION: usize = 4;
const CONTENTS_MIN: usize = 256;

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
        give_way();
    }
    if shared.stopping.load(Ordering::Relaxed) || is_moving(shared) {
        return;
    }
    let (renew, compact): (Vec<bool>, Vec<bool>) = {
        let cluster = shared.read();
        let due = |index: &Index| (index.tables.want_renewal(), index.file.wants_compaction());
        cluster.nodes.iter().map(due).unzip()
    };
    for (node, _) in (0..).zip(renew).filter(|(_, due)| *due) {
        renew_tables(shared, node);
    }
    for (node, _) in (0..).zip(compact).filter(|(_, due)| *due) {
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
            if present.step(shared) {
                *handover = None;
            }
            return true;
        }
    }
    if handover::take_down(shared) {
        return true;
    }
    // To make a plan takes a while, for which the lock of the handover is not held.
    let wish = shared.wished();
    let begun = due(shared, wish).is_some_and(|(plan, learned)| begin(shared, plan, learned));
    if wish.is_some() {
        shared.end_wish();
    }
    begun
}

fn begin(shared: &Shared, plan: Plan, learned: Learned) -> bool {
    let (epoch, partitions) = (plan.map().epoch(), plan.map().partitions());
    match Handover::begin(shared, plan, learned) {
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

/// The plan that is to be carried out next, if any: what an operator wishes, or what the load asks for.
fn due(shared: &Shared, wish: Option<Rebalance>) -> Option<(Plan, Learned)> {
    let wanted = shared.config.partitions;
    if let Some(wish) = wish {
        // A map that was never learned is still due after it.
        let learned = shared.read().learned.unwrap_or(Learned { contents: 0, partitions: 0 });
        if let Some(plan) = mapping::wished(shared, wish) {
            return Some((plan, learned));
        }
    }
    let cluster = shared.read();
    if is_map_due(&cluster, wanted) {
        let learned = learned_now(&cluster, wanted);
        let plan = learn(&cluster, wanted);
        drop(cluster);
        return plan
            .map(|plan| (plan, learned))
            .map_err(|error| {
                tracing::error!(%error, "cannot learn a partition map");
                shared.write().learned = Some(learned);
            })
            .ok();
    }
    let learned = cluster.learned.filter(|_| mapping::is_due(&cluster))?;
    drop(cluster);
    mapping::follow(shared).map(|plan| (plan, learned))
}

fn learned_now(cluster: &Cluster, partitions: u32) -> Learned {
    Learned { contents: cluster.len(), partitions }
}

fn is_map_due(cluster: &Cluster, wanted: u32) -> bool {
    let contents = cluster.len();
    let enough = wanted > 1 && contents >= CONTENTS_MIN.max(CONTENTS_PER_PARTITION * wanted as usize);
    match cluster.learned {
        None => enough,
        Some(learned) => {
            let deals = cluster.nodes.len() == 1 || contents < DEALT_MAX * cluster.nodes.len();
            let grown = deals && contents >= GROWTH * learned.contents;
            enough && (learned.partitions != wanted || grown)
        }
    }
}

/// A plan for the nodes that serve, of `wanted` partitions in all.
fn learn(cluster: &Cluster, wanted: u32) -> Result<Plan, MappingError> {
    let present = &cluster.plan;
    let mut sample = Sample::default();
    let mut chosen = mapping::choose(cluster, SAMPLE_MAX).into_iter();
    while let Some((address, _)) = chosen.next().filter(|_| sample.has_room()) {
        sample.read(cluster.node(address.node), address.place);
    }
    let sample = sample.signatures;
    let serving: Vec<u32> = present.serving().collect();
    let nodes = serving.len() as u32;
    let map = present.map();
    let each = wanted.div_ceil(nodes).min(PARTITIONS_MAX as u32 / nodes).max(1);
    let mut plan =
        Plan::learn(&sample, (nodes, each), map.tau(), map.lexicon().dimensions(), map.epoch() + 1)?
            .after(present);
    plan.extend(present.nodes())?;
    for number in 0..plan.map().partitions() as u32 {
        plan.place(number, serving[plan.node(number) as usize])?;
    }
    for node in present.drained() {
        plan.set_drained(*node, true)?;
    }
    Ok(plan)
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
