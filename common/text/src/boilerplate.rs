//! What of a page is boilerplate: navigation, header, footer, side bars, breadcrumbs, skip links, search forms and the like, by
//! element, ARIA role, and the words of class and id.
//!
//! The rules follow those of the main-content extraction of resiliparse (Bevendorff et al., `resiliparse.extract.html2text`), which
//! works on such pages by the same three signs. They differ in what a stream allows, which does not know what comes behind, and
//! in how names are read: class and id are split into words at hyphens, underscores and capitals, so `topNav`, `top-nav` and `top_nav`
//! are the same, and a name is that of boilerplate when its last word is (`sub-nav`, but not `nav-pusher`, which is around the whole page).
//! Digits at the end of a word are ignored (`footer2`), but a number is a word (`share-123` is an item).
//!
//! A class says what an element is for. An id may say that, too, but most are made of a heading or a name in the text, for links. So an
//! id counts only on elements of a layout, outside of `main`, articles and sections, where no class says that it is a section
//! of a text, and by its last word.

use super::Rule;
use super::short_name::Name;
use super::style::hides;

/// What the attributes of a start tag say.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Marks {
    /// It has the role of the main content.
    pub(super) is_main: bool,
    /// It has the role of boilerplate.
    role: Option<Rule>,
    /// It is not shown.
    is_hidden: bool,
    /// Its class names boilerplate.
    named: Option<Rule>,
    /// A word of its class names navigation.
    navigational: Option<Rule>,
    /// The last word of its id names boilerplate.
    id: Option<Rule>,
    /// Its class names a section of a text.
    is_section: bool,
    /// The attributes that it has, as [`bit`]s.
    has: u8,
}

/// What a word says in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Nothing.
    None,
    /// Boilerplate, as the last word of a name.
    Last(Rule),
    /// The same, and in a list or table as any word.
    Navigation(Rule),
    /// Boilerplate, as any word.
    Any(Rule),
    /// Boilerplate, where both are in one name.
    Previous,
    Next,
    /// A section of a text.
    Section,
}

fn meaning(word: &[u8]) -> Meaning {
    match word {
        b"nav" | b"navbar" | b"navigation" | b"menu" => Meaning::Navigation(Rule::Navigation),
        b"sidebar" => Meaning::Navigation(Rule::SideBar),
        b"breadcrumb" | b"breadcrumbs" | b"pagination" | b"skip" => Meaning::Any(Rule::Navigation),
        b"copyright" | b"legal" => Meaning::Any(Rule::Footer),
        b"cookie" => Meaning::Any(Rule::Dialog),
        b"prev" | b"previous" => Meaning::Previous,
        b"next" => Meaning::Next,
        b"section" | b"subsection" | b"subsubsection" | b"sect" | b"refsect" | b"chapter" | b"appendix"
        | b"preface" => Meaning::Section,
        b"navbars" | b"navigator" | b"navheader" | b"navfooter" | b"navlinks" | b"menubar" | b"crumbs"
        | b"sidenav" | b"toc" | b"skiplink" | b"pager" | b"headerlink" => Meaning::Last(Rule::Navigation),
        b"banner" | b"masthead" => Meaning::Last(Rule::Header),
        b"footer" => Meaning::Last(Rule::Footer),
        b"search" | b"searchbox" => Meaning::Last(Rule::Search),
        b"cookies" | b"modal" | b"popup" => Meaning::Last(Rule::Dialog),
        b"ad" | b"ads" | b"advert" | b"advertisement" | b"social" | b"share" | b"sharing" | b"related" => {
            Meaning::Last(Rule::Promotion)
        }
        _ => Meaning::None,
    }
}

/// What a role says.
const ROLES: [(&str, Rule); 9] = [
    ("navigation", Rule::Navigation),
    ("menu", Rule::Navigation),
    ("menubar", Rule::Navigation),
    ("banner", Rule::Header),
    ("contentinfo", Rule::Footer),
    ("search", Rule::Search),
    ("complementary", Rule::SideBar),
    ("dialog", Rule::Dialog),
    ("alert", Rule::Dialog),
];

