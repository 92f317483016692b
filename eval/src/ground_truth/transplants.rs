//! Pairs whose truth is known by construction: the main content of one page is moved into another page.
//!
//! Each set draws a page P and a page Q0 of one host, and a page Q of another host. The main content of P
//! replaces the main contents of Q0 and Q:
//!
//! | pair | truth | |
//! |---|---|---|
//! | P, and Q with P's content | same | on two hosts: the same item on another site |
//! | P, and Q0 with P's content | same | on one host: the same item under other navigation |
//! | Q, and Q with P's content | other | on one host: two items in one template |
//! | Q on a mirror, and Q with P's content | other | on two hosts: two items in one template |
//!
//! `containers` knows the main content of a page for each host. Contents that have much in common, such as
//! versions of one item, do not replace each other.

use std::collections::BTreeMap;

use doppel_baseline::Contents;
use doppel_crawls::{FetchedBody, FetchedPage};
use doppel_model::{PageUrl, Random};

use crate::ground_truth::containers::{PageWithMainContent, PagesWithMainContent};
use crate::ground_truth::labelled::{CrawledPages, Pair, Truth};

/// Jaccard coefficient from which a main content does not replace another one.
const ALIKE: f64 = 0.2;
/// Maximum number of draws for a set of pairs.
const DRAWS: usize = 50;

/// Transplanted pairs, and the pages that were made for them.
pub(crate) struct Transplants {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) made: CrawledPages,
    /// Number of pages that can be drawn, by host.
    pub(crate) hosts: BTreeMap<String, usize>,
}

impl Transplants {
    /// Makes `sets` sets of four pairs from pages of a crawl. A set is left out if no draw fits.
    pub(crate) fn new(crawled: &CrawledPages, sets: usize, seed: u64) -> Self {
        let PagesWithMainContent { by_host, contents } = PagesWithMainContent::of(crawled);
        let hosts = by_host.iter().map(|(host, pages)| (host.clone(), pages.len())).collect();
        let by_host: Vec<Vec<PageWithMainContent<'_>>> = by_host.into_values().collect();
        let mut transplants = Self { pairs: Vec::new(), made: CrawledPages::default(), hosts };
        let mut random = Random::new(seed);
        for set in 0..sets {
            let drawn = (0..DRAWS).find_map(|_| draw(&by_host, &contents, &mut random));
            if let Some([p, q0, q]) = drawn {
                transplants.add(set, [p, q0, q]);
            }
        }
        transplants
    }

    fn add(&mut self, set: usize, [p, q0, q]: [&PageWithMainContent<'_>; 3]) {
        let made = |page: &PageWithMainContent<'_>| page_url(&page.url.host(), &format!("transplant-{set}"));
        let mirror = page_url(&format!("{}.example", host_label(&q.url.host())), &format!("mirror-{set}"));
        let (abroad, here) = (made(q), made(q0));
        let (Some(mirror), Some(abroad), Some(here)) = (mirror, abroad, here) else { return };
        let mut put = |url: &PageUrl, html: Vec<u8>| {
            let body = FetchedBody::Html { bytes: html, charset: Some("utf-8".to_owned()) };
            let page =
                FetchedPage { url: url.clone(), fetched_at: None, body, popularity: None, language: None };
            self.made.add(page);
        };
        put(&abroad, transplanted(p, q));
        put(&here, transplanted(p, q0));
        put(&mirror, q.html.to_vec());
        let pair = |a: &PageUrl, b: &PageUrl, truth| Pair { a: a.clone(), b: b.clone(), truth, weight: 1.0 };
        self.pairs.extend([
            pair(p.url, &abroad, Truth::Same),
            pair(p.url, &here, Truth::Same),
            pair(q.url, &abroad, Truth::Other),
            pair(&mirror, &abroad, Truth::Other),
        ]);
    }
}

/// Turns a host into one label of a host name.
fn host_label(host: &str) -> String {
    host.replace('.', "-")
}

fn page_url(host: &str, path: &str) -> Option<PageUrl> {
    PageUrl::parse(&format!("https://{host}/{path}")).ok()
}

/// Draws P, Q0 and Q. `None` if the main contents of the drawn pages have much in common.
fn draw<'h, 'c>(
    by_host: &'h [Vec<PageWithMainContent<'c>>],
    contents: &Contents,
    random: &mut Random,
) -> Option<[&'h PageWithMainContent<'c>; 3]> {
    if by_host.len() < 2 {
        return None;
    }
    let first = random.index(by_host.len());
    let second = (first + 1 + random.index(by_host.len() - 1)) % by_host.len();
    let (home, abroad) = (&by_host[first], &by_host[second]);
    let [p, q0] = [(); 2].map(|()| &home[random.index(home.len())]);
    let q = &abroad[random.index(abroad.len())];
    let differ = |a: &PageWithMainContent<'_>, b: &PageWithMainContent<'_>| {
        let [a, b] = [a, b].map(|page| &*contents.get(page.content).shingles);
        let shared = a.iter().filter(|shingle| b.binary_search(shingle).is_ok()).count();
        let either = a.len() + b.len() - shared;
        (shared as f64) < ALIKE * either as f64
    };
    (differ(p, q0) && differ(p, q)).then_some([p, q0, q])
}

