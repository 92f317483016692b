//! Recognises boilerplate: navigation, headers, footers, side bars, breadcrumbs, skip links, search forms and
//! similar elements. Decides from the start tag alone, by the element name, the ARIA role, and the words of
//! class and id.
//!
//! The rules follow the main-content extraction of resiliparse (Bevendorff et al.,
//! `resiliparse.extract.html2text`), which uses the same three signs. They differ in two ways. Doppel reads a
//! page as a stream, so a rule cannot look at what follows. And class and id names are split into words:
//!
//! - A word ends at a hyphen, an underscore and a capital letter, so `topNav`, `top-nav` and `top_nav` are
//!   equal.
//! - Most words count only as the last word of a name: `sub-nav` is boilerplate, but `nav-pusher` is not,
//!   because it wraps the whole page.
//! - Digits at the end of a word are ignored (`footer2`). A number is a word of its own: `share-123` is an
//!   item, not boilerplate.
//!
//! A class states the purpose of an element. Most ids are link targets made from a heading or a name in the
//! text. An id therefore counts only by its last word, and only on layout elements. It does not count inside
//! the main element, articles and sections, or if a class of the element names a section of a text.

use super::omission_rule::OmissionRule;
use crate::html::short_name::Name;
use crate::html::style::is_hidden_by_style;

/// Properties of an element that the attributes of its start tag state.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ElementTraits {
    /// Whether the role is that of the main content.
    pub(crate) is_main: bool,
    /// Rule of the role, if it is boilerplate.
    role: Option<OmissionRule>,
    /// Whether an attribute hides the element.
    is_hidden: bool,
    /// Rule of a class that names boilerplate.
    class: Option<OmissionRule>,
    /// Rule of a word in a class that counts only on lists and tables.
    list_class: Option<OmissionRule>,
    /// Rule of the last word of the id, if it names boilerplate.
    id: Option<OmissionRule>,
    /// Whether a class names a section of a text.
    is_section: bool,
    /// Attributes that the tag has, as [`bit`]s.
    seen_attributes: u8,
}

/// Meaning of a word in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// No meaning.
    None,
    /// Boilerplate if it is the last word of a name.
    Last(OmissionRule),
    /// Boilerplate if it is the last word of a name, or any word of a name on a list or table.
    Navigation(OmissionRule),
    /// Boilerplate at any position in a name.
    Any(OmissionRule),
    /// Navigation if `Previous` and `Next` occur in the same name.
    Previous,
    Next,
    /// Section of a text.
    Section,
}

fn meaning(word: &[u8]) -> Meaning {
    match word {
        b"nav" | b"navbar" | b"navigation" | b"menu" => Meaning::Navigation(OmissionRule::Navigation),
        b"sidebar" => Meaning::Navigation(OmissionRule::SideBar),
        b"breadcrumb" | b"breadcrumbs" | b"pagination" | b"skip" => Meaning::Any(OmissionRule::Navigation),
        b"copyright" | b"legal" => Meaning::Any(OmissionRule::Footer),
        b"cookie" => Meaning::Any(OmissionRule::Dialog),
        b"prev" | b"previous" => Meaning::Previous,
        b"next" => Meaning::Next,
        b"section" | b"subsection" | b"subsubsection" | b"sect" | b"refsect" | b"chapter" | b"appendix"
        | b"preface" => Meaning::Section,
        b"navbars" | b"navigator" | b"navheader" | b"navfooter" | b"navlinks" | b"menubar" | b"crumbs"
        | b"sidenav" | b"toc" | b"skiplink" | b"pager" | b"headerlink" => {
            Meaning::Last(OmissionRule::Navigation)
        }
        b"banner" | b"masthead" => Meaning::Last(OmissionRule::Header),
        b"footer" => Meaning::Last(OmissionRule::Footer),
        b"search" | b"searchbox" => Meaning::Last(OmissionRule::Search),
        b"cookies" | b"modal" | b"popup" => Meaning::Last(OmissionRule::Dialog),
        b"ad" | b"ads" | b"advert" | b"advertisement" | b"social" | b"share" | b"sharing" | b"related" => {
            Meaning::Last(OmissionRule::Promotion)
        }
        _ => Meaning::None,
    }
}

