//! Tracks where *foreign content* (SVG and MathML) begins and ends. The tokenizer must know, because inside
//! foreign content `<title>` and `<style>` contain markup, and CDATA sections are text (WHATWG HTML,
//! 13.2.6.5, "the rules for parsing tokens in foreign content").
//!
//! The module stores only switches between HTML and foreign content, so ordinary nesting costs nothing. The
//! elements around an unclosed `<svg>` are therefore unknown, and the end tag of any HTML-only element closes
//! it. Two rules of WHATWG are missing because they depend on attributes: a `font` that ends foreign content,
//! and an `annotation-xml` that contains HTML.

/// Open element that switched between HTML and foreign content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentSwitch {
    /// `svg`, with the number of directly nested `svg` elements.
    Svg(u32),
    /// `math`, with the number of directly nested `math` elements.
    Math(u32),
    /// Element of foreign content whose own content is HTML.
    Html(&'static str),
}

/// Stack of the open switches between HTML and foreign content.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    open: Vec<ContentSwitch>,
}

/// SVG elements whose content is HTML.
const IN_SVG: [&str; 3] = ["foreignobject", "desc", "title"];

/// MathML elements whose content is HTML.
const IN_MATH: [&str; 5] = ["mi", "mo", "mn", "ms", "mtext"];

impl Foreign {
    /// Whether no foreign element is open, not even around the current HTML content.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the current position is in foreign content.
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self.open.last(), Some(ContentSwitch::Svg(_) | ContentSwitch::Math(_)))
    }

    /// Returns the name of the root of the current foreign content, or `None` in HTML content.
    pub(crate) fn root(&self) -> Option<&'static [u8]> {
        match self.open.last() {
            Some(ContentSwitch::Svg(_)) => Some(b"svg"),
            Some(ContentSwitch::Math(_)) => Some(b"math"),
            Some(ContentSwitch::Html(_)) | None => None,
        }
    }

    /// Updates the stack for a start tag. Returns whether the tag itself is foreign. The answer equals
    /// [`is_inside`](Self::is_inside) after the call, except for a root, and for a foreign element whose
    /// content is HTML.
    pub(crate) fn start(&mut self, name: &[u8], self_closing: bool) -> bool {
        let holds_html = |names: &[&'static str]| names.iter().find(|n| n.as_bytes() == name).copied();
        match self.open.last_mut() {
            None | Some(ContentSwitch::Html(_)) => {
                match name {
                    b"svg" if !self_closing => self.open.push(ContentSwitch::Svg(1)),
                    b"math" if !self_closing => self.open.push(ContentSwitch::Math(1)),
                    _ => {}
                }
                return false;
            }
            Some(_) if is_foreign_end(name) => {
                self.leave();
                return false;
            }
            Some(_) if self_closing => {}
            Some(ContentSwitch::Svg(depth)) => match holds_html(&IN_SVG) {
                Some(element) => self.open.push(ContentSwitch::Html(element)),
                None => *depth += u32::from(name == b"svg"),
            },
            Some(ContentSwitch::Math(depth)) => match holds_html(&IN_MATH) {
                Some(element) => self.open.push(ContentSwitch::Html(element)),
                None => *depth += u32::from(name == b"math"),
            },
        }
        true
    }

    /// Updates the stack for an end tag.
    pub(crate) fn end(&mut self, name: &[u8]) {
        let closed = match self.open.last_mut() {
            None => return,
            Some(ContentSwitch::Html(element)) => element.as_bytes() == name,
            Some(ContentSwitch::Svg(depth)) if name == b"svg" => {
                *depth -= 1;
                *depth == 0
            }
            Some(ContentSwitch::Math(depth)) if name == b"math" => {
                *depth -= 1;
                *depth == 0
            }
            Some(_) => {
                if is_foreign_end(name) || is_html(name) {
                    self.leave();
                }
                return;
            }
        };
        if closed {
            self.open.pop();
        }
    }

    /// Leaves foreign content up to the innermost HTML content.
    fn leave(&mut self) {
        while self.is_inside() {
            self.open.pop();
        }
    }
}

/// Whether the start tag of the element ends foreign content.
#[rustfmt::skip]
fn is_foreign_end(name: &[u8]) -> bool {
    matches!(
        name,
        b"b" | b"big" | b"blockquote" | b"body" | b"br" | b"center" | b"code" | b"dd" | b"div" | b"dl" | b"dt"
            | b"em" | b"embed" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"head" | b"hr" | b"i" | b"img"
            | b"li" | b"listing" | b"menu" | b"meta" | b"nobr" | b"ol" | b"p" | b"pre" | b"ruby" | b"s" | b"small"
            | b"span" | b"strong" | b"strike" | b"sub" | b"sup" | b"table" | b"tt" | b"u" | b"ul" | b"var"
    )
}

/// Whether the element exists only in HTML, so that its end tag inside foreign content ends the foreign
/// content. The elements of [`is_foreign_end`] are not listed again.
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

    /// Whether the position after the tags is foreign content. `svg` is a start tag, `/svg` an end tag,
    /// `svg/` is self-closed.
    fn is_foreign_after(tags: &str) -> bool {
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
        foreign.is_inside()
    }

    #[test]
    fn tags_begin_and_end_foreign_content() {
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
            assert_eq!(is_foreign_after(tags), expected, "{tags}");
        }
    }
}
