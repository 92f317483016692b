//! Cuts the tokens of code, for policies with `tokens=code`: every visible character belongs to a token.
//!
//! The text is normalised to NFC without default-ignorable characters, and keeps its case. A maximal run of
//! letters and digits, each with the combining marks after it, is a token in every script. Every other
//! character is a token of its own, except white space and control characters, which separate tokens. A mark
//! that follows no letter or digit is also a token of its own.

use std::ops::Range;

use super::form::compose;
use super::letter::{CharCategory, Letters};
use doppel_model::stable_hash64;

/// Turns code into token hashes, with a buffer that is reused from text to text.
#[derive(Debug, Default)]
pub(crate) struct CodeTokens {
    hashes: Vec<u64>,
}

impl CodeTokens {
    /// Returns the hashes of the tokens of `text`, in text order.
    pub(crate) fn tokens(&mut self, text: &[u8]) -> &[u64] {
        self.hashes.clear();
        let text = String::from_utf8_lossy(text);
        each_token(&compose(&text), |token| self.hashes.push(stable_hash64(token.as_bytes())));
        &self.hashes
    }
}

/// Calls `token` with every token of a text that is normalised by [`compose`].
fn each_token(text: &str, mut token: impl FnMut(&str)) {
    let letters = Letters::new();
    let mut word: Option<Range<usize>> = None;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match (letters.category(c), &mut word) {
            (CharCategory::Letter | CharCategory::Mark, Some(word)) => word.end = end,
            (CharCategory::Letter, None) => word = Some(at..end),
            (CharCategory::Mark | CharCategory::Other, open) => {
                if let Some(word) = open.take() {
                    token(&text[word]);
                }
                if !c.is_whitespace() && !c.is_control() {
                    token(&text[at..end]);
                }
            }
        }
    }
    if let Some(word) = word {
        token(&text[word]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        each_token(&compose(text), |token| tokens.push(token.to_owned()));
        let hashes: Vec<u64> = tokens.iter().map(|token| stable_hash64(token.as_bytes())).collect();
        assert_eq!(CodeTokens::default().tokens(text.as_bytes()), hashes);
        tokens
    }

    #[test]
    fn every_visible_character_belongs_to_a_token() {
        for (text, expected) in [
            ("", ""),
            (" \t\n\u{7}\u{85}\u{2028}", ""),
            ("if (a<=b) {x += 1;}", "if ( a < = b ) { x + = 1 ; }"),
            ("C C++ C#", "C C + + C #"),
            ("Foo foo FOO", "Foo foo FOO"),
            ("x²+y₂ ≠ ½", "x² + y₂ ≠ ½"),
            ("snake_case-name", "snake _ case - name"),
            ("na\u{308}i\u{308}ve", "näïve"),
            // In code, a ligature and a full-width letter differ from the plain letters.
            ("ﬁ Ａ", "ﬁ Ａ"),
            ("so\u{ad}ft\u{200b} \u{feff}a\u{200d}", "soft a"),
            ("= \u{338}x =\u{338}", "= \u{338} x ≠"),
            ("東京タワー हिन्दी", "東京タワー हिन्दी"),
            ("👍🏽👩\u{200d}🔬", "👍 🏽 👩 🔬"),
        ] {
            assert_eq!(tokens(text), expected.split_whitespace().collect::<Vec<_>>(), "{text:?}");
        }
    }

    #[test]
    fn canonically_equal_code_has_equal_tokens() {
        for [a, b] in
            [["é = ö", "e\u{301} = o\u{308}"], ["각", "\u{1100}\u{1161}\u{11a8}"], ["≠", "=\u{338}"]]
        {
            assert_eq!(tokens(a), tokens(b));
        }
    }

    #[test]
    fn invalid_utf_8_is_a_token() {
        let hashes = ["a", "\u{fffd}", "b"].map(|token| stable_hash64(token.as_bytes()));
        assert_eq!(CodeTokens::default().tokens(b"a\xffb"), hashes);
    }
}
