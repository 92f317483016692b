//! Reads XHTML and other XML, and calls an emitter like the HTML tokenizer would for the same elements.
//!
//! The emitter sees an HTML element by its local name. It sees any other element by a neutral name, so that
//! no rule of HTML applies to the element. An empty element also emits its end tag. Memory is bounded by the
//! document, and [`entities`] limits the expansion of entities.

mod entities;
mod namespaces;

use html5gum::Emitter;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

pub(super) use doppel_charset::begins_with_xml_declaration;
use entities::{Budget, Entities, Entity};
use namespaces::{Namespaces, Vocabulary};

/// Error: the document is not well-formed XML, or exceeds a limit. The caller reads the document as HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct XmlError;

/// Name by which the emitter sees an element that has no meaning in HTML.
const OTHER_ELEMENT: &[u8] = b"other";

/// Whether an HTML element has no content. The emitter then sees no end tag.
#[rustfmt::skip]
pub(super) fn is_void(name: &[u8]) -> bool {
    matches!(
        name,
        b"area" | b"base" | b"basefont" | b"bgsound" | b"br" | b"col" | b"embed" | b"frame" | b"hr" | b"img" | b"input" | b"link"
            | b"meta" | b"param" | b"source" | b"track" | b"wbr"
    )
}

/// Reads a document. Stops as soon as the emitter returns a token. Fails on HTML elements with upper-case
/// names, because the document is then HTML.
pub(super) fn read<E: Emitter>(text: &str, emitter: &mut E) -> Result<(), XmlError> {
    let mut document = Document {
        emitter,
        namespaces: Namespaces::default(),
        entities: Entities::default(),
        budget: Budget::default(),
        has_root: false,
        is_stopped: false,
        value: String::new(),
    };
    document.read(text, 0)?;
    if document.has_root || document.is_stopped { Ok(()) } else { Err(XmlError) }
}

/// State of the reader of a document.
struct Document<'e, E> {
    emitter: &'e mut E,
    namespaces: Namespaces,
    entities: Entities,
    budget: Budget,
    has_root: bool,
    is_stopped: bool,
    /// Buffer for attribute values that contain entities.
    value: String,
}

