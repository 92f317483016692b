//! Finds scripts that set the location of their page in an unconditional statement, by the rule of
//! docs/reference/text.md.
//!
//! The code cuts out comments, replaces strings by numbers, and splits the rest into statements at brackets,
//! semicolons and line ends.

/// The new location that a script sets.
pub(crate) struct Location {
    pub(crate) reference: String,
    pub(crate) with_query: bool,
}

/// A script without comments and strings. `"N"` stands for the string with the number N.
#[derive(Default)]
struct Plain {
    code: String,
    strings: Vec<Option<String>>,
}

pub(crate) fn location(script: &str) -> Option<Location> {
    let plain = plain(script)?;
    let statements = statements(&plain.code)?;
    if plain.code.split(|c: char| !is_name(c)).any(|word| word == "throw") {
        return None;
    }
    let owners = ["location", "window", "self", "top", "parent", "globalThis", "document"];
    let declares = |statement: &String| {
        let words: Vec<&str> = statement.split_whitespace().collect();
        matches!(&*words, ["var" | "let" | "const" | "function" | "class", name, ..] if owners.iter().any(|owner| name.split(|c| !is_name(c)).next() == Some(owner)))
    };
    if statements.iter().any(declares) {
        return None;
    }
    statements.iter().rev().find_map(|statement| assignment(statement, &plain.strings))
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

fn plain(script: &str) -> Option<Plain> {
    let mut plain = Plain::default();
    let chars: Vec<char> = script.chars().collect();
    let starts = |at: usize, with: &str| chars[at..].iter().take(with.len()).collect::<String>() == with;
    let line_end =
        |from: usize| (from..chars.len()).find(|at| matches!(chars[*at], '\n' | '\r')).unwrap_or(chars.len());
    let mut at = 0;
    while at < chars.len() {
        let is_new_line = plain.code.rsplit('\n').next().unwrap_or_default().trim().is_empty();
        match chars[at] {
            '/' if starts(at, "//") => at = line_end(at),
            '<' if starts(at, "<!--") => at = line_end(at),
            '-' if is_new_line && starts(at, "-->") => at = line_end(at),
            '/' if starts(at, "/*") => {
                let end = (at + 2..chars.len()).find(|at| starts(*at, "*/"))?;
                plain.code.push(if chars[at..end].contains(&'\n') { '\n' } else { ' ' });
                at = end + 2;
            }
            '/' => {
                let before = plain.code.trim_end().chars().next_back();
                if before.is_some_and(|c| is_name(c) || c == '"') {
                    plain.code.push('/');
                    at += 1;
                } else if before.is_some_and(|c| ")]}".contains(c)) {
                    return None;
                } else {
                    // A regular expression counts as a number.
                    let (mut end, mut is_class) = (at + 1, false);
                    loop {
                        match chars.get(end)? {
                            '\\' => end += 1,
                            '\n' => return None,
                            '[' => is_class = true,
                            ']' => is_class = false,
                            '/' if !is_class => break,
                            _ => {}
                        }
                        end += 1;
                    }
                    plain.code.push('0');
                    at = end + 1;
                }
            }
            quote @ ('"' | '\'' | '`') => {
                let mut end = at + 1;
                while *chars.get(end)? != quote {
                    if quote != '`' && matches!(chars[end], '\n' | '\r') {
                        return None;
                    }
                    end += if chars[end] == '\\' { 2 } else { 1 };
                }
                let inner: String = chars[at + 1..end].iter().collect();
                let is_plain = quote != '`' || !inner.contains("${");
                plain.code.push_str(&format!("\"{}\"", plain.strings.len()));
                plain.strings.push(unescaped(&inner).filter(|_| is_plain));
                at = end + 1;
            }
            '\\' => return None,
            c => {
                plain.code.push(c);
                at += 1;
            }
        }
    }
    Some(plain)
}

fn unescaped(inner: &str) -> Option<String> {
    let mut value = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                kind @ ('x' | 'u') => {
                    let code: String = chars.by_ref().take(if kind == 'x' { 2 } else { 4 }).collect();
                    value.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?);
                }
                c if c.is_ascii_punctuation() => value.push(c),
                _ => return None,
            },
            c => value.push(c),
        }
    }
    Some(value)
}

/// The top-level statements that run unconditionally. Brackets keep their content.
fn statements(code: &str) -> Option<Vec<String>> {
    let mut open = Vec::new();
    let mut all = vec![String::new()];
    for c in code.chars() {
        let depth = open.len();
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(c) => return None,
            _ => {}
        }
        match c {
            ';' if depth == 0 => all.push(String::new()),
            '\n' | '\r' if depth == 0 => {
                let last = all.last_mut()?;
                let is_head =
                    ["if", "while", "for", "with"].iter().any(|word| last.trim_start().starts_with(word));
                let ends = last.trim_end().ends_with(|c: char| is_name(c) || "\")]}".contains(c));
                let is_operator = ["else", "do", "var", "let", "const", "return"]
                    .iter()
                    .any(|word| last.trim_end().ends_with(word));
                if ends && !is_operator && !(is_head && last.trim_end().ends_with(')')) {
                    all.push(String::new());
                } else {
                    last.push(' ');
                }
            }
            _ => all.last_mut()?.push(c),
        }
        if c == '}' && open.is_empty() {
            // The end of a block ends a statement, unless it belongs to an expression.
            let last = all.last()?.trim_start().to_owned();
            let begins = [
                "if", "for", "while", "function", "class", "async", "try", "catch", "finally", "else", "do",
                "switch", "with", "{",
            ];
            if begins.iter().any(|word| last.starts_with(word)) {
                all.push(String::new());
            }
        }
    }
    open.is_empty().then_some(all)
}

/// The location that a statement sets, if the statement does nothing else.
fn assignment(statement: &str, strings: &[Option<String>]) -> Option<Location> {
    let code: String = statement.split_whitespace().collect::<Vec<_>>().join("");
    let code = without_owners(&code).strip_prefix("location")?;
    let value = if let Some(value) = code.strip_prefix(".replace(").or_else(|| code.strip_prefix(".assign("))
    {
        value.strip_suffix(')')?
    } else {
        code.strip_prefix(".href").unwrap_or(code).strip_prefix('=')?
    };
    let (number, mut rest) = value.strip_prefix('"')?.split_once('"')?;
    let mut with_query = false;
    while let Some(next) = rest.strip_prefix('+') {
        let next = without_owners(next).strip_prefix("location.")?;
        rest = match next.strip_prefix("search") {
            Some(rest) if !with_query => {
                with_query = true;
                rest
            }
            _ => next.strip_prefix("hash")?,
        };
    }
    let reference = strings.get(number.parse::<usize>().ok()?)?.clone()?;
    rest.is_empty().then_some(Location { reference, with_query })
}

fn without_owners(mut code: &str) -> &str {
    let owners = ["window.", "self.", "top.", "parent.", "globalThis.", "document."];
    while let Some(rest) = owners.iter().find_map(|owner| code.strip_prefix(owner)) {
        code = rest;
    }
    code
}
