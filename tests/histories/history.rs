//! A history: the setup of a collection, and what happens to it. A seed determines all of it.

use std::fmt;

use doppel_model::pairwise::Policy;
use doppel_model::{PageUrl, Random, Timestamp};
use serde_json::{Value, json};

use super::texts::texts;

/// The policies of histories. `jaccard` is drawn more often than the others.
const POLICIES: [&str; 16] = [
    "jaccard",
    "jaccard",
    "jaccard",
    "jaccard:tau=0.7",
    "jaccard:tau=0.9",
    "jaccard:words=3",
    "content",
    "by-site",
    "simhash",
    "supershingle",
    "projection",
    "combined",
    "overlap",
    "copies",
    "imatch",
    "multi-simhash",
];

/// A market: host suffixes that a question prefers. The file of winner rules defines it, or the question
/// names one suffix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Market {
    /// Name of the market in a question.
    pub(crate) name: &'static str,
    suffixes: &'static [&'static str],
    is_in_file: bool,
}

pub(crate) const MARKETS: [Market; 4] = [
    Market { name: "west", suffixes: &["d.org", "www.b.de", "c.fr"], is_in_file: true },
    Market { name: "example", suffixes: &["example"], is_in_file: false },
    Market { name: "b.de", suffixes: &["b.de"], is_in_file: false },
    Market { name: ".fr", suffixes: &["fr"], is_in_file: false },
];

impl Market {
    pub(crate) fn has(&self, page: Page) -> bool {
        let host = url(page).host();
        self.suffixes.iter().any(|suffix| host == *suffix || host.ends_with(&format!(".{suffix}")))
    }
}

/// The rules that a file of winner rules may list.
const RULES: [&str; 6] = ["popularity", "day_first_seen", "static_url", "shorter_url", "first_seen", "https"];

/// The URLs of pages: several hosts, sites, lengths and schemes, a query, and other spellings of some of the
/// URLs.
const URLS: [&str; 24] = [
    "http://a.example/",
    "http://a.example/one",
    "http://a.example/two?page",
    "https://a.example/one",
    "HTTP://a.example/one",
    "http://a.example:80/one",
    "http://b.de/",
    "http://b.de/x/../one",
    "http://b.de/one",
    "https://b.de/a/longer/path",
    "http://www.b.de/one",
    "http://c.fr/1",
    "http://c.fr/2",
    "http://c.fr/3",
    "http://c.fr/4?q=1",
    "http://c.fr/5",
    "https://c.fr/6",
    "http://d.org/r1",
    "http://d.org/r2",
    "http://d.org/r3",
    "http://d.org/r4",
    "http://d.org/r5",
    "http://never.example/",
    "http://d.org/a/path/that/is/the/longest/of/all",
];

/// Number of a URL that no page ever has.
pub(crate) const NEVER: usize = 22;

/// Date around which all versions are dated: noon, so that the dates fall on two days.
const NOON: i64 = 1_704_110_400_000;

/// A page, by the number of its URL.
pub(crate) type Page = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// The text with this number.
    Text(usize),
    Redirect(Page),
    Dead,
}

/// A version of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Version {
    pub(crate) page: Page,
    pub(crate) at: i64,
    pub(crate) popularity: Option<u8>,
    pub(crate) body: Body,
}

/// A step of a history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Push versions as the lines of one request.
    Push(Vec<Version>),
    /// Push one version in a request of its own; a death as a deletion.
    One(Version),
    /// Push versions, kill the process this many microseconds later, and push them again.
    KillDuring(Vec<Version>, u64),
    /// Kill the process and start it again.
    Kill,
    /// Purge a page.
    Purge(Page),
    /// Repair every group, as an operator does.
    Repair,
    /// Let the consumer of the change feed read this many events.
    Read(usize),
    /// Wait until everything is decided, and compare every answer.
    Rest,
}

/// The setup of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) policy: &'static str,
    /// The winner rules. `None` for the default rules.
    pub(crate) rules: Option<Vec<&'static str>>,
    /// Number of distinct contents above which a group is quarantined.
    pub(crate) contents_max: Option<u64>,
    pub(crate) shards: u64,
    pub(crate) ranges: u64,
    pub(crate) partitions: u64,
    pub(crate) nodes: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
    pub(crate) texts: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

