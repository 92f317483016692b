//! No race hides a pair (G4). Live near-duplicates end in one group, and the index stores exactly the live
//! contents. Every pass also checks that a page stays in the index throughout a change of its content.

use std::collections::BTreeSet;

use super::Snapshot;
use crate::sim::model::url;
use crate::sim::violation::{Checked, holds};
use crate::sim::world::World;

const NAME: &str = "no pair is missed by a race";

pub(crate) fn check(world: &World, snapshot: &Snapshot) -> Checked {
    let live: Vec<usize> = (0..world.pages).filter(|page| world.model.content(*page).is_some()).collect();
    for (at, a) in live.iter().enumerate() {
        for b in live[..at].iter().filter(|b| world.model.similar(*a, **b)) {
            let group = |page: usize| snapshot.page(page).and_then(|row| row.group);
            let (x, y) = (group(*a), group(*b));
            holds!(
                NAME,
                x.is_some() && x == y,
                "{} in {x:?} and {} in {y:?} are near-duplicates",
                url(*a),
                url(*b)
            );
        }
    }
    let with_tokens = live.iter().map(|page| (*page, world.model.content(*page).unwrap()));
    let wanted: BTreeSet<_> = with_tokens
        .filter(|(_, content)| world.contents.has_tokens(*content))
        .map(|(page, content)| (url(page).id(), world.contents.hash(content)))
        .collect();
    let stored: BTreeSet<_> = world.index.pages().into_iter().collect();
    let missing: Vec<_> = wanted.difference(&stored).collect();
    let too_many: Vec<_> = stored.difference(&wanted).collect();
    holds!(
        NAME,
        missing.is_empty() && too_many.is_empty(),
        "the index lacks {missing:?} and has {too_many:?}"
    );
    Ok(())
}
