//! The pages that stand for groups in a market: the rules are those of docs/reference/winner-rules.md. They belong to the answer alone;
//! nothing of them is on record.

use std::collections::HashMap;

use doppel_contract::Market;
use doppel_join::{ContentIndex, Contents, ReadSignature};
use doppel_model::pairwise::Similarity;
use doppel_protocol::WinnerOrder;
use rayon::prelude::*;

use super::BulkError;
use super::groups::{Group, Place};
use super::versions::Versions;

/// A page that takes the place of its group's winner.
#[derive(Debug)]
pub(super) struct Preferred {
    pub(super) page: u32,
    /// How similar the winner and each content that is like the winner are to it.
    pub(super) similarities: HashMap<ContentIndex, Similarity>,
}

/// Of every group the page that takes the place of its winner, if there is one.
pub(super) fn preferred(
    versions: &Versions,
    (contents, read): (&Contents, &ReadSignature<'_, BulkError>),
    (winners, market): (WinnerOrder, &Market),
    groups: &[Group],
    places: &[Option<Place>],
) -> Result<Vec<Option<Preferred>>, BulkError> {
    let content = |page: u32| versions.pages[page as usize].content();
    let of_group = |group: &Group| -> Result<Option<Preferred>, BulkError> {
        if group.quarantined || group.pages.len() >= Market::MEMBERS_MAX {
            return Ok(None);
        }
        let better = |a: u32, b: u32| {
            if versions.compare(winners, (a, b), Some(market)).is_gt() { b } else { a }
        };
        let first = group.pages.iter().copied().reduce(better).filter(|first| *first != group.winner);
        let Some((page, own)) = first.and_then(|page| Some((page, content(page)?))) else { return Ok(None) };
        let named = |page: &u32| places[*page as usize].is_some_and(|place| place.similar);
        let mut others: Vec<ContentIndex> =
            group.pages.iter().copied().filter(named).chain([group.winner]).filter_map(content).collect();
        others.sort_unstable();
        others.dedup();
        let is_copy = content(group.winner) == Some(own);
        let compared = others.iter().filter(|other| **other != own).count();
        if !is_copy && compared > Market::COMPARISONS_MAX {
            return Ok(None);
        }
        let signature = read(own)?;
        let mut similarities = HashMap::from([(own, Similarity::of_copies(contents.size(own)))]);
        for other in others.into_iter().filter(|other| *other != own) {
            let comparison = contents.policy().compare(&signature, &*read(other)?);
            if !is_copy && !comparison.similar {
                return Ok(None);
            }
            similarities.insert(other, comparison.similarity);
        }
        Ok(Some(Preferred { page, similarities }))
    };
    groups.par_iter().map(of_group).collect()
}
