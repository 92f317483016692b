//! Finds redirects inside a page: a refresh or a script makes a browser leave a page that shows almost no
//! text. docs/reference/text.md defines the rule.
//!
//! Only a page with a sign of a redirect comes here. It is read a second time, like by a browser with scripts
//! and frames. Reading stops as soon as the page has shown too many words for a redirect, so most pages cost
//! little. A stack of open elements decides what is shown; its size is bounded by the page.

pub(crate) mod javascript;
mod open_elements;
mod reader;
mod refresh;

use doppel_model::PageUrl;
use url::Url;

use crate::html::syntax::Syntax;
use crate::tokens::tokeniser::Tokeniser;
use crate::xhtml;
use html5gum::Tokenizer;
use reader::Reader;

/// Minimum number of shown words that makes a page content instead of a redirect.
const SHOWN_WORDS: usize = 20;

/// Maximum delay in seconds of a refresh that is a redirect whether or not the page shows its target.
const DELAY_S_MAX: u32 = 1;

/// Maximum delay in seconds of a refresh that is a redirect if the page shows its target.
const NAMED_DELAY_S_MAX: u32 = 10;

/// Signs of a redirect that a page has shown so far.
#[derive(Debug)]
struct RedirectSigns<'t> {
    url: &'t PageUrl,
    tokeniser: &'t mut Tokeniser,
    /// URL of the page, parsed for resolving links.
    page_url: Option<Url>,
    /// Base URL of links. `None` before the first `<base>`.
    base: Option<Url>,
    /// First valid refresh.
    refresh: Option<Refresh>,
    /// Target of the last script that leads to another page.
    script: Option<PageUrl>,
    /// Links that the page shows, not resolved.
    links: Vec<String>,
    /// Text that the page has shown so far.
    shown: Vec<u8>,
    /// Length of `shown` at which its words are counted next.
    next_count_at: usize,
    /// Whether the page shows too many words for a redirect.
    is_content: bool,
}

/// First valid meta refresh of a page.
#[derive(Debug)]
struct Refresh {
    delay_s: u32,
    /// URL as the page writes it.
    reference: String,
    /// Resolved URL. `None` if the refresh leads to no other page.
    target: Option<PageUrl>,
}

/// Returns the target of a page, if the page is a redirect to another URL.
pub(super) fn target(
    url: &PageUrl,
    text: &str,
    syntax: Syntax,
    tokeniser: &mut Tokeniser,
) -> Option<PageUrl> {
    let mut signs = RedirectSigns {
        url,
        tokeniser,
        page_url: Url::parse(url.as_str()).ok(),
        base: None,
        refresh: None,
        script: None,
        links: Vec::new(),
        shown: Vec::new(),
        next_count_at: SHOWN_WORDS,
        is_content: false,
    };
    match syntax {
        // The first reading has found the page to be XML, so this reading does not fail.
        Syntax::Xml => xhtml::read(text, &mut Reader::new(&mut signs, syntax)).ok()?,
        Syntax::Html | Syntax::BrokenXml => {
            // The tokenizer stops when the reader emits its only token.
            Tokenizer::new_with_emitter(text, Reader::new(&mut signs, syntax)).next();
        }
    }
    signs.count_words();
    if signs.is_content {
        return None;
    }
    signs.refresh_target().or(signs.script)
}

