//! A whole collection at once: versions go in, the groups at rest come out.
//!
//! The state machine of a range decides page by page, and can be asked and killed at any moment. When all versions are at
//! hand and nobody asks before the end, the same groups (G8) come from one similarity join: versions are folded per URL
//! ([`versions`]), redirects followed ([`redirects`]), contents joined ([`doppel_join`]), and winners and statuses
//! derived ([`groups`]). Nothing is stored.
//!
//! Invariants: status, winner, similarity and totals of every page are what a range comes to when it has taken the same
//! versions in the same order and is quiescent. Group ids differ: here they number the groups by their winners' URLs, so
//! that equal inputs give equal outputs.
//!
//! Memory: some 300 bytes and the URL for each page, beside that of the join.

mod groups;
mod redirects;
mod versions;

use std::path::Path;

use doppel_join::{Contents, JoinError};
use doppel_model::pairwise::Policy;
use doppel_model::{GroupId, PageUrl};
use doppel_protocol::{Counters, Line, Outcome, Status, Submission, Unresolved, WinnerOrder};

use versions::Versions;

/// How the collection is grouped.
#[derive(Debug, Clone)]
pub struct BulkConfig<'c> {
    /// The pairwise function.
    pub policy: Policy,
    /// By which rules winners are elected.
    pub winners: WinnerOrder,
    /// Members past which a group is quarantined.
    pub group_members_max: u64,
    /// Bytes of signatures that are kept in memory; the others are in a temporary file.
    pub memory_max: usize,
    /// Where the temporary file is.
    pub temp_dir: &'c Path,
}

/// The versions so far.
#[derive(Debug)]
pub struct Bulk {
    versions: Versions,
    contents: Contents,
    winners: WinnerOrder,
    group_members_max: u64,
}

/// The collection at rest.
#[derive(Debug)]
pub struct Grouped {
    /// Every live page, in byte order of the URLs. A group is named by its place.
    pages: Vec<GroupedPage>,
    /// In the order of their ids.
    pub groups: Vec<BulkGroup>,
    /// Totals. Of the work of a range only updates are counted, all of them as compared.
    pub counters: Counters,
}

/// A page of it.
#[derive(Debug)]
struct GroupedPage {
    url: PageUrl,
    status: Status,
    group: Option<usize>,
    similarity: Option<f64>,
    reason: Option<Unresolved>,
}

impl Grouped {
    /// Every live page, in byte order of the URLs.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line> + '_ {
        self.pages.iter().map(|page| {
            let GroupedPage { ref url, status, group, similarity, reason } = *page;
            let group = group.and_then(|group| self.groups.get(group));
            Line {
                url: url.clone(),
                status,
                group: group.map(|group| group.group),
                winner: group.map(|group| group.winner.clone()),
                similarity,
                reason,
            }
        })
    }
}

/// A group and what links it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkGroup {
    /// Its id.
    pub group: GroupId,
    /// Its winner.
    pub winner: PageUrl,
    /// Pages, including redirects.
    pub pages: u64,
    /// Those that have a content.
    pub contents: u64,
    /// Whether these all have the same.
    pub same: bool,
}

impl Bulk {
    /// An empty collection.
    #[must_use]
    pub fn new(config: &BulkConfig<'_>) -> Self {
        Self {
            versions: Versions::default(),
            contents: Contents::new(config.policy, config.memory_max, config.temp_dir),
            winners: config.winners,
            group_members_max: config.group_members_max,
        }
    }

    /// Takes a version. A new content is always [`Pending`](Outcome::Pending): nothing is compared before the end.
    ///
    /// # Errors
    /// When the temporary file fails.
    pub fn submit(&mut self, submission: Submission) -> Result<Outcome, JoinError> {
        self.versions.submit(submission, &mut self.contents)
    }

    /// Groups what was taken.
    ///
    /// # Errors
    /// When the temporary file fails.
    pub fn finish(self) -> Result<Grouped, JoinError> {
        groups::grouped(self)
    }
}

#[cfg(test)]
mod tests;
