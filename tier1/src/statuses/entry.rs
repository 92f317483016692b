//! What the status table keeps of a page and of a group.
//!
//! A page in a group takes more room than one on its own, so there are two kinds of entries. URLs and contents are hashed
//! with a secret key.

use doppel_contract::Status;
use doppel_model::pairwise::Similarity;
use doppel_model::{ContentHash, GroupId, PageId, PageUrl, Timestamp};
use doppel_protocol::Rank;
use serde::{Deserialize, Serialize};

use super::secret::SecretKey;
use super::slots::Entry;
use crate::record::{ContentState, GroupRecord, PageRecord, State};

/// What an entry tells. `Rows` is told of everything that is left to the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    Rows,
    Unique,
    Pending,
    Dead,
    Winner,
    Duplicate,
    /// It was compared with the winner, and is no near-duplicate of it, nor known to be one of another kept page.
    Secondary,
}

/// A page that is in no group, or about which the rows have to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Alone {
    id: PageId,
    pub(super) fetched_at: Timestamp,
    url: u32,
    pub(super) told: Told,
}

/// A page in a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Grouped {
    id: PageId,
    pub(super) fetched_at: Timestamp,
    pub(super) group: GroupId,
    /// Of a winner its id and content, of others those of the winner that they were compared with.
    pub(super) compared_with: u64,
    pub(super) similarity: f64,
    first_seen: Timestamp,
    /// NaN for none.
    popularity: f64,
    url: u32,
    pub(super) told: Told,
}

/// A page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Page {
    Alone(Alone),
    Grouped(Grouped),
}

/// A group in use, and its winner; none when the rows have to be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) id: GroupId,
    pub(super) winner: Option<PageUrl>,
}

impl Entry for Alone {
    type Id = PageId;

    fn id(&self) -> PageId {
        self.id
    }
}

impl Entry for Grouped {
    type Id = PageId;

    fn id(&self) -> PageId {
        self.id
    }
}

impl Entry for Group {
    type Id = GroupId;

    fn id(&self) -> GroupId {
        self.id
    }
}

impl Alone {
    /// The rows have to be asked about the page.
    pub(super) fn left_to_rows(id: PageId) -> Self {
        Self { id, fetched_at: Timestamp::from_millis(0), url: 0, told: Told::Rows }
    }

    /// Whether it is the URL on record, which has the same id.
    pub(super) fn is(&self, key: SecretKey, url: &PageUrl) -> bool {
        self.url == key.hash_of_url(url)
    }
}

impl Grouped {
    /// Whether it is the URL on record, which has the same id.
    pub(super) fn is(&self, key: SecretKey, url: &PageUrl) -> bool {
        self.url == key.hash_of_url(url)
    }

    /// The page as the winner order sees it.
    pub(super) fn rank(&self, url: PageUrl) -> Rank {
        let popularity = Some(self.popularity).filter(|popularity| !popularity.is_nan());
        Rank { url, popularity, first_seen: self.first_seen }
    }
}

impl Page {
    pub(super) fn id(&self) -> PageId {
        match self {
            Self::Alone(page) => page.id,
            Self::Grouped(page) => page.id,
        }
    }

    /// Of a record; none when the page counts as unknown.
    pub(super) fn of(key: SecretKey, id: PageId, record: &PageRecord) -> Option<Self> {
        let alone = |told| {
            let (fetched_at, url) = (record.fetched_at, key.hash_of_url(record.url()));
            Self::Alone(Alone { id, fetched_at, url, told })
        };
        let page = match &record.state {
            State::Purged => return None,
            State::Dead => alone(Told::Dead),
            // The chain has to be followed.
            State::Redirect(_) => alone(Told::Rows),
            State::Content(state) => match (record.published.status, record.published.group) {
                (Status::Unique, None) => alone(Told::Unique),
                (Status::Pending, None) => alone(Told::Pending),
                (_, Some(group)) => Self::in_group(key, id, record, state, group)
                    .map_or_else(|| alone(Told::Rows), Self::Grouped),
                (_, None) => alone(Told::Rows),
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
    ) -> Option<Grouped> {
        let hash_of = |page: PageId, content: ContentHash| key.hash_of_content(page, content);
        let (told, compared_with, similarity) = match record.published.status {
            Status::Pending => (Told::Pending, 0, 0.0),
            Status::Winner => (Told::Winner, hash_of(id, state.content), 0.0),
            // What is on record is of its present content.
            Status::Duplicate | Status::Secondary => {
                let membership = state.membership.as_ref()?;
                let winner = membership.winner.as_ref().filter(|winner| !winner.quarantined)?;
                let verdict = membership.verdict.filter(|verdict| verdict.content == winner.content)?;
                // About a duplicate of another page the rows have to be asked.
                let is_of_winner = verdict.similar;
                if is_of_winner != (record.published.status == Status::Duplicate) {
                    return None;
                }
                let told = if is_of_winner { Told::Duplicate } else { Told::Secondary };
                let similarity = record.published.similarity.map_or(0.0, Similarity::as_f64);
                (told, hash_of(winner.page, winner.content), similarity)
            }
            _ => return None,
        };
        let popularity = match record.rank.popularity {
            Some(popularity) if popularity.is_nan() => return None,
            popularity => popularity.unwrap_or(f64::NAN),
        };
        Some(Grouped {
            id,
            fetched_at: record.fetched_at,
            group,
            compared_with,
            similarity,
            first_seen: record.rank.first_seen,
            popularity,
            url: key.hash_of_url(record.url()),
            told,
        })
    }
}

impl Group {
    /// Of a record; none when there is nothing to tell of the group. A merged one has to be followed, and of a
    /// quarantined one more is told than its winner.
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
        assert_eq!((size_of::<Alone>(), size_of::<Grouped>(), size_of::<Group>()), (32, 72, 32));
    }
}
