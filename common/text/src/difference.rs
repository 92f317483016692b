//! Shows people the difference of two texts: an excerpt of each text around the first difference, with the
//! words that only one excerpt has.
//!
//! White space separates words. Two words are equal if they look alike: case and punctuation count, but the
//! encoding of accents and soft hyphens do not. Text without spaces, as in Chinese or Japanese, is compared
//! character by character. Excerpts are short, so the comparison needs no time limit. Excerpts depend on the
//! two texts alone.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag};

/// Maximum number of characters of an excerpt.
const EXCERPT: usize = 600;
/// Maximum number of characters of an excerpt before the first difference.
const BEFORE: usize = 120;
/// Maximum length of a word, in bytes. A longer run without spaces is compared character by character.
const WORD_MAX: usize = 48;

/// An excerpt of one of two compared texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Runs of words that both excerpts have, and runs of words that this excerpt alone has, in turn.
    pub runs: Vec<WordRun>,
    /// Whether the text has more words before the excerpt.
    pub is_cut_before: bool,
    /// Whether the text has more words after the excerpt.
    pub is_cut_after: bool,
}

/// A run of words of an excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordRun {
    /// The words, each with the space behind it.
    pub text: String,
    /// Whether the other excerpt lacks these words.
    pub is_only_here: bool,
}

/// Returns the first words of a text, each with one space behind it: at most `bytes_max` bytes. The last word
/// may be cut off, and then has no space behind it.
#[must_use]
pub fn first_words(text: &str, bytes_max: usize) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        let room = bytes_max.saturating_sub(words.len() + 1);
        let end = (0..=room.min(word.len())).rev().find(|at| word.is_char_boundary(*at)).unwrap_or(0);
        words.push_str(&word[..end]);
        if word.len() > room {
            break;
        }
        words.push(' ');
    }
    words
}

/// Compares two texts that [`first_words`] has returned. Returns an excerpt of each text around the first
/// difference, and whether the texts differ. If they do not differ, the excerpts show the beginning of the
/// texts.
#[must_use]
pub fn compare(a: &str, b: &str) -> ([Excerpt; 2], bool) {
    let (a, b) = (units(a), units(b));
    let first = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let differ = first < a.len().max(b.len());
    let before = if differ { fit(a[..first].iter().rev(), BEFORE) } else { first };
    let from = first - before;
    let [(a, a_more), (b, b_more)] =
        [&a[from..], &b[from..]].map(|rest| rest.split_at(fit(rest.iter(), EXCERPT)));
    let (mut a_runs, mut b_runs) = (Vec::new(), Vec::new());
    let mut parts = parts(a, b);
    // Words at the end of one excerpt may follow after the end of the other excerpt, so nobody knows whether they differ.
    let last = parts.last().map(|part| part.tag());
    let is_unknown = last == Some(DiffTag::Delete) && !b_more.is_empty()
        || last == Some(DiffTag::Insert) && !a_more.is_empty();
    if is_unknown {
        parts.pop();
    }
    for part in parts {
        let is_only_here = part.tag() != DiffTag::Equal;
        push(&mut a_runs, &a[part.old_range()], is_only_here);
        push(&mut b_runs, &b[part.new_range()], is_only_here);
    }
    let piece = |runs, more: &[Unit<'_>]| Excerpt {
        runs,
        is_cut_before: from > 0,
        is_cut_after: is_unknown || !more.is_empty(),
    };
    ([piece(a_runs, a_more), piece(b_runs, b_more)], differ)
}

/// Returns the equal and different parts of two texts. The function names its algorithm because
/// [`similar::capture_diff_slices`] would compile all six.
fn parts(a: &[Unit<'_>], b: &[Unit<'_>]) -> Vec<DiffOp> {
    let mut parts = Compact::new(Replace::new(Capture::new()), a, b);
    let Ok(()) = myers::diff(&mut parts, a, 0..a.len(), b, 0..b.len());
    parts.into_inner().into_inner().into_ops()
}

/// A word with the space behind it, or a character. Two units are equal if they look alike.
struct Unit<'t> {
    text: &'t str,
    form: Cow<'t, str>,
}

impl<'t> Unit<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, form: crate::compose(text) }
    }
}

impl PartialEq for Unit<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.form == other.form
    }
}

impl Eq for Unit<'_> {}

impl Hash for Unit<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.form.hash(state);
    }
}

impl PartialOrd for Unit<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Unit<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.form.cmp(&other.form)
    }
}

