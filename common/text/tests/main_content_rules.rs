//! Compares the main content of random markup with that of a slow reader of the same rules.
//!
//! The slow reader sees all tags at once. It searches the end of each element from its start tag on, so it
//! needs no state, and its time is quadratic in the page. Titles and foreign content are covered by other
//! tests.
#![allow(clippy::unwrap_used)]

use doppel_model::{PageUrl, RawContent};
use doppel_text::{Extractor, PageText};
use proptest::prelude::*;

/// Meaning of a start tag for the main content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// No meaning.
    Plain,
    /// Boilerplate, which is omitted.
    Omitted,
    /// Boilerplate outside main elements, articles and sections.
    OmittedAtTop,
    /// Main element.
    Main,
}
use Sign::{Main, Omitted, OmittedAtTop, Plain};

#[derive(Debug, Clone, Copy)]
enum Piece {
    /// Start tag with its name, its attributes and its meaning.
    Start(&'static str, &'static str, Sign),
    /// End tag with its name.
    End(&'static str),
    /// Words of the page.
    Words,
    /// Hidden SVG element around a word.
    Hidden,
    /// Hidden SVG element that is self-closed.
    Image,
}
use Piece::{End, Hidden, Image, Start, Words};

const PIECES: &[Piece] = &[
    Words,
    Words,
    Words,
    Words,
    Hidden,
    Image,
    Start("div", "", Plain),
    Start("div", "class=nav", Omitted),
    Start("div", "id=site-nav", OmittedAtTop),
    Start("div", "id=nav-site", Plain),
    Start("div", "class='sect1' id=copyright", Plain),
    Start("div", "role=main", Main),
    End("div"),
    Start("main", "", Main),
    End("main"),
    Start("section", "", Plain),
    Start("section", "id=pagination", Plain),
    Start("section", "class=pagination", Omitted),
    Start("section", "role=main class=ads", Main),
    End("section"),
    Start("article", "", Plain),
    End("article"),
    Start("header", "", OmittedAtTop),
    End("header"),
    Start("aside", "", OmittedAtTop),
    End("aside"),
    Start("nav", "/", Omitted),
    End("nav"),
    Start("ul", "", Plain),
    Start("ul", "class=menu-items", Omitted),
    End("ul"),
    Start("li", "", Plain),
    Start("li", "class=skip", Omitted),
    End("li"),
    Start("dl", "", Plain),
    End("dl"),
    Start("dt", "hidden", Omitted),
    Start("dd", "", Plain),
    Start("table", "", Plain),
    End("table"),
    Start("tbody", "style=display:none", Omitted),
    Start("tbody", "", Plain),
    End("tbody"),
    Start("thead", "hidden", Omitted),
    Start("tr", "", Plain),
    Start("tr", "hidden", Omitted),
    End("tr"),
    Start("td", "", Plain),
    Start("td", "class=sidebar", Omitted),
    End("td"),
    Start("caption", "", Plain),
    Start("p", "", Plain),
    Start("p", "class=legal", Omitted),
    End("p"),
    Start("hr", "class=nav", Plain),
    Start("br", "hidden", Plain),
    Start("h2", "id=menu", Plain),
    End("h2"),
    Start("a", "href=x", Plain),
    Start("a", "class=toc id=x /", Omitted),
    Start("a", "id=toc", Plain),
    End("a"),
    Start("span", "class=share", Omitted),
    Start("span", "class=share-1", Plain),
    End("span"),
    Start("button", "", Omitted),
    End("button"),
    Start("select", "", Omitted),
    End("select"),
    Start("form", "class=search", Omitted),
    Start("form", "", Plain),
    End("form"),
    Start("object", "", Plain),
    End("object"),
    Start("template", "", Omitted),
    End("template"),
];

/// Rules for the end of an element whose end tag may be missing: the start tags that end it, the end tags
/// that end it, and its containers. Tags inside a container do not count. `None` if the end tag is required.
fn implied_end(name: &str) -> Option<[&'static str; 3]> {
    let blocks = "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup main \
        menu nav ol p search section summary ul h1 h2 h3 h4 h5 h6 pre listing form li dd dt plaintext table hr xmp caption td th tr \
        tbody thead tfoot body";
    match name {
        "p" => Some([blocks, blocks, "button object template applet marquee"]),
        "li" => Some(["li", "li", "ul ol menu"]),
        "dt" | "dd" => Some(["dt dd", "dt dd", "dl"]),
        "td" | "th" => {
            Some(["td th tr tbody thead tfoot caption colgroup", "td th tr tbody thead tfoot", "table"])
        }
        "tr" => Some(["tr tbody thead tfoot caption colgroup", "tr tbody thead tfoot", "table"]),
        "tbody" | "thead" | "tfoot" => {
            Some(["tbody thead tfoot caption colgroup", "tbody thead tfoot", "table"])
        }
        _ => None,
    }
}

fn contains(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// Returns the begin and the end of each main element. The last element may be open at the end of the page.
fn mains(pieces: &[Piece]) -> Vec<(usize, usize)> {
    let mut mains = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        if let Start(name, _, Main) = pieces[at] {
            let end = nested_end(pieces, at, name).unwrap_or(pieces.len());
            mains.push((at, end));
            at = end;
        }
        at += 1;
    }
    mains
}

/// Returns the end tag of an element that may contain elements of the same name.
fn nested_end(pieces: &[Piece], start: usize, name: &str) -> Option<usize> {
    let depth = |upto: usize| {
        let count = |is: fn(&Piece) -> Option<&'static str>| {
            pieces[start..=upto].iter().filter(|piece| is(piece) == Some(name)).count()
        };
        count(|piece| if let Start(name, ..) = piece { Some(name) } else { None })
            - count(|piece| if let End(name) = piece { Some(name) } else { None })
    };
    (start + 1..pieces.len()).find(|at| depth(*at) == 0)
}

