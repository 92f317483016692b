//! The elements around the current place, as far as they decide what is shown and what counts.
//!
//! Elements of HTML whose end tag may be missing end where HTML lets them end. A misplaced end tag is looked for in the innermost elements alone,
//! so that a tag costs the same however deep it is.

use crate::short_name::Name;

/// End tags and paragraphs are looked for in so many of the innermost elements.
const LOOKED_AT: usize = 256;

/// An open element.
#[derive(Debug, Clone, Copy)]
struct Open {
    name: Name,
    place: Place,
}

/// What counts at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Whether text and links are shown.
    pub(super) is_shown: bool,
    /// Whether a refresh and scripts count.
    pub(super) is_live: bool,
}

#[derive(Debug)]
pub(super) struct OpenElements {
    open: Vec<Open>,
    /// Whether end tags are never missing.
    is_xml: bool,
}

/// Start tags that end a paragraph.
#[rustfmt::skip]
fn ends_paragraph(name: &[u8]) -> bool {
    matches!(
        name,
        b"address" | b"article" | b"aside" | b"blockquote" | b"center" | b"dd" | b"details" | b"dialog" | b"dir" | b"div" | b"dl" | b"dt"
            | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"form" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"header"
            | b"hgroup" | b"hr" | b"li" | b"listing" | b"main" | b"menu" | b"nav" | b"ol" | b"p" | b"plaintext" | b"pre" | b"search"
            | b"section" | b"summary" | b"table" | b"ul" | b"xmp"
    )
}

/// Elements outside of which a start tag ends nothing.
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

/// Elements that the end tag of an element inside them may end, over which they are misnested.
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

/// Elements that are no paragraphs' ends, and that the end tags of ordinary elements do not end.
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

    /// The current place.
    pub(super) fn place(&self) -> Place {
        self.open.last().map_or(Place { is_shown: true, is_live: true }, |open| open.place)
    }

    /// Takes a start tag. `adds` says what its content loses.
    pub(super) fn start(&mut self, name: Name, is_hidden: bool) {
        if !self.is_xml {
            self.end_implied(name.get());
        }
        let around = self.place();
        let is_unread =
            matches!(name.get(), b"noscript" | b"template" | b"iframe" | b"noembed" | b"noframes");
        let is_shown = !is_hidden && !is_unread && !matches!(name.get(), b"title" | b"script" | b"style");
        let place = Place { is_shown: around.is_shown && is_shown, is_live: around.is_live && !is_unread };
        self.open.push(Open { name, place });
    }

    /// Takes an end tag. It ends nothing past an element that HTML does not let it end.
    pub(super) fn end(&mut self, name: Name) {
        if self.is_xml {
            return self.close(|open| open.name == name, |_| false);
        }
        let is_heading = is_heading(name.get());
        let is_it = |open: &Open| open.name == name || is_heading && self::is_heading(open.name.get());
        let is_border = |open: &Open| match name.get() {
            b"template" => false,
            b"table" | b"caption" | b"tbody" | b"thead" | b"tfoot" | b"tr" | b"td" | b"th" => {
                matches!(open.name.get(), b"table" | b"template")
            }
            b"li" if matches!(open.name.get(), b"ul" | b"ol") => true,
            name if ends_paragraph(name) || is_formatting(name) || is_special(name) => {
                is_scope(open.name.get())
            }
            _ => ends_paragraph(open.name.get()) || is_special(open.name.get()),
        };
        self.close(is_it, is_border);
    }

    /// Ends what a start tag ends.
    fn end_implied(&mut self, name: &[u8]) {
        if ends_paragraph(name) {
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
        let is_container = |open: &Open| match name {
            b"li" => matches!(open.name.get(), b"ul" | b"ol" | b"menu" | b"dir") || is_scope(open.name.get()),
            b"dd" | b"dt" => open.name.get() == b"dl" || is_scope(open.name.get()),
            b"option" | b"optgroup" => open.name.get() == b"select",
            _ => matches!(open.name.get(), b"table" | b"template"),
        };
        self.close(|open| same.contains(&open.name.get()), is_container);
    }

    /// Ends an element that cannot contain another one of its name.
    fn close_same(&mut self, name: &[u8]) {
        self.close(
            |open| open.name.get() == name,
            |open| is_scope(open.name.get()) && open.name.get() != name,
        );
    }

    /// Ends the innermost such element with all that is in it, unless a border is further in.
    fn close(&mut self, is_it: impl Fn(&Open) -> bool, is_border: impl Fn(&Open) -> bool) {
        let from = self.open.len().saturating_sub(LOOKED_AT);
        for at in (from..self.open.len()).rev() {
            if is_it(&self.open[at]) {
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
