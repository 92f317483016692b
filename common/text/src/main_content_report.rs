//! Explains the main content of a page to a person: which part is used, and which rule omits the rest.
//!
//! The page is read again for the explanation, because signatures have no room for it. Every token of the
//! page is either in the main content or omitted by exactly one rule. Omitted text is shortened, so an
//! explanation is bounded for every page.

use doppel_model::pairwise::TOKENS_MIN;
use doppel_model::{PageUrl, RawContent};

use super::Extractor;
use super::main_content::PagePart;
use super::main_content::omission_rule::OmissionRule;
use super::markup::Markup;
use crate::html::syntax::ReadOptions;

/// Explanation of the main content of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MainContentReport {
    /// Part of the page that is its main content.
    pub part: PagePart,
    /// Number of tokens in the main content, which are compared.
    pub tokens: usize,
    /// Number of tokens in the whole page.
    pub of: usize,
    /// Omitted text by rule, in the order in which the rules first apply.
    pub left_out: Vec<OmittedText>,
}

/// Text that a rule omits from the main content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedText {
    /// Rule that omits the text.
    pub rule: OmissionRule,
    /// Number of omitted tokens, at least 1.
    pub tokens: usize,
    /// Beginning of the omitted text. Ends with `…` if the text is longer.
    pub text: String,
}

impl Extractor {
    /// Finds the first part of the page with enough tokens, and leaves its text in `main` and its tokens in
    /// the tokeniser. Returns [`PagePart::Whole`] if no part has enough tokens.
    pub(super) fn find_main_content(&mut self) -> PagePart {
        let has_enough = |part: &PagePart| {
            self.document.main.copy_part(*part, &self.document.text, &mut self.main)
                && self.tokeniser.tokens(&mut self.main).len() >= TOKENS_MIN as usize
        };
        PagePart::ALL.into_iter().find(has_enough).unwrap_or(PagePart::Whole)
    }

    /// Explains which part of a page is its main content, whatever the policy of the extractor. Shortens the
    /// text that each rule omits to `chars` characters. Returns `None` for a redirect and for plain text.
    pub fn main_content_report(
        &mut self,
        url: &PageUrl,
        raw: RawContent<'_>,
        chars: usize,
    ) -> Option<MainContentReport> {
        let markup = Markup::of(raw).ok()?;
        let options = ReadOptions { main: true, ..ReadOptions::default() };
        if self.read_with(url, markup, options).is_some() {
            return None;
        }
        let part = self.find_main_content();
        let (mut tokens_in_part, mut of, mut left_out) = (0, 0, Vec::<OmissionTally>::new());
        let text = &self.document.text;
        for (region, run) in self.document.main.runs(text) {
            // The tokeniser changes letters to lower case, so it gets a copy.
            self.main.clear();
            self.main.extend_from_slice(run);
            let tokens = self.tokeniser.tokens(&mut self.main).len();
            of += tokens;
            match part.omission_rule(region) {
                None => tokens_in_part += tokens,
                Some(rule) => tally_omission(&mut left_out, rule, tokens).append(run, chars),
            }
        }
        left_out.retain(|tally| tally.tokens > 0);
        let omitted = |OmissionTally { rule, tokens, text }| OmittedText { rule, tokens, text: text.text };
        Some(MainContentReport {
            part,
            tokens: tokens_in_part,
            of,
            left_out: left_out.into_iter().map(omitted).collect(),
        })
    }
}

/// Tokens and text that a rule has omitted so far.
struct OmissionTally {
    rule: OmissionRule,
    tokens: usize,
    text: Shortened,
}

/// Adds `tokens` to the tally of `rule`, and returns the text of the tally.
fn tally_omission(left_out: &mut Vec<OmissionTally>, rule: OmissionRule, tokens: usize) -> &mut Shortened {
    let at = left_out.iter().position(|tally| tally.rule == rule).unwrap_or_else(|| {
        left_out.push(OmissionTally { rule, tokens: 0, text: Shortened::default() });
        left_out.len() - 1
    });
    let tally = &mut left_out[at];
    tally.tokens += tokens;
    &mut tally.text
}

/// Last character of a shortened text.
const ELLIPSIS: char = '…';

/// Beginning of a text, up to a maximum length.
#[derive(Default)]
struct Shortened {
    text: String,
    /// Number of characters. Counting them again for each run would take quadratic time.
    chars: usize,
    is_cut: bool,
}

impl Shortened {
    /// Appends `run` until the text has `chars_max` characters. If the text is longer, its last character
    /// becomes an ellipsis. White space becomes a single space, and so do control characters, because a
    /// terminal would obey them.
    fn append(&mut self, run: &[u8], chars_max: usize) {
        if self.is_cut || chars_max == 0 {
            return;
        }
        let is_space = |c: char| c.is_whitespace() || c.is_control();
        for word in String::from_utf8_lossy(run).split(is_space).filter(|word| !word.is_empty()) {
            let space = (self.chars > 0).then_some(' ');
            for c in space.into_iter().chain(word.chars()) {
                if self.chars >= chars_max {
                    // The last character makes room for the ellipsis.
                    self.text.pop();
                    self.text.push(ELLIPSIS);
                    self.is_cut = true;
                    return;
                }
                self.text.push(c);
                self.chars += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shortened_and_free_of_control_characters() {
        let appended = |runs: &[&str], chars| {
            let mut text = Shortened::default();
            runs.iter().for_each(|run| text.append(run.as_bytes(), chars));
            assert!(text.chars == text.text.chars().count() && text.chars <= chars);
            text.text
        };
        assert_eq!(appended(&[" a \n b\u{1b}[31m\t", "", " ", "c "], 20), "a b [31m c");
        assert_eq!(appended(&["abcdef"], 6), "abcdef");
        assert_eq!(appended(&["abcdefg"], 6), "abcde…");
        assert_eq!(appended(&["abcdef", " g", "h"], 6), "abcde…");
        assert_eq!(appended(&["äöü", "ß"], 4), "äöü…");
        assert_eq!(appended(&["äöü", "ß"], 5), "äöü ß");
        assert_eq!(appended(&["a"], 0), "");
        // A text may itself end with an ellipsis.
        assert_eq!(appended(&["ab…", "c"], 9), "ab… c");
        assert_eq!(appended(&["ab…", "c"], 3), "ab…");
    }

    #[test]
    fn time_is_linear_in_the_number_of_runs() {
        let mut text = Shortened::default();
        // This would take minutes if each run counted the characters of the text again.
        (0..1_000_000).for_each(|_| text.append(b"a", 2_000_000));
        assert_eq!((text.chars, text.is_cut), (1_999_999, false));
        text.append(b"bc", 2_000_000);
        assert!(text.is_cut && text.text.ends_with("a…") && text.text.chars().count() == 2_000_000);
    }
}
