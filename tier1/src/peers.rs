//! The seam between ranges: messages posted to another range, and reads of its rows.
//!
//! Every call takes and gives owned values, has a bound, and can fail. None is made while a lock is held, and
//! the machine makes none. In one process it is a direct call (`service::direct`): a read waits for nothing but the
//! store, and the answer to a post has a deadline (`service::sender`). Across processes a read has one, too, and fails
//! as [`PeerError::Unreachable`], which is transient.

use crossbeam::channel::Receiver;
use doppel_model::{RangeId, ShardId};
use doppel_protocol::Tier1Error;

use crate::machine::Envelope;
use crate::txn::Row;

/// Messages of a post at most.
pub(crate) const POST_MESSAGES: usize = 256;

/// Bytes of rows past which an answer ends early. One row is always given, however long it is.
pub(crate) const READ_BYTES: usize = 4 << 20;

/// Messages of one range to another, in the order in which they were sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Post {
    pub(crate) from: RangeId,
    pub(crate) to: RangeId,
    pub(crate) messages: Vec<Envelope>,
}

/// What the receiver of a post has applied and settled, by pair of shards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Receipt {
    pub(crate) applied: Vec<AppliedUpTo>,
}

/// The last number of a pair of shards that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppliedUpTo {
    pub(crate) from: ShardId,
    pub(crate) to: ShardId,
    pub(crate) number: u64,
}

/// Why another range did not do what it was asked for.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum PeerError {
    /// A message before the first of a post is missing.
    #[error("message {found} from shard {} to {} came where message {expected} should", .from.0, .to.0)]
    Gap { from: ShardId, to: ShardId, expected: u64, found: u64 },
    /// A post of the same range is still being applied.
    #[error("an earlier post of range {0} is being applied")]
    Busy(RangeId),
    /// A message is for a shard that the range does not have, or from one that its sender does not have.
    #[error("a message from shard {} to {} is not one from range {sender} to range {receiver}", .from.0, .to.0)]
    Misdirected { from: ShardId, to: ShardId, sender: RangeId, receiver: RangeId },
    /// It does not answer; later it may.
    #[error("range {0} does not answer")]
    Unreachable(RangeId),
    /// It takes no writes, or a row is damaged.
    #[error(transparent)]
    Refused(#[from] Tier1Error),
}

/// The answer to a post, when there is one. Nothing comes from a range that has ended.
pub(crate) type PostAnswer = Receiver<Result<Receipt, PeerError>>;

/// The other ranges.
pub(crate) trait Peers: Send + Sync {
    /// Posts messages. Returns at once; the answer comes when what was posted is applied and settled, or refused.
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError>;

    /// Rows of a range by key, in the order of the keys; none where there is no row. An answer may end early, but has
    /// at least the first. All keys belong to the range.
    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError>;

    /// Up to `limit` rows of a range from `from` to before `to`, in order; fewer when they are long, but at least
    /// one unless there is none.
    fn scan(&self, range: RangeId, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Row>, PeerError>;
}
