//! What a signature is made of: of which family of policies it is.

/// What a signature is made of. Only signatures of one kind are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The set of 5-token shingles, and its sketch. Its number is that of the tokens of a shingle, which the byte was first.
    Shingles = 5,
    /// Supershingles.
    Supershingles = 0x80,
    /// A random projection of token frequencies.
    Projection,
    /// Supershingles and a projection.
    Combined,
    /// The same, and the site.
    BySite,
    /// A simhash of weighted features.
    Simhash,
    /// Fingerprints of the words of a text in several lexicons.
    Imatch = 0x85,
    /// A simhash of sequences of words in each of several lexicons.
    MultiSimhash = 0x86,
    /// Fingerprints of chunks of lines, in the set, and the hash of the text.
    Overlap = 0x87,
    /// The set of 5-token shingles of the main content, and its sketch.
    Content = 0x88,
    /// The set of 2-token shingles of the main content, its sketch, the site, and whether the page is plain text.
    Copies,
}

impl Kind {
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

    /// The kind with this number.
    #[inline]
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        if number == Self::Shingles as u8 {
            return Some(Self::Shingles);
        }
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Whether the set is one of shingles, which has a sketch, and whose hashes tell their first tokens: of such a set there are length
    /// vectors.
    #[inline]
    #[must_use]
    pub const fn is_of_shingles(self) -> bool {
        matches!(self, Self::Shingles | Self::Content | Self::Copies)
    }
}
