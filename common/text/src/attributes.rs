//! The attributes of a tag that are read: few, into buffers that are reused, each value up to a limit.

use doppel_model::PageUrl;

use super::boilerplate::{self, Marks};
use super::short_name::Name;

/// The maximum length of an attribute value. A longer value counts as absent.
const VALUE_BYTES: usize = PageUrl::BYTES_MAX;

/// The attributes of a meta, link, base or img tag, and where the main content is asked for, what those of a tag say about it. No others are read.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    /// Whether an attribute is being read.
    pub(super) open: bool,
    pub(super) name: Name,
    pub(super) value: Value,
    /// `http-equiv` of a meta, `rel` of a link.
    pub(super) kind: Value,
    /// `content` of a meta, `href` of a link or base, `src` of an img, which is read for the tokens of a source alone.
    pub(super) target: Value,
    /// What is said about the main content.
    pub(super) marks: Marks,
}

/// The value of an attribute. A value that is too long counts as absent.
#[derive(Debug, Default)]
pub(super) struct Value {
    bytes: Vec<u8>,
    present: bool,
}

impl Value {
    pub(super) fn begin(&mut self) {
        self.bytes.clear();
        self.present = true;
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        self.present &= self.bytes.len() + piece.len() <= VALUE_BYTES;
        if self.present {
            self.bytes.extend_from_slice(piece);
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    pub(super) fn get(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|_| self.present)
    }
}

impl Attributes {
    pub(super) fn clear(&mut self) {
        self.open = false;
        self.kind.present = false;
        self.target.present = false;
        self.marks = Marks::default();
    }

    pub(super) fn begin(&mut self) {
        self.open = true;
        self.name = Name::default();
        self.value.begin();
    }

    /// Keeps the attribute that was read, if there is one and a tag of this name needs it.
    pub(super) fn end(&mut self, tag: &[u8]) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let field = match (tag, self.name.get()) {
            (b"meta", b"http-equiv") | (b"link", b"rel") => &mut self.kind,
            (b"meta", b"content") | (b"link" | b"base", b"href") | (b"img", b"src") => &mut self.target,
            (_, name) => {
                if boilerplate::is_read(name) {
                    self.marks.read(name, self.value.get());
                }
                return;
            }
        };
        if !field.present {
            std::mem::swap(field, &mut self.value);
        }
    }
}
