//! Says in words what equal contents share. Contents consist of words or tokens, so the texts of two equal
//! contents may differ in everything else.

use super::{ComparedTokens, Policy};

impl Policy {
    /// Says in words what two pages with equal contents share. Everything else in their texts may differ.
    #[must_use]
    pub const fn equality(&self) -> &'static str {
        match self {
            _ if self.reads_code_tokens() => "the same tokens (white space ignored)",
            Self::BySite { tokens: ComparedTokens::Source, .. } => {
                "the same source tokens on one site (punctuation and case ignored)"
            }
            _ if self.reads_source_tokens() => "the same source tokens (punctuation and case ignored)",
            Self::Content { .. } => "the same words in the main content (punctuation and case ignored)",
            Self::Copies { .. } => {
                "the same words in the main content on one site (punctuation and case ignored)"
            }
            Self::BySite { .. } => "the same words on one site (punctuation and case ignored)",
            // Below 20 words a text has no chunks of lines.
            Self::Overlap { .. } => {
                "the same words (punctuation and case ignored), from 20 words on in the same lines"
            }
            _ => "the same words (punctuation and case ignored)",
        }
    }

    /// The units of a content, in words: `words` or `tokens`.
    #[must_use]
    pub const fn units(&self) -> &'static str {
        if self.reads_code_tokens() || self.reads_source_tokens() { "tokens" } else { "words" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_speaks_of_words_or_tokens_and_never_of_equal_texts() {
        for (policy, words) in [
            ("jaccard", "the same words (punctuation and case ignored)"),
            ("jaccard:tokens=code", "the same tokens (white space ignored)"),
            ("supershingle:tokens=code", "the same tokens (white space ignored)"),
            ("projection:tokens=source", "the same source tokens (punctuation and case ignored)"),
            ("content", "the same words in the main content (punctuation and case ignored)"),
        ] {
            assert_eq!(policy.parse::<Policy>().unwrap().equality(), words);
        }
        for policy in Policy::all() {
            assert!(policy.equality().starts_with(&format!("the same {}", policy.units())), "{policy}");
        }
    }
}
