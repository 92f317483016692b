//! The interface between the nodes of tier 1. Each node owns some ranges and reaches the ranges of other
//! nodes through [`RangeOwner`].
//!
//! Every call passes owned, bounded data and can fail. After a failure, the caller does not know whether the
//! call was carried out. A node must not hold a lock during a call if the answers to its own callers need
//! that lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doppel_contract::{Backlog, Counters, SubmissionOutcome};
use doppel_model::{ClientId, Epoch, GroupId, PageId, RangeId, ShardId};
use serde::{Deserialize, Serialize};

use super::content_source::{LogPosition, Moment, Repeat, SourceError};
use super::index::SearchResult;
use super::tier1::{
    DatedAnswer, DecisionTimes, ReadTarget, RepairReport, ShardTotals, Submission, Tier1Error,
};

/// A row of a range: its key and its value.
pub type EncodedRow = (Vec<u8>, Vec<u8>);

/// Messages from one range to another, in the order in which they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodedPost {
    /// The range that sends the messages.
    pub from: RangeId,
    /// The range that receives the messages.
    pub to: RangeId,
    /// The messages in the encoding of tier 1.
    pub messages: Vec<Vec<u8>>,
}

/// What the receiver of a post has applied and settled, for each pair of shards.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Receipt {
    /// An entry for every pair of shards in the post.
    pub applied: Vec<AppliedPosition>,
}

/// The last message between two shards that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedPosition {
    /// The shard that sent the message.
    pub from: ShardId,
    /// The shard that received the message.
    pub to: ShardId,
    /// Number of the message.
    pub number: u64,
}

/// Why another range did not carry out a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum PeerError {
    /// A message before the first message of a post is missing.
    #[error("messages from shard {} to {} are missing: expected number {expected}, received {found}", .from.0, .to.0)]
    Gap {
        /// The shard that sent the message.
        from: ShardId,
        /// The shard that received the message.
        to: ShardId,
        /// The number that the receiver expects next.
        expected: u64,
        /// The number of the message that arrived.
        found: u64,
    },
    /// The receiver is still applying an earlier post of the same range.
    #[error("an earlier post of range {0} is still being applied; try again later")]
    Busy(RangeId),
    /// A message is for a shard outside the receiving range, or from a shard outside the sending range.
    #[error("a message from shard {} to {} does not belong between range {sender} and range {receiver}", .from.0, .to.0)]
    Misdirected {
        /// The shard that sent the message.
        from: ShardId,
        /// The shard that the message is for.
        to: ShardId,
        /// The range that posted the message.
        sender: RangeId,
        /// The range that received the message.
        receiver: RangeId,
    },
    /// The range does not answer now. It may answer later.
    #[error("range {range} does not answer: {why}")]
    Unreachable {
        /// Number of the range.
        range: RangeId,
        /// What failed, in words.
        why: String,
    },
    /// The node does not own the range.
    #[error("this node does not own range {0}")]
    NotOwner(RangeId),
    /// The range accepts no writes, or a row is damaged.
    #[error(transparent)]
    Refused(#[from] Tier1Error),
}

impl PeerError {
    /// Creates the error that a range does not answer.
    pub fn unreachable(range: RangeId, why: impl Into<String>) -> Self {
        Self::Unreachable { range, why: why.into() }
    }

    /// Whether the called node is unavailable, so that another node may answer, or this one later.
    #[must_use]
    pub fn is_away(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::NotOwner(_) | Self::Busy(_) => true,
            Self::Refused(refused) => refused.is_away(),
            Self::Gap { .. } | Self::Misdirected { .. } => false,
        }
    }
}

impl From<PeerError> for Tier1Error {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::Refused(refused) => refused,
            PeerError::Unreachable { .. } | PeerError::Busy(_) | PeerError::NotOwner(_) => {
                Self::Unavailable(error.to_string())
            }
            PeerError::Gap { .. } | PeerError::Misdirected { .. } => Self::Damaged(error.to_string()),
        }
    }
}

impl From<PeerError> for SourceError {
    fn from(error: PeerError) -> Self {
        Tier1Error::from(error).into()
    }
}

/// Numbers of messages between two ranges since the collection was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MessageCounts {
    /// Number of messages sent to the other range.
    pub sent: u64,
    /// Number of messages from the other range that were applied.
    pub applied: u64,
}

