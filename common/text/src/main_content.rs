//! Finds the main content of a page while the page is read.
//!
//! The *main element* is `main` or an element with the ARIA role `main`.
//! [Boilerplate](crate::main_content::boilerplate) elements are omitted with everything in them. The main
//! element is never omitted, even inside boilerplate. The main content is the first of the following parts
//! that has at least `TOKENS_MIN` tokens:
//!
//! 1. the text of the main element;
//! 2. the text of the page, without its title;
//! 3. the text of the page, with its title.
//!
//! If no part has enough tokens, the caller uses the whole page: either the rules have mistaken the content
//! for boilerplate, or the page has hardly any content.
//!
//! The module builds no tree. Of the open elements it remembers only the omitted element and the main
//! element, by name and depth. An element whose end tag may be missing ends where HTML lets it end. If the
//! page or the main element ends before an omitted element inside it, the end of the omitted element is
//! unknown. Its text is then restored, so that a missing end tag never hides the rest of a page.
//!
//! Memory is bounded by the number of tags, and the cost of a tag does not depend on its depth.

pub(crate) mod boilerplate;
pub(crate) mod omission_rule;

use crate::html::short_name::Name;
use boilerplate::ElementTraits;
use omission_rule::OmissionRule;

/// Region of the page to which a piece of text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Region {
    Title,
    Omitted(OmissionRule),
    /// Outside the main element, and not omitted.
    Page,
    Main,
}

/// Part of a page that is used as its main content, in the order in which the parts are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PagePart {
    /// Text of the main element.
    Main,
    /// Text of the page without boilerplate and without its title.
    Page,
    /// Text of the page without boilerplate, with its title.
    PageAndTitle,
    /// Whole page, including boilerplate.
    Whole,
}

impl PagePart {
    pub(super) const ALL: [Self; 3] = [Self::Main, Self::Page, Self::PageAndTitle];

    /// Name of the part in answers to clients.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Page => "page",
            Self::PageAndTitle => "page-and-title",
            Self::Whole => "whole",
        }
    }

    /// Returns the rule that omits `region` from this part, or `None` if the part includes the region.
    pub(super) fn omission_rule(self, region: Region) -> Option<OmissionRule> {
        match (region, self) {
            (_, Self::Whole) | (Region::Main, _) => None,
            (Region::Omitted(rule), _) => Some(rule),
            (Region::Page, Self::Main) => Some(OmissionRule::OutsideMain),
            (Region::Title, Self::Main | Self::Page) => Some(OmissionRule::Title),
            (Region::Page | Region::Title, _) => None,
        }
    }
}

/// Open element that ends with its own end tag.
#[derive(Debug, Clone, Copy)]
struct Element {
    name: Name,
    /// Number of open elements of this name, including the element itself.
    depth: u32,
}

/// Open element that is omitted with its content.
#[derive(Debug, Clone, Copy)]
enum OmittedElement {
    Element(Element),
    /// Element whose end tag may be missing, and the number of its containers that are open inside it.
    ImpliedEnd(&'static ImpliedEnd, u32),
}

/// Rules for the end of an element whose end tag may be missing (implied end tags of WHATWG HTML).
#[derive(Debug)]
struct ImpliedEnd {
    /// Names of the elements to which the rules apply.
    names: &'static [&'static str],
    /// Start tags that end the element.
    starts: &'static [&'static str],
    /// End tags that end the element.
    ends: &'static [&'static str],
    /// Elements that isolate their content. Tags inside such a container do not end an element outside it.
    /// The end tag of a container ends an element inside it.
    containers: &'static [&'static str],
    /// Whether the element may stay open until the page or the main element ends.
    ends_with_page: bool,
}

const ROW_GROUPS: &[&str] = &["tbody", "thead", "tfoot"];

/// Elements that a paragraph cannot contain, including the paragraph itself. A paragraph ends at the start
/// tag of such an element, and at the end tag of such an element around it.
#[rustfmt::skip]
const BLOCKS: &[&str] = &[
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "li", "listing",
    "main", "menu", "nav", "ol", "p", "plaintext", "pre", "search", "section", "summary", "table", "tbody", "td", "tfoot", "th",
    "thead", "tr", "ul", "xmp",
];

