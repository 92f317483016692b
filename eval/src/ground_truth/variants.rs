//! Pairs of pages that differ for one known reason, made from real templates. They show why algorithms are
//! right and wrong.
//!
//! Two pages have the template of one page of a crawl (`containers`). They differ in what M. Henzinger,
//! *Finding Near-Duplicate Web Pages*, SIGIR 2006, sections 3.2 and 3.3, found pairs to differ in:
//!
//! | reason | what differs | truth |
//! |---|---|---|
//! | URL, time stamp, execution time, visitor count, message id | one such line below the main content | same |
//! | combination | the first four | same |
//! | main item | the main content, 10 to 30 words: the item that the template is about | other |
//! | database | 10 to 30 words in a row of 200 to 400, without a template, as the records of a database | other |
//! | directory | 1 to 5 scattered words, such as the telephone numbers of a directory | other |
//! | form | 2 to 10 words that a form below the main content is filled with | undecided |
//! | minor item | a box of 5 to 20 words below the main content | undecided |
//!
//! The paper's rule calls pairs of the last two kinds undecided, so such pairs can be made. Most other
//! undecided pairs of the paper "could not be evaluated". That depends on the judge and not on the pages, so
//! this module does not make such pairs.
//!
//! Half of the pairs are on one host, half on two. Each reason has the same number of pairs, because its
//! share on the web is not known. Figures are therefore by reason.

use doppel_crawls::{FetchedBody, FetchedPage};
use doppel_model::{PageUrl, Random};
use serde::Serialize;

use crate::ground_truth::containers::{PageWithMainContent, PagesWithMainContent};
use crate::ground_truth::labelled::{CrawledPages, Pair, Truth};

/// Maximum number of draws to find another item.
const DRAWS: usize = 20;

/// Reason why two pages differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    Url,
    TimeStamp,
    ExecutionTime,
    VisitorCount,
    MessageId,
    Combination,
    MainItem,
    Database,
    Directory,
    Form,
    MinorItem,
}

impl Reason {
    pub(crate) const ALL: [Self; 11] = [
        Self::Url,
        Self::TimeStamp,
        Self::ExecutionTime,
        Self::VisitorCount,
        Self::MessageId,
        Self::Combination,
        Self::MainItem,
        Self::Database,
        Self::Directory,
        Self::Form,
        Self::MinorItem,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Url => "URL only",
            Self::TimeStamp => "time stamp only",
            Self::ExecutionTime => "execution time only",
            Self::VisitorCount => "visitor count only",
            Self::MessageId => "message id only",
            Self::Combination => "combination",
            Self::MainItem => "main item of 10 to 30 words",
            Self::Database => "database, 10 to 30 words in a row of 200 to 400",
            Self::Directory => "directory, 1 to 5 words apart",
            Self::Form => "form filled with 2 to 10 words",
            Self::MinorItem => "minor item of 5 to 20 words",
        }
    }

    /// Right answer for pairs that differ for this reason.
    pub(crate) fn truth(self) -> Truth {
        match self {
            Self::MainItem | Self::Database | Self::Directory => Truth::Other,
            Self::Form | Self::MinorItem => Truth::Undecided,
            _ => Truth::Same,
        }
    }
}

/// Pairs with their reasons, and the pages that were made for them.
#[derive(Default)]
pub(crate) struct Variants {
    pub(crate) pairs: Vec<(Reason, Pair)>,
    pub(crate) made: CrawledPages,
}

