//! Each group has exactly one live winner: the page that precedes all others in the winner order. Every
//! member knows the winner, and the owner correctly counts the members that are no near-duplicates of it.

use doppel_contract::Status;

use super::Snapshot;
use crate::sim::model::url;
use crate::sim::violation::{Checked, holds};
use crate::sim::world::World;

const NAME: &str = "exactly one live winner";

pub(crate) fn check(world: &World, snapshot: &Snapshot) -> Checked {
    for component in &snapshot.components {
        let Some(row) = snapshot.group_of(component).and_then(|group| snapshot.groups.get(&group)) else {
            continue;
        };
        let (group, winner) = (row.group, url(component.winner));
        holds!(NAME, row.winner == Some(winner.id()), "{group} has winner {:?} and not {winner}", row.winner);
        for page in component.contents.iter().chain(&component.redirects) {
            let Some(page) = snapshot.page(*page) else { continue };
            holds!(
                NAME,
                page.winner.as_ref() == Some(&winner),
                "{} names the winner {:?}; expected is {winner}",
                page.url,
                page.winner
            );
        }
        let winners = component.contents.iter().filter_map(|page| snapshot.page(*page));
        let winners = winners.filter(|page| page.status == Status::Winner).count();
        holds!(NAME, winners == 1, "{group} has {winners} winners");
        let dissimilar =
            |page: &&usize| **page != component.winner && !world.model.similar(**page, component.winner);
        let dissimilar = component.contents.iter().filter(dissimilar).count() as u64;
        holds!(
            NAME,
            row.dissimilar == dissimilar,
            "{group} counts {} dissimilar members of {dissimilar}",
            row.dissimilar
        );
    }
    Ok(())
}
