//! What of a page is taken for its main content, and what is left out, for people who ask why.
//!
//! It is read anew and apart from signatures, which have no room for it. Every token of the page is either taken or left out by one
//! rule. Text is shortened, so an answer is bounded however long the page is.

use doppel_model::pairwise::TOKENS_MIN;
use doppel_model::{PageUrl, RawContent};

use super::main_content::Part;
use super::markup::Markup;
use super::syntax::ReadOptions;
use super::{Extractor, Rule};

/// What of a page is taken for its main content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Which part.
    pub part: Part,
    /// Tokens that are taken, which are compared.
    pub tokens: usize,
    /// Tokens of the whole page.
    pub of: usize,
    /// What is left out, by rule, in the order in which the rules first come.
    pub left_out: Vec<Omitted>,
}

/// What one rule leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// The rule.
    pub rule: Rule,
    /// Its tokens, at least one.
    pub tokens: usize,
    /// The beginning of its text; `…` says that there is more.
    pub text: String,
}

impl Extractor {
    /// Finds the tokens of the main content: of the first part that has enough of them, or else of none, and the whole page is to be
    /// taken.
    pub(super) fn find_main_content(&mut self) -> Part {
        let has_enough = |part: &Part| {
            self.document.main.copy(*part, &self.document.text, &mut self.main)
                && self.tokeniser.tokens(&mut self.main).len() >= TOKENS_MIN as usize
        };
        Part::ALL.into_iter().find(has_enough).unwrap_or(Part::Whole)
    }

    /// Says what of a page policies that read the main content compare, whatever the policy here. Of what each rule leaves out
    /// it gives at most `chars` characters. None of a redirect or of what is no HTML.
    pub fn taken(&mut self, url: &PageUrl, raw: RawContent<'_>, chars: usize) -> Option<Taken> {
        let markup = Markup::of(raw).ok()?;
        let options = ReadOptions { main: true, ..ReadOptions::default() };
        if self.read_with(url, markup, options).is_some() {
            return None;
        }
        let part = self.find_main_content();
        let (mut taken, mut of, mut left_out) = (0, 0, Vec::<LeftOut>::new());
        let text = &self.document.text;
        for (place, run) in self.document.main.runs(text) {
            // Finding tokens changes letters.
            self.main.clear();
            self.main.extend_from_slice(run);
            let tokens = self.tokeniser.tokens(&mut self.main).len();
            of += tokens;
            match part.leaves_out(place) {
                None => taken += tokens,
                Some(rule) => leave_out(&mut left_out, rule, tokens).append(run, chars),
            }
        }
        left_out.retain(|one| one.tokens > 0);
        let omitted = |LeftOut { rule, tokens, text }| Omitted { rule, tokens, text: text.text };
        Some(Taken { part, tokens: taken, of, left_out: left_out.into_iter().map(omitted).collect() })
    }
}

/// What one rule leaves out, so far.
struct LeftOut {
    rule: Rule,
    tokens: usize,
    text: Shortened,
}

/// Counts the tokens of a run that a rule leaves out. Gives the text of the rule.
fn leave_out(left_out: &mut Vec<LeftOut>, rule: Rule, tokens: usize) -> &mut Shortened {
    let at = left_out.iter().position(|one| one.rule == rule).unwrap_or_else(|| {
        left_out.push(LeftOut { rule, tokens: 0, text: Shortened::default() });
        left_out.len() - 1
    });
    let one = &mut left_out[at];
    one.tokens += tokens;
    &mut one.text
}

/// Says that there is more.
const MORE: char = '…';

/// The beginning of a text.
#[derive(Default)]
struct Shortened {
    text: String,
    /// Its characters, because counting them for each run would take a time that is quadratic in the page.
    chars: usize,
    is_cut: bool,
}

impl Shortened {
    /// Appends text with single spaces, and without control characters, which a terminal would obey, up to so many characters in all.
    fn append(&mut self, run: &[u8], chars_max: usize) {
        if self.is_cut || chars_max == 0 {
            return;
        }
        let is_space = |c: char| c.is_whitespace() || c.is_control();
        for word in String::from_utf8_lossy(run).split(is_space).filter(|word| !word.is_empty()) {
            let space = (self.chars > 0).then_some(' ');
            for c in space.into_iter().chain(word.chars()) {
                if self.chars >= chars_max {
                    // The last character makes place.
                    self.text.pop();
                    self.text.push(MORE);
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
        // A text may end with the sign itself.
        assert_eq!(appended(&["ab…", "c"], 9), "ab… c");
        assert_eq!(appended(&["ab…", "c"], 3), "ab…");
    }

    #[test]
    fn time_is_linear_in_the_number_of_runs() {
        let mut text = Shortened::default();
        // Some minutes, if each run looked at what is there already.
        (0..1_000_000).for_each(|_| text.append(b"a", 2_000_000));
        assert_eq!((text.chars, text.is_cut), (1_999_999, false));
        text.append(b"bc", 2_000_000);
        assert!(text.is_cut && text.text.ends_with("a…") && text.text.chars().count() == 2_000_000);
    }
}
