//! How long the owner of a range may answer without having heard from the range's log.

use crate::peers::PeerError;

/// Says at every question whether the range may answer. Work of the range itself does not ask: the log arbitrates that.
pub(crate) trait Lease: Send + Sync {
    /// Whether the owner may answer now.
    fn check(&self) -> Result<(), PeerError>;
}
