//! Entries of the status table: what it keeps of a page and of a group.
//!
//! The entry of a page in a group is larger than that of other pages, so there are two kinds. URLs and
//! contents are hashed with a secret key.

use doppel_contract::Status;
use doppel_model::pairwise::Similarity;
use doppel_model::{ContentHash, GroupId, PageId, PageUrl, Timestamp};
use doppel_protocol::Rank;
use serde::{Deserialize, Serialize};

use super::entry_table::TableEntry;
use super::secret::SecretKey;
use crate::rows::record::{ContentState, GroupRecord, PageRecord, State};

/// Status that an entry reports. `Rows` means that readers must use the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EntryStatus {
    Rows,
    Unique,
    Pending,
    Dead,
    Winner,
    Duplicate,
    /// The page was compared with the winner and differs from it. It is not known to be a near-duplicate of
    /// another kept page.
    Secondary,
}

/// The entry of a page that is in no group, or whose status only the rows have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct UngroupedPage {
    id: PageId,
    pub(super) fetched_at: Timestamp,
    url: u32,
    pub(super) status: EntryStatus,
}

/// The entry of a page in a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupedPage {
    id: PageId,
    pub(super) fetched_at: Timestamp,
    pub(super) group: GroupId,
    /// Hash of a page id and a content: the page's own if it is the winner, otherwise those of the winner
    /// that it was compared with.
    pub(super) compared_with: u64,
    pub(super) similarity: f64,
    first_seen: Timestamp,
    /// Popularity of the page; NaN if unknown.
    popularity: f64,
    url: u32,
    pub(super) status: EntryStatus,
}

/// The entry of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PageEntry {
    Ungrouped(UngroupedPage),
    Grouped(GroupedPage),
}

/// The entry of an active group, with its winner. `None` means that readers must use the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupEntry {
    pub(super) id: GroupId,
    pub(super) winner: Option<PageUrl>,
}

impl TableEntry for UngroupedPage {
    type Id = PageId;

    fn id(&self) -> PageId {
        self.id
    }
}

impl TableEntry for GroupedPage {
    type Id = PageId;

    fn id(&self) -> PageId {
        self.id
    }
}

impl TableEntry for GroupEntry {
    type Id = GroupId;

    fn id(&self) -> GroupId {
        self.id
    }
}

impl UngroupedPage {
    /// Creates an entry that sends readers to the rows.
    pub(super) fn left_to_rows(id: PageId) -> Self {
        Self { id, fetched_at: Timestamp::from_millis(0), url: 0, status: EntryStatus::Rows }
    }

    /// Returns whether this is the entry of `url`. Another URL may have the same id.
    pub(super) fn is(&self, key: SecretKey, url: &PageUrl) -> bool {
        self.url == key.hash_of_url(url)
    }
}

impl GroupedPage {
    /// Returns whether this is the entry of `url`. Another URL may have the same id.
    pub(super) fn is(&self, key: SecretKey, url: &PageUrl) -> bool {
        self.url == key.hash_of_url(url)
    }

    /// Returns the rank of the page in the winner order.
    pub(super) fn rank(&self, url: PageUrl) -> Rank {
        let popularity = Some(self.popularity).filter(|popularity| !popularity.is_nan());
        Rank { url, popularity, first_seen: self.first_seen }
    }
}

impl PageEntry {
    pub(super) fn id(&self) -> PageId {
        match self {
            Self::Ungrouped(page) => page.id,
            Self::Grouped(page) => page.id,
        }
    }

    /// Creates the entry of a page from its record. Returns `None` if the page counts as unknown.
    pub(super) fn of(key: SecretKey, id: PageId, record: &PageRecord) -> Option<Self> {
        let ungrouped = |status| {
            let (fetched_at, url) = (record.fetched_at, key.hash_of_url(record.url()));
            Self::Ungrouped(UngroupedPage { id, fetched_at, url, status })
        };
        let page = match &record.state {
            State::Purged => return None,
            State::Dead => ungrouped(EntryStatus::Dead),
            // The chain of redirects must be followed.
            State::Redirect(_) => ungrouped(EntryStatus::Rows),
            State::Content(state) => match (record.published.status, record.published.group) {
                (Status::Unique, None) => ungrouped(EntryStatus::Unique),
                (Status::Pending, None) => ungrouped(EntryStatus::Pending),
                (_, Some(group)) => Self::in_group(key, id, record, state, group)
                    .map_or_else(|| ungrouped(EntryStatus::Rows), Self::Grouped),
                (_, None) => ungrouped(EntryStatus::Rows),
            },
        };
        Some(page)
    }

    fn in_group(
        key: SecretKey,
        id: PageId,
        record: &PageRecord,
        state: &ContentState,
        group: GroupId,
    ) -> Option<GroupedPage> {
        let hash_of = |page: PageId, content: ContentHash| key.hash_of_content(page, content);
        let (status, compared_with, similarity) = match record.published.status {
            Status::Pending => (EntryStatus::Pending, 0, 0.0),
            Status::Winner => (EntryStatus::Winner, hash_of(id, state.content), 0.0),
            // The record's status refers to the present content.
            Status::Duplicate | Status::Secondary => {
                let membership = state.membership.as_ref()?;
                let winner = membership.winner.as_ref().filter(|winner| !winner.quarantined)?;
                let verdict = membership.verdict.filter(|verdict| verdict.content == winner.content)?;
                // Only the rows say enough about a duplicate of another page than the winner.
                let is_of_winner = verdict.similar;
                if is_of_winner != (record.published.status == Status::Duplicate) {
                    return None;
                }
                let status = if is_of_winner { EntryStatus::Duplicate } else { EntryStatus::Secondary };
                let similarity = record.published.similarity.map_or(0.0, Similarity::as_f64);
                (status, hash_of(winner.page, winner.content), similarity)
            }
            _ => return None,
        };
        let popularity = match record.rank.popularity {
            Some(popularity) if popularity.is_nan() => return None,
            popularity => popularity.unwrap_or(f64::NAN),
        };
        Some(GroupedPage {
            id,
            fetched_at: record.fetched_at,
            group,
            compared_with,
            similarity,
            first_seen: record.rank.first_seen,
            popularity,
            url: key.hash_of_url(record.url()),
            status,
        })
    }
}

impl GroupEntry {
    /// Creates the entry of a group from its record. Returns `None` for a merged group, which must be
    /// followed, and for a quarantined group, whose answer has more than the winner.
    pub(super) fn of(id: GroupId, record: &GroupRecord) -> Option<Self> {
        let GroupRecord::Active(group) = record else { return None };
        let (_, winner) = group.winner.as_ref().filter(|_| !group.quarantined)?;
        Some(Self { id, winner: Some(winner.rank.url.clone()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_small() {
        assert_eq!(
            (size_of::<UngroupedPage>(), size_of::<GroupedPage>(), size_of::<GroupEntry>()),
            (32, 72, 32)
        );
    }
}
