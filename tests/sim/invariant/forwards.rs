//! Forwards of merged groups lead to smaller ids only, so they have no cycle, and are collected in the
//! end: when one is not needed any more, retention drops it.

use super::Picture;
use crate::sim::violation::{Checked, holds};
use crate::sim::world::{KEEP, World};

const NAME: &str = "forwards are acyclic and collected";

pub(crate) fn check(_: &World, picture: &Picture) -> Checked {
    for (group, into) in &picture.forwards {
        holds!(NAME, into < group, "{group} leads to {into}");
        holds!(NAME, !picture.groups.contains_key(group), "{group} is in use and leads to {into}");
    }
    let stray = picture.forwarding_entries.iter().find(|(group, _)| !picture.forwards.contains_key(group));
    holds!(NAME, stray.is_none(), "a forwarding entry of a group that was not merged: {stray:?}");
    Ok(())
}

/// At rest no membership goes by a merged group any more, so retention drops every forward.
pub(crate) fn collect(world: &mut World) -> Checked {
    for sweep in 0..2 {
        let forwards: Vec<_> = Picture::of(world)?.forwards.into_keys().collect();
        forwards.into_iter().try_for_each(|group| world.expire_group(group))?;
        if sweep == 0 {
            world.clock += KEEP.as_millis() as i64;
        }
    }
    let left = Picture::of(world)?;
    holds!(
        NAME,
        left.forwards.is_empty(),
        "{:?} are left, forwarding entries {:?}",
        left.forwards,
        left.forwarding_entries
    );
    Ok(())
}