/// Splits a text into words, each with the space behind it. A run that is too long for a word is split into
/// characters.
fn units(text: &str) -> Vec<Unit<'_>> {
    let mut units = Vec::new();
    for word in text.split_inclusive(' ') {
        if word.len() <= WORD_MAX {
            units.push(Unit::of(word));
        } else {
            units.extend(word.split_inclusive(|_| true).map(Unit::of));
        }
    }
    units
}

fn push(runs: &mut Vec<WordRun>, units: &[Unit<'_>], is_only_here: bool) {
    let texts = units.iter().map(|unit| unit.text);
    match runs.last_mut() {
        _ if units.is_empty() => {}
        Some(last) if last.is_only_here == is_only_here => last.text.extend(texts),
        _ => runs.push(WordRun { text: texts.collect(), is_only_here }),
    }
}

/// Number of leading units that have at most `characters` characters together.
fn fit<'w>(units: impl Iterator<Item = &'w Unit<'w>>, characters: usize) -> usize {
    let ends = units.scan(0, |sum, unit| {
        *sum += unit.text.chars().count();
        Some(*sum)
    });
    ends.take_while(|end| *end <= characters).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(a: &str, b: &str) -> ([Excerpt; 2], bool) {
        compare(&first_words(a, 1 << 20), &first_words(b, 1 << 20))
    }

    fn only_here(piece: &Excerpt) -> Vec<&str> {
        piece.runs.iter().filter(|run| run.is_only_here).map(|run| &*run.text).collect()
    }

    #[test]
    fn words_that_differ_are_marked() {
        let ([a, b], differ) = compared("one two  three\nfour", "one 2 three four five");
        assert!(differ);
        assert_eq!((only_here(&a), only_here(&b)), (vec!["two "], vec!["2 ", "five "]));
        let texts: Vec<_> = b.runs.iter().map(|run| &*run.text).collect();
        assert_eq!(texts, ["one ", "2 ", "three four ", "five "]);
        let ([a, b], differ) = compared("same  words", "same words");
        assert!(!differ && a == b && only_here(&a).is_empty() && a.runs[0].text == "same words ");
        let ([a, b], differ) = compared("", "words");
        assert!(differ && a.runs.is_empty() && only_here(&b) == ["words "]);
    }

    #[test]
    fn pieces_are_short_and_begin_near_the_first_difference() {
        let words =
            |from: usize, to: usize| (from..to).map(|n| format!("w{n:04}")).collect::<Vec<_>>().join(" ");
        let (a, b) = (words(0, 5_000), format!("{} other {}", words(0, 2_000), words(2_000, 5_000)));
        let ([a, b], differ) = compared(&a, &b);
        assert!(differ && only_here(&a).is_empty() && only_here(&b) == ["other "]);
        for piece in [&a, &b] {
            assert!(piece.is_cut_before && piece.is_cut_after);
            let characters: usize = piece.runs.iter().map(|run| run.text.chars().count()).sum();
            assert!((500..=EXCERPT).contains(&characters), "{characters}");
            assert!(piece.runs[0].text.starts_with(&words(1_980, 2_000)), "{piece:?}");
        }
    }

    #[test]
    fn text_without_spaces_is_compared_by_characters() {
        let text = "早上好世界".repeat(400);
        let other = text.replacen("早上好世界早", "早上好世界晚", 1);
        let ([a, b], differ) = compared(&text, &other);
        assert!(differ && a.is_cut_after && b.is_cut_after);
        assert_eq!((only_here(&a), only_here(&b)), (vec!["早"], vec!["晚"]));
    }

    #[test]
    fn what_looks_alike_is_not_marked() {
        let ([a, b], differ) = compared("Dvořák wrote co\u{ad}operas", "Dvor\u{30c}a\u{301}k wrote cooperas");
        assert!(!differ && only_here(&a).is_empty() && only_here(&b).is_empty());
        assert_eq!(b.runs[0].text, "Dvor\u{30c}a\u{301}k wrote cooperas ");
        let ([a, b], _) = compared("Opera, act 1", "opera act 1");
        assert_eq!((only_here(&a), only_here(&b)), (vec!["Opera, "], vec!["opera "]));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(first_words(" ab  cd ", 100), "ab cd ");
        for (bytes, cut) in [(6, "ab cd "), (5, "ab c"), (3, "ab "), (2, "a"), (0, "")] {
            assert_eq!(first_words("ab cd", bytes), cut);
        }
        assert_eq!(first_words("äää", 4), "ä");
    }
}
