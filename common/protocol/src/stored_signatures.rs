//! Access to the signatures that tier 1 stores on this machine. An index in the same process reads them here,
//! and does not store signatures itself.

use doppel_model::PageId;

use super::content_source::SourceError;

/// The location at which tier 1 stores a signature. The location does not change as long as a page has the
/// signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignaturePlace {
    /// Identifies the location, in an encoding of tier 1.
    pub at: u64,
    /// Length of the signature in bytes.
    pub bytes: u32,
}

/// Callback that receives the location and the bytes of a signature, and returns whether to continue.
pub type EachSignature<'e> = dyn FnMut(SignaturePlace, &[u8]) -> bool + 'e;

/// The stored signatures of all ranges. No call waits for a commit, so a caller may hold a lock during a
/// call.
pub trait StoredSignatures: Send + Sync {
    /// Returns the location of a page's present signature; `None` if the page has no signature.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn place(&self, page: PageId) -> Result<Option<SignaturePlace>, SourceError>;

    /// Reads the bytes at a location into `buffer`, replacing its content. The bytes are not checked. If no
    /// page has the signature any more, they may belong to another signature.
    ///
    /// # Errors
    /// If the location no longer exists or cannot be read.
    fn read(&self, place: SignaturePlace, buffer: &mut Vec<u8>) -> Result<(), SourceError>;

    /// Calls `each` for every stored signature, including signatures that no page has any more.
    ///
    /// # Errors
    /// If a signature cannot be read.
    fn each(&self, each: &mut EachSignature<'_>) -> Result<(), SourceError>;
}