pub(crate) fn url(page: Page) -> PageUrl {
    PageUrl::parse(URLS[page]).unwrap()
}

/// All pages that a history can have.
pub(crate) fn pages() -> std::ops::Range<Page> {
    0..URLS.len()
}

impl Setup {
    fn of(random: &mut Random) -> Self {
        let ranges = 1 + random.below(3);
        let nodes = 1 + random.below(2);
        Self {
            policy: POLICIES[random.index(POLICIES.len())],
            rules: (random.below(3) == 0).then(|| rules(random)),
            contents_max: (random.below(4) == 0).then(|| 2 + random.below(3)),
            shards: ranges + random.below(4),
            ranges,
            partitions: nodes + random.below(4),
            nodes,
        }
    }

    /// The setup of a cluster with several ranges and nodes.
    fn of_cluster(random: &mut Random) -> Self {
        Self { shards: 16, ranges: 6, partitions: 1, nodes: 2, ..Self::of(random) }
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy.parse().unwrap()
    }
}

/// Some of the rules in random order.
fn rules(random: &mut Random) -> Vec<&'static str> {
    let mut left = RULES.to_vec();
    (0..random.index(RULES.len())).map(|_| left.swap_remove(random.index(left.len()))).collect()
}

/// Generates the steps of a history.
struct HistoryGenerator {
    random: Random,
    /// Number of pages that take part.
    pages: usize,
    texts: usize,
    /// Number of texts that most pages use. They are the first ones.
    usual_texts: usize,
    /// Versions sent so far, for replays.
    sent: Vec<Version>,
}

impl HistoryGenerator {
    fn page(&mut self) -> Page {
        let page = self.random.index(self.pages);
        if page == NEVER { 0 } else { page }
    }

    /// A date. There are few days around one noon and few moments of each day, so many versions have equal
    /// dates.
    fn date(&mut self) -> i64 {
        let (day, moment) = (self.random.below(3) as i64, self.random.below(4) as i64);
        NOON + day * Timestamp::DAY_MS + moment * 5_000_000
    }

    fn version(&mut self) -> Version {
        let (page, at) = (self.page(), self.date());
        self.version_of(page, at)
    }

    fn version_of(&mut self, page: Page, at: i64) -> Version {
        let body = match self.random.below(12) {
            0 => Body::Dead,
            1 | 2 => self.redirect(page, 0, self.pages),
            3 => self.redirect(page, 17, 6),
            4 | 5 => Body::Text(self.random.index(self.texts)),
            _ => Body::Text(self.random.index(self.usual_texts)),
        };
        let popularity = (self.random.below(4) == 0).then(|| self.random.below(9) as u8);
        Version { page, at, popularity, body }
    }

    /// A redirect to one of the pages from `first` on. A redirect never leads to its own URL, which the
    /// server would refuse.
    fn redirect(&mut self, page: Page, first: Page, count: usize) -> Body {
        let to = first + self.random.index(count);
        Body::Redirect(if to == page { (to + 1) % URLS.len() } else { to })
    }

    fn versions(&mut self) -> Vec<Version> {
        match self.random.below(8) {
            // Replays of earlier versions.
            0 if !self.sent.is_empty() => {
                let count = 1 + self.random.index(6);
                (0..count).map(|_| self.sent[self.random.index(self.sent.len())]).collect()
            }
            // Several versions of one page, most of them with equal dates.
            1 => {
                let first = self.version();
                let other = |made: &mut Self| {
                    let at = if made.random.below(4) == 0 { made.date() } else { first.at };
                    made.version_of(first.page, at)
                };
                let others: Vec<Version> = (0..1 + self.random.index(3)).map(|_| other(self)).collect();
                std::iter::once(first).chain(others).collect()
            }
            // A chain of redirects that is a cycle, or longer than a server follows.
            2 => {
                let (at, hops) = (self.date(), 2 + self.random.index(22));
                let hop = |from: usize| {
                    let [page, to] = [from, from + 1].map(|page| page % URLS.len());
                    Version { page, at, popularity: None, body: Body::Redirect(to) }
                };
                let begin = self.random.index(URLS.len());
                let few = if self.random.below(3) == 0 { hops } else { hops.min(4) };
                (begin..begin + few).map(hop).filter(|version| version.page != NEVER).collect()
            }
            _ => (0..1 + self.random.index(12)).map(|_| self.version()).collect(),
        }
    }

