//! Pages that represent groups in a market, by the rules of docs/reference/winner-rules.md. They only affect
//! the answer and are not recorded.

use std::collections::HashMap;

use doppel_contract::Market;
use doppel_join::{ContentIndex, Contents, ReadSignature};
use doppel_model::pairwise::Similarity;
use doppel_protocol::WinnerOrder;
use rayon::prelude::*;

use super::BulkError;
use super::groups::{ContentGroup, GroupMember};
use super::versions::Versions;

/// A page that takes the place of its group's winner.
#[derive(Debug)]
pub(super) struct MarketWinner {
    pub(super) page: u32,
    /// Similarity of the page to the winner and to each content that is similar to the winner.
    pub(super) similarities: HashMap<ContentIndex, Similarity>,
}

/// Returns, for each group, the page that takes the place of its winner, if there is one.
pub(super) fn preferred(
    versions: &Versions,
    (contents, read): (&Contents, &ReadSignature<'_, BulkError>),
    (winners, market): (WinnerOrder, &Market),
    groups: &[ContentGroup],
    members: &[Option<GroupMember>],
) -> Result<Vec<Option<MarketWinner>>, BulkError> {
    let content = |page: u32| versions.pages[page as usize].content();
    let of_group = |group: &ContentGroup| -> Result<Option<MarketWinner>, BulkError> {
        if group.quarantined || group.pages.len() >= Market::MEMBERS_MAX {
            return Ok(None);
        }
        let better = |a: u32, b: u32| {
            if versions.compare(winners, (a, b), Some(market)).is_gt() { b } else { a }
        };
        let first = group.pages.iter().copied().reduce(better).filter(|first| *first != group.winner);
        let Some((page, own)) = first.and_then(|page| Some((page, content(page)?))) else { return Ok(None) };
        let named = |page: &u32| members[*page as usize].is_some_and(|member| member.similar);
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
        Ok(Some(MarketWinner { page, similarities }))
    };
    groups.par_iter().map(of_group).collect()
}
