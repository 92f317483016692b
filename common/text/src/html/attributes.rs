//! Collects the few attributes of a tag that the reader of HTML needs. The buffers are reused, and each value
//! has a maximum length, so memory is bounded.

use doppel_model::PageUrl;

use crate::html::short_name::Name;
use crate::main_content::boilerplate::{self, ElementTraits};

/// Maximum length of an attribute value in bytes. A longer value counts as absent.
const VALUE_BYTES: usize = PageUrl::BYTES_MAX;

/// Attributes of a meta, link, base or img tag. If the main content is read, also the properties that the
/// attributes of any tag state.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    /// Whether the tokenizer is inside an attribute that is collected.
    pub(crate) open: bool,
    pub(crate) name: Name,
    pub(crate) value: Value,
    /// `http-equiv` of a meta, `rel` of a link.
    pub(crate) kind: Value,
    /// `content` of a meta, `href` of a link or base, `src` of an img. The latter is collected only for
    /// source tokens.
    pub(crate) target: Value,
    /// Properties that decide whether the element is boilerplate.
    pub(crate) traits: ElementTraits,
}

/// Value of an attribute. A value that is too long counts as absent.
#[derive(Debug, Default)]
pub(crate) struct Value {
    bytes: Vec<u8>,
    present: bool,
}

impl Value {
    pub(crate) fn begin(&mut self) {
        self.bytes.clear();
        self.present = true;
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.present &= self.bytes.len() + piece.len() <= VALUE_BYTES;
        if self.present {
            self.bytes.extend_from_slice(piece);
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    pub(crate) fn get(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|_| self.present)
    }
}

impl Attributes {
    pub(crate) fn clear(&mut self) {
        self.open = false;
        self.kind.present = false;
        self.target.present = false;
        self.traits = ElementTraits::default();
    }

    pub(crate) fn begin(&mut self) {
        self.open = true;
        self.name = Name::default();
        self.value.begin();
    }

    /// Stores the attribute that was read last, if there is one and a tag with the name `tag` needs it.
    pub(crate) fn end(&mut self, tag: &[u8]) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let field = match (tag, self.name.get()) {
            (b"meta", b"http-equiv") | (b"link", b"rel") => &mut self.kind,
            (b"meta", b"content") | (b"link" | b"base", b"href") | (b"img", b"src") => &mut self.target,
            (_, name) => {
                if boilerplate::is_read(name) {
                    self.traits.read(name, self.value.get());
                }
                return;
            }
        };
        if !field.present {
            std::mem::swap(field, &mut self.value);
        }
    }
}
