//! Finds which members of a group are duplicates of a member other than the winner (G9).
//!
//! Members that are similar to the winner are its duplicates and need no cover. The others are taken in the
//! winner order, each content once. A content that is F with an earlier kept content is a duplicate of the
//! first page that has it.

use doppel_model::GroupId;
use doppel_model::pairwise::Similarity;
use doppel_protocol::Tier1Error;

use crate::machine::{CoverUpdate, MemberCover};
use crate::regroup::{CoveredContents, cover};
use crate::rows::key;
use crate::rows::record::{ContentComparison, Cover, CoveringPage, GroupRecord, Member};
use crate::service::upkeep::Upkeep;
use crate::service::upkeep::members::{ReadAhead, by_content};

/// The members of a group whose cover has changed.
pub(crate) struct FoundCover {
    group: GroupId,
    changes: u64,
    members: Vec<MemberCover>,
}

impl FoundCover {
    /// Splits the cover into commands of at most `rows` members.
    pub(crate) fn commands(self, rows: usize) -> impl Iterator<Item = CoverUpdate> {
        let Self { group, changes, members } = self;
        let steps = members.len().div_ceil(rows).max(1);
        let mut members = members.into_iter();
        (1..=steps).map(move |step| {
            let members = members.by_ref().take(rows).collect();
            CoverUpdate { group, changes, members, last: step == steps }
        })
    }
}

impl Upkeep {
    /// Finds the cover of a group. `None` if the group is not active or owes no cover.
    pub(crate) fn find_cover(&self, group: GroupId) -> Result<Option<FoundCover>, Tier1Error> {
        let Some(GroupRecord::Active(record)) = self.rows.record(key::group(group))? else {
            return Ok(None);
        };
        if !record.owes_cover() {
            return Ok(None);
        }
        let mut members = self.members(group, &|member| member.dissimilar)?;
        let winners = self.collection.settings.winners;
        members.sort_by(|(_, a), (_, b)| winners.compare(&a.rank, &b.rank, None).0);
        let (copies, numbers) = by_content(&members);
        let mut ahead = ReadAhead::default();
        let mut sizes = vec![0; copies.len()];
        let mut read = |number: usize| -> Result<_, Tier1Error> {
            let signature = self.content_of(group, &members, &copies, &mut ahead, number)?;
            sizes[number] = signature.as_ref().map_or(0, |signature| signature.size());
            Ok(signature)
        };
        let contents = CoveredContents::unprotected(copies.len());
        let cover = cover(self.collection.settings.policy, contents, &mut read)?;
        let by = |index: usize| -> Option<CoveringPage> {
            let number = numbers[&members[index].1.content];
            let (first, similarity) = match cover[number] {
                Some((center, comparison)) => (copies[center][0], comparison.similarity),
                // Another page with the same content is kept.
                None => (copies[number][0], Similarity::of_copies(sizes[number])),
            };
            let (page, kept) = &members[first];
            let with = ContentComparison { content: kept.content, similarity, similar: true };
            (first != index).then(|| CoveringPage { page: *page, url: kept.rank.url.clone(), with })
        };
        let news = (0..members.len()).filter_map(|index| {
            let (page, Member { membership_number, content, cover, .. }) = &members[index];
            let by = by(index);
            let now = by.as_ref().map_or(Cover::Kept, |kept| Cover::By(kept.page, kept.with.content));
            let (page, membership_number, content) = (*page, *membership_number, *content);
            (now != *cover).then_some(MemberCover { page, membership_number, content, by })
        });
        Ok(Some(FoundCover { group, changes: record.cover_changes, members: news.collect() }))
    }
}