/// Whether an attribute of this name says anything.
pub(super) fn is_read(attribute: &[u8]) -> bool {
    bit(attribute) != 0
}

/// A bit for each attribute that says anything.
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

impl Marks {
    /// Reads an attribute; its value is none if it is too long. Of two of one name the first counts, as in a browser.
    pub(super) fn read(&mut self, attribute: &[u8], value: Option<&str>) {
        let bit = bit(attribute);
        let is_first = self.has & bit == 0;
        self.has |= bit;
        let Some(value) = value.filter(|_| is_first) else { return };
        match attribute {
            b"class" => value.split_ascii_whitespace().for_each(|name| self.class(name.as_bytes())),
            b"id" => self.id(value.as_bytes()),
            b"role" => self.role(value),
            // What is hidden until it is found is content.
            b"hidden" => self.is_hidden |= !value.eq_ignore_ascii_case("until-found"),
            b"aria-hidden" => self.is_hidden |= value.eq_ignore_ascii_case("true"),
            b"style" => self.is_hidden |= hides(value),
            _ => {}
        }
    }

    fn role(&mut self, value: &str) {
        let role = value.split_ascii_whitespace().next().unwrap_or_default();
        let is = |known: &str| role.eq_ignore_ascii_case(known);
        self.is_main |= is("main");
        let known = ROLES.into_iter().find(|(known, _)| is(known));
        self.role = self.role.or(known.map(|(_, rule)| rule));
    }

    fn class(&mut self, name: &[u8]) {
        let (mut last, mut has_previous, mut has_next) = (Meaning::None, false, false);
        each_word(name, |word| {
            last = meaning(word);
            match last {
                Meaning::Navigation(rule) => self.navigational = self.navigational.or(Some(rule)),
                Meaning::Any(rule) => self.named = self.named.or(Some(rule)),
                Meaning::Previous => has_previous = true,
                Meaning::Next => has_next = true,
                Meaning::Section => self.is_section = true,
                Meaning::Last(_) | Meaning::None => {}
            }
        });
        let whole = match last {
            Meaning::Last(rule) | Meaning::Navigation(rule) => Some(rule),
            _ if has_previous && has_next => Some(Rule::Navigation),
            _ => None,
        };
        self.named = self.named.or(whole);
    }

    fn id(&mut self, id: &[u8]) {
        let mut last = Meaning::None;
        each_word(id, |word| last = meaning(word));
        if let Meaning::Last(rule) | Meaning::Navigation(rule) | Meaning::Any(rule) = last {
            self.id = Some(rule);
        }
    }

    /// The rule by which an element of this name is left out; none where it is not. `is_inside` says whether it is part of a main
    /// element, an article or a section, of which it may be the header.
    pub(super) fn leave_out(self, element: &[u8], is_inside: bool) -> Option<Rule> {
        match element {
            b"nav" => return Some(Rule::Navigation),
            b"noscript" | b"iframe" | b"template" => return Some(Rule::Hidden),
            b"button" | b"select" => return Some(Rule::Control),
            b"dialog" => return Some(Rule::Dialog),
            b"aside" if !is_inside => return Some(Rule::SideBar),
            b"header" if !is_inside => return Some(Rule::Header),
            b"footer" if !is_inside => return Some(Rule::Footer),
            // They are around everything, or nothing says where they end.
            b"html" | b"head" | b"body" | b"main" | b"title" | b"option" | b"optgroup" | b"caption"
            | b"colgroup" | b"rp" | b"rt" => return None,
            _ => {}
        }
        let is_list = matches!(element, b"ul" | b"ol" | b"table" | b"td");
        let is_layout = is_list
            || matches!(element, b"div" | b"header" | b"footer" | b"aside" | b"form" | b"dl" | b"details");
        let may_be_named = is_layout
            || matches!(element, b"section" | b"p" | b"span" | b"a" | b"li" | b"h1" | b"h2" | b"h3" | b"h4");
        let navigational = self.navigational.filter(|_| is_list);
        let named = self.named.or(navigational).filter(|_| may_be_named);
        let id = self.id.filter(|_| is_layout && !is_inside && !self.is_section);
        self.role.or(self.is_hidden.then_some(Rule::Hidden)).or(named).or(id)
    }
}

