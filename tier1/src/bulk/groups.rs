//! Groups of pages whose contents are linked, their winners, and the comparison of each page with its winner,
//! by the rules of `machine::group`.

use doppel_join::{ContentIndex, Contents, ReadSignature};
use doppel_model::GroupId;
use doppel_model::pairwise::Similarity;
use doppel_protocol::WinnerOrder;

use super::versions::Versions;
use super::{BulkError, Unit};

/// The pages of one group, without redirects.
#[derive(Debug)]
pub(super) struct ContentGroup {
    pub(super) id: GroupId,
    pub(super) winner: u32,
    pub(super) pages: Vec<u32>,
    pub(super) quarantined: bool,
    /// Number of distinct contents of the pages.
    pub(super) contents: u64,
}

/// The group of a page, as an index, and the comparison of the page with the winner.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupMember {
    pub(super) group: u32,
    pub(super) similarity: Similarity,
    pub(super) similar: bool,
    /// For a page that differs from the winner, the kept page that it is a duplicate of.
    pub(super) covered_by: Option<CoveredBy>,
}

/// A kept page, and its similarity to a page that is a duplicate of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CoveredBy {
    pub(super) page: u32,
    pub(super) similarity: Similarity,
}

/// Finds the groups. A component of linked contents is a group if it has several pages, or if redirects end
/// at its page.
pub(super) fn groups(
    versions: &Versions,
    contents: &Contents,
    read: &ReadSignature<'_, BulkError>,
    inbound: &[u32],
    winners: WinnerOrder,
    group_members_max: u64,
) -> Result<Vec<ContentGroup>, BulkError> {
    let with_content = || {
        let numbered = (0..).zip(&versions.pages);
        numbered.filter_map(|(number, page)| Some((number, page.content()?)))
    };
    let mut counts = vec![false; contents.len()];
    with_content().for_each(|(_, content)| counts[content.0 as usize] = true);
    let roots = contents.components(read, |content| counts[content.0 as usize])?;
    // A page without tokens is no duplicate, not even of a page with the same content.
    let mut by_root: Vec<(Result<ContentIndex, u32>, u32)> = with_content()
        .map(|(number, content)| match contents.tokens(content) {
            0 => (Err(number), number),
            _ => (Ok(roots[content.0 as usize]), number),
        })
        .collect();
    by_root.sort_unstable();
    let rank = |page: u32| &versions.pages[page as usize].rank;
    let groups = by_root.chunk_by(|a, b| a.0 == b.0).filter_map(|component| {
        let pages: Vec<u32> = component.iter().map(|(_, page)| *page).collect();
        let keeps_a_group = pages.len() > 1 || pages.iter().any(|page| inbound[*page as usize] > 0);
        let winner = pages.iter().copied().reduce(|best, page| {
            if versions.compare(winners, (page, best), None).is_lt() { page } else { best }
        });
        winner.filter(|_| keeps_a_group).map(|winner| {
            let contents = distinct(pages.iter().filter_map(|page| versions.pages[*page as usize].content()));
            ContentGroup {
                id: GroupId::new(0, rank(winner).url.id().shard(versions.shards())),
                winner,
                quarantined: contents > group_members_max,
                contents,
                pages,
            }
        })
    });
    let mut groups: Vec<ContentGroup> = groups.collect();
    groups.sort_unstable_by(|a, b| {
        let by_winner = || match versions.unit() {
            Unit::Page => rank(a.winner).url.cmp(&rank(b.winner).url),
            Unit::Record => a.winner.cmp(&b.winner),
        };
        a.id.shard().cmp(&b.id.shard()).then_with(by_winner)
    });
    for of_shard in groups.chunk_by_mut(|a, b| a.id.shard() == b.id.shard()) {
        for (group, number) in of_shard.iter_mut().zip(1..) {
            group.id = GroupId::new(number, group.id.shard());
        }
    }
    Ok(groups)
}

fn distinct(contents: impl Iterator<Item = ContentIndex>) -> u64 {
    let mut contents: Vec<ContentIndex> = contents.collect();
    contents.sort_unstable();
    contents.dedup();
    contents.len() as u64
}

/// Compares each page of a group with the winner.
pub(super) fn compare_with_winners(
    versions: &Versions,
    contents: &Contents,
    read: &ReadSignature<'_, BulkError>,
    groups: &[ContentGroup],
) -> Result<Vec<Option<GroupMember>>, BulkError> {
    let content = |page: u32| versions.pages[page as usize].content();
    // Each content occurs once, because it belongs to one group and so to one winner.
    let mut pairs: Vec<(ContentIndex, ContentIndex)> = Vec::new();
    for group in groups {
        let Some(winner) = content(group.winner) else { continue };
        let others = group.pages.iter().filter_map(|page| content(*page));
        pairs.extend(others.filter(|content| *content != winner).map(|content| (content, winner)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let comparisons = contents.compare_all(read, &pairs)?;

    let mut members = vec![None; versions.pages.len()];
    for (number, group) in (0..).zip(groups) {
        let Some(winner) = content(group.winner) else { continue };
        for &page in &group.pages {
            let Some(own) = content(page) else { continue };
            let compared = pairs.binary_search(&(own, winner)).ok().map(|at| comparisons[at]);
            // Contents that are not among the pairs equal the winner's content.
            let (similarity, similar) = compared.map_or_else(
                || (Similarity::of_copies(contents.size(own)), contents.tokens(own) > 0),
                |comparison| (comparison.similarity, comparison.similar),
            );
            members[page as usize] =
                Some(GroupMember { group: number, similarity, similar, covered_by: None });
        }
    }
    Ok(members)
}
