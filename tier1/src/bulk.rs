//! Grouping a whole collection at once: versions go in, the groups at rest come out.
//!
//! The state machine of a range decides page by page, and can be asked or killed at any moment. If all
//! versions are at hand and nobody asks before the end, one similarity join gives the same groups (G8). The
//! versions of each URL become one ([`versions`]), redirects are followed ([`redirects`]), contents are
//! joined ([`doppel_join`]), and winners and statuses are derived ([`groups`], [`cover`], [`resolution`]).
//! The caller gets the answer alone, or also new databases from which ranges can continue.
//!
//! A batch run without a collection judges records instead of pages ([`Unit::Record`]). Several records of
//! one URL then stay apart, and the position in the input takes the place of the URL in the winner order.
//!
//! | module | responsibility |
//! |---|---|
//! | `versions`, `redirects`, `groups`, `cover`, `resolution` | from versions to groups and statuses |
//! | `grouped` | the answer: all pages or records, and the groups |
//! | `market` | pages that take the winners' places in the answer |
//! | `agreement` | how similar the pages of a group are |
//! | `rows` | the rows of a shard, as the machine would have left them at rest |
//! | `databases` | new databases: signatures as they come, rows and status tables at the end |
//! | `index_contents` | the contents of the new databases, for the index |
//!
//! Invariants:
//! - Status, winner, similarity and recorded data of each page equal what a quiescent range has after the
//!   same versions in any order. The totals are also equal if the order was the same.
//! - Group ids differ. Here they number the groups of each shard in the order of the winners' URLs, so equal
//!   inputs give equal outputs. A group is in the shard of its winner.
//! - Databases are complete on disk when [`finish`](Bulk::finish) or
//!   [`finish_with_contents`](Bulk::finish_with_contents) returns, and useless before.
//!
//! Memory: about 320 bytes and the URL for each page, besides the memory of the join. Databases need another
//! 16 bytes for each content and some dozen megabytes for each range. What the index needs takes another 32 bytes
//! for each page. Memory that only the join needs is freed before, and rows are encoded one by one.

mod agreement;
mod cover;
mod databases;
mod grouped;
mod groups;
mod index_contents;
mod market;
mod redirects;
mod resolution;
mod rows;
mod versions;

use std::path::Path;
use std::sync::Arc;

use doppel_contract::{Market, SubmissionOutcome};
use doppel_join::{ContentIndex, Contents, JoinError, Signatures};
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId, PageUrl, Timestamp};
use doppel_protocol::{RangeMap, Submission, WinnerOrder};

use crate::storage::store::StoreError;
#[cfg(any(test, feature = "simulation"))]
use crate::storage::store::Write;
pub use agreement::PairAgreement;
use databases::NewDatabases;
pub use grouped::{BulkGroup, GroupedCollection, NamedRecord, NamedRecords, PageDecision, PageWithContent};
pub use index_contents::NewContents;
use resolution::ResolvedCollection;
use rows::CollectionRows;
use versions::{TakeContents, Versions};

/// Settings for grouping a collection.
#[derive(Debug, Clone)]
pub struct BulkConfig<'c> {
    /// The pairwise function of the collection.
    pub policy: Policy,
    /// Rules by which winners are elected.
    pub winners: WinnerOrder,
    /// Market whose pages are preferred as winners in the answer. It does not affect databases.
    pub market: Option<Market>,
    /// Number of distinct contents above which a group is quarantined.
    pub group_members_max: u64,
    /// Whether pages or records are judged.
    pub unit: Unit,
    /// What to keep of the collection.
    pub keep: BulkOutput<'c>,
}

/// What has a status of its own: each page or each record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A page is a URL, and its newest version stands for it. Collections on disk have no other unit.
    Page,
    /// Each record of the inputs, even if several records share a URL. A redirect leads to the newest record
    /// of its target. If several have the same date, it leads to the first of them. The answer lists every
    /// record in the order of the inputs, including deaths.
    Record,
}

/// Identifies a record of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputRecord {
    /// Number of records that come before it in the inputs.
    pub number: u64,
    /// Whether the record stores no content of its own and refers to another record, as a revisit of a WARC
    /// does. Such a record never wins against a record that stores the content. Otherwise the content it
    /// refers to could be removed.
    pub refers_back: bool,
}

