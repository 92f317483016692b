//! Which text of a page is its main content, found while the page is read.
//!
//! Elements that are [boilerplate](super::boilerplate) are left out with all that is in them. `main`, or an element with its role, is
//! never left out, whatever is around it. The main content is the first of these that has at least so many tokens:
//!
//! 1. what stands in `main`;
//! 2. what is on the page, without its title;
//! 3. that with the title.
//!
//! Where none has, the caller takes the whole page: then the rules have found the content itself to be boilerplate, or there is
//! next to none.
//!
//! There is no tree: of what is open, only the element that is left out and the main element are known, by name and depth. An element
//! whose end tag may be missing ends where HTML lets it end. Where the page, or the main element around it, ends before an element that
//! is left out, nothing says where it ends: then its text is not left out. Memory is bounded by the number of tags, and a tag costs the
//! same however deep it is.

use super::Rule;
use super::boilerplate::Marks;
use super::short_name::Name;

/// Where text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Title,
    LeftOut(Rule),
    /// On the page, outside of `main`.
    Page,
    Main,
}

/// What is taken for the main content, in the order in which it is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// What stands in `main`.
    Main,
    /// What is on the page, without its title.
    Page,
    /// That with the title.
    PageAndTitle,
    /// The whole page: nothing is left out.
    Whole,
}

impl Part {
    pub(super) const ALL: [Self; 3] = [Self::Main, Self::Page, Self::PageAndTitle];

    /// Its name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Page => "page",
            Self::PageAndTitle => "page-and-title",
            Self::Whole => "whole",
        }
    }

    /// The rule by which it is without what stands in a place; none where it has that.
    pub(super) fn leaves_out(self, place: Place) -> Option<Rule> {
        match (place, self) {
            (_, Self::Whole) | (Place::Main, _) => None,
            (Place::LeftOut(rule), _) => Some(rule),
            (Place::Page, Self::Main) => Some(Rule::OutsideMain),
            (Place::Title, Self::Main | Self::Page) => Some(Rule::Title),
            (Place::Page | Place::Title, _) => None,
        }
    }
}

/// An element that ends with the end tag that belongs to it.
#[derive(Debug, Clone, Copy)]
struct Element {
    name: Name,
    depth: u32,
}

/// An element that is left out.
#[derive(Debug, Clone, Copy)]
enum LeftOut {
    Element(Element),
    /// One whose end tag may be missing, and how deep in elements of its container the place is.
    Implied(&'static Implied, u32),
}

/// Where an element ends whose end tag may be missing.
#[derive(Debug)]
struct Implied {
    /// Names of such elements.
    names: &'static [&'static str],
    /// Start tags that end it.
    starts: &'static [&'static str],
    /// End tags that end it.
    ends: &'static [&'static str],
    /// Elements in which other elements of these names are not its concern. Their end tag ends it where they are around it.
    containers: &'static [&'static str],
    /// Whether the page may end without any end tag behind it.
    ends_with_page: bool,
}

const ROW_GROUPS: &[&str] = &["tbody", "thead", "tfoot"];

/// What a paragraph cannot contain, so that it ends where one begins, and where one around it ends. Its own tags are among them.
#[rustfmt::skip]
const BLOCKS: &[&str] = &[
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "li", "listing",
    "main", "menu", "nav", "ol", "p", "plaintext", "pre", "search", "section", "summary", "table", "tbody", "td", "tfoot", "th",
    "thead", "tr", "ul", "xmp",
];

