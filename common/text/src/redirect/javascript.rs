//! Finds the string to which the top-level statements of a script set the location of the page.
//!
//! The script is not parsed. It is only cut into tokens and top-level statements (ECMAScript, clauses 12 and
//! 14). A script that the module cannot read with certainty is no redirect.

mod scanner;

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use scanner::{Scanner, Token, TokenKind, UncertainScript};

static LOCATION: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("location"));

/// Location that a script sets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// String to which the script sets the location.
    pub(crate) reference: String,
    /// Whether the script appends the query of the page to the string.
    pub(crate) with_query: bool,
}

/// Whether a piece of a script may set the location to a string. This quick test decides whether a page with
/// a script is read again for redirects.
pub(crate) fn can_set_location(script: &[u8]) -> bool {
    LOCATION
        .find_iter(script)
        .any(|at| find_string_assignment(&script[at + LOCATION.needle().len()..]).is_some())
}

/// Returns `Some` if the text after `location` sets it to a string.
fn find_string_assignment(rest: &[u8]) -> Option<()> {
    let rest = rest.trim_ascii_start();
    let value = match rest.strip_prefix(b".").map(<[u8]>::trim_ascii_start) {
        None => rest.strip_prefix(b"=")?,
        Some(rest) => match rest.strip_prefix(b"href") {
            Some(rest) => rest.trim_ascii_start().strip_prefix(b"=")?,
            None => {
                let rest = rest.strip_prefix(b"replace").or_else(|| rest.strip_prefix(b"assign"))?;
                rest.trim_ascii_start().strip_prefix(b"(")?
            }
        },
    };
    matches!(value.trim_ascii_start().first(), Some(b'"' | b'\'' | b'`')).then_some(())
}

/// Returns the location that a script certainly sets. If several statements set the location, the last one
/// counts.
pub(crate) fn location(script: &str) -> Option<Location> {
    Statements { scanner: Scanner::new(script), last: None }.read().ok()?
}

/// Whether a name refers to the window or document of the script, which own `location`.
fn is_location_owner(name: &str) -> bool {
    matches!(name, "window" | "self" | "top" | "parent" | "globalThis" | "document")
}

/// Reader of top-level statements, with the last location that a statement has set.
struct Statements<'s> {
    scanner: Scanner<'s>,
    last: Option<Location>,
}

impl<'s> Statements<'s> {
    /// Reads all statements.
    fn read(mut self) -> Result<Option<Location>, UncertainScript> {
        // Whether a condition or loop controls the next statement.
        let mut is_conditional = false;
        while let Some(token) = self.scanner.peek()? {
            let was_conditional = std::mem::take(&mut is_conditional);
            match token.text {
                ";" => drop(self.scanner.next()?),
                "{" => self.scanner.skip_brackets()?,
                "if" | "while" | "with" | "switch" | "catch" => {
                    self.scanner.next()?;
                    self.scanner.skip_brackets_of("(")?;
                    is_conditional = true;
                }
                "for" => {
                    self.scanner.next()?;
                    if self.scanner.peek()?.is_some_and(|token| token.text == "await") {
                        self.scanner.next()?;
                    }
                    self.scanner.skip_brackets_of("(")?;
                    is_conditional = true;
                }
                "else" | "do" | "try" | "finally" => {
                    self.scanner.next()?;
                    is_conditional = true;
                }
                "function" | "class" | "async" => self.skip_declaration()?,
                "return" | "break" | "continue" | "import" | "export" => return Err(UncertainScript),
                _ => {
                    if let Some(location) = self.read_expression()?
                        && !was_conditional
                    {
                        self.last = Some(location);
                    }
                }
            }
        }
        Ok(self.last)
    }

    /// Skips the declaration of a function or class. Fails for other statements that begin with such a
    /// keyword.
    fn skip_declaration(&mut self) -> Result<(), UncertainScript> {
        let mut token = self.scanner.next()?;
        if token.is_some_and(|token| token.text == "async") {
            token = self.scanner.next()?;
        }
        let is_class = token.is_some_and(|token| token.text == "class");
        if !is_class && token.is_none_or(|token| token.text != "function") {
            return Err(UncertainScript);
        }
        let mut name = self.scanner.next()?.ok_or(UncertainScript)?;
        if name.text == "*" {
            name = self.scanner.next()?.ok_or(UncertainScript)?;
        }
        if name.kind != TokenKind::Word || is_location_owner(name.text) || name.text == "location" {
            return Err(UncertainScript);
        }
        if is_class {
            while self.scanner.peek()?.is_some_and(|token| token.text != "{") {
                self.scanner.next()?;
            }
        } else {
            self.scanner.skip_brackets_of("(")?;
        }
        self.scanner.skip_brackets_of("{")
    }

