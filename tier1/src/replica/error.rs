//! Reasons why a replica cannot continue.

use std::path::PathBuf;

use doppel_model::RangeId;
use doppel_shared_log::LogError;

use crate::storage::store::StoreError;

/// Why a replica cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The shared log failed or does not answer. It may answer later.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The database of the replica failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log ends before the last record that the replica has copied from it.
    #[error(
        "range {range} has copied its log up to entry {copied}, but the log ends at entry {end}: the log servers have \
         lost acknowledged entries"
    )]
    LostTail {
        /// The range.
        range: RangeId,
        /// Sequence number of the last copied record.
        copied: u64,
        /// Sequence number of the log's last entry.
        end: u64,
    },
    /// The log ends before the last record that the replica has copied from it, and this replica cannot put
    /// the lost entries back.
    #[error(
        "range {range} has copied its log up to entry {copied}, but the log ends at entry {end}: the log servers have \
         lost acknowledged entries, and this node cannot put them back: {why}. Keep this directory, and start all other \
         nodes with a replica: one of them may put the entries back"
    )]
    NotPutBack {
        /// The range.
        range: RangeId,
        /// Sequence number of the last copied record.
        copied: u64,
        /// Sequence number of the log's last entry.
        end: u64,
        /// Why this node cannot put the entries back.
        why: &'static str,
    },
    /// Too few replicas have reported their position for this replica to take the range over.
    #[error(
        "range {range} has no owner: {heard} of its {replicas} replicas have reported their position, but {needed} must, \
         because another replica may have more records than the log. Start the other nodes with a replica, or let a \
         running node take the range over without them (`doppel cluster takeover`)"
    )]
    TooFewReports {
        /// The range.
        range: RangeId,
        /// Number of replicas that have reported, with this one.
        heard: usize,
        /// Number of replicas that must report.
        needed: usize,
        /// Number of all replicas.
        replicas: usize,
    },
    /// The log has another entry at the position of a record that the replica has copied.
    #[error(
        "the copy of range {range} contradicts its log at entry {at}: the log has lost acknowledged entries, or was \
         created anew. Keep this directory, which may have the only copy of the lost entries"
    )]
    Contradiction {
        /// The range.
        range: RangeId,
        /// Sequence number of the entry.
        at: u64,
    },
    /// The log contradicted the copied records earlier, and was trimmed past the contradiction since.
    #[error(
        "the copy of range {range} contradicted its log, which was since trimmed past the contradiction. Keep {dir}, \
         which may have the only copy of lost entries. When no pages are missing, remove it, and the range is copied \
         from its owner",
        dir = .dir.display()
    )]
    PastContradiction {
        /// The range.
        range: RangeId,
        /// Directory of the range's copy.
        dir: PathBuf,
    },
    /// Another replica has copied more records than the log contains.
    #[error(
        "node {node} has copied more of range {range} than the log contains: the log has lost acknowledged entries; \
         make sure that {node} runs, so that it can put them back"
    )]
    OtherAhead {
        /// The range.
        range: RangeId,
        /// The node.
        node: String,
    },
    /// Another node has taken the range over first.
    #[error("node {owner} has taken over range {range}")]
    LostRace {
        /// The range.
        range: RangeId,
        /// Name of the other node.
        owner: String,
    },
}

impl ReplicaError {
    /// Whether the replica can never continue from its copied records, whatever the log answers later.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Contradiction { .. } | Self::Log(LogError::Trimmed { .. }))
    }

    /// Converts the error to the error that the writer of the range gets.
    pub(super) fn into_store(self, range: RangeId) -> StoreError {
        match self {
            Self::Store(error) => error,
            // An owner never trims entries that it has not read, so another node owns the range.
            Self::Log(LogError::Trimmed { .. }) => StoreError::Deposed(range),
            // The log continues without the records of this owner.
            Self::Contradiction { .. } => StoreError::Deposed(range),
            other => StoreError::Engine(other.to_string()),
        }
    }
}
