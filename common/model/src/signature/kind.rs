//! The kind of a signature, which says from what the signature was made.

/// The kind of a signature: what the signature was made from. Only signatures of the same kind are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SignatureKind {
    /// The set of shingles, with its sketch. The number 5 is historical: the byte once held the tokens per
    /// shingle.
    Shingles = 5,
    /// Six supershingles, or none for a short text.
    Supershingles = 0x80,
    /// A random projection of the token frequencies.
    Projection,
    /// Supershingles and a random projection.
    Combined,
    /// Supershingles, a random projection, and the site.
    BySite,
    /// A simhash of weighted features.
    Simhash,
    /// Fingerprints of the words of a text, in several lexicons.
    Imatch = 0x85,
    /// Simhashes of sequences of words, in several lexicons.
    MultiSimhash = 0x86,
    /// A set of fingerprints of chunks of lines, and the hash of the text.
    Overlap = 0x87,
    /// The set of 5-token shingles of the main content, with its sketch.
    Content = 0x88,
    /// The set of 2-token shingles of the main content, with its sketch, the site, and whether the page is
    /// plain text.
    Copies,
}

impl SignatureKind {
    const ALL: [Self; 11] = [
        Self::Shingles,
        Self::Supershingles,
        Self::Projection,
        Self::Combined,
        Self::BySite,
        Self::Simhash,
        Self::Imatch,
        Self::MultiSimhash,
        Self::Content,
        Self::Copies,
        Self::Overlap,
    ];

    /// The kind with this number, or `None` if the number is unknown.
    #[inline]
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        if number == Self::Shingles as u8 {
            return Some(Self::Shingles);
        }
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Whether the set of this kind holds shingle hashes.
    ///
    /// A set of shingle hashes has a sketch. Its hashes also contain the bucket of their first token, so a
    /// length vector can be computed from the set.
    #[inline]
    #[must_use]
    pub const fn is_of_shingles(self) -> bool {
        matches!(self, Self::Shingles | Self::Content | Self::Copies)
    }
}
