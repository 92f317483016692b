//! The lease of a range's owner. It depends on the owner's contact with the range's log. The lease decides
//! whether the owner may answer questions, and whether it may accept work to commit.

use crate::peers::PeerError;

/// Permission of an owner to answer and to accept work. The range's own work does not need this permission,
/// because the log decides which of its commits count.
pub(crate) trait Lease: Send + Sync {
    /// Checks that the owner may answer a question now.
    ///
    /// # Errors
    /// If the log has not confirmed the ownership recently, or the ownership is over.
    fn check(&self) -> Result<(), PeerError>;

    /// Ends the ownership. The caller has learnt that another owner exists, although this owner has not read
    /// its take-over yet.
    fn end(&self);

    /// Ends the ownership because the owner's disk is full. The database is reopened when there is room
    /// again.
    fn disk_is_full(&self) {
        self.end();
    }

    /// Checks that the owner may accept work to commit.
    ///
    /// # Errors
    /// If a commit has waited for some seconds for a reason that may last.
    fn check_commits(&self) -> Result<(), PeerError> {
        Ok(())
    }
}