/// ARIA roles of boilerplate.
const ROLES: [(&str, OmissionRule); 9] = [
    ("navigation", OmissionRule::Navigation),
    ("menu", OmissionRule::Navigation),
    ("menubar", OmissionRule::Navigation),
    ("banner", OmissionRule::Header),
    ("contentinfo", OmissionRule::Footer),
    ("search", OmissionRule::Search),
    ("complementary", OmissionRule::SideBar),
    ("dialog", OmissionRule::Dialog),
    ("alert", OmissionRule::Dialog),
];

/// Whether the rules read the attribute.
pub(crate) fn is_read(attribute: &[u8]) -> bool {
    bit(attribute) != 0
}

/// Returns a distinct bit for each attribute that the rules read, and 0 for all others.
fn bit(attribute: &[u8]) -> u8 {
    match attribute {
        b"class" => 1,
        b"id" => 2,
        b"role" => 4,
        b"hidden" => 8,
        b"aria-hidden" => 16,
        b"style" => 32,
        _ => 0,
    }
}

impl ElementTraits {
    /// Reads an attribute. `value` is `None` if the value is too long. If an attribute occurs twice, the
    /// first counts, as in a browser.
    pub(crate) fn read(&mut self, attribute: &[u8], value: Option<&str>) {
        let bit = bit(attribute);
        let is_first = self.seen_attributes & bit == 0;
        self.seen_attributes |= bit;
        let Some(value) = value.filter(|_| is_first) else { return };
        match attribute {
            b"class" => value.split_ascii_whitespace().for_each(|name| self.read_class(name.as_bytes())),
            b"id" => self.read_id(value.as_bytes()),
            b"role" => self.read_role(value),
            // `until-found` marks content that a search in the page can reveal.
            b"hidden" => self.is_hidden |= !value.eq_ignore_ascii_case("until-found"),
            b"aria-hidden" => self.is_hidden |= value.eq_ignore_ascii_case("true"),
            b"style" => self.is_hidden |= is_hidden_by_style(value),
            _ => {}
        }
    }

    fn read_role(&mut self, value: &str) {
        let role = value.split_ascii_whitespace().next().unwrap_or_default();
        let is = |known: &str| role.eq_ignore_ascii_case(known);
        self.is_main |= is("main");
        let known = ROLES.into_iter().find(|(known, _)| is(known));
        self.role = self.role.or(known.map(|(_, rule)| rule));
    }

    fn read_class(&mut self, name: &[u8]) {
        let (mut last, mut has_previous, mut has_next) = (Meaning::None, false, false);
        each_word(name, |word| {
            last = meaning(word);
            match last {
                Meaning::Navigation(rule) => self.list_class = self.list_class.or(Some(rule)),
                Meaning::Any(rule) => self.class = self.class.or(Some(rule)),
                Meaning::Previous => has_previous = true,
                Meaning::Next => has_next = true,
                Meaning::Section => self.is_section = true,
                Meaning::Last(_) | Meaning::None => {}
            }
        });
        let whole = match last {
            Meaning::Last(rule) | Meaning::Navigation(rule) => Some(rule),
            _ if has_previous && has_next => Some(OmissionRule::Navigation),
            _ => None,
        };
        self.class = self.class.or(whole);
    }

    fn read_id(&mut self, id: &[u8]) {
        let mut last = Meaning::None;
        each_word(id, |word| last = meaning(word));
        if let Meaning::Last(rule) | Meaning::Navigation(rule) | Meaning::Any(rule) = last {
            self.id = Some(rule);
        }
    }