const IMPLIED_ENDS: [ImpliedEnd; 6] = [
    ImpliedEnd {
        names: &["td", "th"],
        starts: &["td", "th", "tr", "tbody", "thead", "tfoot", "caption", "colgroup"],
        ends: &["td", "th", "tr", "tbody", "thead", "tfoot"],
        containers: &["table"],
        ends_with_page: false,
    },
    ImpliedEnd {
        names: &["tr"],
        starts: &["tr", "tbody", "thead", "tfoot", "caption", "colgroup"],
        ends: &["tr", "tbody", "thead", "tfoot"],
        containers: &["table"],
        ends_with_page: false,
    },
    ImpliedEnd {
        names: ROW_GROUPS,
        starts: &["tbody", "thead", "tfoot", "caption", "colgroup"],
        ends: ROW_GROUPS,
        containers: &["table"],
        ends_with_page: false,
    },
    ImpliedEnd {
        names: &["li"],
        starts: &["li"],
        ends: &["li"],
        containers: &["ul", "ol", "menu"],
        ends_with_page: false,
    },
    ImpliedEnd {
        names: &["dt", "dd"],
        starts: &["dt", "dd"],
        ends: &["dt", "dd"],
        containers: &["dl"],
        ends_with_page: false,
    },
    ImpliedEnd {
        names: &["p"],
        starts: BLOCKS,
        ends: BLOCKS,
        containers: &["applet", "button", "marquee", "object", "template"],
        ends_with_page: true,
    },
];

/// Whether the element never has content or an end tag.
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

/// Whether the start tag of another element of this name ends the element.
fn is_never_nested(name: &[u8]) -> bool {
    matches!(name, b"a" | b"button" | b"nobr" | b"select")
}

fn is_among(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|known| known.as_bytes() == name)
}

impl OmittedElement {
    fn of(name: Name) -> Self {
        match IMPLIED_ENDS.iter().find(|implied| is_among(name.get(), implied.names)) {
            Some(implied) => Self::ImpliedEnd(implied, 0),
            None => Self::Element(Element { name, depth: 1 }),
        }
    }

    /// Takes a start tag and returns whether the element ends before the tag.
    fn is_ended_by_start(&mut self, name: Name) -> bool {
        match self {
            Self::Element(element) if element.name != name => false,
            Self::Element(_) if is_never_nested(name.get()) => true,
            Self::Element(element) => {
                // HTML ignores a form inside a form.
                element.depth += u32::from(name.get() != b"form");
                false
            }
            Self::ImpliedEnd(implied, depth) => {
                let is_end = *depth == 0 && is_among(name.get(), implied.starts);
                *depth += u32::from(!is_end && is_among(name.get(), implied.containers));
                is_end
            }
        }
    }

    /// Takes an end tag and returns whether the element ends with the tag.
    fn is_ended_by_end(&mut self, name: Name) -> bool {
        match self {
            Self::Element(element) => element.is_ended_by(name),
            Self::ImpliedEnd(implied, depth) if is_among(name.get(), implied.containers) => {
                let is_end = *depth == 0;
                *depth = depth.saturating_sub(1);
                is_end
            }
            Self::ImpliedEnd(implied, depth) => *depth == 0 && is_among(name.get(), implied.ends),
        }
    }

    /// Whether the element may end together with the element or page around it, without an end tag.
    fn can_end_with_parent(self) -> bool {
        matches!(self, Self::ImpliedEnd(ImpliedEnd { ends_with_page: true, .. }, 0))
    }
}

impl Element {
    /// Takes an end tag and returns whether the element ends with the tag.
    fn is_ended_by(&mut self, name: Name) -> bool {
        self.depth -= u32::from(self.name == name);
        self.depth == 0
    }
}

/// Regions of the text of a page, and the open elements that determine the next region.
#[derive(Debug, Default)]
pub(super) struct MainContent {
    /// Beginning of each region in the text, in ascending order. Text before the first entry is
    /// [`Region::Page`].
    regions: Vec<(usize, Region)>,
    is_title: bool,
    omitted: Option<(OmittedElement, OmissionRule)>,
    /// Position in the text after the start tag of the omitted element.
    omitted_at: usize,
    main: Option<Element>,
    /// Number of open articles and sections.
    sections: u32,
}

