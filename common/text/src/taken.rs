//! What of a page is taken for its main content, and what is left out, for people who ask why.
//!
//! It is read anew and apart from signatures, which have no room for it. Every token of the page is either taken or left out by one
//! rule. Text is shortened, so an answer is bounded however long the page is.

use doppel_model::PageUrl;

use super::html::Wanted;
use super::main_content::Part;
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
    /// Says what of an HTML page policies that read the main content compare, whatever the policy here. Of what each rule leaves out
    /// it gives at most `chars` characters. None of a redirect.
    pub fn html_taken(
        &mut self,
        url: &PageUrl,
        html: &[u8],
        declared: Option<&str>,
        chars: usize,
    ) -> Option<Taken> {
        let wanted = Wanted { main: true, ..Wanted::default() };
        if self.read_for(url, html, declared, wanted).is_some() {
            return None;
        }
        let part = self.find_main();
        let mut taken = Taken { part, tokens: 0, of: 0, left_out: Vec::new() };
        let text = &self.document.text;
        for (place, run) in self.document.main.runs(text) {
            // Finding tokens changes letters.
            self.main.clear();
            self.main.extend_from_slice(run);
            let tokens = self.tokeniser.tokens(&mut self.main).len();
            taken.of += tokens;
            match part.leaves_out(place) {
                None => taken.tokens += tokens,
                Some(rule) => taken.leave_out(rule, tokens, run, chars),
            }
        }
        taken.left_out.retain(|omitted| omitted.tokens > 0);
        Some(taken)
    }
}

impl Taken {
    fn leave_out(&mut self, rule: Rule, tokens: usize, run: &[u8], chars: usize) {
        let at = self.left_out.iter().position(|omitted| omitted.rule == rule).unwrap_or_else(|| {
            self.left_out.push(Omitted { rule, tokens: 0, text: String::new() });
            self.left_out.len() - 1
        });
        let omitted = &mut self.left_out[at];
        omitted.tokens += tokens;
        append(&mut omitted.text, run, chars);
    }
}

/// Says that there is more.
const MORE: char = '…';

/// Appends text with single spaces, and without control characters, which a terminal would obey, up to so many characters in all.
fn append(to: &mut String, run: &[u8], chars: usize) {
    let mut room = chars.saturating_sub(to.chars().count());
    if chars == 0 || to.ends_with(MORE) && room == 0 {
        return;
    }
    let is_space = |c: char| c.is_whitespace() || c.is_control();
    for word in String::from_utf8_lossy(run).split(is_space).filter(|word| !word.is_empty()) {
        let space = (!to.is_empty()).then_some(' ');
        for c in space.into_iter().chain(word.chars()) {
            if room == 0 {
                // The last character makes place.
                to.pop();
                to.push(MORE);
                return;
            }
            to.push(c);
            room -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shortened_and_free_of_control_characters() {
        let appended = |runs: &[&str], chars| {
            let mut text = String::new();
            runs.iter().for_each(|run| append(&mut text, run.as_bytes(), chars));
            text
        };
        assert_eq!(appended(&[" a \n b\u{1b}[31m\t", "", " ", "c "], 20), "a b [31m c");
        assert_eq!(appended(&["abcdef"], 6), "abcdef");
        assert_eq!(appended(&["abcdefg"], 6), "abcde…");
        assert_eq!(appended(&["abcdef", " g", "h"], 6), "abcde…");
        assert_eq!(appended(&["äöü", "ß"], 4), "äöü…");
        assert_eq!(appended(&["äöü", "ß"], 5), "äöü ß");
        assert_eq!(appended(&["a"], 0), "");
    }
}