/// Progress of a range, measured after everything that was submitted earlier is committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeReport {
    /// Epoch of the range's owner.
    pub epoch: Epoch,
    /// Accepted work that is not done yet.
    pub backlog: Backlog,
    /// Messages exchanged with each range.
    pub traffic: Vec<MessageCounts>,
    /// Number of failures of background work.
    pub failures: u64,
    /// Why the last attempt at background work failed, if that work is not done yet.
    pub refused: Option<Tier1Error>,
}

/// Extent of the change feed of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FeedExtent {
    /// Number of the newest event.
    pub end: u64,
    /// Greatest number of an event that retention has dropped.
    pub dropped: u64,
}

/// A record of a range in the shared log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    /// Position of the record in the history of the range.
    pub record: LogPosition,
    /// Sequence number of the record in the shared log.
    pub sequence: u64,
}

/// State of a range as of its last commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeState {
    /// Identifies the state from which the collection began. A restore changes it.
    pub collection: u64,
    /// Epoch of the range's owner.
    pub epoch: Epoch,
    /// Index of the last order for tier 2, whether handed over or not.
    pub ordered: u64,
    /// Totals of the range.
    pub counters: Counters,
    /// Accepted work that is not done yet.
    pub backlog: Backlog,
    /// How long the pages of the range wait for their decision.
    pub decision_times: DecisionTimes,
    /// Figures of the shards, in the order of shards.
    pub shards: Vec<ShardTotals>,
    /// Change feeds of the shards, in the order of shards.
    pub feeds: Vec<FeedExtent>,
    /// Recent state of the range; see [`ContentSource::moment`](super::ContentSource::moment).
    pub moment: Option<Moment>,
    /// The last record that the rows include, if the range is replicated.
    pub copied: Option<LogPlace>,
    /// Number of failures of background work.
    pub failures: u64,
    /// Why the range accepts no writes; `None` if it accepts them.
    pub refused: Option<Tier1Error>,
    /// Whether the range accepts no writes because its own disk is full.
    pub disk_full: bool,
    /// How often the range resumed in this process after its disk was full.
    pub disk_recoveries: u64,
}

/// Id of a backup, unique among all backups.
pub type BackupId = u64;

/// Callback that receives the answer to a post.
pub type PostCallback = Box<dyn FnOnce(Result<Receipt, PeerError>) + Send>;

/// A node of tier 1 as the other nodes see it: the owner of ranges. For a range that it does not own, it
/// answers [`PeerError::NotOwner`].
///
/// Every call fails with [`PeerError`].
#[expect(clippy::missing_errors_doc, reason = "said once for all")]
pub trait RangeOwner: Send + Sync {
    /// Posts messages and returns at once. `done` receives the answer after the messages are applied and
    /// settled, or refused.
    fn post(&self, post: EncodedPost, done: PostCallback);

    /// Returns rows by key, in the order of `keys`; `None` for a key without a row. An answer may end early
    /// but has at least the first row. All keys must belong to the range.
    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError>;

