//! Cuts a script into tokens: words, numbers, strings, templates, regular expressions, and signs.
//!
//! Whether a slash divides or begins a regular expression depends on the syntax around it. Behind a closing bracket this scanner is unsure.

/// The script cannot be read for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unsure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    Number,
    String,
    Template,
    Regex,
    /// A closing bracket.
    Closing,
    /// Any other sign.
    Sign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'s> {
    pub(super) kind: Kind,
    pub(super) text: &'s str,
    /// Whether a line ends between the token before and this one.
    pub(super) follows_line_end: bool,
}

/// Signs of more than one character that matter: those that contain another sign that matters, or end an expression.
const SIGNS: [&str; 10] = ["===", "!==", "==", "!=", "=>", "<=", ">=", "++", "--", "?."];

/// Reads tokens one by one, with one of them in advance.
#[derive(Debug, Clone)]
pub(super) struct Scanner<'s> {
    rest: &'s str,
    /// Whether the place is the beginning of a line.
    line_begins: bool,
    before: Option<Token<'s>>,
    peeked: Option<Option<Token<'s>>>,
}

impl<'s> Scanner<'s> {
    pub(super) fn new(script: &'s str) -> Self {
        Self { rest: script, line_begins: true, before: None, peeked: None }
    }

    /// The next token, which stays the next one.
    pub(super) fn peek(&mut self) -> Result<Option<Token<'s>>, Unsure> {
        if let Some(token) = self.peeked {
            return Ok(token);
        }
        let token = self.scan()?;
        self.peeked = Some(token);
        Ok(token)
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Result<Option<Token<'s>>, Unsure> {
        let token = self.peek()?;
        self.peeked = None;
        Ok(token)
    }

    /// Takes the next token if it is this one.
    pub(super) fn takes(&mut self, text: &str) -> Result<bool, Unsure> {
        let is_it = self.peek()?.is_some_and(|token| token.text == text);
        if is_it {
            self.peeked = None;
        }
        Ok(is_it)
    }

    /// Skips an opening bracket, which must come next, and all up to its closing bracket.
    pub(super) fn skip_brackets_of(&mut self, opening: &str) -> Result<(), Unsure> {
        if self.peek()?.is_none_or(|token| token.text != opening) {
            return Err(Unsure);
        }
        self.skip_brackets()
    }

    /// Skips brackets with all that is in them.
    pub(super) fn skip_brackets(&mut self) -> Result<(), Unsure> {
        // The closing bracket of each open one.
        let mut open = Vec::new();
        loop {
            let token = self.next()?.ok_or(Unsure)?;
            match token.text {
                "(" => open.push(")"),
                "[" => open.push("]"),
                "{" => open.push("}"),
                ")" | "]" | "}" if open.pop() != Some(token.text) => return Err(Unsure),
                _ => {}
            }
            if open.is_empty() {
                return Ok(());
            }
        }
    }

    fn scan(&mut self) -> Result<Option<Token<'s>>, Unsure> {
        let follows_line_end = self.skip_blanks()?;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let (kind, length) = match first {
            '"' | '\'' => (Kind::String, self.quoted(first)?),
            '`' => (Kind::Template, self.template()?),
            '0'..='9' => (Kind::Number, self.length_while(|c| is_word(c) || c == '.')),
            '/' if self.divides()? => (Kind::Sign, 1),
            '/' => (Kind::Regex, self.regex()?),
            ')' | ']' | '}' => (Kind::Closing, 1),
            // An escape in a name hides what the name is.
            '\\' => return Err(Unsure),
            _ if is_word(first) => (Kind::Word, self.length_while(is_word)),
            _ => {
                let sign = SIGNS.iter().find(|sign| self.rest.starts_with(**sign));
                (Kind::Sign, sign.map_or(first.len_utf8(), |sign| sign.len()))
            }
        };
        let (text, rest) = self.rest.split_at(length);
        let token = Token { kind, text, follows_line_end };
        if text == "throw" {
            // Nothing says whether the statements behind it are reached.
            return Err(Unsure);
        }
        (self.rest, self.line_begins, self.before) = (rest, false, Some(token));
        Ok(Some(token))
    }

    /// Skips white space and comments. Returns whether a line ends in them.
    fn skip_blanks(&mut self) -> Result<bool, Unsure> {
        let mut line_ends = false;
        loop {
            let trimmed = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            line_ends |= self.rest[..self.rest.len() - trimmed.len()].contains(is_line_end);
            self.rest = trimmed;
            let is_line_comment = trimmed.starts_with("//")
                || trimmed.starts_with("<!--")
                || (line_ends || self.line_begins) && trimmed.starts_with("-->");
            if is_line_comment {
                self.rest = &trimmed[trimmed.find(is_line_end).unwrap_or(trimmed.len())..];
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                let (comment, rest) = comment.split_once("*/").ok_or(Unsure)?;
                line_ends |= comment.contains(is_line_end);
                self.rest = rest;
            } else {
                return Ok(line_ends);
            }
        }
    }

    fn length_while(&self, is_part: impl Fn(char) -> bool) -> usize {
        self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len())
    }

    /// The length of a string. It ends on its line.
    fn quoted(&self, quote: char) -> Result<usize, Unsure> {
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '\n' | '\r' => return Err(Unsure),
                _ if c == quote => return Ok(at + 1),
                _ => {}
            }
        }
        Err(Unsure)
    }

    /// The length of a template. A placeholder that contains quotes or brackets is uncertain.
    fn template(&self) -> Result<usize, Unsure> {
        let mut chars = self.rest.char_indices().skip(1);
        let mut is_placeholder = false;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '{' if self.rest[..at].ends_with('$') && !is_placeholder => is_placeholder = true,
                '}' => is_placeholder = false,
                '{' | '`' | '"' | '\'' | '/' if is_placeholder => return Err(Unsure),
                '`' => return Ok(at + 1),
                _ => {}
            }
        }
        Err(Unsure)
    }

    /// Whether a slash here divides, by the token before it.
    fn divides(&self) -> Result<bool, Unsure> {
        let Some(before) = self.before else { return Ok(false) };
        match before.kind {
            Kind::Closing => Err(Unsure),
            Kind::Word => Ok(!is_operator_word(before.text)),
            Kind::Number | Kind::String | Kind::Template | Kind::Regex => Ok(true),
            Kind::Sign if matches!(before.text, "++" | "--") => Err(Unsure),
            Kind::Sign => Ok(false),
        }
    }

    /// The length of a regular expression with its flags.
    fn regex(&self) -> Result<usize, Unsure> {
        let mut chars = self.rest.char_indices().skip(1);
        let mut is_class = false;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if chars.next().is_none_or(|(_, c)| is_line_end(c)) => return Err(Unsure),
                '[' => is_class = true,
                ']' => is_class = false,
                '/' if !is_class => {
                    let flags = &self.rest[at + 1..];
                    return Ok(at + 1 + flags.find(|c| !is_word(c)).unwrap_or(flags.len()));
                }
                _ if is_line_end(c) => return Err(Unsure),
                _ => {}
            }
        }
        Err(Unsure)
    }
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Whether a word is an operator or begins a statement, so that an expression follows it.
pub(super) fn is_operator_word(word: &str) -> bool {
    matches!(
        word,
        "await"
            | "case"
            | "delete"
            | "do"
            | "else"
            | "in"
            | "instanceof"
            | "new"
            | "of"
            | "return"
            | "throw"
            | "typeof"
            | "void"
            | "yield"
            | "var"
            | "let"
            | "const"
    )
}
