//! Posts between ranges and their answers, as the simulated network sees them.

use std::fmt;

use doppel_model::RangeId;
use doppel_protocol::RangeMap;

use super::Envelope;
use crate::peers::{AppliedPosition, PeerError, Post, Receipt};

/// Envelopes from one range to another.
#[derive(Clone, PartialEq)]
pub struct SimPost {
    from: RangeId,
    to: RangeId,
    pub envelopes: Vec<Envelope>,
}

/// The answer of a range to a post.
#[derive(Debug, Clone)]
pub struct PostReply(Result<Receipt, PeerError>);

impl SimPost {
    pub(super) fn new(post: Post) -> Self {
        let Post { from, to, messages } = post;
        let envelopes = messages.into_iter().map(|envelope| Envelope::new((envelope, true))).collect();
        Self { from, to, envelopes }
    }

    pub(super) fn into_inner(self) -> Post {
        let messages = self.envelopes.into_iter().map(|envelope| envelope.into_inner().0).collect();
        Post { from: self.from, to: self.to, messages }
    }

    /// Creates a post of one envelope.
    #[must_use]
    pub fn alone(envelope: Envelope, map: RangeMap) -> Self {
        let (from, to) = (map.of_shard(envelope.from()), map.of_shard(envelope.to()));
        Self { from, to, envelopes: vec![envelope] }
    }

    #[must_use]
    pub fn from(&self) -> RangeId {
        self.from
    }

    #[must_use]
    pub fn to(&self) -> RangeId {
        self.to
    }
}

impl PostReply {
    pub(super) fn new(answer: Result<Receipt, PeerError>) -> Self {
        Self(answer)
    }

    pub(super) fn inner(&self) -> &Result<Receipt, PeerError> {
        &self.0
    }

    /// Whether the answer is a receipt, not an error.
    #[must_use]
    pub fn is_receipt(&self) -> bool {
        self.0.is_ok()
    }

    /// The error that a sender sees if the range `by` does not answer in time.
    #[must_use]
    pub fn unanswered(by: RangeId) -> Self {
        Self(Err(PeerError::unreachable(by, "no answer came in time")))
    }

    /// A receipt for all envelopes of a post, whether or not they were applied. This is a planted mistake.
    #[must_use]
    pub fn forged_receipt(post: &SimPost) -> Self {
        let applied = post.envelopes.iter().map(|envelope| {
            let (from, to, number) = (envelope.from(), envelope.to(), envelope.number());
            AppliedPosition { from, to, number }
        });
        Self(Ok(Receipt { applied: applied.collect() }))
    }
}

impl fmt::Debug for SimPost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}: {:?}", self.from, self.to, self.envelopes)
    }
}
