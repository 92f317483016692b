//! The interface between the nodes of tier 1. Each owns some ranges, and reaches those of the others through
//! [`RangeOwner`].
//!
//! Every call passes owned, bounded data and can fail. After a failure the caller does not know whether the call was
//! carried out. No node calls another while it holds a lock that its own answers need.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doppel_model::{ClientId, Epoch, GroupId, PageId, RangeId, ShardId};
use serde::{Deserialize, Serialize};

use super::content_source::{LogPosition, Moment, Repeat, SourceError};
use super::decision_times::DecisionTimes;
use super::index::SearchResult;
use super::question::{Aged, Whom};
use super::repair::RepairReport;
use super::submission::{Outcome, Submission};
use super::tier1_error::Tier1Error;
use super::totals::{Backlog, Counters, ShardTotals};

/// A row of a range: its key and its bytes.
pub type Row = (Vec<u8>, Vec<u8>);

/// Messages of one range to another, in the order in which they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodedPost {
    /// The sender.
    pub from: RangeId,
    /// The receiver.
    pub to: RangeId,
    /// The messages as tier 1 writes them down.
    pub messages: Vec<Vec<u8>>,
}

/// What the receiver of a post has applied and settled, by pair of shards.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Receipt {
    /// Every pair of the post.
    pub applied: Vec<AppliedUpTo>,
}

/// The last message of a pair of shards that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedUpTo {
    /// The sender.
    pub from: ShardId,
    /// The receiver.
    pub to: ShardId,
    /// Its number.
    pub number: u64,
}

/// Why another range did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum PeerError {
    /// A message before the first of a post is missing.
    #[error("message {found} from shard {} to {} came where message {expected} should", .from.0, .to.0)]
    Gap {
        /// The sender.
        from: ShardId,
        /// The receiver.
        to: ShardId,
        /// The number that comes next.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// A post of the same range is still being applied.
    #[error("an earlier post of range {0} is being applied")]
    Busy(RangeId),
    /// A message is for a shard that the range does not have, or from one that its sender does not have.
    #[error("a message from shard {} to {} is not one from range {sender} to range {receiver}", .from.0, .to.0)]
    Misdirected {
        /// The shard that sent it.
        from: ShardId,
        /// The shard that it is for.
        to: ShardId,
        /// The range that posted it.
        sender: RangeId,
        /// The range that got it.
        receiver: RangeId,
    },
    /// It does not answer; later it may.
    #[error("range {range} does not answer: {why}")]
    Unreachable {
        /// The range.
        range: RangeId,
        /// What failed.
        why: String,
    },
    /// The node that was asked does not own the range.
    #[error("this node does not own range {0}")]
    NotOwner(RangeId),
    /// It takes no writes, or a row is damaged.
    #[error(transparent)]
    Refused(#[from] Tier1Error),
}

impl PeerError {
    /// That a range does not answer.
    pub fn unreachable(range: RangeId, why: impl Into<String>) -> Self {
        Self::Unreachable { range, why: why.into() }
    }

    /// Whether whoever was asked is away, so that somebody else, or the same later, may have an answer.
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

/// Messages between two ranges since the collection was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// Sent to the other range.
    pub sent: u64,
    /// Applied of those of the other range.
    pub applied: u64,
}

/// How far a range is when everything that was handed in before is committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeReport {
    /// Of its owner.
    pub epoch: Epoch,
    /// What is accepted and not yet done.
    pub backlog: Backlog,
    /// With each range.
    pub traffic: Vec<Traffic>,
    /// How often background work has failed.
    pub failures: u64,
    /// Why background work is not done that was last tried and failed.
    pub refused: Option<Tier1Error>,
}

/// How far the change feed of a shard goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FeedExtent {
    /// The number of its newest event.
    pub end: u64,
    /// The greatest number of an event that retention has dropped.
    pub dropped: u64,
}

/// A record of a range's shared log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    /// The record.
    pub record: LogPosition,
    /// Its place in the log.
    pub sequence: u64,
}

/// A range as of its last commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeState {
    /// Names the state of the collection that it began from: after a restore it is another one.
    pub collection: u64,
    /// Of its owner.
    pub epoch: Epoch,
    /// The index of its last order to tier 2, handed over or not.
    pub ordered: u64,
    /// What it has counted.
    pub counters: Counters,
    /// What is accepted and not yet done.
    pub backlog: Backlog,
    /// How long its pages wait for their decision.
    pub decision_times: DecisionTimes,
    /// The figures of its shards, in their order.
    pub shards: Vec<ShardTotals>,
    /// The feeds of its shards, in their order.
    pub feeds: Vec<FeedExtent>,
    /// See [`ContentSource::moment`](super::ContentSource::moment).
    pub moment: Option<Moment>,
    /// The last record that the rows have, where they are replicated.
    pub copied: Option<LogPlace>,
    /// How often background work has failed.
    pub failures: u64,
    /// Whether it takes writes; otherwise why not.
    pub refused: Option<Tier1Error>,
    /// Whether it takes none because its own disk is full.
    pub disk_full: bool,
    /// How often it went on in this process after its disk was full.
    pub disk_recoveries: u64,
}

/// Names a backup: a number that no other backup has.
pub type BackupId = u64;

/// Takes the answer to a post.
pub type PostDone = Box<dyn FnOnce(Result<Receipt, PeerError>) + Send>;