    /// Returns the rule that omits the element `element`, or `None` if the element is content. `is_inside`
    /// says whether the element is inside a main element, an article or a section. There, the name of a
    /// `header`, `footer` or `aside` is no reason to omit it, and ids do not count.
    pub(crate) fn omission_rule(self, element: &[u8], is_inside: bool) -> Option<OmissionRule> {
        match element {
            b"nav" => return Some(OmissionRule::Navigation),
            b"noscript" | b"iframe" | b"template" => return Some(OmissionRule::Hidden),
            b"button" | b"select" => return Some(OmissionRule::Control),
            b"dialog" => return Some(OmissionRule::Dialog),
            b"aside" if !is_inside => return Some(OmissionRule::SideBar),
            b"header" if !is_inside => return Some(OmissionRule::Header),
            b"footer" if !is_inside => return Some(OmissionRule::Footer),
            // These elements wrap the whole page, or the stream does not show where they end.
            b"html" | b"head" | b"body" | b"main" | b"title" | b"option" | b"optgroup" | b"caption"
            | b"colgroup" | b"rp" | b"rt" => return None,
            _ => {}
        }
        let is_list = matches!(element, b"ul" | b"ol" | b"table" | b"td");
        let is_layout = is_list
            || matches!(element, b"div" | b"header" | b"footer" | b"aside" | b"form" | b"dl" | b"details");
        let is_class_element = is_layout
            || matches!(element, b"section" | b"p" | b"span" | b"a" | b"li" | b"h1" | b"h2" | b"h3" | b"h4");
        let list_class = self.list_class.filter(|_| is_list);
        let class = self.class.or(list_class).filter(|_| is_class_element);
        let id = self.id.filter(|_| is_layout && !is_inside && !self.is_section);
        self.role.or(self.is_hidden.then_some(OmissionRule::Hidden)).or(class).or(id)
    }
}

