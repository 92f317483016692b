//! The feed equals the state. A consumer that follows the feed has the state of every page, and so has a
//! consumer that reads all of it anew. The feed keeps only the newest event of each page.

use std::collections::BTreeMap;

use doppel_contract::Status;
use doppel_model::PageUrl;
use doppel_protocol::{Line, PageScan};

use super::Snapshot;
use crate::sim::clients::Reader;
use crate::sim::violation::{Checked, failed, holds};
use crate::sim::world::World;

const NAME: &str = "feed equals state";

pub(crate) fn check(world: &mut World, snapshot: &Snapshot) -> Checked {
    for (shard, number, page) in &snapshot.feed {
        let event = snapshot.pages.get(page).map(|row| row.event);
        holds!(
            NAME,
            event == Some(*number),
            "event {number} of shard {} is of {page:?}, whose newest is {event:?}",
            shard.0
        );
    }
    holds!(
        NAME,
        snapshot.feed.len() == snapshot.pages.len(),
        "{} events for {} pages",
        snapshot.feed.len(),
        snapshot.pages.len()
    );
    let lines = PageScan::new(world.worker.api()).map(|line| line.map(|line| (line.url.clone(), line)));
    let state: BTreeMap<PageUrl, Line> =
        lines.collect::<Result<_, _>>().map_err(|e| failed("the export")(e.into()))?;
    let mut reader = std::mem::take(&mut world.reader);
    for reader in [&mut reader, &mut Reader::default()] {
        while !reader.read(world.worker.api(), 7).map_err(|e| failed("the feed")(e.into()))? {}
        let is_live = |line: &Line| !matches!(line.status, Status::Dead | Status::Unknown);
        for line in reader.lines.values().filter(|line| is_live(line)) {
            holds!(
                NAME,
                state.get(&line.url) == Some(line),
                "the feed has {line:?}, the state {:?}",
                state.get(&line.url)
            );
        }
        let known = reader.lines.values().filter(|line| is_live(line)).count();
        holds!(NAME, known == state.len(), "the feed has {known} live pages, the state {}", state.len());
    }
    world.reader = reader;
    Ok(())
}
