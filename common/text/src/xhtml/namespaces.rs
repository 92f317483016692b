//! Which elements of a document are those of HTML, by the prefixes that are bound where they stand (Namespaces in XML 1.0).

use super::Broken;

/// The most prefixes that are bound at one place, because each name is looked up among them.
const BINDINGS_MAX: usize = 256;

/// The vocabulary of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Html,
    Svg,
    Other,
}

impl Space {
    fn of(uri: &[u8]) -> Option<Self> {
        match uri.trim_ascii() {
            b"http://www.w3.org/1999/xhtml" => Some(Self::Html),
            b"http://www.w3.org/2000/svg" => Some(Self::Svg),
            b"" => None,
            _ => Some(Self::Other),
        }
    }
}

/// A prefix that is bound in an element. The prefix of names without one is empty.
#[derive(Debug)]
struct Binding {
    prefix: Box<[u8]>,
    /// None if the prefix is bound to no namespace.
    space: Option<Space>,
    depth: usize,
}

/// The bindings of the open elements.
#[derive(Debug)]
pub(super) struct Namespaces {
    bindings: Vec<Binding>,
    /// The number of open elements.
    depth: usize,
    /// The vocabulary of names without a namespace.
    without: Space,
}

impl Default for Namespaces {
    fn default() -> Self {
        Self { bindings: Vec::new(), depth: 0, without: Space::Other }
    }
}

impl Namespaces {
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn open(&mut self) {
        self.depth += 1;
    }

    pub(super) fn close(&mut self) {
        let depth = self.depth;
        let in_outer = |binding: &Binding| binding.depth < depth;
        let kept = self.bindings.iter().rposition(in_outer).map_or(0, |last| last + 1);
        self.bindings.truncate(kept);
        self.depth = self.depth.saturating_sub(1);
    }

    /// Takes an attribute of the element that was opened last, if it binds a prefix.
    pub(super) fn declare(&mut self, attribute: &[u8], uri: &[u8]) -> Result<(), Broken> {
        let prefix = match attribute.strip_prefix(b"xmlns") {
            Some(b"") => &b""[..],
            Some([b':', prefix @ ..]) => prefix,
            _ => return Ok(()),
        };
        if self.bindings.len() >= BINDINGS_MAX {
            return Err(Broken);
        }
        self.bindings.push(Binding { prefix: prefix.into(), space: Space::of(uri), depth: self.depth });
        Ok(())
    }

    /// Names the root, which says what names without a namespace mean.
    pub(super) fn set_root(&mut self, name: &[u8]) {
        if name.eq_ignore_ascii_case(b"html") {
            self.without = Space::Html;
        }
    }

    /// The vocabulary of a name, and the name without its prefix.
    pub(super) fn resolve<'n>(&self, name: &'n [u8]) -> (Space, &'n [u8]) {
        let (prefix, local) = match memchr::memchr(b':', name) {
            Some(colon) => (&name[..colon], &name[colon + 1..]),
            None => (&b""[..], name),
        };
        match self.bindings.iter().rev().find(|binding| *binding.prefix == *prefix) {
            Some(Binding { space: Some(space), .. }) => (*space, local),
            _ if prefix.is_empty() => (self.without, local),
            // A prefix that is not bound is part of the name.
            _ => (Space::Other, name),
        }
    }
}