/// Calls `each` with every word of a name, in lower case and without the digits at its end.
fn each_word(name: &[u8], mut each: impl FnMut(&[u8])) {
    let mut word = Name::default();
    let mut end = |word: &mut Name| {
        if !word.is_empty() {
            let digits = word.get().iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            each(&word.get()[..word.get().len() - digits]);
        }
        *word = Name::default();
    };
    let mut before = 0_u8;
    for byte in name {
        let is_capital =
            byte.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        if is_capital || !byte.is_ascii_alphanumeric() {
            end(&mut word);
        }
        if byte.is_ascii_alphanumeric() {
            word.push(&[byte.to_ascii_lowercase()]);
        }
        before = *byte;
    }
    end(&mut word);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(element: &str, attributes: &[(&str, &str)]) -> Option<OmissionRule> {
        let mut traits = ElementTraits::default();
        attributes.iter().for_each(|(name, value)| traits.read(name.as_bytes(), Some(value)));
        traits.omission_rule(element.as_bytes(), false)
    }

    fn is_omitted(element: &str, attributes: &[(&str, &str)]) -> bool {
        rule(element, attributes).is_some()
    }

    #[test]
    fn the_first_sign_determines_the_rule() {
        for (element, attribute, value, expected) in [
            ("nav", "class", "footer", OmissionRule::Navigation),
            ("header", "id", "x", OmissionRule::Header),
            ("aside", "id", "x", OmissionRule::SideBar),
            ("template", "id", "x", OmissionRule::Hidden),
            ("select", "id", "x", OmissionRule::Control),
            ("footer", "role", "search", OmissionRule::Footer),
            ("div", "role", "contentinfo", OmissionRule::Footer),
            ("div", "role", "alert", OmissionRule::Dialog),
            ("p", "hidden", "", OmissionRule::Hidden),
            ("div", "class", "page-masthead", OmissionRule::Header),
            ("div", "class", "copyright-note nav", OmissionRule::Footer),
            ("div", "class", "cookie-bar", OmissionRule::Dialog),
            ("div", "id", "site-cookie", OmissionRule::Dialog),
            ("div", "id", "siteSearch", OmissionRule::Search),
            ("div", "class", "previous-and-next-page", OmissionRule::Navigation),
            ("ul", "class", "sidebar-items", OmissionRule::SideBar),
            ("ul", "class", "share", OmissionRule::Promotion),
        ] {
            assert_eq!(rule(element, &[(attribute, value)]), Some(expected), "{element} {attribute}={value}");
        }
        assert_eq!(
            rule("div", &[("hidden", ""), ("role", "banner"), ("class", "ads")]),
            Some(OmissionRule::Header)
        );
    }

    #[test]
    fn the_first_of_two_attributes_with_the_same_name_counts() {
        assert!(!is_omitted("div", &[("class", "text"), ("class", "nav")]));
        assert!(is_omitted("div", &[("class", "nav"), ("class", "text")]));
        assert!(is_omitted("div", &[("class", "text"), ("id", "nav")]));
        assert_eq!(rule("p", &[("role", "banner"), ("role", "search")]), Some(OmissionRule::Header));
        assert!(!is_omitted("p", &[("style", ""), ("style", "display:none")]));
        // The first attribute counts even if its value is too long to be read.
        let mut traits = ElementTraits::default();
        traits.read(b"class", None);
        traits.read(b"class", Some("nav"));
        assert_eq!(traits.omission_rule(b"div", false), None);
    }

    #[test]
    fn names_are_split_into_words() {
        for name in [
            "nav",
            "topNav",
            "top-nav",
            "site_footer",
            "x sub-nav",
            "legal-copy",
            "prev-next-area",
            "skip-link",
            "NAV",
            "footer2",
            "footer2 x",
            "site1Nav",
        ] {
            assert!(is_omitted("div", &[("class", name)]), "{name}");
        }
        for name in [
            "",
            "-",
            "navPusher",
            "canvas",
            "header",
            "next-step",
            "footerless",
            "nav2x-body",
            "naviere",
            "share-123",
            "2ad",
            "ad-x1",
            "1",
        ] {
            assert!(!is_omitted("div", &[("class", name)]), "{name}");
        }
        assert!(is_omitted("ul", &[("class", "nav-list")]) && is_omitted("td", &[("class", "NavBarCell1")]));
        assert!(!is_omitted("body", &[("class", "nav")]) && !is_omitted("code", &[("class", "menu")]));
    }

    #[test]
    fn an_id_counts_by_its_last_word_on_layout_elements() {
        let by_id = |element: &str, class: &str, id: &str, is_inside| {
            let mut traits = ElementTraits::default();
            traits.read(b"class", Some(class));
            traits.read(b"id", Some(id));
            traits.omission_rule(element.as_bytes(), is_inside).is_some()
        };
        for id in ["nav", "settings-menu", "docsNav", "site_footer", "footer2", "copyright", "siteSearch"] {
            for element in ["div", "ul", "table", "td", "form", "dl"] {
                assert!(by_id(element, "container-fluid", id, false), "{element} {id}");
                assert!(!by_id(element, "container-fluid", id, true), "{element} {id}");
            }
            for element in ["section", "h1", "h2", "a", "span", "p", "li", "article"] {
                assert!(!by_id(element, "", id, false), "{element} {id}");
            }
            for class in ["section", "sect2", "chapter", "subsection-level-extent", "section level2"] {
                assert!(!by_id("div", class, id, false), "{class} {id}");
            }
        }
        for id in [
            "",
            "commands-to-skip-continuous-integration",
            "skip(long)",
            "copyright-and-trademark",
            "nav-pusher",
            "share-1",
        ] {
            assert!(!by_id("div", "", id, false), "{id}");
        }
        assert!(by_id("div", "section nav", "x", true));
    }

    #[test]
    fn roles_and_hiding_count_on_any_element() {
        assert!(is_omitted("x-bar", &[("role", "Navigation")]) && is_omitted("p", &[("hidden", "")]));
        assert!(is_omitted("p", &[("style", "color: red; DISPLAY : none !important")]));
        assert!(!is_omitted("p", &[("style", "display:none;visibility:visible;display:block")]));
        assert!(!is_omitted("p", &[("role", "presentation"), ("hidden", "until-found")]));
    }
}
