//! Text to tokens, as words.

use unicode_script::{Script, UnicodeScript};

/// Scripts whose words are not separated: each is cut by itself. Kana is both of its alphabets.
const UNSPACED: [&[Script]; 6] = [
    &[Script::Han],
    &[Script::Hiragana, Script::Katakana],
    &[Script::Thai],
    &[Script::Lao],
    &[Script::Khmer],
    &[Script::Myanmar],
];

/// Calls `each` with every token of `text`, in order: maximal runs of alphanumeric characters in
/// lower case, where runs of a script without spaces give overlapping pairs of characters.
pub(crate) fn each_token(text: &str, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut lower = |chars: &mut dyn Iterator<Item = char>| {
        word.clear();
        word.extend(chars.flat_map(char::to_lowercase));
        each(&word);
    };
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        if run.is_ascii() {
            lower(&mut run.chars());
            continue;
        }
        let chars: Vec<char> = run.chars().collect();
        for piece in chars.chunk_by(|a, b| unspaced(*a) == unspaced(*b)) {
            if piece.len() == 1 || unspaced(piece[0]).is_none() {
                lower(&mut piece.iter().copied());
            } else {
                piece.windows(2).for_each(|pair| lower(&mut pair.iter().copied()));
            }
        }
    }
}

/// Which of the scripts without spaces a character belongs to, if any, by its script extensions.
fn unspaced(c: char) -> Option<usize> {
    let scripts = c.script_extension();
    if c < '\u{e00}' || scripts.is_common() || scripts.is_inherited() {
        return None;
    }
    UNSPACED.iter().position(|class| class.iter().any(|script| scripts.contains_script(*script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        each_token(text, |token| tokens.push(token.to_owned()));
        tokens
    }

    #[test]
    fn words_and_pairs_of_characters() {
        assert_eq!(tokens("The CAT's 2nd  hat"), ["the", "cat", "s", "2nd", "hat"]);
        assert_eq!(tokens("Äpfel, ÉTÉ"), ["äpfel", "été"]);
        assert_eq!(tokens("漢字カナa 字"), ["漢字", "カナ", "a", "字"]);
        assert_eq!(tokens("東京都"), ["東京", "京都"]);
        assert_eq!(tokens(" .. "), Vec::<String>::new());
    }
}