/// Makes the page `q` with the main content of `p`.
fn transplanted(p: &PageWithMainContent<'_>, q: &PageWithMainContent<'_>) -> Vec<u8> {
    [&q.html[..q.main.start], &p.html[p.main.clone()], &q.html[q.main.end..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground_truth::containers::{container, elements};

    fn words(kind: &str) -> String {
        (0..150).map(|n| format!("{kind}{n} ")).collect()
    }

    fn page(host: &str, number: usize) -> FetchedPage {
        let (open, close) = if host == "numpy.org" {
            ("<article class=x>", "</article>")
        } else {
            ("<div class=\"refentry\"><div>", "</div></div>")
        };
        let shell = host.replace('.', "");
        let html = format!(
            "<html><div>{shell} menu</div>{open}{}{close}<p>{shell} footer",
            words(&format!("{shell}x{number}y"))
        );
        let body = FetchedBody::Html { bytes: html.into_bytes(), charset: None };
        let url = PageUrl::parse(&format!("https://{host}/{number}")).unwrap();
        FetchedPage { url, fetched_at: None, body, popularity: None, language: None }
    }

    #[test]
    fn transplants_move_the_main_content_and_know_the_truth() {
        let mut crawled = CrawledPages::default();
        for host in ["numpy.org", "www.postgresql.org"] {
            (0..5).for_each(|number| crawled.add(page(host, number)));
        }
        crawled.add(page("unknown.example", 0));
        let transplants = Transplants::new(&crawled, 6, 1);
        assert_eq!(transplants.hosts.values().sum::<usize>(), 10);
        assert_eq!(transplants.pairs.len(), 24);
        let text = |url: &PageUrl| {
            let page = transplants.made.page(url).or_else(|| crawled.page(url)).unwrap();
            let FetchedBody::Html { bytes, .. } = &page.body else { panic!("the body of {url} is not HTML") };
            String::from_utf8(bytes.clone()).unwrap()
        };
        for set in transplants.pairs.chunks(4) {
            let truths: Vec<_> = set.iter().map(|pair| (pair.truth, pair.is_on_one_host())).collect();
            let expected =
                [(Truth::Same, false), (Truth::Same, true), (Truth::Other, true), (Truth::Other, false)];
            assert_eq!(truths, expected);
            let inner = |url: &PageUrl| {
                let text = text(url);
                let main = container(text.as_bytes(), elements(&url.host()).unwrap()).unwrap();
                text[main].replace("<div>", "").replace("</div>", "")
            };
            assert_eq!(inner(&set[0].a), inner(&set[0].b));
            assert_ne!(inner(&set[2].a), inner(&set[2].b));
            assert!(text(&set[2].a).ends_with("footer") && text(&set[3].a) == text(&set[2].a));
        }
        let again = Transplants::new(&crawled, 6, 1);
        assert!(again.pairs.iter().zip(&transplants.pairs).all(|(a, b)| (&a.a, &a.b) == (&b.a, &b.b)));
    }
}
