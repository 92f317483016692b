//! Generates the pages that clients push, in endless rounds, and knows which pages could be near-duplicates
//! at which time.
//!
//! Each text belongs to a family. Texts of one family are near copies of each other, and share nothing with
//! texts of other families. Two pages can therefore be duplicates only while both have texts of the same
//! family.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Instant;

use doppel_model::Timestamp;
use serde_json::{Value, json};

use crate::harness::pages::{Random, html, near_copy, text};

/// Number of families that several pages share, and number of pages that begin in each family. The last page
/// of a family may also become a redirect.
const FAMILIES: usize = 36;
const PAGES: usize = 5;

/// Number of unique pages that never change. They give the index enough contents to spread over its nodes.
const STOCK: usize = 300;

/// Date of the first round, 2024-03-01.
const BEGIN: Timestamp = Timestamp::from_millis(1_709_251_200_000);

/// Time between the dates of two rounds. Winners are elected by the day when a page was first seen.
const STEP_MS: i64 = 60_000;

/// A generator of rounds.
pub(crate) struct Crawl {
    seed: u64,
}

/// A pushed page, and the family of its text.
#[derive(Clone)]
pub(crate) struct Pushed {
    pub(crate) url: String,
    pub(crate) line: Value,
    date: Timestamp,
    family: Option<u64>,
}

fn url(family: usize, page: usize) -> String {
    format!("http://site{}.example/family{family}/page{page}", family % 7)
}

impl Crawl {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// URLs of the pages that always have a text or are dead, and never redirect.
    pub(crate) fn plain() -> Vec<String> {
        (0..FAMILIES).flat_map(|family| (0..PAGES - 1).map(move |page| url(family, page))).collect()
    }

    /// The pages of a round. In the first round each page has a text of its family. In later rounds most
    /// pages stay the same. Some change slightly, some completely, some move to another family, some die, and
    /// some redirect.
    pub(crate) fn round(&self, round: usize) -> Vec<Pushed> {
        let mut pages = Vec::new();
        for family in 0..FAMILIES {
            for page in 0..PAGES {
                let mut random = Random::of(self.seed, [round as u64, family as u64, page as u64]);
                let date = BEGIN.plus_millis(round as i64 * STEP_MS);
                let mut line = json!({ "url": url(family, page), "fetched_at": date.to_string() });
                let own = family as u64;
                let (family, variant) = match if round == 0 { 0 } else { random.index(24) } {
                    0..=13 => (Some(own), page as u64),
                    14..=16 => (Some(own), 100 + round as u64),
                    17 | 18 => (Some(1_000_000 + (round * 1_000 + family * 10 + page) as u64), 0),
                    19..=21 => (Some(random.index(FAMILIES) as u64), 50 + page as u64),
                    22 if page == PAGES - 1 => {
                        // The target may itself redirect, but is never the page itself.
                        let target = (family + 1 + random.index(FAMILIES - 1)) % FAMILIES;
                        line["redirect_to"] = url(target, random.index(PAGES)).into();
                        (None, 0)
                    }
                    _ => {
                        line["dead"] = true.into();
                        (None, 0)
                    }
                };
                if let Some(family) = family {
                    let words = text(self.seed ^ (family + 1) << 20, 120 + family as usize % 90);
                    line["html"] = html("page", &near_copy(&words, variant)).into();
                }
                let url = line["url"].as_str().unwrap().to_owned();
                pages.push(Pushed { url, line, date, family });
            }
        }
        if round == 0 {
            pages.extend((0..STOCK).map(|n| self.stock(n)));
        }
        Random::of(self.seed, [round as u64, 7, 7]).shuffle(&mut pages);
        pages
    }

    fn stock(&self, n: usize) -> Pushed {
        let (url, family) = (format!("http://stock.example/{n}"), 10_000 + n as u64);
        let words = text(self.seed ^ (family + 1) << 20, 20 + n);
        let line = json!({ "url": url, "fetched_at": BEGIN.to_string(), "html": html("page", &words) });
        Pushed { url, line, date: BEGIN, family: Some(family) }
    }
}

/// A version of a page with three moments: first sent, acknowledged, and replaced by the next acknowledged
/// version.
struct VersionTimes {
    family: Option<u64>,
    date: Timestamp,
    sent: Instant,
    acknowledged: Option<Instant>,
    replaced: Option<Instant>,
}

/// All versions that were ever sent, by URL.
#[derive(Default)]
pub(crate) struct History(Mutex<HashMap<String, Vec<VersionTimes>>>);

impl History {
    /// Records that a client is about to send a page for the first time.
    pub(crate) fn sent(&self, page: &Pushed) {
        let held = VersionTimes {
            family: page.family,
            date: page.date,
            sent: Instant::now(),
            acknowledged: None,
            replaced: None,
        };
        self.0.lock().unwrap().entry(page.url.clone()).or_default().push(held);
    }

    /// Records that the last sent version of a page is acknowledged.
    pub(crate) fn acknowledged(&self, url: &str) {
        let mut pages = self.0.lock().unwrap();
        let Some([before @ .., last]) = pages.get_mut(url).map(|held| &mut held[..]) else { panic!("{url}") };
        last.acknowledged = Some(Instant::now());
        if let Some(before) = before.last_mut() {
            before.replaced = last.acknowledged;
        }
    }

    /// Whether two pages may have had texts of one family at any moment from `from` to `until`.
    pub(crate) fn could_be_duplicates(&self, [one, other]: [&str; 2], from: Instant, until: Instant) -> bool {
        let pages = self.0.lock().unwrap();
        let (Some(one), Some(other)) = (pages.get(one), pages.get(other)) else { return false };
        one.iter().filter(|one| one.family.is_some()).any(|one| {
            other.iter().filter(|other| other.family == one.family).any(|other| {
                let ends = [one.replaced, other.replaced].into_iter().flatten();
                let begin = one.sent.max(other.sent).max(from);
                begin <= ends.fold(until, Instant::min)
            })
        })
    }

    /// The date of the newest version of a page that was acknowledged before `moment`.
    pub(crate) fn kept_before(&self, url: &str, moment: Instant) -> Option<Timestamp> {
        let pages = self.0.lock().unwrap();
        let held = pages.get(url)?.iter().rev();
        held.filter(|held| held.acknowledged.is_some_and(|at| at < moment)).map(|held| held.date).next()
    }

    /// Describes the versions of a page for a failure message.
    pub(crate) fn told(&self, url: &str, now: Instant) -> String {
        let pages = self.0.lock().unwrap();
        let ago =
            |at: Option<Instant>| at.map_or("-".to_owned(), |at| format!("{:.2}", (now - at).as_secs_f64()));
        let held = pages.get(url).into_iter().flatten().rev().take(4);
        let lines: Vec<String> = held
            .map(|VersionTimes { family, date, sent, acknowledged, replaced }| {
                let (sent, acknowledged, replaced) = (ago(Some(*sent)), ago(*acknowledged), ago(*replaced));
                format!("  {date} family {family:?}: sent {sent} s ago, acknowledged {acknowledged}, replaced {replaced}")
            })
            .collect();
        format!("{url}\n{}", lines.join("\n"))
    }

    /// The newest acknowledged date of every page.
    pub(crate) fn newest(&self) -> BTreeMap<String, Timestamp> {
        let pages = self.0.lock().unwrap();
        let newest = |held: &Vec<VersionTimes>| {
            held.iter().rev().find(|held| held.acknowledged.is_some()).map(|held| held.date)
        };
        pages.iter().filter_map(|(url, held)| Some((url.clone(), newest(held)?))).collect()
    }
}
