//! Finding the cover of each group (G9), by the rules of `service::upkeep::cover`: which pages are duplicates of
//! another kept page than the winner.

use std::collections::HashMap;

use doppel_join::{ContentIndex, Contents, ReadSignature};
use doppel_model::pairwise::Similarity;
use doppel_protocol::WinnerOrder;
use rayon::prelude::*;

use super::BulkError;
use super::groups::{ContentGroup, CoveredBy, GroupMember};
use super::versions::Versions;
use crate::regroup::{self, CoveredContents};

/// Finds the pages that differ from their winner and are duplicates of another kept page, as `service::upkeep::cover`
/// does. Protected pages are kept in any case. In a quarantined group a page is a duplicate of a protected page
/// alone. Stores the result in `members`.
pub(super) fn cover(
    versions: &Versions,
    (contents, read): (&Contents, &ReadSignature<'_, BulkError>),
    winners: WinnerOrder,
    groups: &[ContentGroup],
    members: &mut [Option<GroupMember>],
) -> Result<(), BulkError> {
    let is_protected = |page: u32| versions.pages[page as usize].is_protected();
    let differs = |page: &u32| members[*page as usize].is_some_and(|member| !member.similar);
    // If a group has a protected page, its winner is protected.
    let has_cover = |group: &&ContentGroup| !group.quarantined || is_protected(group.winner);
    let covers = groups.par_iter().filter(has_cover).map(|group| {
        let takes_part = |page: &u32| differs(page) || (is_protected(*page) && *page != group.winner);
        let mut pages: Vec<u32> = group.pages.iter().copied().filter(takes_part).collect();
        pages.sort_by(|a, b| versions.compare(winners, (*a, *b), None));
        // Each content once, with the first page that has it in the winner order.
        let mut numbers: HashMap<ContentIndex, usize> = HashMap::new();
        let mut firsts: Vec<(ContentIndex, u32)> = Vec::new();
        let of_pages: Vec<(u32, usize)> = pages
            .iter()
            .filter_map(|page| {
                let content = versions.pages[*page as usize].content()?;
                let number = *numbers.entry(content).or_insert_with(|| {
                    firsts.push((content, *page));
                    firsts.len() - 1
                });
                Some((*page, number))
            })
            .collect();
        let covered = CoveredContents {
            count: firsts.len(),
            protected: firsts.partition_point(|(_, first)| is_protected(*first)),
            only_by_protected: group.quarantined,
        };
        let cover = if firsts.len() > 1 {
            regroup::cover(contents.policy(), covered, &mut |number| read(firsts[number].0).map(Some))?
        } else {
            vec![None; firsts.len()]
        };
        let unprotected = of_pages.into_iter().filter(|(page, _)| !is_protected(*page));
        let covered = unprotected.filter_map(|(page, number)| {
            let (content, first) = firsts[number];
            match cover[number] {
                Some((center, comparison)) => {
                    Some((page, CoveredBy { page: firsts[center].1, similarity: comparison.similarity }))
                }
                None => (page != first && (!group.quarantined || is_protected(first))).then(|| {
                    let similarity = Similarity::of_copies(contents.size(content));
                    (page, CoveredBy { page: first, similarity })
                }),
            }
        });
        Ok(covered.collect::<Vec<_>>())
    });
    let covers: Vec<Vec<(u32, CoveredBy)>> = covers.collect::<Result<_, BulkError>>()?;
    for (page, by) in covers.into_iter().flatten() {
        if let Some(member) = &mut members[page as usize] {
            member.covered_by = Some(by);
        }
    }
    Ok(())
}
