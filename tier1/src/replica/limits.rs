//! What a replica keeps to.

use std::time::Duration;

use doppel_protocol::Settlement;

use super::entry::PART_BYTES;

/// How long an append is made again before it is looked whether it is still wanted.
const APPEND: Duration = Duration::from_secs(2);

/// How long a log has to show that its end is lost before that is put back: a leader that has just begun may lag behind.
const LOST: Duration = Duration::from_secs(1);

/// A standby reports again after so long what it has, for reports may be lost.
const REPORT_AGAIN: Duration = Duration::from_millis(200);

/// Without a word of the log for so long, an owner looks whether it is still the same before it appends. Servers that lose
/// something, and a node that takes over meanwhile, need longer.
const TRUSTED: Duration = Duration::from_secs(1);

/// What a replica keeps to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long an append is made again before it is looked whether it is still wanted.
    pub(crate) append: Duration,
    /// Bytes of payload in an entry.
    pub(crate) part_bytes: usize,
    /// When a commit is settled.
    pub(crate) settlement: Settlement,
    /// How long a log has to show that its end is lost before that is put back.
    pub(crate) lost: Duration,
    /// How long after its last word a log is taken for the one that was read. What it has lost and others have written instead
    /// may be as long, and then an append would be taken behind it.
    pub(crate) trusted: Duration,
    /// How long a report counts as told.
    pub(crate) report_again: Duration,
}

impl Limits {
    /// Those of the product.
    pub(crate) fn of(settlement: Settlement) -> Self {
        let (append, part_bytes) = (APPEND, PART_BYTES);
        Self { append, part_bytes, settlement, lost: LOST, trusted: TRUSTED, report_again: REPORT_AGAIN }
    }
}
