//! Redirects inside a page: a refresh or a script by which a browser leaves a page that shows next to nothing. docs/PAGES.md has the rule.
//!
//! Only pages with a sign of a redirect are looked at, once more and as a browser with scripts reads them. Reading ends where the page has
//! shown enough words, so most of these cost little. Open elements are known by a stack, which is bounded by the page.

mod open_elements;
mod reader;

use doppel_model::PageUrl;
use url::Url;

use super::syntax::Syntax;
use super::token::Tokeniser;
use super::xhtml;
use html5gum::Tokenizer;
use reader::Reader;

/// A page that shows this many words is content.
const SHOWN_WORDS: usize = 20;

/// The longest delay in seconds with which a refresh is a redirect, whatever the page shows beside.
const DELAY_S_MAX: u32 = 1;

/// The longest delay in seconds with which a refresh is a redirect if the page names the target.
const NAMED_DELAY_S_MAX: u32 = 10;

/// What a page says about where it leads.
#[derive(Debug)]
struct Signs<'t> {
    url: &'t PageUrl,
    tokeniser: &'t mut Tokeniser,
    /// The URL of the page as links are resolved against it.
    own: Option<Url>,
    /// Against what links are resolved so far; none before the first `<base>`.
    base: Option<Url>,
    /// The first refresh that counts.
    refresh: Option<Refresh>,
    /// Where the last script that sets the location leads.
    script: Option<PageUrl>,
    /// Links that are shown, not resolved.
    links: Vec<String>,
    /// The text that is shown, so far.
    shown: Vec<u8>,
    /// Text of this length is counted next.
    counted_next: usize,
    /// Whether the page shows too many words to be a redirect.
    is_content: bool,
}

/// A refresh that counts.
#[derive(Debug)]
struct Refresh {
    delay_s: u32,
    /// The URL as it is written.
    reference: String,
    /// None if it leads to no page.
    target: Option<PageUrl>,
}

/// The target of a page, if it is a redirect to another URL than its own.
pub(super) fn target(
    url: &PageUrl,
    text: &str,
    syntax: Syntax,
    tokeniser: &mut Tokeniser,
) -> Option<PageUrl> {
    let mut signs = Signs {
        url,
        tokeniser,
        own: Url::parse(url.as_str()).ok(),
        base: None,
        refresh: None,
        script: None,
        links: Vec::new(),
        shown: Vec::new(),
        counted_next: SHOWN_WORDS,
        is_content: false,
    };
    match syntax {
        // It has been found to be XML, or it would have another syntax.
        Syntax::Xml => xhtml::read(text, &mut Reader::new(&mut signs, syntax)).ok()?,
        Syntax::Html | Syntax::BrokenXml => {
            // It stops where it gives a token.
            Tokenizer::new_with_emitter(text, Reader::new(&mut signs, syntax)).next();
        }
    }
    signs.count();
    if signs.is_content {
        return None;
    }
    signs.refreshed().or(signs.script)
}