/// Gives each word of a name, in lower case and without digits at its end.
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

    fn rule(element: &str, attributes: &[(&str, &str)]) -> Option<Rule> {
        let mut marks = Marks::default();
        attributes.iter().for_each(|(name, value)| marks.read(name.as_bytes(), Some(value)));
        marks.leave_out(element.as_bytes(), false)
    }

    fn leaves_out(element: &str, attributes: &[(&str, &str)]) -> bool {
        rule(element, attributes).is_some()
    }

    #[test]
    fn the_rule_is_that_of_the_first_sign() {
        for (element, attribute, value, expected) in [
            ("nav", "class", "footer", Rule::Navigation),
            ("header", "id", "x", Rule::Header),
            ("aside", "id", "x", Rule::SideBar),
            ("template", "id", "x", Rule::Hidden),
            ("select", "id", "x", Rule::Control),
            ("footer", "role", "search", Rule::Footer),
            ("div", "role", "contentinfo", Rule::Footer),
            ("div", "role", "alert", Rule::Dialog),
            ("p", "hidden", "", Rule::Hidden),
            ("div", "class", "page-masthead", Rule::Header),
            ("div", "class", "copyright-note nav", Rule::Footer),
            ("div", "class", "cookie-bar", Rule::Dialog),
            ("div", "id", "site-cookie", Rule::Dialog),
            ("div", "id", "siteSearch", Rule::Search),
            ("div", "class", "previous-and-next-page", Rule::Navigation),
            ("ul", "class", "sidebar-items", Rule::SideBar),
            ("ul", "class", "share", Rule::Promotion),
        ] {
            assert_eq!(rule(element, &[(attribute, value)]), Some(expected), "{element} {attribute}={value}");
        }
        assert_eq!(rule("div", &[("hidden", ""), ("role", "banner"), ("class", "ads")]), Some(Rule::Header));
    }

    #[test]
    fn of_two_attributes_of_one_name_the_first_counts() {
        assert!(!leaves_out("div", &[("class", "text"), ("class", "nav")]));
        assert!(leaves_out("div", &[("class", "nav"), ("class", "text")]));
        assert!(leaves_out("div", &[("class", "text"), ("id", "nav")]));
        assert_eq!(rule("p", &[("role", "banner"), ("role", "search")]), Some(Rule::Header));
        assert!(!leaves_out("p", &[("style", ""), ("style", "display:none")]));
        // Also if it is too long to be read.
        let mut marks = Marks::default();
        marks.read(b"class", None);
        marks.read(b"class", Some("nav"));
        assert_eq!(marks.leave_out(b"div", false), None);
    }

    #[test]
    fn a_name_is_read_by_its_words() {
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
            assert!(leaves_out("div", &[("class", name)]), "{name}");
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
            assert!(!leaves_out("div", &[("class", name)]), "{name}");
        }
        assert!(leaves_out("ul", &[("class", "nav-list")]) && leaves_out("td", &[("class", "NavBarCell1")]));
        assert!(!leaves_out("body", &[("class", "nav")]) && !leaves_out("code", &[("class", "menu")]));
    }

    #[test]
    fn an_id_counts_on_elements_of_a_layout_by_its_last_word() {
        let by_id = |element: &str, class: &str, id: &str, is_inside| {
            let mut marks = Marks::default();
            marks.read(b"class", Some(class));
            marks.read(b"id", Some(id));
            marks.leave_out(element.as_bytes(), is_inside).is_some()
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
    fn roles_and_what_is_hidden_count_for_any_element() {
        assert!(leaves_out("x-bar", &[("role", "Navigation")]) && leaves_out("p", &[("hidden", "")]));
        assert!(leaves_out("p", &[("style", "color: red; DISPLAY : none !important")]));
        assert!(!leaves_out("p", &[("style", "display:none;visibility:visible;display:block")]));
        assert!(!leaves_out("p", &[("role", "presentation"), ("hidden", "until-found")]));
    }
}
