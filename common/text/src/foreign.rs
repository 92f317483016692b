//! Where SVG and MathML content begins and ends, as far as the tokenizer must know: in it `<title>` and
//! `<style>` hold ordinary markup and CDATA sections are text (WHATWG HTML, 13.2.6.5, "the rules for
//! parsing tokens in foreign content").
//!
//! Only changes between HTML and foreign content are kept, so ordinary nesting costs nothing. Therefore the elements
//! around an unclosed `<svg>` are unknown, and the end tag of any HTML-only element is taken to close it. Two rules are
//! left out because they depend on attributes: a `font` that ends foreign content, and an `annotation-xml` that
//! contains HTML.

/// A change of content that is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// `svg`, with the number of them nested directly.
    Svg(u32),
    /// `math`, with the number of them nested directly.
    Math(u32),
    /// An element of foreign content that contains HTML.
    Html(&'static str),
}

/// The open changes between HTML and foreign content.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    open: Vec<Open>,
}

/// SVG elements that contain HTML.
const IN_SVG: [&str; 3] = ["foreignobject", "desc", "title"];

/// MathML elements that contain HTML.
const IN_MATH: [&str; 5] = ["mi", "mo", "mn", "ms", "mtext"];

impl Foreign {
    /// Whether no element of foreign content is open, and none that contains HTML inside one.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the current place is foreign content.
    pub(super) fn inside(&self) -> bool {
        matches!(self.open.last(), Some(Open::Svg(_) | Open::Math(_)))
    }

    /// The name of the element that begins the foreign content of the current place.
    pub(super) fn root(&self) -> Option<&'static [u8]> {
        match self.open.last() {
            Some(Open::Svg(_)) => Some(b"svg"),
            Some(Open::Math(_)) => Some(b"math"),
            Some(Open::Html(_)) | None => None,
        }
    }

    /// Takes a start tag. Returns whether the tag itself is foreign. This is the same as [`inside`](Self::inside)
    /// afterwards, except for a foreign element that contains HTML.
    pub(super) fn start(&mut self, name: &[u8], self_closing: bool) -> bool {
        let holds_html = |names: &[&'static str]| names.iter().find(|n| n.as_bytes() == name).copied();
        match self.open.last_mut() {
            None | Some(Open::Html(_)) => {
                match name {
                    b"svg" if !self_closing => self.open.push(Open::Svg(1)),
                    b"math" if !self_closing => self.open.push(Open::Math(1)),
                    _ => {}
                }
                return false;
            }
            Some(_) if ends_foreign(name) => {
                self.leave();
                return false;
            }
            Some(_) if self_closing => {}
            Some(Open::Svg(depth)) => match holds_html(&IN_SVG) {
                Some(element) => self.open.push(Open::Html(element)),
                None => *depth += u32::from(name == b"svg"),
            },
            Some(Open::Math(depth)) => match holds_html(&IN_MATH) {
                Some(element) => self.open.push(Open::Html(element)),
                None => *depth += u32::from(name == b"math"),
            },
        }
        true
    }

    /// Takes an end tag.
    pub(super) fn end(&mut self, name: &[u8]) {
        let closed = match self.open.last_mut() {
            None => return,
            Some(Open::Html(element)) => element.as_bytes() == name,
            Some(Open::Svg(depth)) if name == b"svg" => {
                *depth -= 1;
                *depth == 0
            }
            Some(Open::Math(depth)) if name == b"math" => {
                *depth -= 1;
                *depth == 0
            }
            Some(_) => {
                if ends_foreign(name) || is_html(name) {
                    self.leave();
                }
                return;
            }
        };
        if closed {
            self.open.pop();
        }
    }

    /// Leaves the foreign content up to the innermost HTML.
    fn leave(&mut self) {
        while self.inside() {
            self.open.pop();
        }
    }
}

/// The start tags that end foreign content.
#[rustfmt::skip]
fn ends_foreign(name: &[u8]) -> bool {
    matches!(
        name,
        b"b" | b"big" | b"blockquote" | b"body" | b"br" | b"center" | b"code" | b"dd" | b"div" | b"dl" | b"dt"
            | b"em" | b"embed" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"head" | b"hr" | b"i" | b"img"
            | b"li" | b"listing" | b"menu" | b"meta" | b"nobr" | b"ol" | b"p" | b"pre" | b"ruby" | b"s" | b"small"
            | b"span" | b"strong" | b"strike" | b"sub" | b"sup" | b"table" | b"tt" | b"u" | b"ul" | b"var"
    )
}

/// Other elements that SVG and MathML do not have.
#[rustfmt::skip]
fn is_html(name: &[u8]) -> bool {
    matches!(
        name,
        b"address" | b"article" | b"aside" | b"button" | b"details" | b"fieldset" | b"figure" | b"footer" | b"form"
            | b"header" | b"html" | b"iframe" | b"label" | b"main" | b"nav" | b"noframes" | b"section" | b"select"
            | b"tbody" | b"td" | b"th" | b"tr"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the place after some tags is foreign: `svg` opens, `/svg` closes.
    fn inside(tags: &str) -> bool {
        let mut foreign = Foreign::default();
        for tag in tags.split(' ') {
            match tag.strip_prefix('/') {
                Some(name) => foreign.end(name.as_bytes()),
                None => {
                    let name = tag.trim_end_matches('/');
                    foreign.start(name.as_bytes(), name != tag);
                }
            }
        }
        foreign.inside()
    }

    #[test]
    fn where_foreign_content_is() {
        for (tags, expected) in [
            ("div", false),
            ("svg", true),
            ("svg/", false),
            ("svg g", true),
            ("svg /svg", false),
            ("svg svg /svg", true),
            ("svg svg /svg /svg", false),
            ("svg title", false),
            ("svg title /title", true),
            ("svg foreignobject div /div /foreignobject", true),
            ("svg foreignobject svg", true),
            ("svg foreignobject svg /svg /foreignobject /svg", false),
            ("math mi", false),
            ("math mi /mi", true),
            ("math title", true),
            ("svg p", false),
            ("svg foreignobject svg p", false),
            ("svg foreignobject svg p /foreignobject", true),
            ("svg /p", false),
            ("svg /div", false),
            ("svg /iframe", false),
            ("svg /a", true),
            ("/svg", false),
        ] {
            assert_eq!(inside(tags), expected, "{tags}");
        }
    }
}
