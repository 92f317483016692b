//! Outboxes drain: at rest no message is under way, neither in memory nor in a store.

use super::Snapshot;
use crate::sim::violation::{Checked, holds};
use crate::sim::world::World;

const NAME: &str = "outboxes drain";

pub(crate) fn check(world: &World, snapshot: &Snapshot) -> Checked {
    holds!(NAME, snapshot.outbox == 0, "{} messages are left in the stores", snapshot.outbox);
    holds!(NAME, world.network.is_empty(), "envelopes are left in the network");
    Ok(())
}
