//! Why a call has no answer.

use std::sync::Arc;
use std::time::Duration;

use crate::transport::identity::NodeName;
use crate::transport::refusal::Refusal;

/// Why a call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WireError {
    /// The node cannot be reached, or the connection broke off. The call may have been carried out.
    #[error("{node} at {address} cannot be reached: {reason}")]
    Unreachable {
        /// Name of the node.
        node: NodeName,
        /// Address of the node.
        address: Arc<str>,
        /// The reason in words.
        reason: String,
        /// Whether no part of the request was sent.
        unsent: bool,
    },
    /// No answer arrived in time. The call may have been carried out.
    #[error("{node} at {address} has not answered {call} in {} s", time.as_secs_f32())]
    Late {
        /// Name of the node.
        node: NodeName,
        /// Address of the node.
        address: Arc<str>,
        /// Name of the call.
        call: &'static str,
        /// Time limit of the call.
        time: Duration,
    },
    /// The node refused the request.
    #[error("{node} at {address} refuses {call}: {reason}")]
    Refused {
        /// Name of the node.
        node: NodeName,
        /// Address of the node.
        address: Arc<str>,
        /// Name of the call.
        call: &'static str,
        /// Kind of the refusal.
        refusal: Refusal,
        /// The reason in the words of the node.
        reason: String,
    },
    /// The peer is not a node of this version, or the request cannot be encoded.
    #[error("{call} of {node} at {address}: {reason}")]
    Protocol {
        /// Name of the node.
        node: NodeName,
        /// Address of the node.
        address: Arc<str>,
        /// Name of the call.
        call: &'static str,
        /// What is wrong, in words.
        reason: String,
    },
}

impl WireError {
    /// Whether the answer is too large for one call.
    #[must_use]
    pub fn is_answer_too_large(&self) -> bool {
        matches!(self, Self::Refused { refusal: Refusal::AnswerTooLarge, .. })
    }

    /// Whether another attempt is pointless, because the two processes do not belong together.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { refusal, .. } if !refusal.is_transient())
    }

    /// Whether another attempt may succeed and does no harm. `repeatable` says whether the call is idempotent.
    pub(super) fn can_retry(&self, repeatable: bool) -> bool {
        match self {
            Self::Unreachable { unsent, .. } => *unsent || repeatable,
            Self::Refused { refusal, .. } => refusal.is_transient(),
            Self::Late { .. } | Self::Protocol { .. } => false,
        }
    }
}
