//! Changes in whether a page waits for its decision. The service measures waiting times from these changes.

use doppel_model::ClientId;

use crate::rows::txn::PageShare;

/// What a commit changes about a page's wait for its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The page begins to wait, or now waits for another client.
    Begins(ClientId),
    /// The page was pending before the range was opened, and still waits for this client.
    Continues(ClientId),
    /// The page's content was decided.
    Decided,
    /// The wait ends without a decision, because the page is now dead, purged, or a redirect.
    Dropped,
}

impl Wait {
    /// Returns what a commit changes about a page's wait; `None` if nothing changes.
    pub(super) fn of(before: PageShare, after: PageShare) -> Option<Self> {
        match (before.pending, after.pending) {
            (before, Some(client)) => (before != Some(client)).then_some(Self::Begins(client)),
            (Some(_), None) => Some(if after.content { Self::Decided } else { Self::Dropped }),
            (None, None) => None,
        }
    }
}
