//! The seam between ranges: messages posted to another range, and reads of its rows.
//!
//! Every call takes and gives owned values, has a bound, and can fail. None is made while a lock is held, and
//! the machine makes none. Within a process it is a direct call (`service::ranges`): a read waits for nothing but the
//! store, and the answer to a post has a deadline (`service::sender`). To another process it goes through
//! [`RangeOwner`](doppel_protocol::range_owner::RangeOwner); a read has a deadline then, too, and fails as
//! [`PeerError::Unreachable`], which is transient.

use crossbeam::channel::Receiver;
use doppel_model::RangeId;
use doppel_protocol::range_owner::EncodedPost;
pub(crate) use doppel_protocol::range_owner::{AppliedUpTo, PeerError, Receipt};

use crate::machine::Envelope;
use crate::record::{decode, encode};
use crate::store::{Store, StoreError};
use crate::txn::Row;

/// Messages of a post at most.
pub(crate) const POST_MESSAGES: usize = 256;

/// Bytes of messages past which a post to another process ends early. One message is always posted, however long it is.
const POST_BYTES: usize = 32 << 20;

/// Bytes of rows past which an answer ends early. One row is always given, however long it is.
pub(crate) const READ_BYTES: usize = 4 << 20;

/// Messages of one range to another, in the order in which they were sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Post {
    pub(crate) from: RangeId,
    pub(crate) to: RangeId,
    pub(crate) messages: Vec<Envelope>,
}

impl Post {
    /// For another process: the first messages, as many as go together. The others go with the next post.
    pub(crate) fn encoded(&self) -> Result<EncodedPost, PeerError> {
        let (mut messages, mut bytes) = (Vec::with_capacity(self.messages.len()), 0);
        for message in &self.messages {
            let message: Vec<u8> = encode(message)?;
            bytes += message.len();
            messages.push(message);
            if bytes >= POST_BYTES {
                break;
            }
        }
        Ok(EncodedPost { from: self.from, to: self.to, messages })
    }

    /// From another process.
    pub(crate) fn decoded(EncodedPost { from, to, messages }: &EncodedPost) -> Result<Self, PeerError> {
        let messages = messages.iter().map(|message| decode(b"post", message)).collect::<Result<_, _>>()?;
        Ok(Self { from: *from, to: *to, messages })
    }
}

/// The answer to a post, when there is one. Nothing comes from a range that has ended.
pub(crate) type PostAnswer = Receiver<Result<Receipt, PeerError>>;

/// Rows of a store as [`Peers::rows`] gives them.
pub(crate) fn rows_of(store: &dyn Store, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
    let (mut rows, mut bytes) = (Vec::with_capacity(keys.len()), 0);
    for key in keys {
        let row = store.get(key)?;
        bytes += row.as_ref().map_or(0, Vec::len);
        rows.push(row);
        if bytes >= READ_BYTES {
            break;
        }
    }
    Ok(rows)
}

/// Rows of a store as [`Peers::scan`] gives them.
pub(crate) fn piece_of(
    store: &dyn Store,
    from: &[u8],
    to: &[u8],
    limit: usize,
) -> Result<Vec<Row>, PeerError> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    store.range(from, to, &mut |key, value| {
        bytes += key.len() + value.len();
        rows.push((key.to_vec(), value.to_vec()));
        rows.len() < limit && bytes < READ_BYTES
    })?;
    Ok(rows)
}

impl From<StoreError> for PeerError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}

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