/// A node of tier 1 as the others see it: the owner of ranges. Asked about a range that it does not own, it answers
/// [`PeerError::NotOwner`].
///
/// Every call fails with [`PeerError`].
#[expect(clippy::missing_errors_doc, reason = "said once for all")]
pub trait RangeOwner: Send + Sync {
    /// Posts messages. Returns at once; `done` gets the answer when they are applied and settled, or refused.
    fn post(&self, post: EncodedPost, done: PostDone);

    /// Rows by key, in the order of the keys; none where there is no row. An answer may end early, but has at least the
    /// first. All keys belong to the range.
    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError>;

    /// Up to `limit` rows from `from` to before `to`, in order; fewer when they are long, but at least one unless there
    /// is none.
    fn scan(&self, range: RangeId, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Row>, PeerError>;

    /// The same rows to answer a question. Asked for those of a replica, a node gives what it has of the range, also where it does
    /// not own it, if that is no older than [`AGE_MAX`](super::AGE_MAX). Whoever asks can ask somebody else, so it does not wait long.
    fn rows_for_question(
        &self,
        range: RangeId,
        keys: &[Vec<u8>],
        whom: Whom,
    ) -> Result<Aged<Vec<Option<Vec<u8>>>>, PeerError> {
        match whom {
            Whom::Owner => self.rows(range, keys).map(Aged::of_owner),
            Whom::Replica => Err(PeerError::NotOwner(range)),
        }
    }

    /// The same for a piece of them.
    fn scan_for_question(
        &self,
        range: RangeId,
        (from, to): (&[u8], &[u8]),
        limit: usize,
        whom: Whom,
    ) -> Result<Aged<Vec<Row>>, PeerError> {
        match whom {
            Whom::Owner => self.scan(range, from, to, limit).map(Aged::of_owner),
            Whom::Replica => Err(PeerError::NotOwner(range)),
        }
    }

    /// The range as of its last commit. Does not wait.
    fn state(&self, range: RangeId) -> Result<RangeState, PeerError>;

    /// How far the range is when what was handed in before is committed; waits no longer than `limit`.
    fn report(&self, range: RangeId, limit: Duration) -> Result<RangeReport, PeerError>;

    /// Has background work done at once, and with `again` what has failed tried again.
    fn hurry(&self, range: RangeId, again: bool) -> Result<(), PeerError>;

    /// Takes submissions of a client, of pages of the range. The outcomes are in their order.
    fn submit(
        &self,
        range: RangeId,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<Outcome>, PeerError>;

    /// Forgets pages of the range, all of which are known.
    fn purge(&self, range: RangeId, pages: &[PageId]) -> Result<(), PeerError>;

    /// Recomputes a group of the range, which has not merged with another; see
    /// [`Tier1Api::repair`](super::Tier1Api::repair).
    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, PeerError>;

    /// Takes results of searches for pages of the range. They are lost if the owner ends before their commit.
    fn deliver(&self, range: RangeId, results: Vec<SearchResult>) -> Result<(), PeerError>;

    /// Takes pages to be searched for again. On return they are durable.
    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Result<(), PeerError>;

    /// See [`ContentSource::changed_since`](super::ContentSource::changed_since).
    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, PeerError>;

    /// See [`ContentSource::keep_log`](super::ContentSource::keep_log).
    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), PeerError>;

    /// Begins to keep what commits change, for a backup. Without a call about it for ten minutes it is given up.
    fn follow(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError>;

    /// Holds messages to other ranges back, and returns when none is under way. It ends by itself after 30 seconds.
    fn hold(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError>;

    /// Ends what [`follow`](Self::follow) began: what was committed so far is in the backup, and nothing after it.
    fn cut(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError>;

    /// Lets messages go. Whether they were held back all the time.
    fn release(&self, range: RangeId, backup: BackupId) -> Result<bool, PeerError>;

    /// Bytes of what was kept, from a place on, at most [`BACKUP_PIECE_BYTES`](super::BACKUP_PIECE_BYTES); none at the end.
    /// Before the cut it says that the backup goes on.
    fn kept(&self, range: RangeId, backup: BackupId, from: u64) -> Result<Vec<u8>, PeerError>;

    /// Forgets the backup.
    fn forget(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError>;
}

/// Who owns the ranges that this process does not own. Ownership moves, so what it says may be old: a node that is asked about
/// a range that it does not own any more says so.
pub trait RangeDirectory: Send + Sync {
    /// Another node that owns the range, as far as this process knows.
    fn owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>>;

    /// The same, unless it is taken for dead.
    fn present_owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>> {
        self.owner(range)
    }

    /// Other nodes that may have a replica of the range, those first that are likely to answer.
    fn replicas(&self, _range: RangeId) -> Vec<Arc<dyn RangeOwner>> {
        Vec::new()
    }

    /// The last ownership of the range that this process has heard of; none where owners are fixed.
    fn epoch(&self, _range: RangeId) -> Option<Epoch> {
        None
    }

    /// Whether other processes have ranges at all, or may have some later. It never changes.
    fn has_others(&self) -> bool;

    /// Whether a range may have another owner later. It never changes.
    fn may_change(&self) -> bool {
        false
    }
}

/// Ranges whose owners are fixed.
impl RangeDirectory for BTreeMap<RangeId, Arc<dyn RangeOwner>> {
    fn owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>> {
        self.get(&range).cloned()
    }

    fn has_others(&self) -> bool {
        !self.is_empty()
    }
}
