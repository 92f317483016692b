//! The signatures that tier 1 keeps on this machine. An index in the same process reads them there and keeps none itself.

use doppel_model::PageId;

use super::SourceError;

/// Where tier 1 keeps a signature. It stays the same for as long as a page has that signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignaturePlace {
    /// Names the place.
    pub at: u64,
    /// The length of the signature, in bytes.
    pub bytes: u32,
}

/// Takes the place and the bytes of a signature, and says whether to go on.
pub type EachSignature<'e> = dyn FnMut(SignaturePlace, &[u8]) -> bool + 'e;

/// The signatures of all ranges. No call waits for a commit, so a caller may hold a lock meanwhile.
pub trait StoredSignatures: Send + Sync {
    /// The place of a page's present signature; none if it has none.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn place(&self, page: PageId) -> Result<Option<SignaturePlace>, SourceError>;

    /// Reads what is at a place into `buffer`, in place of what that holds. The bytes are not checked: if no page has the
    /// signature any more, they may be those of another one.
    ///
    /// # Errors
    /// When there is nothing any more, or it cannot be read.
    fn read(&self, place: SignaturePlace, buffer: &mut Vec<u8>) -> Result<(), SourceError>;

    /// Calls `each` for every signature, those that no page has any more among them.
    ///
    /// # Errors
    /// When one cannot be read.
    fn each(&self, each: &mut EachSignature<'_>) -> Result<(), SourceError>;
}
