//! Repetition changes nothing (G3): neither versions that are sent again, nor old messages and commands that
//! arrive again.

use super::Snapshot;
use crate::sim::action::Stop;
use crate::sim::clients::Request;
use crate::sim::violation::{Checked, holds};
use crate::sim::world::World;

const NAME: &str = "idempotent";

pub(crate) fn check(world: &mut World, before: &Snapshot) -> Checked {
    for version in &world.acknowledged {
        holds!(NAME, world.model.is_known(version), "{version:?} was acknowledged and is not on record");
    }
    let again = world.acknowledged.iter().map(|version| (*version, None));
    let request = Request { versions: again.collect() };
    let acknowledged = world.acknowledged.len();
    world.arrive(&request, 0, 1, Stop::Never)?;
    world.acknowledged.truncate(acknowledged);
    let (posts, commands) = (std::mem::take(&mut world.old_posts), std::mem::take(&mut world.old_commands));
    posts.into_iter().for_each(|post| world.network.send(post));
    for command in commands {
        world.learn(command, 1, Stop::Never)?;
    }
    world.settle_as_it_is()?;
    let after = Snapshot::of(world)?;
    for (page, row) in &before.pages {
        let now = after.pages.get(page);
        holds!(NAME, now == Some(row), "{} was {row:?} and is {now:?}", row.url);
    }
    holds!(NAME, before.pages.len() == after.pages.len(), "there are other pages");
    holds!(NAME, before.groups == after.groups, "groups were {:?} and are {:?}", before.groups, after.groups);
    holds!(
        NAME,
        before.members == after.members,
        "members were {:?} and are {:?}",
        before.members,
        after.members
    );
    holds!(NAME, before.feed == after.feed, "the feed was {:?} and is {:?}", before.feed, after.feed);
    Ok(())
}