/// What to keep of a collection that is grouped at once.
#[derive(Debug, Clone, Copy)]
pub enum BulkOutput<'c> {
    /// The answer alone. Signatures beyond `memory_max` bytes go to a temporary file.
    Answer {
        /// Maximum size of the signatures in memory in bytes.
        memory_max: usize,
        /// Directory of the temporary file.
        temp_dir: &'c Path,
    },
    /// New databases for all ranges. The directory must not contain databases.
    Databases {
        /// Directory of the databases.
        dir: &'c Path,
        /// The map of ranges to shards.
        map: RangeMap,
    },
}

/// Why a collection could not be grouped at once.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The join failed, for example because of its temporary file.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A collection that takes versions until it is grouped.
#[derive(Debug)]
pub struct Bulk {
    versions: Versions,
    contents: Contents,
    sink: SignatureSink,
    winners: WinnerOrder,
    market: Option<Market>,
    group_members_max: u64,
}

/// Stores the signatures of the contents.
#[derive(Debug)]
enum SignatureSink {
    Answer(Signatures),
    Databases(NewDatabases),
}

/// Receives the contents of new versions.
struct Intake<'b> {
    contents: &'b mut Contents,
    sink: &'b mut SignatureSink,
}

/// A grouped collection whose signatures can still be read, before databases are written.
#[derive(Debug)]
pub struct UnwrittenCollection {
    resolved: ResolvedCollection,
    sink: SignatureSink,
}

impl Bulk {
    /// Creates an empty collection.
    ///
    /// # Errors
    /// Fails if the databases cannot be created.
    pub fn new(config: &BulkConfig<'_>) -> Result<Self, BulkError> {
        match config.keep {
            BulkOutput::Answer { memory_max, temp_dir } => {
                let sink = SignatureSink::Answer(Signatures::new(memory_max, temp_dir));
                Ok(Self::with_sink(config, sink, 1))
            }
            BulkOutput::Databases { dir, map } => {
                let sink = SignatureSink::Databases(NewDatabases::create(dir, map)?);
                Ok(Self::with_sink(config, sink, map.shards()))
            }
        }
    }

    fn with_sink(config: &BulkConfig<'_>, sink: SignatureSink, shards: u16) -> Self {
        Self {
            versions: Versions::new(shards, config.unit),
            contents: Contents::new(config.policy),
            sink,
            winners: config.winners,
            market: config.market.clone(),
            group_members_max: config.group_members_max,
        }
    }

    /// Takes a version that is not a record of the inputs. A new content is always
    /// [`Pending`](Outcome::Pending), because contents are compared only at the end.
    ///
    /// # Errors
    /// Fails if the temporary file or a database fails.
    pub fn submit(&mut self, submission: Submission) -> Result<SubmissionOutcome, BulkError> {
        self.take(None, submission)
    }

    /// Like [`submit`](Self::submit), for a record of the inputs. Records must come in the order of the
    /// inputs.
    ///
    /// # Errors
    /// Fails if the temporary file or a database fails.
    pub fn submit_record(
        &mut self,
        record: InputRecord,
        submission: Submission,
    ) -> Result<SubmissionOutcome, BulkError> {
        self.take(Some(record), submission)
    }

    fn take(
        &mut self,
        record: Option<InputRecord>,
        submission: Submission,
    ) -> Result<SubmissionOutcome, BulkError> {
        let Self { versions, contents, sink, .. } = self;
        versions.submit(record, submission, &mut Intake { contents, sink })
    }

    /// Takes a protected record of a reference: it is kept in any case, and wins over all records of the inputs and of
    /// references with a higher number. It has no line in the answer. Protected records are numbered in the order
    /// of the calls.
    ///
    /// Databases cannot store protected records, so a collection with databases must not have any.
    ///
    /// # Errors
    /// Fails if the temporary file fails.
    pub fn protect(&mut self, reference: u32, submission: Submission) -> Result<(), BulkError> {
        debug_assert!(matches!(self.sink, SignatureSink::Answer(_)), "databases store no protected records");
        let Self { versions, contents, sink, .. } = self;
        versions.protect(reference, submission, &mut Intake { contents, sink })
    }

    /// Iterates over the URLs of the live pages so far, in no particular order.
    pub fn live(&self) -> impl Iterator<Item = &PageUrl> {
        self.versions.live()
    }

    /// Groups the whole collection. Databases are on disk on return.
    ///
    /// # Errors
    /// Fails if the temporary file or a database fails.
    pub fn finish(self) -> Result<GroupedCollection, BulkError> {
        self.at_rest()?.finish()
    }

