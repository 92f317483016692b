//! A whole collection at once: versions go in, the groups at rest come out.
//!
//! The state machine of a range decides page by page, and can be asked and killed at any moment. When all versions are at
//! hand and nobody asks before the end, the same groups (G8) come from one similarity join: versions are folded per URL
//! ([`versions`]), redirects followed ([`redirects`]), contents joined ([`doppel_join`]), and winners and statuses
//! derived ([`groups`], [`cover`], [`resolved`]). The answer is all that is left of it, or databases are made for it, in which the ranges go on.
//!
//! A batch run without a collection judges records instead of pages ([`Unit::Record`]): several records of one URL stay apart, and the
//! position in the input takes the place of the URL in the winner order.
//!
//! | module | what |
//! |---|---|
//! | `versions`, `redirects`, `groups`, `cover`, `resolved` | from versions to groups and statuses |
//! | `grouped` | the answer: every page or record and the groups |
//! | `market` | which pages take the winners' places in the answer |
//! | `rows` | the rows of a shard, as the machine would have left them at rest |
//! | `databases` | new databases: signatures go there as they come, rows at the end |
//!
//! Invariants:
//! - status, winner and similarity of every page are what a range comes to when it has taken the same versions in any order and is
//!   quiescent, and what is recorded of a page is the same; so are the totals, where the order was the same;
//! - group ids differ: here they number the groups of each shard by their winners' URLs, so that equal inputs give equal
//!   outputs, and a group is in the shard of its winner;
//! - databases are on disk as a whole when [`finish`](Bulk::finish) returns, and worth nothing before.
//!
//! Memory: some 320 bytes and the URL for each page, beside that of the join. With databases 16 bytes more for each content
//! and some dozen megabytes for each range; what only the join needs is freed before, and rows are encoded one by one.

mod cover;
mod databases;
mod grouped;
mod groups;
mod market;
mod redirects;
mod resolved;
mod rows;
mod versions;
mod within;

use std::path::Path;
use std::sync::Arc;

use doppel_join::{ContentIndex, Contents, JoinError, Signatures};
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId, PageUrl, Timestamp};

use crate::store::StoreError;
#[cfg(any(test, feature = "simulation"))]
use crate::store::Write;
use databases::NewDatabases;
use doppel_protocol::{Market, Outcome, RangeMap, Submission, WinnerOrder};
pub use grouped::{BulkGroup, Grouped, Judged, NamedRecords, PageWithContent};
use resolved::Resolved;
use rows::Rows;
use versions::{TakeContents, Versions};
pub use within::Within;

/// How the collection is grouped.
#[derive(Debug, Clone)]
pub struct BulkConfig<'c> {
    /// The pairwise function.
    pub policy: Policy,
    /// By which rules winners are elected.
    pub winners: WinnerOrder,
    /// Prefer winners of this market in the answer. It changes nothing of what is kept in databases.
    pub market: Option<Market>,
    /// Distinct contents past which a group is quarantined.
    pub group_members_max: u64,
    /// Whether pages or records are judged.
    pub unit: Unit,
    /// What stays of it.
    pub keep: Keep<'c>,
}

/// The unit of judging: each page, or each record, has a status of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A URL: its newest version stands for it. A collection has no other unit.
    Page,
    /// A record of the inputs, also where several records share a URL. A redirect leads to the newest record of its target, and to the
    /// first of them where dates are equal. The answer lists every record in the order of the inputs, deaths too.
    Record,
}

/// A record of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputRecord {
    /// How many records come before it in the inputs.
    pub number: u64,
    /// Whether it stores no content of its own and refers to that of another record, as a revisit of a WARC does. Such a record
    /// never wins against a record that stores the content, so that what it refers to is not removed in its favour.
    pub is_reference: bool,
}