    /// Reads an expression statement or a declaration of variables. Returns the location that the statement
    /// sets.
    fn read_expression(&mut self) -> Result<Option<Location>, UncertainScript> {
        let from = self.scanner.clone();
        if let Some(location) = self.read_assignment()? {
            return Ok(Some(location));
        }
        self.scanner = from;
        let declares =
            self.scanner.peek()?.is_some_and(|token| matches!(token.text, "var" | "let" | "const"));
        let mut before: Option<Token<'s>> = None;
        while let Some(token) = self.scanner.peek()? {
            if before.is_some_and(|before| is_statement_end(before, token)) {
                break;
            }
            let follows_a_name_list =
                before.is_some_and(|before| matches!(before.text, "var" | "let" | "const" | ","));
            if declares && follows_a_name_list && (is_location_owner(token.text) || token.text == "location")
            {
                return Err(UncertainScript);
            }
            match token.text {
                "(" | "[" | "{" => {
                    self.scanner.skip_brackets()?;
                    before = Some(Token { kind: TokenKind::Closing, ..token });
                }
                ")" | "]" | "}" => return Err(UncertainScript),
                ";" => {
                    self.scanner.next()?;
                    break;
                }
                _ => before = self.scanner.next()?,
            }
        }
        Ok(None)
    }

    /// Reads the next statement if it sets the location to a string. Otherwise returns `None`, and has
    /// consumed an unknown number of tokens.
    fn read_assignment(&mut self) -> Result<Option<Location>, UncertainScript> {
        if !self.consume_location()? {
            return Ok(None);
        }
        let mut is_call = false;
        if self.scanner.consume_if(".")? {
            match self.scanner.next()?.map(|token| token.text) {
                Some("href") => {}
                Some("replace" | "assign") => is_call = true,
                _ => return Ok(None),
            }
        }
        if !self.scanner.consume_if(if is_call { "(" } else { "=" })? {
            return Ok(None);
        }
        let Some(reference) = self.scanner.next()?.and_then(string_value) else { return Ok(None) };
        let mut location = Location { reference: reference.into_owned(), with_query: false };
        while self.scanner.consume_if("+")? {
            if !self.consume_location()? || !self.scanner.consume_if(".")? {
                return Ok(None);
            }
            match self.scanner.next()?.map(|token| token.text) {
                Some("search") if !location.with_query => location.with_query = true,
                Some("hash") => {}
                _ => return Ok(None),
            }
        }
        if is_call && !self.scanner.consume_if(")")? {
            return Ok(None);
        }
        let Some(next) = self.scanner.peek()? else { return Ok(Some(location)) };
        if next.text == ";" {
            self.scanner.next()?;
            return Ok(Some(location));
        }
        let last = Token { kind: TokenKind::Closing, text: ")", follows_line_end: false };
        Ok(is_statement_end(last, next).then_some(location))
    }

    /// Consumes `location` with its owners, such as `window.location`. Returns whether `location` came next.
    fn consume_location(&mut self) -> Result<bool, UncertainScript> {
        loop {
            match self.scanner.next()?.map(|token| token.text) {
                Some("location") => return Ok(true),
                Some(owner) if is_location_owner(owner) => {}
                _ => return Ok(false),
            }
            if !self.scanner.consume_if(".")? {
                return Ok(false);
            }
        }
    }
}

/// Whether ECMAScript inserts a semicolon between two tokens, because the second is on another line and
/// cannot continue the expression.
fn is_statement_end(before: Token<'_>, next: Token<'_>) -> bool {
    let can_end = matches!(
        before.kind,
        TokenKind::Word
            | TokenKind::Number
            | TokenKind::String
            | TokenKind::Template
            | TokenKind::Regex
            | TokenKind::Closing
    ) && !scanner::is_operator_word(before.text);
    let can_begin = match next.kind {
        TokenKind::Word => !matches!(next.text, "in" | "instanceof" | "of"),
        TokenKind::Number | TokenKind::String => true,
        _ => matches!(next.text, "{" | "!" | "~" | "++" | "--"),
    };
    next.follows_line_end && can_end && can_begin
}

/// Returns the value of a string, or of a template without placeholders. `None` for other tokens, and for
/// escapes other than an escaped punctuation character or a character code.
fn string_value(token: Token<'_>) -> Option<Cow<'_, str>> {
    if !matches!(token.kind, TokenKind::String | TokenKind::Template) {
        return None;
    }
    let inner = token.text.get(1..token.text.len().checked_sub(1)?)?;
    if token.kind == TokenKind::Template && inner.contains("${") {
        return None;
    }
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, escaped)) = rest.split_once('\\') {
        value.push_str(before);
        let c = escaped.chars().next()?;
        let digits = match c {
            'x' => 2,
            'u' => 4,
            _ if c.is_ascii_punctuation() => 0,
            _ => return None,
        };
        if digits == 0 {
            value.push(c);
        } else {
            let code =
                escaped.get(1..=digits).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            value.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        }
        rest = &escaped[c.len_utf8() + digits..];
    }
    value.push_str(rest);
    Some(Cow::Owned(value))
}

#[cfg(test)]
mod tests;
