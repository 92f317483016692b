//! Reads pages for the reference with the parser of the oracle. Words, terms and lines stay texts.

use std::path::Path;

use doppel_baseline::tokens::{each_code_token, each_token};
use doppel_model::{PageUrl, RawContent};
use doppel_text::{Extractor, PageText};
use url::{Host, Url};

use crate::oracle::crawl::FetchOutcome;
use crate::oracle::html::{self, parse};
use crate::oracle::{Crawl, redirect};
use crate::terms::terms;

/// Source of a page.
pub(crate) enum Source {
    Html(String),
    Text(String),
}

impl Source {
    /// Returns the source as input for the product.
    pub(crate) fn raw(&self) -> RawContent<'_> {
        match self {
            Self::Html(html) => RawContent::Html { bytes: html.as_bytes(), charset: Some("utf-8") },
            Self::Text(text) => RawContent::Text(text),
        }
    }
}

/// Page with everything that a policy may compare.
pub(crate) struct Page {
    pub(crate) url: PageUrl,
    pub(crate) source: Source,
    pub(crate) words: Vec<String>,
    /// Tokens of code.
    pub(crate) code: Vec<String>,
    /// Words of the main content, for HTML only. The product determines the main content, because its rules
    /// have separate tests.
    pub(crate) main: Option<Vec<String>>,
    pub(crate) terms: Vec<String>,
    pub(crate) lines: Vec<String>,
}

pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_token(text, |word| words.push(word.to_owned()));
    words
}

fn code(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    each_code_token(text, |token| tokens.push(token.to_owned()));
    tokens
}

impl Page {
    /// Reads an HTML page. Returns `None` if it is a redirect.
    fn of_html(url: &str, source: &str, extractor: &mut Extractor) -> Option<Self> {
        let page = parse(source);
        if redirect::target(url, source).is_some() {
            return None;
        }
        let url = PageUrl::parse(url).unwrap();
        let raw = RawContent::Html { bytes: source.as_bytes(), charset: Some("utf-8") };
        let PageText::Text(main) = extractor.main_text(&url, raw) else {
            panic!("the reference does not take {} for a redirect, but the product does", url.as_str())
        };
        let (main, words) = (Some(words(&main)), words(&page.text));
        let (terms, lines, code) = (terms(&words), lines_of_html(&page), code(&page.text));
        Some(Self { url, source: Source::Html(source.to_owned()), words, code, main, terms, lines })
    }

    pub(crate) fn of_text(url: &str, text: String) -> Self {
        let words = words(&text);
        let (url, terms) = (PageUrl::parse(url).unwrap(), terms(&words));
        let (lines, code) = (lines_of_text(&text), code(&text));
        Self { url, words, code, main: None, terms, lines, source: Source::Text(text) }
    }

    /// Returns the name of the site of the page.
    pub(crate) fn site(&self, site: Site) -> String {
        let url = Url::parse(self.url.as_str()).unwrap();
        let host = url.host_str().unwrap().trim_end_matches('.').to_owned();
        let levels: Vec<&str> = host.split('.').collect();
        match (site, url.host().unwrap()) {
            (Site::Host, _) | (_, Host::Ipv4(_) | Host::Ipv6(_)) => host,
            (Site::Registrable, _) => psl::domain_str(&host).unwrap_or(&host).to_owned(),
            (Site::Parent, _) if levels.len() > 2 => levels[1..].join("."),
            (Site::Parent, _) => host,
        }
    }
}

/// Definition of a site.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    Registrable,
    Host,
    Parent,
}

/// Reads the pages of crawl files, each in its newest version.
pub(crate) fn read(files: &[impl AsRef<Path>]) -> Vec<Page> {
    let crawl = Crawl::read(files).unwrap();
    let mut extractor = Extractor::default();
    let page = |(url, found): (&str, &FetchOutcome)| match found {
        FetchOutcome::Html(html) => Page::of_html(url, html, &mut extractor),
        FetchOutcome::Location(_) | FetchOutcome::Dead => None,
    };
    crawl.newest().filter_map(page).collect()
}

/// Returns the lines of a text. White space becomes a single space, and empty lines are dropped.
fn lines_of_text(text: &str) -> Vec<String> {
    text.split(['\n', '\r']).map(doppel_baseline::tokens::line).filter(|line| !line.is_empty()).collect()
}

/// Returns the lines that a browser shows. Block elements and `br` end a line, cells of a table do not. Line
/// feeds end a line only in preformatted elements.
fn lines_of_html(page: &html::Page) -> Vec<String> {
    let mut shown = String::new();
    let mut preformatted = 0_u32;
    let mut from = 0;
    let end = (page.text.len(), String::new());
    for (at, tag) in page.tags.iter().chain([&end]) {
        let text = &page.text[from..*at];
        shown += &if preformatted > 0 { text.to_owned() } else { text.replace(['\n', '\r'], " ") };
        // Skips the space that stands for the tag.
        from = at + 1;
        let name = tag.trim_start_matches('/');
        if PREFORMATTED.contains(&name) {
            preformatted =
                if tag.starts_with('/') { preformatted.saturating_sub(1) } else { preformatted + 1 };
        }
        if BLOCKS.contains(&name) {
            shown.push('\n');
        } else if ["td", "th"].contains(&name) {
            shown.push(' ');
        }
    }
    lines_of_text(&shown)
}

const PREFORMATTED: [&str; 5] = ["pre", "listing", "plaintext", "textarea", "xmp"];

#[rustfmt::skip]
const BLOCKS: [&str; 56] = [
    "html", "head", "title", "body", "frameset", "address", "article", "aside", "blockquote", "center", "details", "dialog",
    "dir", "div", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "legend", "listing", "main", "menu",
    "nav", "p", "plaintext", "pre", "search", "section", "summary", "textarea", "xmp", "br", "hr", "h1", "h2", "h3", "h4", "h5",
    "h6", "ul", "ol", "li", "dl", "dt", "dd", "optgroup", "option", "table", "caption", "thead", "tbody", "tfoot", "tr",
];
