//! What is done between passes: learning a map, re-homing every entry, compaction of the file.
//!
//! A new map moves every entry in one step. The worker makes the new tables beside the old ones, under
//! the lock of a reader, and puts them in their place under the lock of a writer, so a probe sees either
//! map and never a part of one. That is the simple form for partitions of one process. Partitions on
//! several nodes would move one by one here: the new home stores an entry before the old one drops it
//! (G4), and looks of an older epoch are refused and made again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::seed::Seeded;
use doppel_common::mapping::PartitionMap;
use doppel_common::signature::Signature;
use hashbrown::HashMap;

use crate::columns::Center;
use crate::error::Error;
use crate::index::Index;
use crate::map_file::{self, Learned};
use crate::open::MAP;
use crate::service::Shared;
use crate::tables::{Place, Tables};

/// Contents a map is learned from, at most.
const SAMPLE_MAX: usize = 20_000;

/// A map is learned when there are this many contents per wanted partition, and not for fewer in all.
const CONTENTS_PER_PARTITION: usize = 4;
const CONTENTS_MIN: usize = 256;

/// A map is learned again when the contents have grown by this factor since.
const GROWTH: usize = 2;

/// Does what is due. Called by the worker alone.
pub(crate) fn maintain(shared: &Shared) {
    if shared.stopping.load(Ordering::Relaxed) {
        return;
    }
    let wanted = shared.config.partitions;
    let (learn, rebuild, compact) = {
        let index = shared.read();
        (is_map_due(&index, wanted), index.tables.want_renewal(), index.file.wants_compaction())
    };
    if learn {
        learn_map(shared, wanted);
    } else if rebuild {
        let map = shared.read().tables.map.clone();
        rehome(shared, map);
    }
    if compact && let Err(error) = compaction(shared) {
        tracing::error!(%error, "cannot compact the signature file; it goes on growing");
    }
}

fn is_map_due(index: &Index, wanted: u32) -> bool {
    let contents = index.tables.contents.len();
    let enough = contents >= CONTENTS_MIN.max(CONTENTS_PER_PARTITION * wanted as usize);
    match index.learned {
        None => enough && wanted > 1,
        Some(learned) => enough && (learned.partitions != wanted || contents >= GROWTH * learned.contents),
    }
}

fn learn_map(shared: &Shared, wanted: u32) {
    let index = shared.read();
    let learned = Learned { contents: index.tables.contents.len(), partitions: wanted };
    let map = {
        let sample = sample(&index);
        let map = &index.tables.map;
        PartitionMap::learn(&sample, wanted as usize, map.tau(), map.lexicon().dimensions(), map.epoch() + 1)
    };
    drop(index);
    match map {
        Ok(map) => {
            tracing::info!(
                epoch = map.epoch(),
                contents = learned.contents,
                partitions = map.partitions(),
                imbalance = map.sample().imbalance(),
                sends_saved = map.sample().sends_saved(),
                "learned a partition map"
            );
            if let Err(error) = map_file::write(&shared.config.dir.join(MAP), &map, learned) {
                tracing::error!(%error, "the partition map is not stored; it is learned again at the next start");
            }
            rehome(shared, map);
        }
        Err(error) => tracing::error!(%error, "cannot learn a partition map"),
    }
    shared.write().learned = Some(learned);
}

/// The signatures of the contents with the least hashes: the same for the same collection.
fn sample(index: &Index) -> Vec<Arc<Signature>> {
    let tables = &index.tables;
    let content = |place: &Place| tables.partition(*place).columns.content(place.slot);
    let mut places: Vec<Place> = tables.contents.iter().copied().collect();
    if places.len() > SAMPLE_MAX {
        places.select_nth_unstable_by_key(SAMPLE_MAX, content);
        places.truncate(SAMPLE_MAX);
    }
    places.sort_unstable_by_key(content);
    let mut buffer = Vec::new();
    places.iter().filter_map(|place| Some(index.read(*place, &mut buffer)?.signature)).collect()
}

/// Makes all tables anew under a map. Entries keep their order of birth and their centers; births and
/// turns start again.
pub(crate) fn rehome(shared: &Shared, map: PartitionMap) {
    let index = shared.read();
    let old = &index.tables;
    let mut new = Tables::new(old.policy, map);
    let birth = |place: &Place| old.partition(*place).columns.birth(place.slot);
    let mut places: Vec<Place> = old.contents.iter().copied().collect();
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
        let at = new.insert(host.columns.page(place.slot), &read.signature, host.columns.record(place.slot));
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
    drop(index);
    let mut index = shared.write();
    let old = std::mem::replace(&mut index.tables, new);
    for (place, signature) in fetched {
        index.heal(place, &signature);
    }
    drop(index);
    // Not under the lock: it may be gigabytes.
    drop(old);
}

/// Writes the signatures in use to a new file, in their order.
fn compaction(shared: &Shared) -> Result<(), Error> {
    let index = shared.read();
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
    drop(index);
    let mut index = shared.write();
    let before = index.file.bytes();
    index.file.replace(file)?;
    for (place, record) in moved {
        index.tables.partition_mut(place).columns.set_record(place.slot, record);
    }
    tracing::info!(before, after = index.file.bytes(), "compacted the signature file");
    Ok(())
}
