//! Finds the string to which the top-level statements of a script set the location of the page.
//!
//! The script is not parsed, only cut into tokens and top-level statements (ECMAScript, clauses 12 and 14). What is not certain is no
//! redirect: any doubt about how the script is read gives none.

mod scanner;

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use scanner::{Kind, Scanner, Token, Unsure};

static LOCATION: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("location"));

/// A string with what a script appends to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Location {
    /// The string.
    pub(super) reference: String,
    /// Whether the query of the page follows it.
    pub(super) with_query: bool,
}

/// Whether a piece of a script may set the location to a string. This alone decides whether a page is looked at more closely.
pub(super) fn may_set_location(script: &[u8]) -> bool {
    LOCATION.find_iter(script).any(|at| is_set(&script[at + LOCATION.needle().len()..]).is_some())
}

/// Whether what stands behind `location` sets it to a string.
fn is_set(rest: &[u8]) -> Option<()> {
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

/// The location that a script sets for certain. If several statements set it, the last one counts.
pub(super) fn location(script: &str) -> Option<Location> {
    Statements { scanner: Scanner::new(script), last: None }.read().ok()?
}

/// The names under which a script reaches its window or document.
fn is_owner(name: &str) -> bool {
    matches!(name, "window" | "self" | "top" | "parent" | "globalThis" | "document")
}

struct Statements<'s> {
    scanner: Scanner<'s>,
    last: Option<Location>,
}

impl<'s> Statements<'s> {
    /// Reads all statements.
    fn read(mut self) -> Result<Option<Location>, Unsure> {
        // Whether something decides if the next statement is executed, or how often.
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
                "function" | "class" | "async" => self.declaration()?,
                "return" | "break" | "continue" | "import" | "export" => return Err(Unsure),
                _ => {
                    if let Some(location) = self.expression()?
                        && !was_conditional
                    {
                        self.last = Some(location);
                    }
                }
            }
        }
        Ok(self.last)
    }

    /// Skips a function or a class. Anything else that begins with such a word is uncertain.
    fn declaration(&mut self) -> Result<(), Unsure> {
        let mut token = self.scanner.next()?;
        if token.is_some_and(|token| token.text == "async") {
            token = self.scanner.next()?;
        }
        let is_class = token.is_some_and(|token| token.text == "class");
        if !is_class && token.is_none_or(|token| token.text != "function") {
            return Err(Unsure);
        }
        let mut name = self.scanner.next()?.ok_or(Unsure)?;
        if name.text == "*" {
            name = self.scanner.next()?.ok_or(Unsure)?;
        }
        if name.kind != Kind::Word || is_owner(name.text) || name.text == "location" {
            return Err(Unsure);
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

    /// Reads a statement that is an expression or declares variables. Returns the location that it sets.
    fn expression(&mut self) -> Result<Option<Location>, Unsure> {
        let from = self.scanner.clone();
        if let Some(location) = self.assignment()? {
            return Ok(Some(location));
        }
        self.scanner = from;
        let declares =
            self.scanner.peek()?.is_some_and(|token| matches!(token.text, "var" | "let" | "const"));
        let mut before: Option<Token<'s>> = None;
        while let Some(token) = self.scanner.peek()? {
            if before.is_some_and(|before| ends_between(before, token)) {
                break;
            }
            let follows_a_name_list =
                before.is_some_and(|before| matches!(before.text, "var" | "let" | "const" | ","));
            if declares && follows_a_name_list && (is_owner(token.text) || token.text == "location") {
                return Err(Unsure);
            }
            match token.text {
                "(" | "[" | "{" => {
                    self.scanner.skip_brackets()?;
                    before = Some(Token { kind: Kind::Closing, ..token });
                }
                ")" | "]" | "}" => return Err(Unsure),
                ";" => {
                    self.scanner.next()?;
                    break;
                }
                _ => before = self.scanner.next()?,
            }
        }
        Ok(None)
    }

    /// Reads a statement that sets the location to a string, if the next one does.
    fn assignment(&mut self) -> Result<Option<Location>, Unsure> {
        if !self.reads_location()? {
            return Ok(None);
        }
        let mut is_call = false;
        if self.scanner.takes(".")? {
            match self.scanner.next()?.map(|token| token.text) {
                Some("href") => {}
                Some("replace" | "assign") => is_call = true,
                _ => return Ok(None),
            }
        }
        if !self.scanner.takes(if is_call { "(" } else { "=" })? {
            return Ok(None);
        }
        let Some(reference) = self.scanner.next()?.and_then(string) else { return Ok(None) };
        let mut location = Location { reference: reference.into_owned(), with_query: false };
        while self.scanner.takes("+")? {
            if !self.reads_location()? || !self.scanner.takes(".")? {
                return Ok(None);
            }
            match self.scanner.next()?.map(|token| token.text) {
                Some("search") if !location.with_query => location.with_query = true,
                Some("hash") => {}
                _ => return Ok(None),
            }
        }
        if is_call && !self.scanner.takes(")")? {
            return Ok(None);
        }
        let Some(next) = self.scanner.peek()? else { return Ok(Some(location)) };
        if next.text == ";" {
            self.scanner.next()?;
            return Ok(Some(location));
        }
        let last = Token { kind: Kind::Closing, text: ")", follows_line_end: false };
        Ok(ends_between(last, next).then_some(location))
    }

    /// Whether `location` comes next, with or without its owners. Takes it.
    fn reads_location(&mut self) -> Result<bool, Unsure> {
        loop {
            match self.scanner.next()?.map(|token| token.text) {
                Some("location") => return Ok(true),
                Some(owner) if is_owner(owner) => {}
                _ => return Ok(false),
            }
            if !self.scanner.takes(".")? {
                return Ok(false);
            }
        }
    }
}

/// Whether a semicolon is inserted between two tokens, because the second is on another line and cannot continue the expression.
fn ends_between(before: Token<'_>, next: Token<'_>) -> bool {
    let can_end = matches!(
        before.kind,
        Kind::Word | Kind::Number | Kind::String | Kind::Template | Kind::Regex | Kind::Closing
    ) && !scanner::is_operator_word(before.text);
    let can_begin = match next.kind {
        Kind::Word => !matches!(next.text, "in" | "instanceof" | "of"),
        Kind::Number | Kind::String => true,
        _ => matches!(next.text, "{" | "!" | "~" | "++" | "--"),
    };
    next.follows_line_end && can_end && can_begin
}

/// The value of a string or of a template without placeholders. None if it has an escape other than of a character itself or by its number.
fn string(token: Token<'_>) -> Option<Cow<'_, str>> {
    if !matches!(token.kind, Kind::String | Kind::Template) {
        return None;
    }
    let inner = token.text.get(1..token.text.len().checked_sub(1)?)?;
    if token.kind == Kind::Template && inner.contains("${") {
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
