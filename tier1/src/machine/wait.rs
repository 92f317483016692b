//! Pages that wait for their decision.

use doppel_model::ClientId;

use crate::txn::PageShare;

/// What a commit does to the wait of a page for its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// For a client, or now for another one.
    Begins(ClientId),
    /// It is pending since before the range was opened, for a client.
    GoesOn(ClientId),
    Decided,
    /// What was to be decided is gone: the page is dead, purged, or redirects.
    Dropped,
}

impl Wait {
    /// What becomes of the wait of a page that a commit changes; none where it stays as it is.
    pub(super) fn of(before: PageShare, after: PageShare) -> Option<Self> {
        match (before.pending, after.pending) {
            (before, Some(client)) => (before != Some(client)).then_some(Self::Begins(client)),
            (Some(_), None) => Some(if after.content { Self::Decided } else { Self::Dropped }),
            (None, None) => None,
        }
    }
}
