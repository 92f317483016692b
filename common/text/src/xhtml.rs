//! XHTML and other XML: calls an emitter as the tokenizer of HTML would for the same elements.
//!
//! An element of HTML is called by its local name, any other one by a name that means nothing, so that no rule of HTML applies to it. An
//! empty element gives its end tag, too. Memory is bounded by the document, and the expansion of entities by [`entities`].

mod entities;
mod namespaces;

use html5gum::Emitter;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

pub(super) use doppel_charset::begins_with_xml_declaration;
use entities::{Budget, Entities, Entity};
use namespaces::{Namespaces, Space};

/// The document is not XML, or is past a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// The name of an element that has no meaning in HTML.
const OTHER: &[u8] = b"other";

/// Elements of HTML without content. They have no end tag for an emitter.
#[rustfmt::skip]
pub(super) fn is_void(name: &[u8]) -> bool {
    matches!(
        name,
        b"area" | b"base" | b"basefont" | b"bgsound" | b"br" | b"col" | b"embed" | b"frame" | b"hr" | b"img" | b"input" | b"link"
            | b"meta" | b"param" | b"source" | b"track" | b"wbr"
    )
}

/// Reads a document, or its beginning if the emitter gives a token, which ends the reading. Names of HTML elements in upper case show that the
/// document is HTML.
pub(super) fn read<E: Emitter>(text: &str, emitter: &mut E) -> Result<(), Broken> {
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
    if document.has_root || document.is_stopped { Ok(()) } else { Err(Broken) }
}

struct Document<'e, E> {
    emitter: &'e mut E,
    namespaces: Namespaces,
    entities: Entities,
    budget: Budget,
    has_root: bool,
    is_stopped: bool,
    /// The value of an attribute with entities.
    value: String,
}

impl<E: Emitter> Document<'_, E> {
    /// Reads the document, or the replacement of an entity that is nested so deep.
    fn read(&mut self, text: &str, nesting: usize) -> Result<(), Broken> {
        let mut reader = Reader::from_str(text);
        let depth = self.namespaces.depth();
        let is_inside = |depth: usize| nesting > 0 || depth > 0;
        while !self.is_stopped {
            match reader.read_event().map_err(|_| Broken)? {
                Event::Start(tag) => self.start(&tag, false, nesting)?,
                Event::Empty(tag) => self.start(&tag, true, nesting)?,
                Event::End(tag) => self.end(tag.name().into_inner()),
                Event::Text(text) => self.text(&text, is_inside(self.namespaces.depth()))?,
                Event::CData(text) if is_inside(self.namespaces.depth()) => self.emitter.emit_string(&text),
                Event::GeneralRef(name) if is_inside(self.namespaces.depth()) => {
                    self.reference(std::str::from_utf8(&name).map_err(|_| Broken)?, nesting)?;
                }
                Event::CData(_) | Event::GeneralRef(_) => return Err(Broken),
                Event::DocType(declaration) if nesting == 0 && !self.has_root => {
                    self.entities =
                        Entities::declared(std::str::from_utf8(&declaration).map_err(|_| Broken)?);
                }
                Event::DocType(_) => return Err(Broken),
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
                Event::Eof => return if self.namespaces.depth() == depth { Ok(()) } else { Err(Broken) },
            }
            self.is_stopped = self.emitter.pop_token().is_some();
        }
        Ok(())
    }

    fn text(&mut self, text: &[u8], is_inside: bool) -> Result<(), Broken> {
        if is_inside {
            self.emitter.emit_string(text);
            Ok(())
        } else if text.trim_ascii().is_empty() {
            Ok(())
        } else {
            Err(Broken)
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>, is_empty: bool, nesting: usize) -> Result<(), Broken> {
        let is_root = self.namespaces.depth() == 0 && nesting == 0;
        if is_root && std::mem::replace(&mut self.has_root, true) {
            return Err(Broken);
        }
        let name = tag.name().into_inner();
        if !is_name(name) {
            return Err(Broken);
        }
        self.namespaces.open();
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|_| Broken)?;
            let name = attribute.key.into_inner();
            if !is_name(name) {
                return Err(Broken);
            }
            self.namespaces.declare(name, &attribute.value)?;
        }
        if is_root {
            self.namespaces.set_root(name);
        }
        let name = self.meaning(name)?;
        self.emitter.init_start_tag();
        self.emitter.push_tag_name(name);
        if name != OTHER {
            for attribute in tag.attributes().with_checks(false).flatten() {
                let value = std::str::from_utf8(&attribute.value).map_err(|_| Broken)?;
                self.emitter.init_attribute();
                self.emitter.push_attribute_name(attribute.key.into_inner());
                if value.contains('&') {
                    self.value.clear();
                    self.entities.expand_into(value, &mut self.value, &mut self.budget, 0)?;
                    self.emitter.push_attribute_value(self.value.as_bytes());
                } else {
                    self.emitter.push_attribute_value(value.as_bytes());
                }
            }
        }
        // The state of the tokenizer that is asked for has no meaning here.
        let _ = self.emitter.emit_current_tag();
        if is_empty {
            self.end(tag.name().into_inner());
        }
        Ok(())
    }

    fn end(&mut self, name: &[u8]) {
        let name = self.meaning(name).unwrap_or(OTHER);
        self.namespaces.close();
        if !is_void(name) {
            self.emitter.init_end_tag();
            self.emitter.push_tag_name(name);
            let _ = self.emitter.emit_current_tag();
        }
    }

    /// The name by which an emitter knows an element.
    fn meaning<'n>(&self, name: &'n [u8]) -> Result<&'n [u8], Broken> {
        let (space, local) = self.namespaces.resolve(name);
        match space {
            Space::Html if local.iter().any(u8::is_ascii_uppercase) => Err(Broken),
            // Without their namespaces they have no rules of their own.
            Space::Html if matches!(local, b"svg" | b"math") => Ok(OTHER),
            Space::Html => Ok(local),
            // The text of either is dropped. A script of SVG is none of HTML: it has other attributes, such as `xlink:href`.
            Space::Svg if matches!(local, b"script" | b"style") => Ok(b"style"),
            Space::Svg | Space::Other => Ok(OTHER),
        }
    }

    /// Emits what stands for a reference in text.
    fn reference(&mut self, name: &str, nesting: usize) -> Result<(), Broken> {
        match self.entities.get(name)? {
            Entity::Char(c) => self.emitter.emit_string(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Entity::Known(text) => self.emitter.emit_string(text.as_bytes()),
            Entity::Declared(replacement) => {
                self.budget.take(&replacement, nesting)?;
                self.read(&replacement, nesting + 1)?;
            }
        }
        Ok(())
    }
}

/// Whether this can be the name of an element or attribute, as far as it matters here: no other markup was taken for one.
fn is_name(name: &[u8]) -> bool {
    let is_part = |byte: &u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'-' | b'.' | b'_' | b':')
    };
    name.first().is_some_and(|first| !first.is_ascii_digit() && !matches!(first, b'-' | b'.'))
        && name.iter().all(is_part)
}

#[cfg(test)]
mod tests;