    /// Returns up to `limit` rows from `from` up to but excluding `to`, in order. Returns fewer if the rows
    /// are long, but at least one if any exists.
    fn scan(
        &self,
        range: RangeId,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError>;

    /// Like [`rows`](Self::rows), but answers a question of a caller. For [`ReadTarget::Replica`], a node answers
    /// from its replica, even if it does not own the range. The replica must be no older than
    /// [`AGE_MAX`](super::AGE_MAX). The call does not wait long, because the caller can ask another node.
    fn rows_for_question(
        &self,
        range: RangeId,
        keys: &[Vec<u8>],
        target: ReadTarget,
    ) -> Result<DatedAnswer<Vec<Option<Vec<u8>>>>, PeerError> {
        match target {
            ReadTarget::Owner => self.rows(range, keys).map(DatedAnswer::of_owner),
            ReadTarget::Replica => Err(PeerError::NotOwner(range)),
        }
    }

    /// Like [`scan`](Self::scan), but answers a question of a caller, as
    /// [`rows_for_question`](Self::rows_for_question) does.
    fn scan_for_question(
        &self,
        range: RangeId,
        (from, to): (&[u8], &[u8]),
        limit: usize,
        target: ReadTarget,
    ) -> Result<DatedAnswer<Vec<EncodedRow>>, PeerError> {
        match target {
            ReadTarget::Owner => self.scan(range, from, to, limit).map(DatedAnswer::of_owner),
            ReadTarget::Replica => Err(PeerError::NotOwner(range)),
        }
    }

    /// Returns the state of the range as of its last commit, without waiting.
    fn state(&self, range: RangeId) -> Result<RangeState, PeerError>;

    /// Waits until everything submitted earlier is committed, at most for `limit`, and returns the progress
    /// of the range.
    fn report(&self, range: RangeId, limit: Duration) -> Result<RangeReport, PeerError>;

    /// Starts background work at once. With `again`, also retries work that has failed.
    fn hurry(&self, range: RangeId, again: bool) -> Result<(), PeerError>;

    /// Accepts submissions of a client for pages of the range. Returns the outcomes in the order of the
    /// submissions.
    fn submit(
        &self,
        range: RangeId,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<SubmissionOutcome>, PeerError>;

    /// Deletes all records of pages of the range, which must all be known.
    fn purge(&self, range: RangeId, pages: &[PageId]) -> Result<(), PeerError>;

    /// Recomputes a group of the range that was not merged into another; see
    /// [`Tier1Api::repair`](super::Tier1Api::repair).
    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, PeerError>;

    /// Accepts results of searches for pages of the range. They are lost if the owner ends before it commits
    /// them.
    fn deliver(&self, range: RangeId, results: Vec<SearchResult>) -> Result<(), PeerError>;

    /// Accepts pages to be searched for again. When the call returns, they are durable.
    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Result<(), PeerError>;

    /// See [`ContentSource::changed_since`](super::ContentSource::changed_since).
    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, PeerError>;

    /// See [`ContentSource::keep_log`](super::ContentSource::keep_log).
    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), PeerError>;

    /// Begins to record the changes of commits for a backup. The range drops the backup after ten minutes
    /// without a call about it.
    fn follow(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError>;

    /// Holds back messages to other ranges, and returns when no message is under way. The hold ends by itself
    /// after 30 seconds.
    fn hold(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError>;

    /// Ends the recording that [`follow`](Self::follow) began. The backup contains all earlier commits and no
    /// later one.
    fn cut(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError>;

    /// Releases the messages that were held back. Returns whether the hold lasted until now without a break.
    fn release(&self, range: RangeId, backup: BackupId) -> Result<bool, PeerError>;

    /// Returns recorded bytes from position `from` on, at most
    /// [`BACKUP_PIECE_BYTES`](super::BACKUP_PIECE_BYTES); empty at the end. A call before [`cut`](Self::cut)
    /// only tells the range that the backup goes on.
    fn kept(&self, range: RangeId, backup: BackupId, from: u64) -> Result<Vec<u8>, PeerError>;

    /// Drops the recorded changes of the backup.
    fn forget(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError>;
}

/// Finds the owners of ranges that this process does not own. Ownership moves, so the information may be old.
/// A node that no longer owns a range says so when it is called.
pub trait RangeDirectory: Send + Sync {
    /// Returns another node that owns the range, as far as this process knows.
    fn owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>>;

    /// Like [`owner`](Self::owner), but returns `None` if the owner counts as dead.
    fn present_owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>> {
        self.owner(range)
    }

    /// Returns other nodes that may have a replica of the range, the most likely to answer first.
    fn replicas(&self, _range: RangeId) -> Vec<Arc<dyn RangeOwner>> {
        Vec::new()
    }

    /// Returns the newest epoch of the range that this process knows; `None` if owners are fixed.
    fn epoch(&self, _range: RangeId) -> Option<Epoch> {
        None
    }

    /// Whether other processes own ranges, or may own some later. The answer never changes.
    fn has_others(&self) -> bool;

    /// Whether a range may have another owner later. The answer never changes.
    fn may_change(&self) -> bool {
        false
    }
}

/// A directory of ranges whose owners are fixed.
impl RangeDirectory for BTreeMap<RangeId, Arc<dyn RangeOwner>> {
    fn owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>> {
        self.get(&range).cloned()
    }

    fn has_others(&self) -> bool {
        !self.is_empty()
    }
}