const IMPLIED: [Implied; 6] = [
    Implied {
        names: &["td", "th"],
        starts: &["td", "th", "tr", "tbody", "thead", "tfoot", "caption", "colgroup"],
        ends: &["td", "th", "tr", "tbody", "thead", "tfoot"],
        containers: &["table"],
        ends_with_page: false,
    },
    Implied {
        names: &["tr"],
        starts: &["tr", "tbody", "thead", "tfoot", "caption", "colgroup"],
        ends: &["tr", "tbody", "thead", "tfoot"],
        containers: &["table"],
        ends_with_page: false,
    },
    Implied {
        names: ROW_GROUPS,
        starts: &["tbody", "thead", "tfoot", "caption", "colgroup"],
        ends: ROW_GROUPS,
        containers: &["table"],
        ends_with_page: false,
    },
    Implied {
        names: &["li"],
        starts: &["li"],
        ends: &["li"],
        containers: &["ul", "ol", "menu"],
        ends_with_page: false,
    },
    Implied {
        names: &["dt", "dd"],
        starts: &["dt", "dd"],
        ends: &["dt", "dd"],
        containers: &["dl"],
        ends_with_page: false,
    },
    Implied {
        names: &["p"],
        starts: BLOCKS,
        ends: BLOCKS,
        containers: &["applet", "button", "marquee", "object", "template"],
        ends_with_page: true,
    },
];

/// Elements without content.
fn is_void(name: &[u8]) -> bool {
    matches!(
        name,
        b"area"
            | b"base"
            | b"br"
            | b"col"
            | b"embed"
            | b"hr"
            | b"img"
            | b"input"
            | b"link"
            | b"meta"
            | b"param"
            | b"source"
            | b"track"
            | b"wbr"
    )
}

/// Elements that end where another one of their name begins.
fn is_never_nested(name: &[u8]) -> bool {
    matches!(name, b"a" | b"button" | b"nobr" | b"select")
}

fn is_among(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|known| known.as_bytes() == name)
}

impl LeftOut {
    fn of(name: Name) -> Self {
        match IMPLIED.iter().find(|implied| is_among(name.get(), implied.names)) {
            Some(implied) => Self::Implied(implied, 0),
            None => Self::Element(Element { name, depth: 1 }),
        }
    }

    /// Whether it ends before a start tag.
    fn ends_at_start(&mut self, name: Name) -> bool {
        match self {
            Self::Element(element) if element.name != name => false,
            Self::Element(_) if is_never_nested(name.get()) => true,
            Self::Element(element) => {
                // A form in a form is ignored.
                element.depth += u32::from(name.get() != b"form");
                false
            }
            Self::Implied(implied, depth) => {
                let is_end = *depth == 0 && is_among(name.get(), implied.starts);
                *depth += u32::from(!is_end && is_among(name.get(), implied.containers));
                is_end
            }
        }
    }

    /// Whether it ends with an end tag.
    fn ends_at_end(&mut self, name: Name) -> bool {
        match self {
            Self::Element(element) => element.ends(name),
            Self::Implied(implied, depth) if is_among(name.get(), implied.containers) => {
                let is_end = *depth == 0;
                *depth = depth.saturating_sub(1);
                is_end
            }
            Self::Implied(implied, depth) => *depth == 0 && is_among(name.get(), implied.ends),
        }
    }

    /// Whether it may end with what is around it.
    fn may_be_open(self) -> bool {
        matches!(self, Self::Implied(Implied { ends_with_page: true, .. }, 0))
    }
}

impl Element {
    /// Whether it ends with an end tag.
    fn ends(&mut self, name: Name) -> bool {
        self.depth -= u32::from(self.name == name);
        self.depth == 0
    }
}

/// The places of the text of a page.
#[derive(Debug, Default)]
pub(super) struct MainContent {
    /// Where in the text each place begins, in ascending order. Before the first one it is the page.
    places: Vec<(usize, Place)>,
    is_title: bool,
    left_out: Option<(LeftOut, Rule)>,
    /// Where in the text it begins.
    left_out_at: usize,
    main: Option<Element>,
    /// The number of open articles and sections.
    sections: u32,
}

impl MainContent {
    /// Begins another page.
    pub(super) fn clear(&mut self) {
        self.places.clear();
        (self.is_title, self.left_out, self.main, self.sections) = (false, None, None, 0);
    }