impl MainContent {
    /// Forgets the previous page.
    pub(super) fn clear(&mut self) {
        self.regions.clear();
        (self.is_title, self.omitted, self.main, self.sections) = (false, None, None, 0);
    }

    /// Takes the end of the page.
    pub(super) fn finish(&mut self) {
        self.restore_omitted(if self.main.is_some() { Region::Main } else { Region::Page });
    }

    /// Ends the omitted element, because the page or the main element around it ends. If the element should
    /// have ended earlier by its own end tag, its text becomes part of `region`.
    fn restore_omitted(&mut self, region: Region) {
        let Some((omitted, _)) = self.omitted.take() else { return };
        if omitted.can_end_with_parent() {
            return;
        }
        let first = self.regions.partition_point(|(at, _)| *at < self.omitted_at);
        if self.regions.get(first).is_none_or(|(at, _)| *at > self.omitted_at) {
            // The element directly follows another omitted element and has no entry of its own.
            self.regions.insert(first, (self.omitted_at, region));
        }
        let own = self.regions.iter_mut().skip(first).map(|(_, region)| region);
        own.filter(|region| matches!(region, Region::Omitted(_))).for_each(|omitted| *omitted = region);
    }

    /// Takes a start tag of HTML. The text after the tag begins at `at`.
    pub(super) fn start(&mut self, name: Name, traits: ElementTraits, at: usize) {
        self.open(name, traits, at);
        self.record_region(at);
    }

    /// Takes an end tag of HTML. The text after the tag begins at `at`.
    pub(super) fn end(&mut self, name: Name, at: usize) {
        match name.get() {
            b"title" => self.is_title = false,
            b"section" | b"article" => self.sections = self.sections.saturating_sub(1),
            _ => {}
        }
        if self.omitted.as_mut().is_some_and(|(omitted, _)| omitted.is_ended_by_end(name)) {
            self.omitted = None;
        }
        if self.main.as_mut().is_some_and(|main| main.is_ended_by(name)) {
            self.restore_omitted(Region::Main);
            self.main = None;
        }
        self.record_region(at);
    }

    fn open(&mut self, name: Name, traits: ElementTraits, at: usize) {
        if let Some(main) = self.main.as_mut().filter(|main| main.name == name) {
            main.depth += 1;
        }
        let is_end = self.omitted.as_mut().is_some_and(|(omitted, _)| omitted.is_ended_by_start(name));
        if is_end {
            self.omitted = None;
        }
        // HTML treats `<select>` inside a `select` as its end tag.
        if is_void(name.get()) || is_end && name.get() == b"select" {
            return;
        }
        let is_inside = self.main.is_some() || self.sections > 0;
        match name.get() {
            b"title" => self.is_title = true,
            b"section" | b"article" => self.sections += 1,
            _ => {}
        }
        if traits.is_main || name.get() == b"main" {
            self.omitted = None;
            self.main.get_or_insert(Element { name, depth: 1 });
        } else if self.omitted.is_none() {
            self.omitted =
                traits.omission_rule(name.get(), is_inside).map(|rule| (OmittedElement::of(name), rule));
            self.omitted_at = at;
        }
    }

    /// Adds an entry if the text at `at` belongs to another region than the text before it.
    fn record_region(&mut self, at: usize) {
        let region = match (self.is_title, self.omitted, self.main) {
            (true, ..) => Region::Title,
            (_, Some((_, rule)), _) => Region::Omitted(rule),
            (.., None) => Region::Page,
            (.., Some(_)) => Region::Main,
        };
        if self.regions.last().map_or(Region::Page, |(_, last)| *last) != region {
            self.regions.push((at, region));
        }
    }

    /// Returns the text in pieces, in page order, each with its region.
    pub(super) fn runs<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = (Region, &'t [u8])> {
        let begins = std::iter::once((0, Region::Page)).chain(self.regions.iter().copied());
        let ends = self.regions.iter().map(|(at, _)| *at).chain([text.len()]);
        begins.zip(ends).map(|((begin, region), end)| (region, text.get(begin..end).unwrap_or_default()))
    }

    /// Copies the text of `part` to `out`. Returns whether there is any.
    pub(super) fn copy_part(&self, part: PagePart, text: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        for (_, run) in self.runs(text).filter(|(region, _)| part.omission_rule(*region).is_none()) {
            out.extend_from_slice(run);
        }
        !out.is_empty()
    }
}