impl<E: Emitter> Document<'_, E> {
    /// Reads the document (`nesting` 0), or the replacement text of an entity inside `nesting - 1` other
    /// entities.
    fn read(&mut self, text: &str, nesting: usize) -> Result<(), XmlError> {
        let mut reader = Reader::from_str(text);
        let depth = self.namespaces.depth();
        let is_inside = |depth: usize| nesting > 0 || depth > 0;
        while !self.is_stopped {
            match reader.read_event().map_err(|_| XmlError)? {
                Event::Start(tag) => self.start(&tag, false, nesting)?,
                Event::Empty(tag) => self.start(&tag, true, nesting)?,
                Event::End(tag) => self.end(tag.name().into_inner()),
                Event::Text(text) => self.emit_text(&text, is_inside(self.namespaces.depth()))?,
                Event::CData(text) if is_inside(self.namespaces.depth()) => self.emitter.emit_string(&text),
                Event::GeneralRef(name) if is_inside(self.namespaces.depth()) => {
                    self.expand_reference(std::str::from_utf8(&name).map_err(|_| XmlError)?, nesting)?;
                }
                Event::CData(_) | Event::GeneralRef(_) => return Err(XmlError),
                Event::DocType(declaration) if nesting == 0 && !self.has_root => {
                    self.entities =
                        Entities::from_doctype(std::str::from_utf8(&declaration).map_err(|_| XmlError)?);
                }
                Event::DocType(_) => return Err(XmlError),
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
                Event::Eof => return if self.namespaces.depth() == depth { Ok(()) } else { Err(XmlError) },
            }
            self.is_stopped = self.emitter.pop_token().is_some();
        }
        Ok(())
    }

    fn emit_text(&mut self, text: &[u8], is_inside: bool) -> Result<(), XmlError> {
        if is_inside {
            self.emitter.emit_string(text);
            Ok(())
        } else if text.trim_ascii().is_empty() {
            Ok(())
        } else {
            Err(XmlError)
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>, is_empty: bool, nesting: usize) -> Result<(), XmlError> {
        let is_root = self.namespaces.depth() == 0 && nesting == 0;
        if is_root && std::mem::replace(&mut self.has_root, true) {
            return Err(XmlError);
        }
        let name = tag.name().into_inner();
        if !is_name(name) {
            return Err(XmlError);
        }
        self.namespaces.open();
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|_| XmlError)?;
            let name = attribute.key.into_inner();
            if !is_name(name) {
                return Err(XmlError);
            }
            self.namespaces.declare(name, &attribute.value)?;
        }
        if is_root {
            self.namespaces.set_root(name);
        }
        let name = self.html_name(name)?;
        self.emitter.init_start_tag();
        self.emitter.push_tag_name(name);
        if name != OTHER_ELEMENT {
            for attribute in tag.attributes().with_checks(false).flatten() {
                let value = std::str::from_utf8(&attribute.value).map_err(|_| XmlError)?;
                self.emitter.init_attribute();
                self.emitter.push_attribute_name(attribute.key.into_inner());
                if value.contains('&') {
                    self.value.clear();
                    self.entities.expand_attribute(value, &mut self.value, &mut self.budget, 0)?;
                    self.emitter.push_attribute_value(self.value.as_bytes());
                } else {
                    self.emitter.push_attribute_value(value.as_bytes());
                }
            }
        }
        // The returned tokenizer state matters only to the HTML tokenizer.
        let _ = self.emitter.emit_current_tag();
        if is_empty {
            self.end(tag.name().into_inner());
        }
        Ok(())
    }

    fn end(&mut self, name: &[u8]) {
        let name = self.html_name(name).unwrap_or(OTHER_ELEMENT);
        self.namespaces.close();
        if !is_void(name) {
            self.emitter.init_end_tag();
            self.emitter.push_tag_name(name);
            let _ = self.emitter.emit_current_tag();
        }
    }

    /// Returns the name by which the emitter sees an element.
    fn html_name<'n>(&self, name: &'n [u8]) -> Result<&'n [u8], XmlError> {
        let (vocabulary, local) = self.namespaces.resolve(name);
        match vocabulary {
            Vocabulary::Html if local.iter().any(u8::is_ascii_uppercase) => Err(XmlError),
            // SVG and MathML without their namespaces are unknown elements in XML.
            Vocabulary::Html if matches!(local, b"svg" | b"math") => Ok(OTHER_ELEMENT),
            Vocabulary::Html => Ok(local),
            // The emitter drops the text of both. A script of SVG must not look like a script of HTML,
            // because its attributes differ, for example `xlink:href`.
            Vocabulary::Svg if matches!(local, b"script" | b"style") => Ok(b"style"),
            Vocabulary::Svg | Vocabulary::Other => Ok(OTHER_ELEMENT),
        }
    }

    /// Emits the replacement of an entity reference in text.
    fn expand_reference(&mut self, name: &str, nesting: usize) -> Result<(), XmlError> {
        match self.entities.get(name)? {
            Entity::Char(c) => self.emitter.emit_string(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Entity::Predefined(text) => self.emitter.emit_string(text.as_bytes()),
            Entity::Declared(replacement) => {
                self.budget.take(&replacement, nesting)?;
                self.read(&replacement, nesting + 1)?;
            }
        }
        Ok(())
    }
}

/// Whether the bytes can be the name of an element or attribute. A quick test that rejects other markup which
/// was mistaken for a name.
fn is_name(name: &[u8]) -> bool {
    let is_part = |byte: &u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'-' | b'.' | b'_' | b':')
    };
    name.first().is_some_and(|first| !first.is_ascii_digit() && !matches!(first, b'-' | b'.'))
        && name.iter().all(is_part)
}

#[cfg(test)]
mod tests;
