//! What is done between passes: the steps of a migration, learning a map, following the load, compaction of the files,
//! and making the tables of a node anew when their numbers run out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_partitioning::Plan;
use doppel_protocol::{RebalanceOutcome, RebalanceRequest};
use hashbrown::HashMap;

use crate::cluster::Cluster;
use crate::columns::Center;
use crate::error::Error;
use crate::index::Index;
use crate::learn;
use crate::map_file::LearnedFrom;
use crate::mapping;
use crate::migration::{self, Migration};
use crate::partition::State;
use crate::seed::Seeded;
use crate::service::Shared;
use crate::tables::{EntryRef, Tables};

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
        let mut migration = shared.migration();
        if let Some(present) = migration.as_mut() {
            let Some(is_stored) = present.step(shared) else { return true };
            let outcome = present.outcome(&shared.read().plan, is_stored);
            *migration = None;
            drop(migration);
            if let Some(outcome) = outcome {
                shared.end_request(outcome, !is_stored);
            }
            return true;
        }
    }
    if migration::drop_partition(shared) {
        if !is_moving(shared) {
            compact(shared);
        }
        return true;
    }
    // To make a plan takes a while, for which the lock of the migration is not held.
    if let Some(request) = shared.requested() {
        // Contents are even on a new map, and are not copied twice.
        let map_due =
            request == RebalanceRequest::Balance && is_map_due(&shared.read(), shared.config.wanted());
        let next = mapping::requested(shared, if map_due { RebalanceRequest::Learn } else { request });
        let failed = match next {
            Ok(Some((plan, learned))) => match begin(shared, plan, learned, Some(request)) {
                true => return true,
                false => Some("its plan cannot be carried out; the server's log says why".to_owned()),
            },
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = &failed {
            tracing::warn!(?request, error, "what was requested is not possible any more");
        }
        let plan_version = shared.read().plan.map().version();
        shared
            .end_request(RebalanceOutcome { request, failed, plan_version, copied: 0, seconds: 0.0 }, false);
        return true;
    }
    due(shared).is_some_and(|(plan, learned)| begin(shared, plan, learned, None))
}

fn begin(shared: &Shared, plan: Plan, learned: LearnedFrom, request: Option<RebalanceRequest>) -> bool {
    let (plan_version, partitions) = (plan.map().version(), plan.map().partitions());
    match Migration::begin(shared, plan, learned, request) {
        Ok(begun) => {
            let to_copy = begun.progress(plan_version).contents;
            tracing::info!(plan_version, partitions, to_copy, "a new plan begins");
            *shared.migration() = Some(begun);
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
    shared.migration().is_some() || shared.read().nodes.iter().any(outgoing)
}

/// The plan that the load asks for, if any.
fn due(shared: &Shared) -> Option<(Plan, LearnedFrom)> {
    let cluster = shared.read();
    let learned = cluster.learned.filter(|_| mapping::is_due(&cluster));
    let map_due = is_map_due(&cluster, shared.config.wanted());
    drop(cluster);
    if map_due {
        let learned = learn::learned_from(shared);
        return learn::learn(shared)
            .map(|declined_at| (declined_at.plan, learned))
            .map_err(|error| {
                tracing::error!(%error, "cannot learn a partition map");
                shared.write().learned = Some(learned);
            })
            .ok();
    }
    let learned = learned?;
    mapping::next_plan(shared).map(|plan| (plan, learned))
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

/// Makes the tables of a node anew under the same plan. Entries keep their order of insertion and their centers;
/// insertion sequences and query orders start again.
pub(crate) fn renew_tables(shared: &Shared, node: u32) {
    let cluster = shared.read();
    let index = cluster.node(node);
    let old = &index.tables;
    let mut new = Tables::new(old.policy, Arc::clone(&cluster.plan), node);
    let insert_seq = |entry: &EntryRef| old.insert_seq(*entry);
    let mut entries: Vec<EntryRef> = old.entries().collect();
    entries.sort_unstable_by_key(insert_seq);

    let mut insert_seqs: HashMap<u32, u32, Seeded> = HashMap::default();
    let mut fetched = Vec::new();
    let mut buffer = Vec::new();
    for entry in entries {
        let host = old.partition(entry);
        let Some(read) = index.read(entry, &mut buffer) else {
            let content = host.columns.content(entry.slot);
            tracing::warn!(%content, "no page has this content any more; it is dropped");
            continue;
        };
        let lengths = old.map().lexicon().lengths(&read.signature);
        let Some(home) = new.local(old.map().home(&lengths)) else { continue };
        let page = host.columns.page(entry.slot);
        let at = new.insert((home, lengths), page, &read.signature, host.columns.record(entry.slot));
        if read.fetched {
            fetched.push((at, read.signature));
        }
        let partition = new.partition_mut(at);
        host.pages.of(entry.slot).for_each(|page| partition.add_page(at.slot, page));
        insert_seqs.insert(insert_seq(&entry), partition.columns.insert_seq(at.slot));
        let center = host.columns.center(entry.slot);
        // A center is older, so it has its new insertion sequence already, if it is still there.
        let center = match insert_seqs.get(&center.insert_seq) {
            Some(insert_seq) => Center { insert_seq: *insert_seq, ..center },
            None if center.is_entry() => Center::UNKNOWN,
            None => center,
        };
        partition.columns.set_center(at.slot, center);
        partition.columns.set_query_order(at.slot, host.columns.query_order(entry.slot).min(1));
        if host.columns.is_center(entry.slot) {
            new.keep_center(at);
        }
    }
    drop(cluster);
    let mut cluster = shared.write();
    let index = cluster.node_mut(node);
    let old = std::mem::replace(&mut index.tables, new);
    for (entry, signature) in fetched {
        index.heal(entry, &signature);
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
    let record = |entry: &EntryRef| tables.partition(*entry).columns.record(entry.slot);
    let mut entries: Vec<EntryRef> = tables.contents.iter().copied().collect();
    entries.sort_unstable_by_key(|entry| record(entry).offset);
    let mut file = index.file.successor()?;
    let mut buffer = Vec::new();
    let mut moved = Vec::with_capacity(entries.len());
    for entry in entries {
        // What cannot be had now keeps a place where nothing is, and is fetched when it is needed.
        if let Some(read) = index.read(entry, &mut buffer) {
            moved.push((entry, file.append(&read.signature)));
        }
    }
    drop(cluster);
    let mut cluster = shared.write();
    let index = cluster.node_mut(node);
    let before = index.file.bytes();
    index.file.replace(file)?;
    for (entry, record) in moved {
        index.tables.partition_mut(entry).columns.set_record(entry.slot, record);
    }
    tracing::info!(before, after = index.file.bytes(), "compacted the signature file");
    Ok(())
}
