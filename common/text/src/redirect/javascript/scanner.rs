//! Cuts a script into tokens: words, numbers, strings, templates, regular expressions and signs.
//!
//! The scanner has no parser. It therefore fails with [`UncertainScript`] if only the syntax could decide how
//! to read a character. An example is a slash after a closing bracket, which may divide or begin a regular
//! expression.

/// Error: the script cannot be read with certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UncertainScript;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Name or keyword.
    Word,
    Number,
    String,
    Template,
    Regex,
    /// Closing bracket.
    Closing,
    /// Any other operator or punctuation.
    Sign,
}

/// Token of a script with its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'s> {
    pub(super) kind: TokenKind,
    pub(super) text: &'s str,
    /// Whether a line ends between the previous token and this token.
    pub(super) follows_line_end: bool,
}

/// Signs of several characters that must not be split, because they contain another sign that matters, or end
/// an expression.
const SIGNS: [&str; 10] = ["===", "!==", "==", "!=", "=>", "<=", ">=", "++", "--", "?."];

/// Reads the tokens of a script one by one, with one token of lookahead.
#[derive(Debug, Clone)]
pub(super) struct Scanner<'s> {
    rest: &'s str,
    /// Whether no token of the script precedes the current position.
    is_at_start: bool,
    before: Option<Token<'s>>,
    peeked: Option<Option<Token<'s>>>,
}

impl<'s> Scanner<'s> {
    pub(super) fn new(script: &'s str) -> Self {
        Self { rest: script, is_at_start: true, before: None, peeked: None }
    }