    /// Like [`finish`](Self::finish), but also returns the contents of the new databases. `None` without databases.
    ///
    /// # Errors
    /// Fails if the temporary file or a database fails.
    pub fn finish_with_contents(self) -> Result<(GroupedCollection, Option<NewContents>), BulkError> {
        self.at_rest()?.finish_with_contents()
    }

    /// Groups the collection without writing databases yet.
    ///
    /// # Errors
    /// Fails if the temporary file or a database fails.
    pub fn at_rest(self) -> Result<UnwrittenCollection, BulkError> {
        let (resolved, sink) = self.resolve()?;
        Ok(UnwrittenCollection { resolved, sink })
    }

    /// Returns the rows of new databases in memory, by range. Rows of signatures have the bytes, as readers
    /// of a database get them.
    ///
    /// # Errors
    /// Fails if a row cannot be encoded.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn rows(
        config: &BulkConfig<'_>,
        map: RangeMap,
        submissions: impl IntoIterator<Item = Submission>,
    ) -> Result<(GroupedCollection, Vec<Vec<Write>>), BulkError> {
        let sink = SignatureSink::Answer(Signatures::new(usize::MAX, Path::new("")));
        let mut bulk = Self::with_sink(config, sink, map.shards());
        submissions.into_iter().try_for_each(|submission| bulk.submit(submission).map(drop))?;
        let (mut resolved, sink) = bulk.resolve()?;
        let rows = CollectionRows::of(&mut resolved, Timestamp::from_millis(0));
        let mut writes = vec![Vec::new(); map.count()];
        for range in map.ranges() {
            let of_range = &mut writes[usize::from(range.0)];
            for shard in map.shards_of(range) {
                let mut failed = None;
                rows.of_shard(shard, &mut |key, value| {
                    let row = match value {
                        rows::RowValue::Record(row) => row,
                        rows::RowValue::SignatureOf(content) => match sink.signature(content) {
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

    fn resolve(self) -> Result<(ResolvedCollection, SignatureSink), BulkError> {
        let Self { mut versions, contents, mut sink, winners, market, group_members_max } = self;
        sink.flush()?;
        versions.index_targets();
        let read = |content| sink.signature(content);
        let order = (winners, market.as_ref());
        let resolved = resolution::resolve(versions, contents, &read, order, group_members_max)?;
        Ok((resolved, sink))
    }
}

impl TakeContents for Intake<'_> {
    fn add(&mut self, page: PageId, signature: &Arc<Signature>) -> Result<ContentIndex, BulkError> {
        let (content, is_new) = self.contents.add(signature);
        self.sink.store((content, is_new), page, signature)?;
        Ok(content)
    }

    fn hash(&self, content: ContentIndex) -> ContentHash {
        self.contents.hash(content)
    }
}

impl UnwrittenCollection {
    /// Counts the pairs of pages in one group that are not near-duplicates of each other. Compares at most
    /// `pairs_max` pairs.
    ///
    /// # Errors
    /// Fails if the temporary file or a database fails.
    pub fn within(&self, pairs_max: usize) -> Result<PairAgreement, BulkError> {
        agreement::compare_pairs(&self.resolved, &|content| self.sink.signature(content), pairs_max)
    }

    /// Returns the judgements of all records. Databases are on disk on return.
    ///
    /// # Errors
    /// Fails if the temporary file or a database fails.
    pub fn finish(self) -> Result<GroupedCollection, BulkError> {
        Ok(self.finish_with_contents()?.0)
    }

    fn finish_with_contents(mut self) -> Result<(GroupedCollection, Option<NewContents>), BulkError> {
        let mut contents = None;
        if let SignatureSink::Databases(databases) = self.sink {
            let rows = CollectionRows::of(&mut self.resolved, Timestamp::now());
            contents = Some(databases.finish(&rows)?);
        }
        Ok((self.resolved.into_grouped(), contents))
    }
}

impl SignatureSink {
    fn store(
        &mut self,
        (content, is_new): (ContentIndex, bool),
        page: PageId,
        signature: &Arc<Signature>,
    ) -> Result<(), BulkError> {
        match self {
            Self::Answer(signatures) if is_new => Ok(signatures.push(signature)?),
            Self::Answer(_) => Ok(()),
            Self::Databases(databases) => Ok(databases.store((content, is_new), page, signature)?),
        }
    }

    /// Writes buffered signatures, so that all signatures can be read.
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
