//! Which tokens of a page are compared, for policies that can be given others than words.

use super::Policy;

/// Which tokens of a page are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// Those of every other policy.
    Words,
    /// Those of the policy's source: Henzinger, SIGIR 2006, section 2, where a URL is a sequence of terms and an image is one.
    Source,
    /// Those of code: case stays, and every character that is to be seen counts.
    Code,
}

impl Tokens {
    /// The word for these in the text of a policy.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Source => "source",
            Self::Code => "code",
        }
    }

    /// Those among `choices` that a word is for; none where it is another word.
    #[must_use]
    pub fn of_word(word: &str, choices: &[Self]) -> Option<Self> {
        choices.iter().copied().find(|tokens| tokens.word() == word)
    }

    /// The words for `choices`.
    #[must_use]
    pub fn words(choices: &[Self]) -> String {
        choices.iter().map(|tokens| tokens.word()).collect::<Vec<_>>().join(", ")
    }
}

impl Policy {
    /// Whether it is given the tokens of its source.
    #[must_use]
    pub const fn reads_source_tokens(&self) -> bool {
        matches!(
            self,
            Self::Supershingle { tokens: Tokens::Source, .. }
                | Self::Projection { tokens: Tokens::Source, .. }
                | Self::Combined { tokens: Tokens::Source, .. }
                | Self::BySite { tokens: Tokens::Source, .. }
        )
    }

    /// Whether it is given the tokens of code.
    #[must_use]
    pub const fn reads_code_tokens(&self) -> bool {
        matches!(
            self,
            Self::Jaccard { tokens: Tokens::Code, .. } | Self::Supershingle { tokens: Tokens::Code, .. }
        )
    }
}
