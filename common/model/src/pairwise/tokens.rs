//! The choice of the tokens that are compared, for policies that can compare other tokens than words.

use super::Policy;

/// Which tokens of a page are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ComparedTokens {
    /// Words, which every policy compares by default.
    Words,
    /// Source tokens, as in Henzinger, *Finding Near-Duplicate Web Pages*, SIGIR 2006, section 2. There a URL
    /// is a sequence of terms, and an image is one term.
    Source,
    /// Tokens of code. Case counts, and so does every visible character.
    Code,
}

impl ComparedTokens {
    /// The word for this choice in the text of a policy.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Source => "source",
            Self::Code => "code",
        }
    }

    /// The choice among `choices` for which `word` stands. `None` if it stands for none of them.
    #[must_use]
    pub fn of_word(word: &str, choices: &[Self]) -> Option<Self> {
        choices.iter().copied().find(|tokens| tokens.word() == word)
    }

    /// The words for `choices`, separated by commas.
    #[must_use]
    pub fn words(choices: &[Self]) -> String {
        choices.iter().map(|tokens| tokens.word()).collect::<Vec<_>>().join(", ")
    }
}

impl Policy {
    /// Whether the policy compares source tokens ([`ComparedTokens::Source`]).
    #[must_use]
    pub const fn reads_source_tokens(&self) -> bool {
        matches!(
            self,
            Self::Supershingle { tokens: ComparedTokens::Source, .. }
                | Self::Projection { tokens: ComparedTokens::Source, .. }
                | Self::Combined { tokens: ComparedTokens::Source, .. }
                | Self::BySite { tokens: ComparedTokens::Source, .. }
        )
    }

    /// Whether the policy compares tokens of code ([`ComparedTokens::Code`]).
    #[must_use]
    pub const fn reads_code_tokens(&self) -> bool {
        matches!(
            self,
            Self::Jaccard { tokens: ComparedTokens::Code, .. }
                | Self::Supershingle { tokens: ComparedTokens::Code, .. }
        )
    }
}