impl Signs<'_> {
    /// Takes text that is shown.
    fn show(&mut self, text: &[u8]) {
        self.shown.extend_from_slice(text);
    }

    /// Counts the words that are shown, if there may be enough of them.
    fn count_sometimes(&mut self) {
        if self.shown.len() >= self.counted_next {
            self.count();
            // So that counting takes a time that is linear in the text.
            self.counted_next = self.shown.len() + self.shown.len() / 2;
        }
    }

    fn count(&mut self) {
        let mut text = self.shown.clone();
        self.is_content |= self.tokeniser.tokens(&mut text).len() >= SHOWN_WORDS;
    }

    /// Takes the link of a `<base>`. The first one counts, even if it is no URL.
    fn set_base(&mut self, link: &str) {
        if self.base.is_none() {
            let base = self.own.as_ref().and_then(|own| own.join(link).ok());
            // A page cannot have its links resolved by such a URL.
            let base = base.filter(|base| !matches!(base.scheme(), "data" | "javascript"));
            self.base = base.or_else(|| self.own.clone());
        }
    }

    /// Takes a link that is shown.
    fn add_link(&mut self, link: &str) {
        self.links.push(link.to_owned());
    }

    /// Resolves a link against the base that is known so far.
    fn resolve(&self, link: &str) -> Option<Url> {
        self.base.as_ref().or(self.own.as_ref())?.join(link).ok()
    }

    /// Takes the content of a refresh. The first valid one counts.
    fn set_refresh(&mut self, content: &str) {
        if self.refresh.is_some() {
            return;
        }
        let Some(refresh) = super::refresh::parse(content) else { return };
        let Some(target) = self.resolve(refresh.reference).filter(|target| target.scheme() != "javascript")
        else {
            return;
        };
        self.refresh = Some(Refresh {
            delay_s: refresh.delay_s,
            reference: refresh.reference.to_owned(),
            target: self.page(refresh.reference, &target).filter(|_| !refresh.reference.is_empty()),
        });
    }

    /// Takes a whole script.
    fn run(&mut self, script: &str) {
        let Some(location) = super::javascript::location(script) else { return };
        let mut reference = location.reference;
        if location.with_query {
            // The query is appended to the string, not to the URL.
            let query = self.url.as_str().split('#').next().and_then(|url| url.split_once('?'));
            let query = query.map_or(String::new(), |(_, query)| format!("?{query}"));
            reference.push_str(&query);
        }
        let Some(target) = self.resolve(&reference) else { return };
        self.script = self.page(&reference, &target).or(self.script.take());
    }

    /// The page that a reference names, which resolves to this URL, if that is another page than this one. It keeps the spelling of an
    /// absolute reference.
    fn page(&self, reference: &str, target: &Url) -> Option<PageUrl> {
        let target = PageUrl::of_link(target).ok()?.spelled_as(reference);
        (!target.is_spelling_of(self.url)).then_some(target)
    }

    /// Where the refresh leads, if it is a redirect.
    fn refreshed(&self) -> Option<PageUrl> {
        let refresh = self.refresh.as_ref()?;
        let target = refresh.target.as_ref()?;
        let is_redirect = refresh.delay_s <= DELAY_S_MAX
            || refresh.delay_s <= NAMED_DELAY_S_MAX && self.names(refresh, target);
        is_redirect.then(|| target.clone())
    }

    /// Whether a link or a word that is shown is the target.
    fn names(&self, refresh: &Refresh, target: &PageUrl) -> bool {
        let leads_there = |link: &String| {
            let page = self.resolve(link).and_then(|resolved| self.page(link, &resolved));
            page.is_some_and(|page| page.is_spelling_of(target))
        };
        if self.links.iter().any(leads_there) {
            return true;
        }
        let known = [bare(&refresh.reference), bare(target.as_str())];
        let text = String::from_utf8_lossy(&self.shown);
        text.split_whitespace().any(|word| {
            let word = bare(word.trim_matches(is_around_url));
            !word.is_empty() && known.iter().any(|known| known.eq_ignore_ascii_case(word))
        })
    }
}

/// A URL without its scheme, its fragment, and a slash at its end.
fn bare(url: &str) -> &str {
    let url = url.split('#').next().unwrap_or_default();
    let has_scheme =
        |scheme: &&str| url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    let scheme = ["https://", "http://", "file://", "//"].into_iter().find(has_scheme).map_or(0, str::len);
    let url = &url[scheme..];
    url.strip_suffix('/').unwrap_or(url)
}

/// Punctuation around a URL in a text.
fn is_around_url(c: char) -> bool {
    matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '(' | ')' | '[' | ']' | '<' | '>' | '"' | '\'')
        || !c.is_ascii() && !c.is_alphanumeric()
}

#[cfg(test)]
mod tests;