    /// Takes the end of the page.
    pub(super) fn finish(&mut self) {
        self.give_back(if self.main.is_some() { Place::Main } else { Place::Page });
    }

    /// What is around the element that is left out ends, and so does that. If it should have ended before, its text is of this place.
    fn give_back(&mut self, place: Place) {
        let Some((left_out, _)) = self.left_out.take() else { return };
        if left_out.may_be_open() {
            return;
        }
        let first = self.places.partition_point(|(at, _)| *at < self.left_out_at);
        if self.places.get(first).is_none_or(|(at, _)| *at > self.left_out_at) {
            // It follows on another that was left out.
            self.places.insert(first, (self.left_out_at, place));
        }
        let own = self.places.iter_mut().skip(first).map(|(_, place)| place);
        own.filter(|place| matches!(place, Place::LeftOut(_))).for_each(|left_out| *left_out = place);
    }

    /// Takes a start tag of HTML, behind which the text goes on at `at`.
    pub(super) fn start(&mut self, name: Name, marks: Marks, at: usize) {
        self.open(name, marks, at);
        self.note(at);
    }

    /// Takes an end tag of HTML.
    pub(super) fn end(&mut self, name: Name, at: usize) {
        match name.get() {
            b"title" => self.is_title = false,
            b"section" | b"article" => self.sections = self.sections.saturating_sub(1),
            _ => {}
        }
        if self.left_out.as_mut().is_some_and(|(left_out, _)| left_out.ends_at_end(name)) {
            self.left_out = None;
        }
        if self.main.as_mut().is_some_and(|main| main.ends(name)) {
            self.give_back(Place::Main);
            self.main = None;
        }
        self.note(at);
    }

    fn open(&mut self, name: Name, marks: Marks, at: usize) {
        if let Some(main) = self.main.as_mut().filter(|main| main.name == name) {
            main.depth += 1;
        }
        let is_end = self.left_out.as_mut().is_some_and(|(left_out, _)| left_out.ends_at_start(name));
        if is_end {
            self.left_out = None;
        }
        // In a select, the start tag of another is an end tag.
        if is_void(name.get()) || is_end && name.get() == b"select" {
            return;
        }
        let is_inside = self.main.is_some() || self.sections > 0;
        match name.get() {
            b"title" => self.is_title = true,
            b"section" | b"article" => self.sections += 1,
            _ => {}
        }
        if marks.is_main || name.get() == b"main" {
            self.left_out = None;
            self.main.get_or_insert(Element { name, depth: 1 });
        } else if self.left_out.is_none() {
            self.left_out = marks.leave_out(name.get(), is_inside).map(|rule| (LeftOut::of(name), rule));
            self.left_out_at = at;
        }
    }

    /// Notes where the text goes on.
    fn note(&mut self, at: usize) {
        let place = match (self.is_title, self.left_out, self.main) {
            (true, ..) => Place::Title,
            (_, Some((_, rule)), _) => Place::LeftOut(rule),
            (.., None) => Place::Page,
            (.., Some(_)) => Place::Main,
        };
        if self.places.last().map_or(Place::Page, |(_, last)| *last) != place {
            self.places.push((at, place));
        }
    }

    /// The text in pieces, in order, each with its place.
    pub(super) fn runs<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = (Place, &'t [u8])> {
        let begins = std::iter::once((0, Place::Page)).chain(self.places.iter().copied());
        let ends = self.places.iter().map(|(at, _)| *at).chain([text.len()]);
        begins.zip(ends).map(|((begin, place), end)| (place, text.get(begin..end).unwrap_or_default()))
    }

    /// Copies a part of the text. Returns whether there is anything of it.
    pub(super) fn copy(&self, part: Part, text: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        for (_, run) in self.runs(text).filter(|(place, _)| part.leaves_out(*place).is_none()) {
            out.extend_from_slice(run);
        }
        !out.is_empty()
    }
}
