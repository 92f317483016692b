//! The code of a source file that is part of the product: comments, literals and items under `#[cfg(test)]` are
//! blanked out, and every line keeps its number.

/// The file's text with everything blanked out that is no code of the product.
pub(crate) fn product(text: &str) -> String {
    without_tests(without_literals(text))
}

/// Blanks out comments and literals. The delimiters of a literal go too, so that none is left open.
fn without_literals(text: &str) -> Vec<char> {
    let mut chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        let end = end_of_literal(&chars, at);
        chars[at..end].iter_mut().for_each(blank);
        at = end.max(at + 1);
    }
    chars
}

fn blank(c: &mut char) {
    if *c != '\n' {
        *c = ' ';
    }
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none begins there.
fn end_of_literal(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    let in_word = at > 0 && is_word(chars[at - 1]);
    let length = match rest {
        ['/', '/', ..] => rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] => quoted(rest, '"'),
        ['\'', '\\', ..] | ['\'', _, '\'', ..] => quoted(rest, '\''),
        ['r', '"' | '#', ..] if !in_word => raw_string(rest),
        ['b' | 'c', 'r', '"' | '#', ..] if !in_word => 1 + raw_string(&rest[1..]),
        _ => 0,
    };
    at + length
}

/// The length of a block comment, which may contain others.
fn block_comment(chars: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < chars.len() {
        match chars[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a string or character that ends with `quote`.
fn quoted(chars: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    chars.len().min(at + 1)
}

/// The length of a raw string; 0 for a raw identifier.
fn raw_string(chars: &[char]) -> usize {
    let hashes = chars[1..].iter().take_while(|c| **c == '#').count();
    if chars.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let inside = &chars[2 + hashes..];
    let length = inside.windows(end.len()).position(|window| window == end).unwrap_or(inside.len());
    chars.len().min(2 + hashes + length + end.len())
}

/// Blanks out every item under `#[cfg(test)]`: up to its semicolon or the brace that closes it.
fn without_tests(mut chars: Vec<char>) -> String {
    let attribute: Vec<char> = "#[cfg(test)]".chars().collect();
    let mut at = 0;
    while at + attribute.len() <= chars.len() {
        if !chars[at..].starts_with(&attribute) {
            at += 1;
            continue;
        }
        let mut depth = 0;
        while at < chars.len() {
            let c = chars[at];
            blank(&mut chars[at]);
            at += 1;
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth -= 1,
                _ => {}
            }
            if depth == 0 && matches!(c, ';' | '}') {
                break;
            }
        }
    }
    chars.into_iter().collect()
}

/// Whether the character may be part of an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
