//! Times and sizes that a replica uses.

use std::time::Duration;

use doppel_protocol::Settlement;

use super::entry::PART_BYTES;

/// Default of [`ReplicaLimits::append_retry`].
const APPEND: Duration = Duration::from_secs(2);

/// Default of [`ReplicaLimits::tail_loss_grace`].
const LOST: Duration = Duration::from_secs(1);

/// Default of [`ReplicaLimits::report_interval`].
const REPORT_AGAIN: Duration = Duration::from_millis(200);

/// Default of [`ReplicaLimits::trusted_for`]. Log servers need longer than this to lose entries and accept
/// the take-over of another node.
const TRUSTED: Duration = Duration::from_secs(1);

/// Times and sizes that a replica uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplicaLimits {
    /// How long one call repeats an append that gets no answer. The caller then checks whether the append is
    /// still needed.
    pub(crate) append_retry: Duration,
    /// Maximum number of payload bytes in an entry.
    pub(crate) part_bytes: usize,
    /// Condition under which a commit is settled.
    pub(crate) settlement: Settlement,
    /// How long the log must appear to have lost its tail before a replica puts the tail back. A new leader
    /// of the log may lag behind for a moment without having lost anything.
    pub(crate) tail_loss_grace: Duration,
    /// How long after its last answer an owner trusts that the log still has the entries that it had. After
    /// this time the owner verifies the log before it appends. The log may have lost entries, and other nodes
    /// may have written as many instead. It would then accept an append after entries that the owner has not
    /// read.
    pub(crate) trusted_for: Duration,
    /// Time after which a standby repeats its report, because reports may be lost.
    pub(crate) report_interval: Duration,
}

impl ReplicaLimits {
    /// Returns the limits that the product uses.
    pub(crate) fn new(settlement: Settlement) -> Self {
        let (append_retry, part_bytes) = (APPEND, PART_BYTES);
        Self {
            append_retry,
            part_bytes,
            settlement,
            tail_loss_grace: LOST,
            trusted_for: TRUSTED,
            report_interval: REPORT_AGAIN,
        }
    }
}