    /// Returns the next token without consuming it.
    pub(super) fn peek(&mut self) -> Result<Option<Token<'s>>, UncertainScript> {
        if let Some(token) = self.peeked {
            return Ok(token);
        }
        let token = self.scan()?;
        self.peeked = Some(token);
        Ok(token)
    }

    /// Consumes the next token.
    pub(super) fn next(&mut self) -> Result<Option<Token<'s>>, UncertainScript> {
        let token = self.peek()?;
        self.peeked = None;
        Ok(token)
    }

    /// Consumes the next token if its text is `text`. Returns whether it is.
    pub(super) fn consume_if(&mut self, text: &str) -> Result<bool, UncertainScript> {
        let is_match = self.peek()?.is_some_and(|token| token.text == text);
        if is_match {
            self.peeked = None;
        }
        Ok(is_match)
    }

    /// Skips the bracket `opening`, which must come next, with everything up to its closing bracket.
    pub(super) fn skip_brackets_of(&mut self, opening: &str) -> Result<(), UncertainScript> {
        if self.peek()?.is_none_or(|token| token.text != opening) {
            return Err(UncertainScript);
        }
        self.skip_brackets()
    }

    /// Skips the bracket that comes next with everything up to its closing bracket. Any other token is
    /// skipped alone.
    pub(super) fn skip_brackets(&mut self) -> Result<(), UncertainScript> {
        // Closing brackets that are still expected.
        let mut open = Vec::new();
        loop {
            let token = self.next()?.ok_or(UncertainScript)?;
            match token.text {
                "(" => open.push(")"),
                "[" => open.push("]"),
                "{" => open.push("}"),
                ")" | "]" | "}" if open.pop() != Some(token.text) => return Err(UncertainScript),
                _ => {}
            }
            if open.is_empty() {
                return Ok(());
            }
        }
    }

    fn scan(&mut self) -> Result<Option<Token<'s>>, UncertainScript> {
        let follows_line_end = self.skip_blanks()?;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let (kind, length) = match first {
            '"' | '\'' => (TokenKind::String, self.string_length(first)?),
            '`' => (TokenKind::Template, self.template_length()?),
            '0'..='9' => (TokenKind::Number, self.length_while(|c| is_word_character(c) || c == '.')),
            '/' if self.is_division()? => (TokenKind::Sign, 1),
            '/' => (TokenKind::Regex, self.regex_length()?),
            ')' | ']' | '}' => (TokenKind::Closing, 1),
            // An escape could spell any name.
            '\\' => return Err(UncertainScript),
            _ if is_word_character(first) => (TokenKind::Word, self.length_while(is_word_character)),
            _ => {
                let sign = SIGNS.iter().find(|sign| self.rest.starts_with(**sign));
                (TokenKind::Sign, sign.map_or(first.len_utf8(), |sign| sign.len()))
            }
        };
        let (text, rest) = self.rest.split_at(length);
        let token = Token { kind, text, follows_line_end };
        if text == "throw" {
            // The statements after a `throw` may not be reached.
            return Err(UncertainScript);
        }
        (self.rest, self.is_at_start, self.before) = (rest, false, Some(token));
        Ok(Some(token))
    }

    /// Skips white space and comments. Returns whether a line ends in the skipped text. Fails if a comment
    /// has no end.
    fn skip_blanks(&mut self) -> Result<bool, UncertainScript> {
        let mut line_ends = false;
        loop {
            let trimmed = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            line_ends |= self.rest[..self.rest.len() - trimmed.len()].contains(is_line_end);
            self.rest = trimmed;
            let is_line_comment = trimmed.starts_with("//")
                || trimmed.starts_with("<!--")
                || (line_ends || self.is_at_start) && trimmed.starts_with("-->");
            if is_line_comment {
                self.rest = &trimmed[trimmed.find(is_line_end).unwrap_or(trimmed.len())..];
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                let (comment, rest) = comment.split_once("*/").ok_or(UncertainScript)?;
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

    /// Returns the length of a string, which must end on its line.
    fn string_length(&self, quote: char) -> Result<usize, UncertainScript> {
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '\n' | '\r' => return Err(UncertainScript),
                _ if c == quote => return Ok(at + 1),
                _ => {}
            }
        }
        Err(UncertainScript)
    }

    /// Returns the length of a template. Fails if a placeholder contains quotes, braces or slashes.
    fn template_length(&self) -> Result<usize, UncertainScript> {
        let mut chars = self.rest.char_indices().skip(1);
        let mut is_placeholder = false;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '{' if self.rest[..at].ends_with('$') && !is_placeholder => is_placeholder = true,
                '}' => is_placeholder = false,
                '{' | '`' | '"' | '\'' | '/' if is_placeholder => return Err(UncertainScript),
                '`' => return Ok(at + 1),
                _ => {}
            }
        }
        Err(UncertainScript)
    }

    /// Whether a slash at the current position divides, judged by the previous token.
    fn is_division(&self) -> Result<bool, UncertainScript> {
        let Some(before) = self.before else { return Ok(false) };
        match before.kind {
            TokenKind::Closing => Err(UncertainScript),
            TokenKind::Word => Ok(!is_operator_word(before.text)),
            TokenKind::Number | TokenKind::String | TokenKind::Template | TokenKind::Regex => Ok(true),
            TokenKind::Sign if matches!(before.text, "++" | "--") => Err(UncertainScript),
            TokenKind::Sign => Ok(false),
        }
    }

    /// Returns the length of a regular expression, including its flags.
    fn regex_length(&self) -> Result<usize, UncertainScript> {
        let mut chars = self.rest.char_indices().skip(1);
        let mut is_class = false;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if chars.next().is_none_or(|(_, c)| is_line_end(c)) => return Err(UncertainScript),
                '[' => is_class = true,
                ']' => is_class = false,
                '/' if !is_class => {
                    let flags = &self.rest[at + 1..];
                    return Ok(at + 1 + flags.find(|c| !is_word_character(c)).unwrap_or(flags.len()));
                }
                _ if is_line_end(c) => return Err(UncertainScript),
                _ => {}
            }
        }
        Err(UncertainScript)
    }
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Whether an expression follows the word, because it is an operator or begins a statement.
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
