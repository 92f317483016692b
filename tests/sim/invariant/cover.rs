//! No two kept pages are duplicates (G9). Each page that is not kept is a duplicate of the page that the
//! definition names, and the owner of the group counts the pages that are kept beside the winner.

use super::Snapshot;
use crate::sim::model::url;
use crate::sim::violation::{Checked, holds};
use crate::sim::world::World;

const NAME: &str = "what is kept holds no duplicates";

pub(crate) fn check(world: &World, snapshot: &Snapshot) -> Checked {
    for component in &snapshot.components {
        let Some(group) = snapshot.group_of(component).and_then(|group| snapshot.groups.get(&group)) else {
            continue;
        };
        for page in component.contents.iter().chain(&component.redirects) {
            let Some(row) = snapshot.page(*page) else { continue };
            let Ok(end) = world.model.end(*page) else { continue };
            // A redirect is a duplicate of its target, if the target is kept.
            let kept = snapshot.cover_of(end).or((end != *page).then_some(end)).map(url);
            holds!(
                NAME,
                row.duplicate_of == kept,
                "{} is a duplicate of {:?}; expected is {kept:?}",
                row.url,
                row.duplicate_of
            );
        }
        let mut contents: Vec<_> = component.contents.iter().map(|page| world.model.content(*page)).collect();
        contents.sort_unstable();
        contents.dedup();
        let allowed = world.settings.group_members_max.max(2 * group.contents_at_repair);
        holds!(
            NAME,
            group.quarantined == (contents.len() as u64 > allowed),
            "{} has {} contents of {allowed}, quarantined: {}",
            group.group,
            contents.len(),
            group.quarantined
        );
        holds!(NAME, !group.uncovered, "{} owes a cover", group.group);
        if !group.quarantined {
            let others = component.contents.iter().filter(|page| **page != component.winner);
            let secondaries = others.filter(|page| snapshot.cover_of(**page).is_none()).count() as u64;
            holds!(
                NAME,
                group.secondaries == secondaries,
                "{} counts {} secondaries of {secondaries}",
                group.group,
                group.secondaries
            );
        }
    }
    Ok(())
}
