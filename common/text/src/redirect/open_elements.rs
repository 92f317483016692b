//! The stack of open elements, which decides whether text is shown and whether a refresh or script counts.
//!
//! HTML elements whose end tag may be missing end where HTML lets them end. The element that a tag ends is
//! searched only among the innermost elements, so that the cost of a tag does not depend on its depth.

use crate::html::short_name::Name;

/// Number of innermost elements among which a tag may end an element.
const SEARCH_DEPTH: usize = 256;

/// Open element with the visibility of its content.
#[derive(Debug, Clone, Copy)]
struct OpenElement {
    name: Name,
    visibility: Visibility,
}

/// Whether a reader sees the content at a position of the page, and whether a refresh or script there counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visibility {
    /// Whether a browser shows text and links.
    pub(super) is_shown: bool,
    /// Whether a browser follows a refresh and executes scripts.
    pub(super) is_live: bool,
}

/// Stack of the open elements, from the outermost to the innermost.
#[derive(Debug)]
pub(super) struct OpenElements {
    open: Vec<OpenElement>,
    /// Whether the page is XML, in which no end tag is missing.
    is_xml: bool,
}

/// Whether the start tag of the element ends a paragraph.
#[rustfmt::skip]
fn is_paragraph_end(name: &[u8]) -> bool {
    matches!(
        name,
        b"address" | b"article" | b"aside" | b"blockquote" | b"center" | b"dd" | b"details" | b"dialog" | b"dir" | b"div" | b"dl" | b"dt"
            | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"form" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"header"
            | b"hgroup" | b"hr" | b"li" | b"listing" | b"main" | b"menu" | b"nav" | b"ol" | b"p" | b"plaintext" | b"pre" | b"search"
            | b"section" | b"summary" | b"table" | b"ul" | b"xmp"
    )
}

/// Whether the element is a scope. With few exceptions, a tag inside a scope ends no element outside it.
fn is_scope(name: &[u8]) -> bool {
    matches!(
        name,
        b"applet"
            | b"button"
            | b"caption"
            | b"html"
            | b"marquee"
            | b"object"
            | b"table"
            | b"td"
            | b"template"
            | b"th"
    )
}

/// Whether the element is a formatting element, which HTML allows to be misnested.
fn is_formatting(name: &[u8]) -> bool {
    matches!(
        name,
        b"a" | b"b"
            | b"big"
            | b"code"
            | b"em"
            | b"font"
            | b"i"
            | b"nobr"
            | b"s"
            | b"small"
            | b"strike"
            | b"strong"
            | b"tt"
            | b"u"
    )
}

/// Whether the element is special without ending a paragraph. The end tag of an ordinary element ends no
/// special element around it.
#[rustfmt::skip]
fn is_special(name: &[u8]) -> bool {
    is_scope(name)
        || matches!(
            name,
            b"body" | b"frameset" | b"head" | b"iframe" | b"noembed" | b"noframes" | b"noscript" | b"script" | b"select" | b"style"
                | b"tbody" | b"textarea" | b"tfoot" | b"thead" | b"title" | b"tr"
        )
}

impl OpenElements {
    pub(super) fn new(is_xml: bool) -> Self {
        Self { open: Vec::new(), is_xml }
    }

    /// Returns the visibility at the current position.
    pub(super) fn visibility(&self) -> Visibility {
        self.open.last().map_or(Visibility { is_shown: true, is_live: true }, |open| open.visibility)
    }

    /// Takes a start tag. `is_hidden` says whether attributes hide the element.
    pub(super) fn start(&mut self, name: Name, is_hidden: bool) {
        if !self.is_xml {
            self.end_implied(name.get());
        }
        let around = self.visibility();
        let is_unread =
            matches!(name.get(), b"noscript" | b"template" | b"iframe" | b"noembed" | b"noframes");
        let is_shown = !is_hidden && !is_unread && !matches!(name.get(), b"title" | b"script" | b"style");
        let visibility =
            Visibility { is_shown: around.is_shown && is_shown, is_live: around.is_live && !is_unread };
        self.open.push(OpenElement { name, visibility });
    }

    /// Takes an end tag, which ends the innermost matching element. In HTML, certain elements are borders: an
    /// end tag inside a border ends no element outside it.
    pub(super) fn end(&mut self, name: Name) {
        if self.is_xml {
            return self.close(|open| open.name == name, |_| false);
        }
        let is_heading = is_heading(name.get());
        let is_match =
            |open: &OpenElement| open.name == name || is_heading && self::is_heading(open.name.get());
        let is_border = |open: &OpenElement| match name.get() {
            b"template" => false,
            b"table" | b"caption" | b"tbody" | b"thead" | b"tfoot" | b"tr" | b"td" | b"th" => {
                matches!(open.name.get(), b"table" | b"template")
            }
            b"li" if matches!(open.name.get(), b"ul" | b"ol") => true,
            name if is_paragraph_end(name) || is_formatting(name) || is_special(name) => {
                is_scope(open.name.get())
            }
            _ => is_paragraph_end(open.name.get()) || is_special(open.name.get()),
        };
        self.close(is_match, is_border);
    }

    /// Ends the elements that the start tag `name` ends.
    fn end_implied(&mut self, name: &[u8]) {
        if is_paragraph_end(name) {
            self.close(|open| open.name.get() == b"p", |open| is_scope(open.name.get()));
        }
        let same: &[&[u8]] = match name {
            b"li" => &[b"li"],
            b"dd" | b"dt" => &[b"dd", b"dt"],
            b"option" => &[b"option"],
            b"optgroup" => &[b"optgroup", b"option"],
            b"td" | b"th" => &[b"td", b"th"],
            b"tr" => &[b"tr"],
            b"tbody" | b"thead" | b"tfoot" => &[b"tbody", b"thead", b"tfoot"],
            b"a" | b"button" | b"nobr" => return self.close_same(name),
            _ => return,
        };
        let is_container = |open: &OpenElement| match name {
            b"li" => matches!(open.name.get(), b"ul" | b"ol" | b"menu" | b"dir") || is_scope(open.name.get()),
            b"dd" | b"dt" => open.name.get() == b"dl" || is_scope(open.name.get()),
            b"option" | b"optgroup" => open.name.get() == b"select",
            _ => matches!(open.name.get(), b"table" | b"template"),
        };
        self.close(|open| same.contains(&open.name.get()), is_container);
    }

    /// Ends an element that cannot contain another element of its name.
    fn close_same(&mut self, name: &[u8]) {
        self.close(
            |open| open.name.get() == name,
            |open| is_scope(open.name.get()) && open.name.get() != name,
        );
    }

    /// Ends the innermost matching element with everything in it, unless a border lies inside that element.
    fn close(&mut self, is_match: impl Fn(&OpenElement) -> bool, is_border: impl Fn(&OpenElement) -> bool) {
        let from = self.open.len().saturating_sub(SEARCH_DEPTH);
        for at in (from..self.open.len()).rev() {
            if is_match(&self.open[at]) {
                self.open.truncate(at);
                return;
            }
            if is_border(&self.open[at]) {
                return;
            }
        }
    }
}

fn is_heading(name: &[u8]) -> bool {
    matches!(name, [b'h', b'1'..=b'6'])
}
