//! Decides which elements of a document belong to HTML, by the namespace prefixes that the open elements
//! declare (Namespaces in XML 1.0).

use super::XmlError;

/// Maximum number of prefixes that may be declared at the same time, because every name is looked up among
/// all of them.
const BINDINGS_MAX: usize = 256;

/// Vocabulary to which the namespace of a name belongs. MathML counts as another vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    Html,
    Svg,
    Other,
}

impl Vocabulary {
    fn of(uri: &[u8]) -> Option<Self> {
        match uri.trim_ascii() {
            b"http://www.w3.org/1999/xhtml" => Some(Self::Html),
            b"http://www.w3.org/2000/svg" => Some(Self::Svg),
            b"" => None,
            _ => Some(Self::Other),
        }
    }
}

/// Declaration of a prefix by an open element. The default namespace has an empty prefix.
#[derive(Debug)]
struct Binding {
    prefix: Box<[u8]>,
    /// `None` if the declaration removes the namespace of the prefix.
    vocabulary: Option<Vocabulary>,
    depth: usize,
}

/// Namespaces that the open elements declare.
#[derive(Debug)]
pub(super) struct Namespaces {
    bindings: Vec<Binding>,
    /// Number of open elements.
    depth: usize,
    /// Vocabulary of names without a namespace.
    default_vocabulary: Vocabulary,
}

impl Default for Namespaces {
    fn default() -> Self {
        Self { bindings: Vec::new(), depth: 0, default_vocabulary: Vocabulary::Other }
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
        let kept_bindings = self.bindings.iter().rposition(in_outer).map_or(0, |last| last + 1);
        self.bindings.truncate(kept_bindings);
        self.depth = self.depth.saturating_sub(1);
    }

    /// Takes an attribute of the innermost element, and records it if it declares a prefix. Fails if there
    /// are too many declarations.
    pub(super) fn declare(&mut self, attribute: &[u8], uri: &[u8]) -> Result<(), XmlError> {
        let prefix = match attribute.strip_prefix(b"xmlns") {
            Some(b"") => &b""[..],
            Some([b':', prefix @ ..]) => prefix,
            _ => return Ok(()),
        };
        if self.bindings.len() >= BINDINGS_MAX {
            return Err(XmlError);
        }
        self.bindings.push(Binding {
            prefix: prefix.into(),
            vocabulary: Vocabulary::of(uri),
            depth: self.depth,
        });
        Ok(())
    }

    /// Takes the name of the root. If it is `html`, names without a namespace belong to HTML.
    pub(super) fn set_root(&mut self, name: &[u8]) {
        if name.eq_ignore_ascii_case(b"html") {
            self.default_vocabulary = Vocabulary::Html;
        }
    }

    /// Returns the vocabulary of a name, and the name without its prefix.
    pub(super) fn resolve<'n>(&self, name: &'n [u8]) -> (Vocabulary, &'n [u8]) {
        let (prefix, local) = match memchr::memchr(b':', name) {
            Some(colon) => (&name[..colon], &name[colon + 1..]),
            None => (&b""[..], name),
        };
        match self.bindings.iter().rev().find(|binding| *binding.prefix == *prefix) {
            Some(Binding { vocabulary: Some(vocabulary), .. }) => (*vocabulary, local),
            _ if prefix.is_empty() => (self.default_vocabulary, local),
            // An undeclared prefix is part of the name.
            _ => (Vocabulary::Other, name),
        }
    }
}
