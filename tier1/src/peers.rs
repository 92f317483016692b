//! The interface between ranges: a range posts messages to another range, and reads its rows.
//!
//! Calls take and return owned values of bounded size, and can fail. No caller holds a lock during a call,
//! and the machine makes no calls. Within a process a call is direct (`service::ownership::ranges`): a read waits only
//! for the store, and the answer to a post has a deadline (`service::writer::sender`). A call to another process goes
//! through [`RangeOwner`](doppel_protocol::range_owner::RangeOwner). Such a read has a deadline as well, and
//! fails with the transient error [`PeerError::Unreachable`].

use crossbeam::channel::Receiver;
use doppel_model::RangeId;
use doppel_protocol::range_owner::EncodedPost;
pub(crate) use doppel_protocol::range_owner::{AppliedPosition, PeerError, Receipt};

use crate::machine::Envelope;
use crate::rows::record::{decode, encode};
use crate::storage::store::{Store, StoreError};
use doppel_protocol::range_owner::EncodedRow;

/// Maximum number of messages in a post.
pub(crate) const POST_MESSAGES: usize = 256;

/// Size of messages in bytes at which a post to another process ends early. A post always has at least one
/// message, however long the message is.
const POST_BYTES: usize = 32 << 20;

/// Size of rows in bytes at which an answer ends early. An answer always has at least one row, however long
/// the row is.
pub(crate) const READ_BYTES: usize = 4 << 20;

/// Messages from one range to another, in the order in which they were sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Post {
    pub(crate) from: RangeId,
    pub(crate) to: RangeId,
    pub(crate) messages: Vec<Envelope>,
}

impl Post {
    /// Encodes the post for another process. Encodes only as many messages as fit; the others follow with the
    /// next post.
    ///
    /// # Errors
    /// If a message cannot be encoded.
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

    /// Decodes a post of another process.
    ///
    /// # Errors
    /// If a message is damaged.
    pub(crate) fn decoded(EncodedPost { from, to, messages }: &EncodedPost) -> Result<Self, PeerError> {
        let messages = messages.iter().map(|message| decode(b"post", message)).collect::<Result<_, _>>()?;
        Ok(Self { from: *from, to: *to, messages })
    }
}

/// Channel for the answer to a post. If the range has ended, the channel closes without an answer.
pub(crate) type PostAnswer = Receiver<Result<Receipt, PeerError>>;

/// Reads rows of a store as [`Peers::rows`] returns them.
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

/// Reads rows of a store as [`Peers::scan`] returns them.
pub(crate) fn piece_of(
    store: &dyn Store,
    from: &[u8],
    to: &[u8],
    limit: usize,
) -> Result<Vec<EncodedRow>, PeerError> {
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

/// Access to the other ranges of the collection.
pub(crate) trait Peers: Send + Sync {
    /// Posts messages. Returns at once; the answer arrives after the messages are applied and settled, or
    /// refused.
    ///
    /// # Errors
    /// If the post cannot be handed over to the range.
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError>;

    /// Reads rows of a range by key, in the order of the keys; `None` for a missing row. The answer may end
    /// early, but has at least the first row. All keys must belong to the range.
    ///
    /// # Errors
    /// If the range does not answer, or its store fails.
    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError>;

    /// Reads at most `limit` rows of a range with keys from `from` to before `to`, in order. The answer has
    /// fewer rows if they are long, but is empty only if there are no such rows.
    ///
    /// # Errors
    /// If the range does not answer, or its store fails.
    fn scan(
        &self,
        range: RangeId,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError>;
}
