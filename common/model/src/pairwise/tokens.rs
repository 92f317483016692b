//! Which tokens of a page are compared, for policies that can be given those of their source.

/// Which tokens of a page are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// Those of every other policy.
    Words,
    /// Those of the policy's source: Henzinger, SIGIR 2006, section 2, where a URL is a sequence of terms and an image is one.
    Source,
}

impl Tokens {
    /// The words for them in the text of a policy.
    pub const WORDS: [&'static str; 2] = ["words", "source"];

    /// The word for these.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS[usize::from(self == Self::Source)]
    }

    /// Those that a word is for; none where it is another word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Words, Self::Source].into_iter().find(|tokens| tokens.word() == word)
    }
}
