//! Resolves entities: character references, the entities of XML and HTML, and those that the document
//! declares.
//!
//! A few lines of nested entities could expand to gigabytes. A document therefore expands at most
//! [`BYTES_MAX`] bytes of replacement text, and at most [`NESTING_MAX`] entities inside each other. External
//! entities are empty: the module never fetches anything.

use std::collections::HashMap;
use std::rc::Rc;

use quick_xml::escape::resolve_html5_entity;

use super::XmlError;

/// Maximum number of bytes of replacement text that a document may expand.
const BYTES_MAX: usize = 1 << 20;

/// Maximum depth of entities inside each other.
pub(super) const NESTING_MAX: usize = 16;

/// Maximum number of entities that a document may declare. Later declarations are ignored.
const DECLARED_MAX: usize = 4_096;

/// Number of bytes of replacement text that the document may still expand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(BYTES_MAX)
    }
}

impl Budget {
    /// Charges a replacement text inside `nesting` other entities. Fails if a limit is exceeded.
    pub(super) fn take(&mut self, replacement: &str, nesting: usize) -> Result<(), XmlError> {
        // An empty replacement also takes time, so it costs a byte.
        self.0 = self.0.checked_sub(replacement.len() + 1).ok_or(XmlError)?;
        if nesting < NESTING_MAX { Ok(()) } else { Err(XmlError) }
    }
}

/// Replacement of an entity.
pub(super) enum Entity {
    /// Character reference, or a predefined entity of XML.
    Char(char),
    /// Predefined entity of HTML.
    Predefined(&'static str),
    /// Replacement text that the document declares. May contain markup and other entities.
    Declared(Rc<str>),
}

/// Entities that a document declares.
#[derive(Debug, Default)]
pub(super) struct Entities {
    declared: HashMap<Box<str>, Rc<str>>,
}

impl Entities {
    /// Reads the internal subset of a document type declaration. `declaration` is its text after
    /// `<!DOCTYPE`.
    pub(super) fn from_doctype(declaration: &str) -> Self {
        let mut entities = Self::default();
        let mut rest = internal_subset(declaration);
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
                // The subset ends here, or a parameter entity may change the meaning of the following
                // declarations.
                None
            };
            let Some(after) = after else { break };
            rest = after;
        }
        entities
    }

    /// Reads the declaration of an entity, without its keyword. Returns the text after the declaration.
    fn declare<'d>(&mut self, declaration: &'d str) -> Option<&'d str> {
        let after = after_declaration(declaration)?;
        let name = declaration.trim_start();
        // `%` begins a parameter entity.
        let (name, value) = name.split_at_checked(name.find(char::is_whitespace)?)?;
        if name != "%" && self.declared.len() < DECLARED_MAX && !self.declared.contains_key(name) {
            let value = value.trim_start();
            let replacement = match value.chars().next()? {
                quote @ ('"' | '\'') => resolve_character_references(value[1..].split(quote).next()?)?,
                // External entity.
                _ => String::new(),
            };
            self.declared.insert(name.into(), replacement.into());
        }
        Some(after)
    }

    /// Returns the replacement of `&name;`. Fails for an unknown name.
    pub(super) fn get(&self, name: &str) -> Result<Entity, XmlError> {
        if let Some(number) = name.strip_prefix('#') {
            return character(number).map(Entity::Char).ok_or(XmlError);
        }
        match name {
            "amp" => Ok(Entity::Char('&')),
            "lt" => Ok(Entity::Char('<')),
            "gt" => Ok(Entity::Char('>')),
            "quot" => Ok(Entity::Char('"')),
            "apos" => Ok(Entity::Char('\'')),
            _ => match self.declared.get(name) {
                Some(replacement) => Ok(Entity::Declared(replacement.clone())),
                None => resolve_html5_entity(name).map(Entity::Predefined).ok_or(XmlError),
            },
        }
    }

    /// Appends an attribute value with its entities expanded. `nesting` is the number of entities around the
    /// value.
    pub(super) fn expand_attribute(
        &self,
        value: &str,
        expanded: &mut String,
        budget: &mut Budget,
        nesting: usize,
    ) -> Result<(), XmlError> {
        let mut rest = value;
        while let Some((before, reference)) = rest.split_once('&') {
            expanded.push_str(before);
            let (name, after) = reference.split_once(';').ok_or(XmlError)?;
            match self.get(name)? {
                Entity::Char(c) => expanded.push(c),
                Entity::Predefined(text) => expanded.push_str(text),
                Entity::Declared(replacement) => {
                    budget.take(&replacement, nesting)?;
                    self.expand_attribute(&replacement, expanded, budget, nesting + 1)?;
                }
            }
            rest = after;
        }
        expanded.push_str(rest);
        Ok(())
    }
}

/// Returns the internal subset of a document type declaration, with the text after it. The subset begins
/// after the first bracket outside quotes.
fn internal_subset(declaration: &str) -> &str {
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

/// Returns the text after a declaration, which ends at the first `>` outside quotes.
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

/// Replaces the character references in the value of a declared entity (XML 1.0, section 4.4.5).
fn resolve_character_references(value: &str) -> Option<String> {
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

/// Returns the character with a number such as `65` or `x41`.
fn character(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    // `from_str_radix` would accept a sign.
    let code = digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, radix).ok())??;
    char::from_u32(code).filter(|c| *c != '\0')
}
