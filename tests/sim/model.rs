//! The model: the accepted versions of all pages, and the groups that follow from them. It knows nothing of
//! shards, messages, partitions and membership numbers.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use doppel_contract::{UnresolvedReason, WinnerRule};
use doppel_model::{ContentHash, PageId, PageUrl};

use super::contents::Contents;
use super::order::decide;

/// Maximal number of redirects that are followed.
const HOPS_MAX: usize = 20;

/// A page by its number.
pub(crate) type Page = usize;

/// The URL of a page. URLs have different lengths, two schemes and three hosts, and are static or dynamic.
/// Every sixth and every ninth URL is another spelling of the URL of the previous page.
pub(crate) fn url(page: Page) -> PageUrl {
    let (of, spelled) = written(page);
    let url = normal(of);
    match spelled {
        Spelled::Normal => url,
        Spelled::Scheme => PageUrl::parse(&url.as_str().replacen("http", "HTTP", 1)).unwrap(),
        Spelled::Path => {
            let (host, path) = url.as_str().rsplit_once('/').unwrap();
            PageUrl::parse(&format!("{host}/x/../{path}")).unwrap()
        }
    }
}

/// How the URL of a page is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelled {
    Normal,
    Scheme,
    Path,
}

/// The page whose URL is the normalised form of this page's URL, and the spelling of this page's URL.
pub(crate) fn written(page: Page) -> (Page, Spelled) {
    match page % 9 {
        5 => (page - 1, Spelled::Scheme),
        6 => (page - 2, Spelled::Path),
        8 => (page - 1, Spelled::Path),
        _ => (page, Spelled::Normal),
    }
}

fn normal(page: Page) -> PageUrl {
    let path = "x".repeat(page % 4);
    let query = if page % 5 == 4 { "?q" } else { "" };
    let scheme = if page % 7 == 3 { "https" } else { "http" };
    PageUrl::parse(&format!("{scheme}://h{}/{path}{page}{query}", page % 3)).unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Content(usize),
    Redirect(Page),
    Dead,
}

/// A version of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Version {
    pub(crate) page: Page,
    pub(crate) date: i64,
    pub(crate) popularity: Option<f64>,
    pub(crate) body: Body,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RecordedPage {
    pub(crate) date: i64,
    pub(crate) first_seen: i64,
    pub(crate) popularity: Option<f64>,
    /// Date of the version that gave the popularity.
    pub(crate) popularity_at: Option<i64>,
    pub(crate) body: Body,
}

/// A group that must exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Component {
    pub(crate) contents: BTreeSet<Page>,
    pub(crate) redirects: BTreeSet<Page>,
    pub(crate) winner: Page,
}

#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) contents: &'static Contents,
    pub(crate) pages: BTreeMap<Page, RecordedPage>,
    /// Every accepted version in order of acceptance, without those of pages that were forgotten since.
    pub(crate) history: Vec<Version>,
    ids: BTreeMap<PageId, Page>,
    pub(crate) rules: Vec<WinnerRule>,
}

impl Model {
    pub(crate) fn new(contents: &'static Contents, pages: usize, rules: &[WinnerRule]) -> Self {
        let ids = (0..pages).map(|page| (url(page).id(), page)).collect();
        Self { contents, pages: BTreeMap::new(), history: Vec::new(), ids, rules: rules.to_vec() }
    }

    pub(crate) fn page(&self, id: PageId) -> Page {
        self.ids[&id]
    }

    /// Records an accepted version.
    pub(crate) fn accept(&mut self, version: &Version) {
        self.history.push(*version);
        let Version { page, date, popularity, body } = *version;
        let popularity_at = popularity.map(|_| date);
        let new = RecordedPage { date, first_seen: date, popularity, popularity_at, body };
        let known = self.pages.get(&page).copied().unwrap_or(new);
        let place = |page: &RecordedPage| (page.date, self.place(page.body));
        let last = if place(&new) > place(&known) { new } else { known };
        let by_popularity = |page: &RecordedPage| (page.popularity_at, page.popularity);
        let popular = if by_popularity(&new) > by_popularity(&known) { new } else { known };
        let RecordedPage { popularity, popularity_at, .. } = popular;
        let first_seen = known.first_seen.min(date);
        self.pages.insert(page, RecordedPage { first_seen, popularity, popularity_at, ..last });
    }

    /// Whether a version is on record, or precedes the version on record in the order of versions.
    pub(crate) fn is_known(&self, version: &Version) -> bool {
        self.pages.get(&version.page).is_some_and(|known| {
            (version.date, self.place(version.body)) <= (known.date, self.place(known.body))
        })
    }

