//! Why a replica cannot go on.

use std::path::PathBuf;

use doppel_model::RangeId;
use doppel_shared_log::LogError;

use crate::store::StoreError;

/// Why a replica cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The shared log. Where it does not answer, it may later.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The database of the replica.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log ends before what the replica has copied from it.
    #[error(
        "range {range} has copied its log up to entry {copied}, and the log ends with entry {end}: its servers have lost \
         what they had acknowledged"
    )]
    LostTail {
        /// The range.
        range: RangeId,
        /// Where the last record is that was copied.
        copied: u64,
        /// Where the log ends.
        end: u64,
    },
    /// The log ends before what the replica has copied from it, and the replica cannot put that back.
    #[error(
        "range {range} has copied its log up to entry {copied}, and the log ends with entry {end}: its servers have lost \
         what they had acknowledged, and it cannot be put back from here, for {why}. Keep this directory, and start all \
         other nodes that have a replica: one of them may put it back"
    )]
    NotPutBack {
        /// The range.
        range: RangeId,
        /// Where the last record is that was copied.
        copied: u64,
        /// Where the log ended.
        end: u64,
        /// Why.
        why: &'static str,
    },
    /// Too few replicas have said how far they are.
    #[error(
        "range {range} has no owner, and {heard} of its {replicas} replicas have said what they have: {needed} have to, for \
         the others may have more than the log. Start the nodes that have a replica, or have one that runs take the range \
         over with what there is (`doppel cluster takeover`)"
    )]
    TooFew {
        /// The range.
        range: RangeId,
        /// Those that were heard, with this one.
        heard: usize,
        /// Those that have to be.
        needed: usize,
        /// All.
        replicas: usize,
    },
    /// The log has another record where the replica has copied one.
    #[error(
        "what range {range} has copied contradicts its log at entry {at}: the log has lost what it had acknowledged, or was \
         made anew. Keep this directory: it may have the only copy of what is missing"
    )]
    Contradicts {
        /// The range.
        range: RangeId,
        /// The entry.
        at: u64,
    },
    /// The same, and the log does not reach back to there any more.
    #[error(
        "what range {range} has copied contradicted its log, which does not reach back to there any more. It may be the only \
         copy of what is missing: once nothing is, remove {}, and the range is copied from its owner",
        .dir.display()
    )]
    Contradicted {
        /// The range.
        range: RangeId,
        /// What was copied.
        dir: PathBuf,
    },
    /// Another replica has copied more than the log has.
    #[error(
        "{node} has copied more of range {range} than its log has now: the log has lost what it had acknowledged"
    )]
    Ahead {
        /// The range.
        range: RangeId,
        /// The node.
        node: String,
    },
    /// Another node was first.
    #[error("{owner} has taken range {range} over")]
    Outrun {
        /// The range.
        range: RangeId,
        /// The node.
        owner: String,
    },
}

impl ReplicaError {
    /// Whether a replica cannot go on from what it has, whatever the log says later.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Contradicts { .. } | Self::Log(LogError::Trimmed { .. }))
    }

    /// As the writer of the range sees it.
    pub(super) fn into_store(self, range: RangeId) -> StoreError {
        match self {
            Self::Store(error) => error,
            // An owner does not trim what it has not read, so another node owns the range.
            Self::Log(LogError::Trimmed { .. }) => StoreError::Deposed(range),
            // It goes on without what this owner has written.
            Self::Contradicts { .. } => StoreError::Deposed(range),
            other => StoreError::Engine(other.to_string()),
        }
    }
}