/// Returns the tag that ends an omitted element, ignoring the main element around it, or `None` if no tag
/// ends it. Also returns a function that says whether the element may still be open when the element around
/// it ends at a position.
fn own_end(pieces: &[Piece], start: usize, name: &str) -> (Option<usize>, Box<dyn Fn(usize) -> bool>) {
    let starts = |names: &'static str| move |at: &usize| matches!(pieces[*at], Start(name, ..) if contains(names, name));
    let mut behind = start + 1..pieces.len();
    let Some([start_tags, end_tags, containers]) = implied_end(name) else {
        let end = match name {
            "a" => behind.find(|at| starts("a")(at) || matches!(pieces[*at], End("a"))),
            "button" => behind.find(|at| starts("button")(at) || matches!(pieces[*at], End("button"))),
            "select" => behind.find(|at| starts("select")(at) || matches!(pieces[*at], End("select"))),
            "form" => behind.find(|at| matches!(pieces[*at], End("form"))),
            _ => nested_end(pieces, start, name),
        };
        return (end, Box::new(|_| false));
    };
    // Number of open containers before each piece.
    let mut depths = vec![0_i32; pieces.len() + 1];
    let mut end = None;
    for at in behind {
        let depth = depths[at];
        depths[at + 1] = depth;
        let (is_end, step) = match pieces[at] {
            Start(tag, ..) => (depth == 0 && contains(start_tags, tag), i32::from(contains(containers, tag))),
            End(tag) if contains(containers, tag) => (depth == 0, -1),
            End(tag) => (depth == 0 && contains(end_tags, tag), 0),
            _ => (false, 0),
        };
        if is_end {
            end = Some(at);
            break;
        }
        depths[at + 1] += step;
    }
    let is_paragraph = name == "p";
    (end, Box::new(move |at| is_paragraph && depths[at] == 0))
}

/// Returns for each piece whether it is omitted.
fn omitted_pieces(pieces: &[Piece]) -> Vec<bool> {
    let mains = mains(pieces);
    let mut out: Vec<bool> = pieces.iter().map(|piece| matches!(piece, Hidden)).collect();
    let mut at = 0;
    while at < pieces.len() {
        let start = at;
        at += 1;
        let Start(name, _, sign) = pieces[start] else { continue };
        let around = mains.iter().find(|(from, to)| (*from..*to).contains(&start));
        let sections = pieces[..start].iter().fold(0_u32, |open, piece| match piece {
            Start("section" | "article", ..) => open + 1,
            End("section" | "article") => open.saturating_sub(1),
            _ => open,
        });
        let is_omitted = sign == Omitted || sign == OmittedAtTop && around.is_none() && sections == 0;
        if !is_omitted {
            continue;
        }
        let (own, may_be_open) = own_end(pieces, start, name);
        let next_main = (start + 1..pieces.len()).find(|at| matches!(pieces[*at], Start(_, _, Main)));
        let outer = around.map_or(pieces.len(), |(_, to)| *to);
        let end = own.into_iter().chain(next_main).min().filter(|end| *end <= outer);
        match end {
            Some(end) => {
                out[start..end].fill(true);
                let is_second_select = matches!(pieces[end], Start("select", ..)) && name == "select";
                at = end + usize::from(is_second_select);
            }
            None => {
                out[start..outer].fill(may_be_open(outer));
                at = outer;
            }
        }
    }
    out
}

fn words(piece: Piece, at: usize) -> Vec<String> {
    match piece {
        Words => (0..7).map(|n| format!("w{at}x{n}")).collect(),
        Hidden => vec![format!("h{at}")],
        _ => Vec::new(),
    }
}

fn html(pieces: &[Piece]) -> String {
    let html = |(at, piece): (usize, &Piece)| match piece {
        Start(name, attributes, _) => format!("<{name} {attributes}>"),
        End(name) => format!("</{name}>"),
        Words => words(*piece, at).join(" ") + " ",
        Hidden => format!("<svg hidden><g>{}<path/></g></svg>", words(*piece, at).concat()),
        Image => "<svg aria-hidden=true />".to_owned(),
    };
    pieces.iter().enumerate().map(html).collect()
}

/// Returns the words of the main content by the rules.
fn expected(pieces: &[Piece]) -> Vec<String> {
    let (mains, out) = (mains(pieces), omitted_pieces(pieces));
    let is_main = |at: usize| mains.iter().any(|(from, to)| (*from..*to).contains(&at));
    let of = |is_included: &dyn Fn(usize) -> bool| -> Vec<String> {
        let taken = pieces.iter().enumerate().filter(|(at, _)| is_included(*at));
        taken.flat_map(|(at, piece)| words(*piece, at)).collect()
    };
    let parts = [of(&|at| is_main(at) && !out[at]), of(&|at| !out[at])];
    parts.into_iter().find(|words| words.len() >= 20).unwrap_or_else(|| of(&|_| true))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn the_main_content_equals_that_of_a_slow_reader(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60),
    ) {
        let html = html(&pieces);
        let url = PageUrl::parse("http://example.org/").unwrap();
        let mut extractor = Extractor::default();
        let raw = RawContent::Html { bytes: html.as_bytes(), charset: None };
        let PageText::Text(text) = extractor.main_text(&url, raw) else { panic!("unexpected redirect") };
        let words: Vec<&str> = text.split_whitespace().collect();
        prop_assert_eq!(words, expected(&pieces), "{}", html);
    }
}