    /// The rank of a body among versions with one date: redirects by target, then contents by hash, then a
    /// death.
    fn place(&self, body: Body) -> (u8, Option<PageUrl>, Option<ContentHash>) {
        match body {
            Body::Redirect(to) => (0, Some(url(to)), None),
            Body::Content(content) => (1, None, Some(self.contents.hash(content))),
            Body::Dead => (2, None, None),
        }
    }

    pub(crate) fn forget(&mut self, page: Page) {
        self.pages.remove(&page);
        self.history.retain(|version| version.page != page);
    }

    pub(crate) fn content(&self, page: Page) -> Option<usize> {
        match self.pages.get(&page)?.body {
            Body::Content(content) => Some(content),
            Body::Redirect(_) | Body::Dead => None,
        }
    }

    /// The page that the target of a redirect names: the page with that URL, if it is known, else the page
    /// with its normalised form, else the first other page with that form.
    pub(crate) fn target(&self, asker: Page, to: Page) -> Option<Page> {
        let form = written(to).0;
        let named = [to, form].into_iter().find(|page| self.pages.contains_key(page));
        let others = self.pages.keys().copied().filter(|page| written(*page).0 == form && *page != asker);
        named.or_else(|| others.min_by_key(|page| url(*page)))
    }

    /// The page with content at the end of a page's redirects. A page with content is its own end.
    pub(crate) fn end(&self, page: Page) -> Result<Page, UnresolvedReason> {
        let (mut at, mut seen) = (page, vec![page]);
        loop {
            match self.pages.get(&at).map(|known| known.body) {
                None => return Err(UnresolvedReason::UnknownTarget),
                Some(Body::Dead) => return Err(UnresolvedReason::DeadTarget),
                Some(Body::Content(_)) => return Ok(at),
                Some(Body::Redirect(_)) if seen.len() > HOPS_MAX => {
                    return Err(UnresolvedReason::TooManyHops);
                }
                Some(Body::Redirect(to)) => {
                    let to = self.target(at, to).ok_or(UnresolvedReason::UnknownTarget)?;
                    if seen.contains(&to) {
                        return Err(UnresolvedReason::Loop);
                    }
                    seen.push(to);
                    at = to;
                }
            }
        }
    }

    /// F between two pages with content.
    pub(crate) fn similar(&self, a: Page, b: Page) -> bool {
        match (self.content(a), self.content(b)) {
            (Some(a), Some(b)) => self.contents.similar(a, b),
            _ => false,
        }
    }

    /// The connected components of F and redirects over the present contents, with at least two pages.
    pub(crate) fn components(&self) -> Vec<Component> {
        let mut left: BTreeSet<Page> =
            self.pages.keys().copied().filter(|page| self.content(*page).is_some()).collect();
        let mut components = Vec::new();
        while let Some(start) = left.pop_first() {
            let mut contents = BTreeSet::from([start]);
            let mut next = vec![start];
            while let Some(at) = next.pop() {
                let linked: Vec<Page> =
                    left.iter().copied().filter(|other| self.similar(at, *other)).collect();
                for page in linked {
                    left.remove(&page);
                    contents.insert(page);
                    next.push(page);
                }
            }
            let is_redirect = |page: &Page| matches!(self.pages[page].body, Body::Redirect(_));
            let ends_here = |page: &Page| self.end(*page).is_ok_and(|end| contents.contains(&end));
            let redirects: BTreeSet<Page> =
                self.pages.keys().copied().filter(|page| is_redirect(page) && ends_here(page)).collect();
            let winner = contents.iter().copied().min_by(|a, b| self.order(*a, *b).0).unwrap();
            if contents.len() + redirects.len() > 1 {
                components.push(Component { contents, redirects, winner });
            }
        }
        components
    }

    /// The cover of a component's pages with content, by the definition. Maps each page that is not kept to
    /// the kept page that it is a duplicate of.
    pub(crate) fn cover(&self, component: &Component) -> BTreeMap<Page, Page> {
        let mut pages: Vec<Page> = component.contents.iter().copied().collect();
        pages.sort_by(|a, b| self.order(*a, *b).0);
        let (mut kept, mut cover) = (Vec::new(), BTreeMap::new());
        for page in pages {
            match kept.iter().find(|earlier| self.similar(page, **earlier)) {
                Some(earlier) => drop(cover.insert(page, *earlier)),
                None => kept.push(page),
            }
        }
        cover
    }

    /// Compares two pages with content by the winner order; `Less` wins. Also returns the rule that decided.
    pub(crate) fn order(&self, a: Page, b: Page) -> (Ordering, WinnerRule) {
        decide(&self.rules, (a, &self.pages[&a]), (b, &self.pages[&b]))
    }
}
