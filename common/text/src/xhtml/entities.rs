//! What entities stand for: characters by number, those of XML and of HTML, and those that the document declares itself.
//!
//! Expanding reads at most [`BYTES_MAX`] bytes of replacements in a document, and follows at most [`NESTING_MAX`] of them into each other,
//! so that a few lines of entities cannot become gigabytes. An external entity is empty, and nothing is fetched.

use std::collections::HashMap;
use std::rc::Rc;

use quick_xml::escape::resolve_html5_entity;

use super::Broken;

/// The most bytes of replacements that are read for a document.
const BYTES_MAX: usize = 1 << 20;

/// The most entities that are inside each other.
pub(super) const NESTING_MAX: usize = 16;

/// The most entities that a document declares. Later ones are unknown.
const DECLARED_MAX: usize = 4_096;

/// What is left of the bytes that may be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(BYTES_MAX)
    }
}

impl Budget {
    /// Takes a replacement that is inside so many others.
    pub(super) fn take(&mut self, replacement: &str, nesting: usize) -> Result<(), Broken> {
        // An empty replacement takes time, too.
        self.0 = self.0.checked_sub(replacement.len() + 1).ok_or(Broken)?;
        if nesting < NESTING_MAX { Ok(()) } else { Err(Broken) }
    }
}

/// What an entity stands for.
pub(super) enum Entity {
    Char(char),
    Known(&'static str),
    /// The replacement that the document declares. It may have markup and other entities.
    Declared(Rc<str>),
}

/// The entities that a document declares.
#[derive(Debug, Default)]
pub(super) struct Entities {
    declared: HashMap<Box<str>, Rc<str>>,
}

impl Entities {
    /// Reads the internal subset of a document type declaration, whose text stands behind `<!DOCTYPE`.
    pub(super) fn declared(declaration: &str) -> Self {
        let mut entities = Self::default();
        let mut rest = subset(declaration);
        while let Some(next) = rest.trim_start().chars().next() {
            rest = rest.trim_start();
            let after = if let Some(comment) = rest.strip_prefix("<!--") {
                comment.split_once("-->").map(|(_, after)| after)
            } else if let Some(instruction) = rest.strip_prefix("<?") {
                instruction.split_once("?>").map(|(_, after)| after)
            } else if let Some(entity) = rest.strip_prefix("<!ENTITY") {
                entities.declare(entity)
            } else if next == '<' {
                after_declaration(rest)
            } else {
                // The end of the subset, or a parameter entity, behind which declarations may mean something else.
                None
            };
            let Some(after) = after else { break };
            rest = after;
        }
        entities
    }

    /// Reads the declaration of an entity behind its keyword. Returns what is behind the declaration.
    fn declare<'d>(&mut self, declaration: &'d str) -> Option<&'d str> {
        let after = after_declaration(declaration)?;
        let name = declaration.trim_start();
        // `%` begins a parameter entity.
        let (name, value) = name.split_at_checked(name.find(char::is_whitespace)?)?;
        if name != "%" && self.declared.len() < DECLARED_MAX && !self.declared.contains_key(name) {
            let value = value.trim_start();
            let replacement = match value.chars().next()? {
                quote @ ('"' | '\'') => with_characters(value[1..].split(quote).next()?)?,
                // An external entity.
                _ => String::new(),
            };
            self.declared.insert(name.into(), replacement.into());
        }
        Some(after)
    }

    /// What `&name;` stands for.
    pub(super) fn get(&self, name: &str) -> Result<Entity, Broken> {
        if let Some(number) = name.strip_prefix('#') {
            return character(number).map(Entity::Char).ok_or(Broken);
        }
        match name {
            "amp" => Ok(Entity::Char('&')),
            "lt" => Ok(Entity::Char('<')),
            "gt" => Ok(Entity::Char('>')),
            "quot" => Ok(Entity::Char('"')),
            "apos" => Ok(Entity::Char('\'')),
            _ => match self.declared.get(name) {
                Some(replacement) => Ok(Entity::Declared(replacement.clone())),
                None => resolve_html5_entity(name).map(Entity::Known).ok_or(Broken),
            },
        }
    }

    /// Appends the value of an attribute, with what its entities stand for. The value is inside so many entities.
    pub(super) fn expand_into(
        &self,
        value: &str,
        expanded: &mut String,
        budget: &mut Budget,
        nesting: usize,
    ) -> Result<(), Broken> {
        let mut rest = value;
        while let Some((before, reference)) = rest.split_once('&') {
            expanded.push_str(before);
            let (name, after) = reference.split_once(';').ok_or(Broken)?;
            match self.get(name)? {
                Entity::Char(c) => expanded.push(c),
                Entity::Known(text) => expanded.push_str(text),
                Entity::Declared(replacement) => {
                    budget.take(&replacement, nesting)?;
                    self.expand_into(&replacement, expanded, budget, nesting + 1)?;
                }
            }
            rest = after;
        }
        expanded.push_str(rest);
        Ok(())
    }
}

/// The internal subset of a document type declaration: what is behind its first bracket outside of quotes.
fn subset(declaration: &str) -> &str {
    let mut quote = None;
    for (at, c) in declaration.char_indices() {
        match (quote, c) {
            (None, '[') => return &declaration[at + 1..],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    ""
}

/// What is behind the end of a declaration, which is no bracket in quotes.
fn after_declaration(declaration: &str) -> Option<&str> {
    let mut quote = None;
    for (at, byte) in declaration.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(&declaration[at + 1..]),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// A replacement with its characters by number in place, as its declaration is read (XML 1.0, section 4.4.5).
fn with_characters(value: &str) -> Option<String> {
    let mut read = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, reference)) = rest.split_once("&#") {
        read.push_str(before);
        let (number, after) = reference.split_once(';')?;
        read.push(character(number)?);
        rest = after;
    }
    read.push_str(rest);
    Some(read)
}

/// The character with a number such as `65` or `x41`.
fn character(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    // A sign is no digit.
    let code = digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, radix).ok())??;
    char::from_u32(code).filter(|c| *c != '\0')
}