impl RedirectSigns<'_> {
    /// Takes text that the page shows.
    fn push_shown_text(&mut self, text: &[u8]) {
        self.shown.extend_from_slice(text);
    }

    /// Counts the shown words if `shown` has grown enough since the last count.
    fn count_if_longer(&mut self) {
        if self.shown.len() >= self.next_count_at {
            self.count_words();
            // Geometric growth keeps the total time of counting linear in the text.
            self.next_count_at = self.shown.len() + self.shown.len() / 2;
        }
    }

    fn count_words(&mut self) {
        let mut text = self.shown.clone();
        self.is_content |= self.tokeniser.tokens(&mut text).len() >= SHOWN_WORDS;
    }

    /// Takes the link of a `<base>`. The first base counts, even if it is invalid.
    fn set_base(&mut self, link: &str) {
        if self.base.is_none() {
            let base = self.page_url.as_ref().and_then(|own| own.join(link).ok());
            // Browsers ignore a base with such a scheme.
            let base = base.filter(|base| !matches!(base.scheme(), "data" | "javascript"));
            self.base = base.or_else(|| self.page_url.clone());
        }
    }

    /// Takes a link that the page shows.
    fn add_link(&mut self, link: &str) {
        self.links.push(link.to_owned());
    }

    /// Resolves a link against the base URL at the current position.
    fn resolve(&self, link: &str) -> Option<Url> {
        self.base.as_ref().or(self.page_url.as_ref())?.join(link).ok()
    }

    /// Takes the `content` attribute of a refresh. The first valid refresh counts.
    fn set_refresh(&mut self, content: &str) {
        if self.refresh.is_some() {
            return;
        }
        let Some(refresh) = refresh::parse(content) else { return };
        let Some(target) = self.resolve(refresh.reference).filter(|target| target.scheme() != "javascript")
        else {
            return;
        };
        self.refresh = Some(Refresh {
            delay_s: refresh.delay_s,
            reference: refresh.reference.to_owned(),
            target: self.other_page(refresh.reference, &target).filter(|_| !refresh.reference.is_empty()),
        });
    }

    /// Takes the text of a script.
    fn take_script(&mut self, script: &str) {
        let Some(location) = javascript::location(script) else { return };
        let mut reference = location.reference;
        if location.with_query {
            // The script appends the query to its string, before the string is resolved.
            let query = self.url.as_str().split('#').next().and_then(|url| url.split_once('?'));
            let query = query.map_or(String::new(), |(_, query)| format!("?{query}"));
            reference.push_str(&query);
        }
        let Some(target) = self.resolve(&reference) else { return };
        self.script = self.other_page(&reference, &target).or(self.script.take());
    }

    /// Returns the page URL of `target`, to which `reference` resolves. `None` if it is no page URL or the
    /// URL of this page. Keeps the spelling of an absolute reference.
    fn other_page(&self, reference: &str, target: &Url) -> Option<PageUrl> {
        let target = PageUrl::of_link(target).ok()?.spelled_as(reference);
        (!target.is_spelling_of(self.url)).then_some(target)
    }

    /// Returns the target of the refresh, if its delay makes it a redirect.
    fn refresh_target(&self) -> Option<PageUrl> {
        let refresh = self.refresh.as_ref()?;
        let target = refresh.target.as_ref()?;
        let is_redirect = refresh.delay_s <= DELAY_S_MAX
            || refresh.delay_s <= NAMED_DELAY_S_MAX && self.has_shown_target(refresh, target);
        is_redirect.then(|| target.clone())
    }

    /// Whether the page shows the target as a link or as a word.
    fn has_shown_target(&self, refresh: &Refresh, target: &PageUrl) -> bool {
        let leads_there = |link: &String| {
            let page = self.resolve(link).and_then(|resolved| self.other_page(link, &resolved));
            page.is_some_and(|page| page.is_spelling_of(target))
        };
        if self.links.iter().any(leads_there) {
            return true;
        }
        let known = [bare_url(&refresh.reference), bare_url(target.as_str())];
        let text = String::from_utf8_lossy(&self.shown);
        text.split_whitespace().any(|word| {
            let word = bare_url(word.trim_matches(is_around_url));
            !word.is_empty() && known.iter().any(|known| known.eq_ignore_ascii_case(word))
        })
    }
}

/// Returns the URL without its scheme, its fragment and a slash at its end.
fn bare_url(url: &str) -> &str {
    let url = url.split('#').next().unwrap_or_default();
    let has_scheme =
        |scheme: &&str| url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    let scheme = ["https://", "http://", "file://", "//"].into_iter().find(has_scheme).map_or(0, str::len);
    let url = &url[scheme..];
    url.strip_suffix('/').unwrap_or(url)
}

/// Whether a character next to a URL in a text is punctuation around it.
fn is_around_url(c: char) -> bool {
    matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '(' | ')' | '[' | ']' | '<' | '>' | '"' | '\'')
        || !c.is_ascii() && !c.is_alphanumeric()
}

#[cfg(test)]
mod tests;