impl Variants {
    /// Makes `each` pairs for each reason. Makes no pair if the crawl has no page whose main content is
    /// known.
    pub(crate) fn new(crawled: &CrawledPages, each: usize, seed: u64) -> Self {
        let pages = PagesWithMainContent::of(crawled);
        let hosts: Vec<&[PageWithMainContent<'_>]> = pages.by_host.values().map(Vec::as_slice).collect();
        let mut variants = Self::default();
        if hosts.is_empty() {
            return variants;
        }
        let mut random = Random::new(seed);
        for number in 0..each {
            for reason in Reason::ALL {
                let host = hosts[random.index(hosts.len())];
                let page = &host[random.index(host.len())];
                // The pair needs another item. A host with only one item gives no pair.
                let mut others = (0..DRAWS).map(|_| &host[random.index(host.len())]);
                let Some(other) = others.find(|other| other.content != page.content) else { continue };
                let bodies = bodies(reason, page, other, &mut random);
                variants.add((reason, number), page, bodies);
            }
        }
        variants
    }

    fn add(
        &mut self,
        (reason, number): (Reason, usize),
        page: &PageWithMainContent<'_>,
        bodies: [String; 2],
    ) {
        let host = page.url.host();
        let mirror = if number.is_multiple_of(2) {
            host.clone()
        } else {
            format!("{}.example", host.replace('.', "-"))
        };
        let url = |host: &str, side| PageUrl::parse(&format!("https://{host}/{reason:?}-{number}-{side}"));
        let (Ok(a), Ok(b)) = (url(&host, 'a'), url(&mirror, 'b')) else { return };
        for (url, body) in [&a, &b].into_iter().zip(bodies) {
            let (before, behind) = match reason {
                Reason::Database => (&b""[..], &b""[..]),
                _ => (&page.html[..page.main.start], &page.html[page.main.end..]),
            };
            let bytes = [before, body.as_bytes(), behind].concat();
            let body = FetchedBody::Html { bytes, charset: Some("utf-8".to_owned()) };
            let url = url.clone();
            self.made.add(FetchedPage { url, fetched_at: None, body, popularity: None, language: None });
        }
        self.pairs.push((reason, Pair { a, b, truth: reason.truth(), weight: 1.0 }));
    }
}

/// Makes the main contents of both pages, without tags of the crawled page.
fn bodies(
    reason: Reason,
    page: &PageWithMainContent<'_>,
    other: &PageWithMainContent<'_>,
    random: &mut Random,
) -> [String; 2] {
    let words: Vec<&str> = page.text.split_whitespace().collect();
    match reason {
        Reason::MainItem => {
            let length = 10 + random.index(21);
            let others: Vec<&str> = other.text.split_whitespace().collect();
            [&words, &others].map(|words| {
                let at = random.index(words.len().saturating_sub(length) + 1);
                escaped(&words[at..words.len().min(at + length)])
            })
        }
        Reason::Database => {
            let all = words.len().min(200 + random.index(201));
            let length = all.min(10 + random.index(21));
            let at = (all - length) / 2;
            let others: Vec<&str> = other.text.split_whitespace().collect();
            [(); 2].map(|()| {
                let mut own = words[..all].to_vec();
                let from = random.index(others.len().saturating_sub(length) + 1);
                own.splice(at..at + length, others[from..].iter().take(length).copied());
                escaped(&own)
            })
        }
        Reason::Directory => {
            let places: Vec<usize> = (0..1 + random.index(5)).map(|_| random.index(words.len())).collect();
            [(); 2].map(|()| {
                let numbers: Vec<String> =
                    places.iter().map(|_| (100_000 + random.below(900_000)).to_string()).collect();
                let mut own = words.clone();
                places.iter().zip(&numbers).for_each(|(place, number)| own[*place] = number);
                escaped(&own)
            })
        }
        Reason::Form | Reason::MinorItem => {
            let (length, [open, close]) = match reason {
                Reason::Form => (2 + random.index(9), ["<form><textarea>", "</textarea></form>"]),
                _ => (5 + random.index(16), ["<div class=\"box\">", "</div>"]),
            };
            let others: Vec<&str> = other.text.split_whitespace().collect();
            [(); 2].map(|()| {
                let from = random.index(others.len().saturating_sub(length) + 1);
                let own: Vec<&str> = others[from..].iter().take(length).copied().collect();
                format!("{}{open}{}{close}", escaped(&words), escaped(&own))
            })
        }
        _ => [(); 2].map(|()| format!("{}{}", escaped(&words), lines(reason, random))),
    }
}

/// Makes the lines below the main content in which two pages differ for this reason.
fn lines(reason: Reason, random: &mut Random) -> String {
    let mut number = |least: u64, end: u64| least + random.below(end - least);
    match reason {
        Reason::Url => format!("<p>See http://www.site{}.example/", number(0, 1 << 40)),
        Reason::TimeStamp => format!(
            "<p>Last change: 20{}-{:02}-{:02} {:02}:{:02}:{:02}",
            number(10, 30),
            number(1, 13),
            number(1, 29),
            number(0, 24),
            number(0, 60),
            number(0, 60)
        ),
        Reason::ExecutionTime => format!("<p>Page made in 0.{} seconds", number(100_000, 1_000_000)),
        Reason::VisitorCount => format!("<p>You are visitor {}", number(1_000, 10_000_000)),
        Reason::MessageId => format!("<p>Message id: {:012x}", number(0, 1 << 48)),
        _ => [Reason::Url, Reason::TimeStamp, Reason::ExecutionTime, Reason::VisitorCount]
            .map(|each| lines(each, random))
            .concat(),
    }
}

fn escaped(words: &[&str]) -> String {
    words.join(" ").replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground_truth::containers::{container, elements};

    fn page(number: usize) -> FetchedPage {
        let words: String = (0..150).map(|n| format!("item{number}x{n} ")).collect();
        let html = format!("<html><div>the menu</div><article>{words}</article><p>the footer");
        let body = FetchedBody::Html { bytes: html.into_bytes(), charset: None };
        let url = PageUrl::parse(&format!("https://numpy.org/{number}")).unwrap();
        FetchedPage { url, fetched_at: None, body, popularity: None, language: None }
    }

    #[test]
    fn pages_differ_for_the_reason_alone() {
        let mut crawled = CrawledPages::default();
        (0..6).for_each(|number| crawled.add(page(number)));
        let variants = Variants::new(&crawled, 8, 3);
        assert_eq!(variants.pairs.len(), 8 * Reason::ALL.len());
        let words = |url: &PageUrl| {
            let FetchedBody::Html { bytes, .. } = &variants.made.page(url).unwrap().body else {
                panic!("the body of {url} is not HTML")
            };
            let html = String::from_utf8(bytes.clone()).unwrap();
            if !html.starts_with("<html>") {
                return html.split_whitespace().map(str::to_owned).collect();
            }
            assert!(html.starts_with("<html><div>the menu") && html.ends_with("the footer"));
            let main = container(html.as_bytes(), elements("numpy.org").unwrap()).unwrap();
            html[main].split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        for (reason, pair) in &variants.pairs {
            let (a, b) = (words(&pair.a), words(&pair.b));
            let differing = a.iter().zip(&b).filter(|(a, b)| a != b).count();
            let (least, most) = match reason {
                Reason::MainItem | Reason::Database => (9, 30),
                Reason::Directory => (1, 5),
                Reason::Combination => (4, 5),
                Reason::TimeStamp => (1, 2),
                // Two stretches of one text may overlap.
                Reason::Form | Reason::MinorItem => (0, 20),
                _ => (1, 1),
            };
            if *reason == Reason::MainItem {
                assert!((least..=most).contains(&a.len()) && a.len() == b.len(), "{a:?} {b:?}");
            } else {
                assert!((least..=most).contains(&differing), "{reason:?}: {differing}");
            }
            assert_eq!(pair.truth, reason.truth());
        }
        let on_one_host = variants.pairs.iter().filter(|(_, pair)| pair.is_on_one_host()).count();
        assert_eq!(2 * on_one_host, variants.pairs.len());
        let again = Variants::new(&crawled, 8, 3);
        assert!(again.pairs.iter().zip(&variants.pairs).all(|((_, a), (_, b))| (&a.a, &a.b) == (&b.a, &b.b)));
        assert!(Variants::new(&CrawledPages::default(), 8, 3).pairs.is_empty());
    }
}
