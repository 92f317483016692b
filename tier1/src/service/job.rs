//! What the worker of a range is asked for.

use doppel_model::{ContentHash, GroupId, PageId};

/// A job for the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// Compare a member with its group's winner.
    Verify(Verify),
    /// Recompute a group by exact comparison.
    Recompute(GroupId),
    /// Find which members of a group are duplicates of others than the winner.
    Cover(GroupId),
    /// Find what the next piece of the rows owes.
    FindOwed,
    /// Go through all rows again for what they owe.
    FindOwedAgain,
    /// Look for rows that have ended.
    Sweep,
    /// Try what has failed again.
    Retry,
    Stop,
}

/// A member to be compared with its group's winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Verify {
    pub(crate) page: PageId,
    pub(crate) content: ContentHash,
    pub(crate) winner: PageId,
    pub(crate) winner_content: ContentHash,
}
