//! Splits a text into tokens, independently of the product.
//!
//! Unicode normalisation comes from another library than the product's. Letters, case and invisible
//! characters follow rules of this module.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Calls `each` with every token of `text`, in order. The text is first decomposed (NFKD), case-folded, freed
/// of invisible characters, and composed (NFC). A token is a maximal run of letters and digits with their
/// combining marks. A run in a script without spaces between words is cut into overlapping pairs of letters
/// with their marks. A single letter is then one token.
pub fn each_token(text: &str, mut each: impl FnMut(&str)) {
    for run in runs(&folded(text)) {
        for piece in run.chunk_by(|a, b| unspaced_script(a) == unspaced_script(b)) {
            if unspaced_script(&piece[0]).is_none() || piece.len() == 1 {
                each(&piece.concat());
            } else {
                piece.windows(2).for_each(|pair| each(&pair.concat()));
            }
        }
    }
}

/// Calls `each` with every token of code, in order. Tokens are maximal runs of letters and digits with their
/// combining marks, and every other visible character. Case is preserved.
pub fn each_code_token(text: &str, mut each: impl FnMut(&str)) {
    let text: String = text.chars().filter(|c| !is_invisible(*c)).nfc().collect();
    let mut word = String::new();
    for c in text.chars() {
        let is_word = is_letter(c) || is_combining_mark(c) && !word.is_empty();
        if !is_word && !word.is_empty() {
            each(&word);
            word.clear();
        }
        if is_word {
            word.push(c);
        } else if !c.is_whitespace() && !c.is_control() {
            each(c.encode_utf8(&mut [0; 4]));
        }
    }
    if !word.is_empty() {
        each(&word);
    }
}

/// Converts a line to the form in which lines are compared: NFKC without invisible characters, with one space
/// between words and none at the ends.
#[must_use]
pub fn line(line: &str) -> String {
    let visible = line.chars().filter(|c| !is_invisible(*c));
    visible.nfkc().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Splits a text into runs of letters and digits, each with its combining marks.
fn runs(text: &str) -> Vec<Vec<String>> {
    let mut runs: Vec<Vec<String>> = vec![Vec::new()];
    for c in text.chars() {
        let is_inside = runs.last().is_some_and(|run| !run.is_empty());
        let Some(run) = runs.last_mut() else { continue };
        match run.last_mut() {
            _ if is_letter(c) => run.push(c.into()),
            Some(letter) if is_combining_mark(c) => letter.push(c),
            _ if is_inside => runs.push(Vec::new()),
            _ => {}
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// Decomposes a text, folds its case, removes invisible characters, and composes it again.
fn folded(text: &str) -> String {
    let folded: String = text.nfkd().flat_map(|c| fold(c).chars().collect::<Vec<_>>()).collect();
    folded.chars().filter(|c| !is_invisible(*c) && *c != '\u{640}').nfc().collect()
}

/// Folds the case of a character completely: converts to upper and then to lower case, twice. Cherokee is
/// folded to upper case, because it had only upper case at first. The dotless i is a letter of its own.
fn fold(c: char) -> String {
    match c {
        '\u{131}' | '\u{13a0}'..='\u{13f5}' => c.into(),
        '\u{13f8}'..='\u{13fd}' | '\u{ab70}'..='\u{abbf}' => c.to_uppercase().collect(),
        _ => {
            let lower = |text: &str| -> String {
                text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
            };
            lower(&lower(&c.to_string()))
        }
    }
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && !is_combining_mark(c)
}

/// Whether a character is one of the default-ignorable characters of Unicode.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Script that is written without spaces between words.
#[derive(PartialEq, Eq)]
enum Script {
    Han,
    Kana,
    Thai,
    Lao,
    Khmer,
    Myanmar,
}

/// Script of a letter or digit with its marks, by Unicode block. `None` if the script has spaces between
/// words.
fn unspaced_script(letter: &str) -> Option<Script> {
    match letter.chars().next().filter(|c| is_letter(*c))? {
        '\u{2e80}'..='\u{2fdf}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{3029}'
        | '\u{3038}'..='\u{303c}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{16fe3}'
        | '\u{16ff2}'..='\u{16ff6}'
        | '\u{1d360}'..='\u{1d371}'
        | '\u{20000}'..='\u{3ffff}' => Some(Script::Han),
        '\u{3031}'..='\u{3035}'
        | '\u{3041}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{1aff0}'..='\u{1b16f}' => Some(Script::Kana),
        '\u{0e00}'..='\u{0e7f}' => Some(Script::Thai),
        '\u{0e80}'..='\u{0eff}' => Some(Script::Lao),
        '\u{1780}'..='\u{17ff}' => Some(Script::Khmer),
        '\u{1000}'..='\u{109f}'
        | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aa7f}'
        | '\u{116d0}'..='\u{116ff}' => Some(Script::Myanmar),
        _ => None,
    }
}