    fn step(&mut self, repairs: bool) -> Step {
        match self.random.below(40) {
            0..=2 => Step::Kill,
            3..=5 => {
                let versions = self.versions();
                Step::KillDuring(versions, self.random.below(12_000))
            }
            6 | 7 => Step::Purge(self.page()),
            8 | 9 if repairs => Step::Repair,
            10..=12 => Step::Read(1 + self.random.index(20)),
            13..=15 => Step::Rest,
            16..=19 => Step::One(self.version()),
            _ => Step::Push(self.versions()),
        }
    }
}

impl History {
    /// The history of a seed for a single process.
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = Random::of(seed, [1, 0, 0]);
        let setup = Setup::of(&mut random);
        let steps = 6 + random.index(20);
        Self::make(seed, setup, steps, random)
    }

    /// The history of a seed for a cluster. It is longer, because a cluster starts slowly.
    pub(crate) fn of_cluster(seed: u64) -> Self {
        let mut random = Random::of(seed, [2, 0, 0]);
        let setup = Setup::of_cluster(&mut random);
        Self::make(seed, setup, 40, random)
    }

    fn make(seed: u64, setup: Setup, steps: usize, mut random: Random) -> Self {
        let (texts, usual_texts) = texts(&mut random);
        let pages = 4 + random.index(URLS.len() - 3);
        let mut making =
            HistoryGenerator { random, pages, texts: texts.len(), usual_texts, sent: Vec::new() };
        // A repair gives a group another limit, so histories with a limit have no repairs.
        let repairs = setup.contents_max.is_none();
        let mut made = Vec::new();
        for _ in 0..steps {
            let step = making.step(repairs);
            match &step {
                Step::Push(versions) | Step::KillDuring(versions, _) => making.sent.extend(versions),
                Step::One(version) => making.sent.push(*version),
                _ => {}
            }
            made.push(step);
        }
        Self { seed, setup, texts, steps: made }
    }

    /// A version as a line of JSON lines.
    pub(crate) fn line(&self, version: &Version) -> Value {
        let Version { page, at, popularity, body } = *version;
        let mut line =
            json!({ "url": url(page).as_str(), "fetched_at": Timestamp::from_millis(at).to_string() });
        match body {
            Body::Text(text) => line["text"] = self.texts[text].as_str().into(),
            Body::Redirect(to) => line["redirect_to"] = url(to).as_str().into(),
            Body::Dead => line["dead"] = true.into(),
        }
        if let Some(popularity) = popularity {
            line["popularity"] = f64::from(popularity).into();
        }
        line
    }

    /// The text of the file of winner rules and markets.
    pub(crate) fn winners_file(&self) -> String {
        let rules = self.setup.rules.as_ref().map(|rules| format!("rules = {rules:?}\n"));
        let markets = MARKETS.iter().filter(|market| market.is_in_file);
        let markets: String =
            markets.map(|market| format!("{} = {:?}\n", market.name, market.suffixes)).collect();
        format!("{}[markets]\n{markets}", rules.unwrap_or_default())
    }
}

/// Prints a version in a few characters: page, date, popularity, body.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { page, at, popularity, body } = self;
        write!(f, "{page}@{}", (at - NOON) / 1_000)?;
        if let Some(popularity) = popularity {
            write!(f, " popularity {popularity}")?;
        }
        match body {
            Body::Text(text) => write!(f, " text {text}"),
            Body::Redirect(to) => write!(f, " to {to}"),
            Body::Dead => write!(f, " dead"),
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |versions: &[Version]| versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        writeln!(f, "seed {}: {:?}", self.seed, self.setup)?;
        for step in &self.steps {
            match step {
                Step::Push(versions) => writeln!(f, "  push {}", list(versions))?,
                Step::One(version) => writeln!(f, "  one {version}")?,
                Step::KillDuring(versions, micros) => {
                    writeln!(f, "  kill after {micros} us of {}", list(versions))?;
                }
                other => writeln!(f, "  {other:?}")?,
            }
        }
        Ok(())
    }
}
