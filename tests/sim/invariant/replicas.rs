//! All replicas of a range agree. Each replica has exactly the records that count, as found by reading the
//! log from its beginning, and the rows of the owner.

use std::collections::BTreeMap;

use doppel_tier1::{Memory, Store};

use crate::sim::violation::{Checked, failed, holds};
use crate::sim::world::World;

const NAME: &str = "all replicas agree";

pub(crate) fn check(world: &mut World) -> Checked {
    for (at, host) in world.hosts.iter_mut().enumerate() {
        let (Some(present), Some(replicas)) = (host.store.present(), &mut host.replicas) else { continue };
        let lost = replicas.taken.iter().find(|position| !replicas.log.counts(**position));
        holds!(NAME, lost.is_none(), "range {at}: {lost:?} does not count");
        let (records, rows) = (replicas.log.records(), all(&present.disk().rows)?);
        // This additional replica reads the whole log from its beginning.
        let anew = replicas.add();
        for node in 0..replicas.count() {
            while replicas.follow(node)? {}
            let disk = replicas.disk(node);
            let name = if node == anew { "a new replica".to_owned() } else { format!("node {node}") };
            holds!(NAME, disk.records() == records, "range {at}: {name} has other records");
            let here = all(&disk.rows)?;
            let differs = rows.iter().find(|(key, row)| here.get(*key) != Some(row)).map(|(key, _)| key);
            let differs = differs.or_else(|| here.keys().find(|key| !rows.contains_key(*key)));
            holds!(NAME, differs.is_none(), "range {at}: {name} and the owner differ at {differs:02x?}");
        }
        replicas.remove_last();
    }
    Ok(())
}

fn all(rows: &Memory) -> Checked<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut all = BTreeMap::new();
    let read = rows.range(&[], &[0xff; 8], &mut |key, row| {
        all.insert(key.to_vec(), row.to_vec());
        true
    });
    read.map_err(|e| failed("reading the stores")(e.into()))?;
    Ok(all)
}
