//! What a replica keeps to.

use std::time::Duration;

use super::Settlement;
use super::entry::PART_BYTES;

/// How long an append is made again before it is looked whether it is still wanted.
const APPEND: Duration = Duration::from_secs(2);

/// How long a log has to show that its end is lost before that is put back: a leader that has just begun may lag behind.
const LOST: Duration = Duration::from_secs(1);

/// A standby reports again after so long what it has, for reports may be lost.
const REPORT_AGAIN: Duration = Duration::from_millis(200);

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
    /// How long a report counts as told.
    pub(crate) report_again: Duration,
}

impl Limits {
    /// Those of the product.
    pub(crate) fn of(settlement: Settlement) -> Self {
        Self { append: APPEND, part_bytes: PART_BYTES, settlement, lost: LOST, report_again: REPORT_AGAIN }
    }
}
