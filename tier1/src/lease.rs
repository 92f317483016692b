//! What the owner of a range may do as far as the range's log goes: how long it may answer without having heard from it, and
//! whether it takes what it could not commit.

use crate::peers::PeerError;

/// Says at every question whether the range may answer. Work of the range itself does not ask: the log arbitrates that.
pub(crate) trait Lease: Send + Sync {
    /// Whether the owner may answer now.
    fn check(&self) -> Result<(), PeerError>;

    /// Ends the ownership: another one knows more of the range than this one, which has not heard of it yet.
    fn end(&self);

    /// The disk of the owner is full: the ownership ends, and the database is opened anew once there is room.
    fn disk_is_full(&self) {
        self.end();
    }

    /// Whether the owner takes what is to be committed: not while a commit has waited for some seconds for what may last.
    fn check_commits(&self) -> Result<(), PeerError> {
        Ok(())
    }
}
