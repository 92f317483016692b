//! Forwards of merged groups lead to smaller ids only, so they form no cycle. Retention drops a forward once
//! it is no longer needed.

use super::Snapshot;
use crate::sim::violation::{Checked, holds};
use crate::sim::world::{KEEP, World};

const NAME: &str = "forwards are acyclic and collected";

pub(crate) fn check(_: &World, snapshot: &Snapshot) -> Checked {
    for (group, into) in &snapshot.forwards {
        holds!(NAME, into < group, "{group} leads to {into}");
        holds!(NAME, !snapshot.groups.contains_key(group), "{group} is in use and leads to {into}");
    }
    let stray = snapshot.forwarding_entries.iter().find(|(group, _)| !snapshot.forwards.contains_key(group));
    holds!(NAME, stray.is_none(), "a forwarding entry of a group that was not merged: {stray:?}");
    Ok(())
}

/// Checks that retention drops every forward. At rest no membership uses a forward any more.
pub(crate) fn collect(world: &mut World) -> Checked {
    for sweep in 0..2 {
        let forwards: Vec<_> = Snapshot::of(world)?.forwards.into_keys().collect();
        forwards.into_iter().try_for_each(|group| world.expire_group(group))?;
        if sweep == 0 {
            world.clock += KEEP.as_millis() as i64;
        }
    }
    let left = Snapshot::of(world)?;
    holds!(
        NAME,
        left.forwards.is_empty(),
        "{:?} are left, forwarding entries {:?}",
        left.forwards,
        left.forwarding_entries
    );
    Ok(())
}
