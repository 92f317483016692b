//! Splits a text into tokens.

/// Calls `each` with every token of `text`, in order: maximal runs of alphanumeric characters in
/// lower case, where runs of a script written without spaces give overlapping pairs of characters.
pub fn each_token(text: &str, mut each: impl FnMut(&str)) {
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let chars: Vec<char> = run.chars().collect();
        for piece in chars.chunk_by(|a, b| unspaced_script(*a) == unspaced_script(*b)) {
            if unspaced_script(piece[0]).is_none() || piece.len() == 1 {
                each(&lower(piece));
            } else {
                piece.windows(2).for_each(|pair| each(&lower(pair)));
            }
        }
    }
}

fn lower(chars: &[char]) -> String {
    chars.iter().flat_map(|c| c.to_lowercase()).collect()
}

#[derive(PartialEq, Eq)]
enum Script {
    Han,
    Kana,
    Thai,
    Lao,
    Khmer,
    Myanmar,
}

/// The script of a letter, if this script is written without spaces between words; by Unicode block.
fn unspaced_script(c: char) -> Option<Script> {
    if !c.is_alphabetic() {
        return None;
    }
    match c {
        '\u{2e80}'..='\u{2fdf}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{3029}'
        | '\u{3038}'..='\u{303b}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Some(Script::Han),
        '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9d}' => Some(Script::Kana),
        '\u{0e00}'..='\u{0e7f}' => Some(Script::Thai),
        '\u{0e80}'..='\u{0eff}' => Some(Script::Lao),
        '\u{1780}'..='\u{17ff}' => Some(Script::Khmer),
        '\u{1000}'..='\u{109f}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}' => Some(Script::Myanmar),
        _ => None,
    }
}
