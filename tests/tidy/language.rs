//! Doc comments that stand alone: what begins them, and how long their first sentence is.

use std::iter;

/// How no doc comment begins: with a word that stands for something that a reader of the comment alone cannot see.
const BEGINNINGS: [&str; 6] = ["The same", "Those", "That of", "Nothing", "None", "It"];

/// Fewest words of the first sentence of a public item's documentation.
const WORDS_MIN: usize = 4;

/// The doc comments of a source that do not stand alone, with their line numbers and the reason.
pub(crate) fn unclear(source: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(mark) = ["///", "//!"].into_iter().find(|mark| is_doc(lines[at], mark)) else {
            at += 1;
            continue;
        };
        let end = at + lines[at..].iter().take_while(|line| is_doc(line, mark)).count();
        let text = paragraph(&lines[at..end], mark);
        if let Some(beginning) = BEGINNINGS.into_iter().find(|beginning| begins_with(&text, beginning)) {
            found.push((at + 1, format!("begins with {beginning:?}: {text}")));
        }
        let item = lines[end..].iter().find(|line| !line.starts_with("#["));
        let is_public = mark == "///" && item.is_some_and(|item| item.starts_with("pub "));
        if is_public && first_sentence(&text).split_whitespace().count() < WORDS_MIN {
            found.push((at + 1, format!("has fewer than {WORDS_MIN} words: {text}")));
        }
        at = end;
    }
    found
}

fn is_doc(line: &str, mark: &str) -> bool {
    line.starts_with(mark) && !line.starts_with("////")
}

/// The first paragraph of a doc comment.
fn paragraph(lines: &[&str], mark: &str) -> String {
    let text = lines.iter().map(|line| line.trim_start_matches(mark).trim());
    text.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn begins_with(text: &str, beginning: &str) -> bool {
    text.strip_prefix(beginning).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1).chain(iter::once(text.len()));
    &text[..ends.min().unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_needs_its_neighbours_is_found() {
        let reasons = |source: &str| unclear(source).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(reasons("/// The same with a limit.\nfn a() {}"), [1]);
        assert_eq!(reasons("//! It is a module."), [1]);
        assert_eq!(reasons("/// Items of a list, in order.\npub fn a() {}"), [0; 0]);
        assert_eq!(reasons("\n/// A key.\n#[derive(Debug)]\npub struct Key;"), [2]);
        assert_eq!(reasons("/// A key.\nstruct Key;"), [0; 0], "an item of the module may be shorter");
        assert_eq!(reasons("/// Item counts of all nodes.\npub fn a() {}"), [0; 0], "`Item` is no `It`");
        assert_eq!(reasons("/// Reads a page.\n///\n/// It fails on errors of the disk.\nfn a() {}"), [0; 0]);
    }
}
