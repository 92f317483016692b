//! The live pages of a crawl, with their contents as exact sets.

use std::collections::{BTreeMap, BTreeSet};

use doppel_baseline::{ContentId, Contents, TOKENS_MIN};

use super::crawl::{Crawl, FetchOutcome};
use super::{MAX_HOPS, html, redirect};

/// A live page.
pub(crate) enum Page {
    /// A page with this content.
    Content(ContentId),
    /// A redirect to this URL.
    Redirect(String),
}

/// Where a page or a chain of redirects ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution<'c> {
    /// At the page with this URL (itself, if it is no redirect) and this content.
    At(&'c str, ContentId),
    /// Nowhere, for this reason.
    Unresolved(Reason),
}

/// Why a redirect does not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A target in the chain was never fetched, or is dead.
    NotLive,
    /// The chain has a loop, or more hops than allowed.
    LoopOrTooLong,
}

/// All live pages and their contents.
#[derive(Default)]
pub(crate) struct Collection {
    pub(crate) pages: BTreeMap<String, Page>,
    pub(crate) contents: Contents,
    pub(crate) dead: Vec<String>,
    /// Time of the earliest fetch, by URL.
    pub(crate) first_seen: BTreeMap<String, String>,
    /// All URLs that were fetched, also of dead pages, by their normal form.
    forms: BTreeMap<String, BTreeSet<String>>,
}

impl Collection {
    /// Parses the newest version of every page.
    pub(crate) fn new(crawl: &Crawl) -> Self {
        let mut collection = Self { first_seen: crawl.first_seen.clone(), ..Self::default() };
        for (url, found) in crawl.newest() {
            let form = redirect::normal(url).unwrap_or_else(|| url.to_owned());
            collection.forms.entry(form).or_default().insert(url.to_owned());
            let page = match found {
                FetchOutcome::Dead => {
                    collection.dead.push(url.to_owned());
                    continue;
                }
                // A reference that is not a URL does not resolve, like a URL that was never fetched.
                FetchOutcome::Location(reference) => {
                    let as_sent = redirect::as_sent(reference).map(str::to_owned);
                    let target = as_sent.or_else(|| redirect::resolve(url, None, reference));
                    Page::Redirect(target.unwrap_or_else(|| reference.clone()))
                }
                FetchOutcome::Html(html) => match redirect::target(url, html) {
                    Some(target) => Page::Redirect(target),
                    None => Page::Content(collection.contents.intern(&html::parse(html).text)),
                },
            };
            collection.pages.insert(url.to_owned(), page);
        }
        collection
    }

    /// Follows redirects, beginning with this page.
    pub(crate) fn resolve(&self, url: &str) -> Resolution<'_> {
        let mut at = url;
        for _ in 0..=MAX_HOPS {
            match self.pages.get_key_value(at) {
                None => return Resolution::Unresolved(Reason::NotLive),
                Some((url, Page::Content(content))) => return Resolution::At(url, *content),
                Some((from, Page::Redirect(target))) => match self.page_of_target(from, target) {
                    None => return Resolution::Unresolved(Reason::NotLive),
                    Some(page) => at = page,
                },
            }
        }
        Resolution::Unresolved(Reason::LoopOrTooLong)
    }

    /// The page that the target of a redirect names, by docs/reference/versions.md: the page whose URL equals
    /// the target as sent, else the page whose URL is the normal form of the target, else the first in byte
    /// order of the other pages with that normal form.
    fn page_of_target(&self, redirect: &str, target: &str) -> Option<&str> {
        let form = redirect::normal(target)?;
        let of_form = self.forms.get(&form)?;
        let named = [target, &form].into_iter().find_map(|url| of_form.get(url));
        named.or_else(|| of_form.iter().find(|url| *url != redirect)).map(String::as_str)
    }

    /// Whether this is a page with a text that is long enough to be compared by similarity.
    pub(crate) fn is_comparable(&self, url: &str) -> bool {
        match self.pages.get(url) {
            Some(Page::Content(content)) => self.contents.get(*content).tokens >= TOKENS_MIN,
            _ => false,
        }
    }
}
