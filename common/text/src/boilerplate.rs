//! What of a page is boilerplate: navigation, header, footer, side bars, breadcrumbs, skip links, search forms and the like, by
//! element, ARIA role, and the words of class and id.
//!
//! The rules follow those of the main-content extraction of resiliparse (Bevendorff et al., `resiliparse.extract.html2text`), which
//! works on such pages by the same three signs. They differ in what a stream allows, which does not know what comes behind, and
//! in how names are read: class and id are split into words at hyphens, underscores and capitals, so `topNav`, `top-nav` and `top_nav`
//! are the same, and a name is that of boilerplate when its last word is (`sub-nav`, but not `nav-pusher`, which is around the whole page).

use super::Rule;
use super::name::Name;

/// What the attributes of a start tag say.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Marks {
    /// It has the role of the main content.
    pub(super) is_main: bool,
    /// It has the role of boilerplate.
    role: Option<Rule>,
    /// It is not shown.
    is_hidden: bool,
    /// Its class or id names boilerplate.
    named: Option<Rule>,
    /// A word of its class or id names navigation.
    navigational: Option<Rule>,
    /// The attributes that it has, as [`bit`]s.
    has: u8,
}

/// What a word says in a class or id.
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
            b"class" | b"id" => value.split_ascii_whitespace().for_each(|name| self.name(name.as_bytes())),
            b"role" => self.role(value),
            // What is hidden until it is found is content.
            b"hidden" => self.is_hidden |= !value.eq_ignore_ascii_case("until-found"),
            b"aria-hidden" => self.is_hidden |= value.eq_ignore_ascii_case("true"),
            b"style" => self.is_hidden |= value.split(';').any(hides),
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

    fn name(&mut self, name: &[u8]) {
        let (mut last, mut has_previous, mut has_next) = (Meaning::None, false, false);
        let mut word = Name::default();
        let mut end = |word: &mut Name| {
            if word.is_empty() {
                return;
            }
            last = meaning(word.get());
            *word = Name::default();
            match last {
                Meaning::Navigation(rule) => self.navigational = self.navigational.or(Some(rule)),
                Meaning::Any(rule) => self.named = self.named.or(Some(rule)),
                Meaning::Previous => has_previous = true,
                Meaning::Next => has_next = true,
                Meaning::Last(_) | Meaning::None => {}
            }
        };
        let mut before = 0_u8;
        for byte in name {
            if !byte.is_ascii_alphabetic() || byte.is_ascii_uppercase() && before.is_ascii_lowercase() {
                end(&mut word);
            }
            if byte.is_ascii_alphabetic() {
                word.push(&[byte.to_ascii_lowercase()]);
            }
            before = *byte;
        }
        end(&mut word);
        let whole = match last {
            Meaning::Last(rule) | Meaning::Navigation(rule) => Some(rule),
            _ if has_previous && has_next => Some(Rule::Navigation),
            _ => None,
        };
        self.named = self.named.or(whole);
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
        let may_be_named = is_list
            || matches!(
                element,
                b"div"
                    | b"section"
                    | b"header"
                    | b"footer"
                    | b"aside"
                    | b"form"
                    | b"p"
                    | b"span"
                    | b"a"
                    | b"li"
                    | b"dl"
                    | b"details"
                    | b"h1"
                    | b"h2"
                    | b"h3"
                    | b"h4"
            );
        let navigational = self.navigational.filter(|_| is_list);
        let named = self.named.or(navigational).filter(|_| may_be_named);
        self.role.or(self.is_hidden.then_some(Rule::Hidden)).or(named)
    }
}

/// Whether a declaration of a style hides the element.
fn hides(declaration: &str) -> bool {
    let Some((property, value)) = declaration.split_once(':') else { return false };
    let begins = |with: &str| {
        value.trim_start().get(..with.len()).is_some_and(|value| value.eq_ignore_ascii_case(with))
    };
    let is = |name: &str| property.trim().eq_ignore_ascii_case(name);
    is("display") && begins("none") || is("visibility") && begins("hidden")
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
            ("div", "id", "cookie-bar", Rule::Dialog),
            ("div", "id", "siteSearch", Rule::Search),
            ("div", "id", "previous-and-next-page", Rule::Navigation),
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
        ] {
            assert!(leaves_out("div", &[("class", name)]), "{name}");
            assert!(leaves_out("div", &[("id", name)]), "{name}");
        }
        for name in
            ["", "-", "navPusher", "canvas", "header", "next-step", "footerless", "nav2x-body", "naviere"]
        {
            assert!(!leaves_out("div", &[("class", name)]), "{name}");
        }
        assert!(leaves_out("ul", &[("class", "nav-list")]) && leaves_out("td", &[("class", "NavBarCell1")]));
        assert!(!leaves_out("body", &[("class", "nav")]) && !leaves_out("code", &[("class", "menu")]));
    }

    #[test]
    fn roles_and_what_is_hidden_count_for_any_element() {
        assert!(leaves_out("x-bar", &[("role", "Navigation")]) && leaves_out("p", &[("hidden", "")]));
        assert!(leaves_out("p", &[("style", "color: red; DISPLAY : none !important")]));
        assert!(!leaves_out("p", &[("style", "display:block;visibility:visible")]));
        assert!(!leaves_out("p", &[("role", "presentation"), ("hidden", "until-found")]));
    }
}
