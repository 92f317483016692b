//! What equal contents have in common, in words for people. Contents are made of words or tokens, so their texts may differ in all else.

use super::{Policy, Tokens};

impl Policy {
    /// What two pages have in common whose contents are equal, in words. Their texts may differ in all else.
    #[must_use]
    pub const fn equality(&self) -> &'static str {
        match self {
            _ if self.reads_code_tokens() => "the same tokens (white space ignored)",
            Self::BySite { tokens: Tokens::Source, .. } => {
                "the same source tokens on one site (punctuation and case ignored)"
            }
            _ if self.reads_source_tokens() => "the same source tokens (punctuation and case ignored)",
            Self::Content { .. } => "the same words in the main content (punctuation and case ignored)",
            Self::Copies { .. } => {
                "the same words in the main content on one site (punctuation and case ignored)"
            }
            Self::BySite { .. } => "the same words on one site (punctuation and case ignored)",
            // A shorter text has no chunks of lines.
            Self::Overlap { .. } => {
                "the same words (punctuation and case ignored), from 20 words on in the same lines"
            }
            _ => "the same words (punctuation and case ignored)",
        }
    }

    /// What it makes of a text: words or tokens.
    #[must_use]
    pub const fn units(&self) -> &'static str {
        if self.reads_code_tokens() || self.reads_source_tokens() { "tokens" } else { "words" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_that_texts_are_the_same() {
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
