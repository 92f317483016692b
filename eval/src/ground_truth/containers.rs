//! Location of the main content of a page: for each host, the HTML element that holds the main content.

use std::collections::BTreeMap;
use std::ops::Range;

use doppel_baseline::{ContentId, Contents};
use doppel_crawls::FetchedBody;
use doppel_model::{PageUrl, RawContent};
use doppel_text::Extractor;

use crate::ground_truth::labelled::CrawledPages;

/// Name of an element, and the text that its tag must contain.
type Element = (&'static str, &'static str);

const JAVADOC: &[Element] = &[("div", "class=\"contentContainer\""), ("main", "")];
const DOCBOOK: &[Element] =
    &[("div", "class=\"refentry\""), ("div", "class=\"sect1\""), ("div", "class=\"section\"")];

/// Elements that can hold the main content of a page, by host. The first element that the page has counts.
const CONTAINERS: &[(&str, &[Element])] = &[
    ("curator.apache.org", &[("main", "")]),
    ("doc.rust-lang.org", &[("section", "id=\"main-content\""), ("main", "")]),
    ("docs.jboss.org", JAVADOC),
    ("docs.oracle.com", JAVADOC),
    ("docs.osgi.org", JAVADOC),
    ("docs.python.org", &[("div", "class=\"body\"")]),
    ("druid.apache.org", &[("article", "")]),
    ("eclipse-ee4j.github.io", JAVADOC),
    ("felix.apache.org", JAVADOC),
    ("flink.apache.org", &[("article", "")]),
    ("geronimo.apache.org", JAVADOC),
    ("jakartaee.github.io", JAVADOC),
    ("javaee.github.io", JAVADOC),
    ("jsr311.java.net", JAVADOC),
    ("kafka.apache.org", JAVADOC),
    ("numpy.org", &[("article", ""), ("main", ""), ("div", "class=\"body\"")]),
    ("www.boost.org", DOCBOOK),
    ("www.postgresql.org", DOCBOOK),
];

/// Minimum number of tokens of a main content; pages below it are left out.
const TOKENS_MIN: usize = 100;

/// Page whose main content is known.
pub(crate) struct PageWithMainContent<'c> {
    pub(crate) url: &'c PageUrl,
    pub(crate) html: &'c [u8],
    /// Range of the main content in `html`.
    pub(crate) main: Range<usize>,
    /// Text of the main content.
    pub(crate) text: String,
    pub(crate) content: ContentId,
}

/// Pages whose main content is known, by host. Hosts with only one such page are left out.
pub(crate) struct PagesWithMainContent<'c> {
    pub(crate) by_host: BTreeMap<String, Vec<PageWithMainContent<'c>>>,
    /// Main contents of all pages.
    pub(crate) contents: Contents,
}

impl<'c> PagesWithMainContent<'c> {
    /// Finds the main contents of the pages of a crawl.
    pub(crate) fn of(crawled: &'c CrawledPages) -> Self {
        let mut contents = Contents::default();
        let mut extractor = Extractor::default();
        let mut by_host: BTreeMap<String, Vec<PageWithMainContent<'c>>> = BTreeMap::new();
        for page in &crawled.pages {
            let host = page.url.host();
            let (Some(elements), FetchedBody::Html { bytes, .. }) = (elements(&host), &page.body) else {
                continue;
            };
            let Some(main) = container(bytes, elements) else { continue };
            let raw = RawContent::Html { bytes: &bytes[main.clone()], charset: Some("utf-8") };
            let Some(text) = extractor.page_text(&page.url, raw).text() else { continue };
            let (text, content) = (text.to_string(), contents.intern(&text));
            if contents.get(content).tokens >= TOKENS_MIN {
                let page = PageWithMainContent { url: &page.url, html: bytes, main, text, content };
                by_host.entry(host).or_default().push(page);
            }
        }
        by_host.retain(|_, pages| pages.len() > 1);
        Self { by_host, contents }
    }
}

/// Elements that can hold the main content of a page of a host. `None` if the host is not known.
pub(crate) fn elements(host: &str) -> Option<&'static [Element]> {
    CONTAINERS.iter().find(|(name, _)| *name == host).map(|(_, elements)| *elements)
}

/// Finds the content of the first of `elements` that the page has.
pub(crate) fn container(html: &[u8], elements: &[Element]) -> Option<Range<usize>> {
    elements.iter().find_map(|(name, has)| {
        let mut from = 0;
        loop {
            let tag = next_tag(html, from, name)?;
            if !tag.is_end && contains(&html[tag.range.clone()], has.as_bytes()) {
                return Some(tag.range.end..end_of(html, tag.range.end, name)?);
            }
            from = tag.range.end;
        }
    })
}

/// Position of the end tag that closes an element. The content of the element begins at `from`.
fn end_of(html: &[u8], from: usize, name: &str) -> Option<usize> {
    let (mut at, mut depth) = (from, 0_usize);
    loop {
        let tag = next_tag(html, at, name)?;
        match (tag.is_end, depth) {
            (true, 0) => return Some(tag.range.start),
            (true, _) => depth -= 1,
            (false, _) => depth += 1,
        }
        at = tag.range.end;
    }
}

struct Tag {
    range: Range<usize>,
    is_end: bool,
}

/// Finds the next start or end tag with this name.
fn next_tag(html: &[u8], mut from: usize, name: &str) -> Option<Tag> {
    loop {
        let start = from + html.get(from..)?.iter().position(|byte| *byte == b'<')?;
        let is_end = html.get(start + 1) == Some(&b'/');
        let own = start + 1 + usize::from(is_end);
        let end = own + name.len();
        let is_named = html.get(own..end).is_some_and(|own| own.eq_ignore_ascii_case(name.as_bytes()));
        let is_whole =
            html.get(end).is_some_and(|byte| matches!(byte, b'>' | b'/') || byte.is_ascii_whitespace());
        if is_named && is_whole {
            let close = end + html.get(end..)?.iter().position(|byte| *byte == b'>')?;
            return Some(Tag { range: start..close + 1, is_end });
        }
        from = start + 1;
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_ends_where_its_element_does() {
        let html = b"<div id=a><p>x</div><DIV class=\"body\">in <div>deep</div> side</DIV> out</div>";
        let inner = container(html, &[("main", ""), ("div", "class=\"body\"")]).unwrap();
        assert_eq!(&html[inner], b"in <div>deep</div> side");
        assert_eq!(container(b"<divide class=\"body\">x</divide>", &[("div", "class=\"body\"")]), None);
        assert_eq!(container(b"<main>never closed", &[("main", "")]), None);
    }
}