/// What stays of a collection that was grouped at once.
#[derive(Debug, Clone, Copy)]
pub enum Keep<'c> {
    /// The answer alone. So many bytes of signatures are kept in memory, the others in a temporary file in a directory.
    Answer {
        /// Bytes of signatures in memory.
        memory_max: usize,
        /// Where the temporary file is.
        temp_dir: &'c Path,
    },
    /// Databases for all ranges, below a directory that has none.
    Databases {
        /// The directory.
        dir: &'c Path,
        /// Which range has which shards.
        map: RangeMap,
    },
}

/// Why a collection cannot be grouped at once.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The temporary file.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The databases.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The versions so far.
#[derive(Debug)]
pub struct Bulk {
    versions: Versions,
    contents: Contents,
    kept: Kept,
    winners: WinnerOrder,
    market: Option<Market>,
    group_members_max: u64,
}

/// Where the signatures are.
#[derive(Debug)]
enum Kept {
    Answer(Signatures),
    Databases(NewDatabases),
}

/// Where the contents of new versions go.
struct Intake<'b> {
    contents: &'b mut Contents,
    kept: &'b mut Kept,
}

/// The groups, while signatures can still be read.
#[derive(Debug)]
pub struct AtRest {
    resolved: Resolved,
    kept: Kept,
}

impl Bulk {
    /// An empty collection.
    ///
    /// # Errors
    /// When the databases cannot be made.
    pub fn new(config: &BulkConfig<'_>) -> Result<Self, BulkError> {
        match config.keep {
            Keep::Answer { memory_max, temp_dir } => {
                let kept = Kept::Answer(Signatures::new(memory_max, temp_dir));
                Ok(Self::over(config, kept, 1))
            }
            Keep::Databases { dir, map } => {
                let kept = Kept::Databases(NewDatabases::create(dir, map)?);
                Ok(Self::over(config, kept, map.shards()))
            }
        }
    }

    fn over(config: &BulkConfig<'_>, kept: Kept, shards: u16) -> Self {
        Self {
            versions: Versions::new(shards, config.unit),
            contents: Contents::new(config.policy),
            kept,
            winners: config.winners,
            market: config.market.clone(),
            group_members_max: config.group_members_max,
        }
    }

    /// Takes a version that is no record of the inputs. A new content is always [`Pending`](Outcome::Pending): nothing is compared
    /// before the end.
    ///
    /// # Errors
    /// When the temporary file or a database fails.
    pub fn submit(&mut self, submission: Submission) -> Result<Outcome, BulkError> {
        self.take(None, submission)
    }

    /// Like [`submit`](Self::submit), for a record of the inputs. Records come in their order.
    ///
    /// # Errors
    /// When the temporary file or a database fails.
    pub fn submit_record(
        &mut self,
        record: InputRecord,
        submission: Submission,
    ) -> Result<Outcome, BulkError> {
        self.take(Some(record), submission)
    }

    fn take(&mut self, record: Option<InputRecord>, submission: Submission) -> Result<Outcome, BulkError> {
        let Self { versions, contents, kept, .. } = self;
        versions.submit(record, submission, &mut Intake { contents, kept })
    }

    /// The URLs of the live pages so far, in no order.
    pub fn live(&self) -> impl Iterator<Item = &PageUrl> {
        self.versions.live()
    }

    /// Groups what was taken. Databases are on disk then.
    ///
    /// # Errors
    /// When the temporary file or a database fails.
    pub fn finish(self) -> Result<Grouped, BulkError> {
        self.at_rest()?.finish()
    }

    /// Groups what was taken. Databases are not written yet.
    ///
    /// # Errors
    /// When the temporary file or a database fails.
    pub fn at_rest(self) -> Result<AtRest, BulkError> {
        let (resolved, kept) = self.resolve()?;
        Ok(AtRest { resolved, kept })
    }

    /// The rows of new databases in memory, by range, with signatures as whoever reads a database gets them.
    ///
    /// # Errors
    /// When a row cannot be encoded.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn rows(
        config: &BulkConfig<'_>,
        map: RangeMap,
        submissions: impl IntoIterator<Item = Submission>,
    ) -> Result<(Grouped, Vec<Vec<Write>>), BulkError> {
        let kept = Kept::Answer(Signatures::new(usize::MAX, Path::new("")));
        let mut bulk = Self::over(config, kept, map.shards());
        submissions.into_iter().try_for_each(|submission| bulk.submit(submission).map(drop))?;
        let (mut resolved, kept) = bulk.resolve()?;
        let rows = Rows::of(&mut resolved, Timestamp::from_millis(0));
        let mut writes = vec![Vec::new(); map.count()];
        for range in map.ranges() {
            let of_range = &mut writes[usize::from(range.0)];
            for shard in map.shards_of(range) {
                let mut failed = None;
                rows.of_shard(shard, &mut |key, value| {
                    let row = match value {
                        rows::Value::Record(row) => row,
                        rows::Value::SignatureOf(content) => match kept.signature(content) {
                            Ok(signature) => signature.as_bytes().to_vec(),
                            Err(error) => {
                                failed = Some(error);
                                Vec::new()
                            }
                        },
                    };
                    of_range.push((key, Some(row)));
                    Ok(())
                })?;
                failed.map_or(Ok(()), Err)?;
            }
        }
        Ok((resolved.into_grouped(), writes))
    }

    fn resolve(self) -> Result<(Resolved, Kept), BulkError> {
        let Self { mut versions, contents, mut kept, winners, market, group_members_max } = self;
        kept.flush()?;
        versions.index_targets();
        let read = |content| kept.signature(content);
        let order = (winners, market.as_ref());
        let resolved = resolved::resolve(versions, contents, &read, order, group_members_max)?;
        Ok((resolved, kept))
    }
}

impl TakeContents for Intake<'_> {
    fn add(&mut self, page: PageId, signature: &Arc<Signature>) -> Result<ContentIndex, BulkError> {
        let (content, is_new) = self.contents.add(signature);
        self.kept.keep((content, is_new), page, signature)?;
        Ok(content)
    }

    fn hash(&self, content: ContentIndex) -> ContentHash {
        self.contents.hash(content)
    }
}

impl AtRest {
    /// How many pairs of pages in one group are not near-duplicates of each other. At most `pairs_max` are compared.
    ///
    /// # Errors
    /// When the temporary file or a database fails.
    pub fn within(&self, pairs_max: usize) -> Result<Within, BulkError> {
        within::within(&self.resolved, &|content| self.kept.signature(content), pairs_max)
    }

    /// The answer. Databases are on disk then.
    ///
    /// # Errors
    /// When the temporary file or a database fails.
    pub fn finish(mut self) -> Result<Grouped, BulkError> {
        if let Kept::Databases(databases) = self.kept {
            let rows = Rows::of(&mut self.resolved, Timestamp::now());
            databases.finish(&rows)?;
        }
        Ok(self.resolved.into_grouped())
    }
}

impl Kept {
    fn keep(
        &mut self,
        (content, is_new): (ContentIndex, bool),
        page: PageId,
        signature: &Arc<Signature>,
    ) -> Result<(), BulkError> {
        match self {
            Self::Answer(signatures) if is_new => Ok(signatures.push(signature)?),
            Self::Answer(_) => Ok(()),
            Self::Databases(databases) => Ok(databases.keep((content, is_new), page, signature)?),
        }
    }

    /// Makes all signatures readable.
    fn flush(&mut self) -> Result<(), BulkError> {
        match self {
            Self::Answer(signatures) => Ok(signatures.flush()?),
            Self::Databases(databases) => Ok(databases.flush()?),
        }
    }

    fn signature(&self, content: ContentIndex) -> Result<Arc<Signature>, BulkError> {
        match self {
            Self::Answer(signatures) => Ok(signatures.get(content)?),
            Self::Databases(databases) => Ok(databases.signature(content)?),
        }
    }
}

#[cfg(test)]
mod tests;
