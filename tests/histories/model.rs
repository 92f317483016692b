//! The model: computes the pages of a collection from the set of their versions, and every answer from the
//! pages. It computes everything in the most direct way. From the product it takes only signatures, the link
//! relation of policies, and spellings of URLs. F of `jaccard` is also compared with its definition.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use doppel_model::pairwise::{Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Timestamp};
use doppel_text::Extractor;

use super::history::{Body, History, Market, Page, Version, url};

/// Maximal number of redirects that are followed.
const HOPS_MAX: usize = 20;

/// A planted mistake of the model. A test that finds no difference to such a model would also miss a product
/// with that mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mistake {
    /// Among versions with one date, the last to arrive counts.
    LastArrivalStands,
    /// A late version loses its popularity.
    LatePopularityIsLost,
    /// A late version does not show that the page was seen earlier.
    LateVersionsAreNotSeen,
    /// Pages that are near a kept page, but not near the winner, are kept.
    NoCovers,
    /// Groups consist only of pages that are near the winner.
    NoChains,
    /// A dead target counts as an unknown target.
    DeadIsUnknown,
    /// A purged page keeps its versions.
    PurgeForgetsNothing,
    /// The first page of a market wins its group, also for pages that it does not cover.
    MarketsTearCovers,
    /// A market has no effect.
    NoMarkets,
}

impl Mistake {
    pub(crate) const ALL: [Self; 9] = [
        Self::LastArrivalStands,
        Self::LatePopularityIsLost,
        Self::LateVersionsAreNotSeen,
        Self::NoCovers,
        Self::NoChains,
        Self::DeadIsUnknown,
        Self::PurgeForgetsNothing,
        Self::MarketsTearCovers,
        Self::NoMarkets,
    ];
}

/// The signatures of all texts on all pages.
pub(crate) struct Signatures {
    policy: Policy,
    /// The file of the tables that the policy reads.
    pub(crate) tables: Option<Vec<u8>>,
    /// Signatures by text, and also by page if the policy depends on the site.
    all: HashMap<(usize, Option<Page>), Arc<Signature>>,
}

/// The state of a page after its versions.
#[derive(Debug, Clone, Copy)]
struct ModelledPage {
    at: i64,
    first_seen: i64,
    popularity: Option<u8>,
    body: Body,
}

pub(crate) struct Model<'m> {
    history: &'m History,
    signatures: &'m Signatures,
    mistake: Option<Mistake>,
    pages: BTreeMap<Page, ModelledPage>,
}

/// Expected answer about a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expected {
    pub(crate) status: &'static str,
    /// A number for the group, if the page has one.
    pub(crate) group: Option<usize>,
    pub(crate) winner: Option<String>,
    pub(crate) duplicate_of: Option<String>,
    pub(crate) similarity: Option<f64>,
    pub(crate) reason: Option<&'static str>,
    /// The rule by which the named page precedes this page. Only answers about pages with content state it.
    pub(crate) rule: Option<&'static str>,
    pub(crate) fetched_at: String,
}

/// The winner of a component, and the page that each page that is not kept is a duplicate of.
struct Standing {
    winner: Page,
    cover: BTreeMap<Page, Page>,
    /// The market whose winner this is, if it is not the usual winner.
    market: Option<Market>,
}

impl Signatures {
    pub(crate) fn of(history: &History) -> Self {
        let policy = history.setup.policy();
        let mut words = Extractor::default();
        let terms: Vec<Vec<u64>> =
            history.texts.iter().map(|text| words.text_terms(text).terms.to_vec()).collect();
        let signer = Signer::learnt(policy, terms);
        let tables = signer.tables().map(|tables| tables.to_file());
        let mut extractor = Extractor::signing(signer);
        let mut all = HashMap::new();
        for (number, text) in history.texts.iter().enumerate() {
            if policy.reads_site() {
                for page in super::history::pages() {
                    let signature = extractor.text_at(&url(page), text).signature;
                    all.insert((number, Some(page)), Arc::new(signature));
                }
            } else {
                all.insert((number, None), Arc::new(extractor.text(text).signature));
            }
        }
        let signatures = Self { policy, tables, all };
        signatures.check(history);
        signatures
    }

    fn get(&self, page: Page, text: usize) -> &Signature {
        let page = self.policy.reads_site().then_some(page);
        &self.all[&(text, page)]
    }

    /// Compares F and the link relation of `jaccard` with the definition of F. A pair without a common band
    /// is not linked.
    fn check(&self, history: &History) {
        let Policy::Jaccard { tau, words, .. } = self.policy else { return };
        for (a, one) in history.texts.iter().enumerate() {
            for (b, other) in history.texts.iter().enumerate() {
                let (first, second) = (self.get(0, a), self.get(0, b));
                let expected = is_near_duplicate(one, other, tau.numerator() as usize, words as usize);
                assert_eq!(self.policy.similar(first, second), expected, "texts {a} and {b}");
                assert!(expected || !self.policy.linked(first, second), "texts {a} and {b} are linked");
            }
        }
    }
}

/// F of `jaccard` on words. The text is followed by dummy words, one fewer than a shingle has.
fn is_near_duplicate(a: &str, b: &str, tau: usize, length: usize) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(' ').filter(|word| word.starts_with(char::is_alphabetic)).map(str::to_owned).collect()
    };
    let (a, b) = (words(a), words(b));
    if a == b {
        return !a.is_empty();
    }
    let shingles = |words: &[String]| -> BTreeSet<Vec<Option<String>>> {
        (0..words.len()).map(|at| (at..at + length).map(|at| words.get(at).cloned()).collect()).collect()
    };
    let (x, y) = (shingles(&a), shingles(&b));
    let shared = x.intersection(&y).count();
    a.len() >= 20 && b.len() >= 20 && 10_000 * shared > tau * (x.len() + y.len() - shared)
}

impl<'m> Model<'m> {
    /// The model of a collection after these versions, in their order of arrival.
    pub(crate) fn of(
        history: &'m History,
        signatures: &'m Signatures,
        arrived: &[Version],
        mistake: Option<Mistake>,
    ) -> Self {
        let mut versions: BTreeMap<Page, Vec<Version>> = BTreeMap::new();
        for version in arrived {
            versions.entry(version.page).or_default().push(*version);
        }
        let mut model = Self { history, signatures, mistake, pages: BTreeMap::new() };
        model.pages = versions.iter().map(|(page, versions)| (*page, model.state(versions))).collect();
        model
    }

    /// The state of a page after all of its versions.
    fn state(&self, versions: &[Version]) -> ModelledPage {
        let last = match self.mistake {
            Some(Mistake::LastArrivalStands) => versions.iter().max_by_key(|version| version.at),
            _ => versions.iter().max_by_key(|version| self.place(version)),
        };
        let newest_so_far = |number: usize| versions[..number].iter().all(|v| v.at <= versions[number].at);
        let on_time = |(number, _): &(usize, &Version)| newest_so_far(*number);
        let all = || versions.iter().enumerate();
        let dated = |(_, version): (usize, &Version)| Some((version.at, version.popularity?));
        let popularity = match self.mistake {
            Some(Mistake::LatePopularityIsLost) => all().filter(on_time).filter_map(dated).max(),
            _ => all().filter_map(dated).max(),
        };
        let seen = |(_, version): (usize, &Version)| version.at;
        let first_seen = match self.mistake {
            Some(Mistake::LateVersionsAreNotSeen) => all().filter(on_time).map(seen).min(),
            _ => all().map(seen).min(),
        };
        let Version { at, body, .. } = *last.unwrap();
        let popularity = popularity.map(|(_, popularity)| popularity);
        ModelledPage { at, first_seen: first_seen.unwrap(), popularity, body }
    }

    /// The rank of a version among the versions of its page, by docs/reference/versions.md.
    fn place(&self, version: &Version) -> (i64, u8, String, Option<ContentHash>) {
        match version.body {
            Body::Redirect(to) => (version.at, 0, url(to).to_string(), None),
            Body::Text(text) => {
                let hash = self.signatures.get(version.page, text).content();
                (version.at, 1, String::new(), Some(hash))
            }
            Body::Dead => (version.at, 2, String::new(), None),
        }
    }

    /// The outcome of a version that arrives now. `None` if it may be confirmed or pending.
    pub(crate) fn outcome(&self, version: &Version) -> Option<&'static str> {
        let state = self.pages.get(&version.page)?;
        let (at, body) = (state.at, state.body);
        let on_record = Version { page: version.page, at, popularity: None, body };
        match self.place(version).cmp(&self.place(&on_record)) {
            Ordering::Less => Some("stale"),
            Ordering::Equal => Some("unchanged"),
            Ordering::Greater => {
                let [(_, kind, to, hash), new] = [self.place(&on_record), self.place(version)];
                ((kind, to, hash) == (new.1, new.2, new.3)).then_some("unchanged")
            }
        }
    }

    fn signature(&self, page: Page) -> Option<&Signature> {
        match self.pages.get(&page)?.body {
            Body::Text(text) => Some(self.signatures.get(page, text)),
            Body::Redirect(_) | Body::Dead => None,
        }
    }

    fn similar(&self, a: Page, b: Page) -> bool {
        let pair = self.signature(a).zip(self.signature(b));
        pair.is_some_and(|(a, b)| self.signatures.policy.similar(a, b))
    }

    fn linked(&self, a: Page, b: Page) -> bool {
        let pair = self.signature(a).zip(self.signature(b));
        pair.is_some_and(|(a, b)| self.signatures.policy.linked(a, b))
    }

    /// The page that the target of a redirect names: the page with that URL, else the page with its normal
    /// form, else the first other page with that normal form.
    fn target(&self, asker: Page, to: Page) -> Option<Page> {
        let form = |page: Page| url(page).normalised().unwrap_or_else(|| url(page));
        let all = || self.pages.keys().copied();
        let exact = all().find(|page| *page == to);
        let normal = || all().find(|page| url(*page) == form(to));
        let others =
            || all().filter(|page| form(*page) == form(to) && *page != asker).min_by_key(|page| url(*page));
        exact.or_else(normal).or_else(others)
    }

    /// The page with content at the end of a page's redirects, or the reason why there is none.
    fn end(&self, page: Page) -> Result<Page, &'static str> {
        let mut path = vec![page];
        loop {
            let at = path[path.len() - 1];
            match self.pages[&at].body {
                Body::Text(_) => return Ok(at),
                Body::Dead if self.mistake == Some(Mistake::DeadIsUnknown) => return Err("unknown_target"),
                Body::Dead => return Err("dead_target"),
                Body::Redirect(_) if path.len() > HOPS_MAX => return Err("too_many_hops"),
                Body::Redirect(to) => {
                    let to = self.target(at, to).ok_or("unknown_target")?;
                    if path.contains(&to) {
                        return Err("loop");
                    }
                    path.push(to);
                }
            }
        }
    }

    /// The connected components of the pages with content.
    fn components(&self) -> Vec<Vec<Page>> {
        let mut left: BTreeSet<Page> =
            self.pages.keys().copied().filter(|page| self.signature(*page).is_some()).collect();
        let mut components = Vec::new();
        while let Some(first) = left.pop_first() {
            let mut component = vec![first];
            let mut at = 0;
            while at < component.len() {
                let is_start = self.mistake != Some(Mistake::NoChains) || at == 0;
                let like = |other: &Page| is_start && self.linked(component[at], *other);
                let linked: Vec<Page> = left.iter().copied().filter(like).collect();
                left.retain(|page| !linked.contains(page));
                component.extend(linked);
                at += 1;
            }
            component.sort_by(|a, b| self.order(*a, *b).0);
            components.push(component);
        }
        components
    }

    /// Compares two pages in the winner order; `Less` wins. Also returns the rule that decided.
    fn order(&self, a: Page, b: Page) -> (Ordering, &'static str) {
        let usual = ["popularity", "day_first_seen", "static_url", "shorter_url", "first_seen"];
        let rules = self.history.setup.rules.as_deref().unwrap_or(&usual);
        let by = |rule: &&'static str| (self.number(rule, a).cmp(&self.number(rule, b)), *rule);
        let decided = rules.iter().map(by).find(|(order, _)| order.is_ne());
        decided.unwrap_or_else(|| (url(a).as_str().cmp(url(b).as_str()), "url"))
    }

    /// The value of a page under a rule. The smaller value wins.
    fn number(&self, rule: &str, page: Page) -> i64 {
        let (state, url) = (&self.pages[&page], url(page).to_string());
        match rule {
            "popularity" => match state.popularity {
                None => 2,
                Some(0) => 1,
                Some(popularity) => -i64::from(popularity.ilog2()),
            },
            "day_first_seen" => state.first_seen.div_euclid(Timestamp::DAY_MS),
            "static_url" => i64::from(url.contains('?')),
            "shorter_url" => url.len() as i64,
            "first_seen" => state.first_seen,
            "https" => i64::from(!url.to_lowercase().starts_with("https:")),
            _ => unreachable!("{rule} is no rule of a history"),
        }
    }

    /// Whether a component has too many contents.
    fn is_quarantined(&self, component: &[Page]) -> bool {
        let contents: BTreeSet<ContentHash> =
            component.iter().filter_map(|page| self.signature(*page)).map(Signature::content).collect();
        self.history.setup.contents_max.is_some_and(|max| contents.len() as u64 > max)
    }

    /// For each page of a component that is not kept: the kept page that it is a duplicate of.
    fn cover(&self, component: &[Page]) -> BTreeMap<Page, Page> {
        let (mut kept, mut cover) = (Vec::new(), BTreeMap::new());
        for page in component {
            let of_winner = self.mistake == Some(Mistake::NoCovers);
            let candidates = if of_winner { kept.get(..1).unwrap_or(&kept) } else { &kept };
            match candidates.iter().find(|earlier| self.similar(*page, **earlier)) {
                Some(earlier) => drop(cover.insert(*page, *earlier)),
                None => kept.push(*page),
            }
        }
        cover
    }

    /// The winner of a component and its cover. The pages of `component` are in the winner order.
    fn standing(&self, component: &[Page], market: Option<&Market>) -> Standing {
        let winner = component[0];
        let (mut cover, usual) = (BTreeMap::new(), |cover| Standing { winner, cover, market: None });
        if self.is_quarantined(component) {
            return usual(cover);
        }
        cover.extend(self.cover(component));
        let Some(market) = market.filter(|_| self.mistake != Some(Mistake::NoMarkets)) else {
            return usual(cover);
        };
        let preferred = component.iter().copied().find(|page| market.has(*page));
        let Some(preferred) = preferred.filter(|page| *page != winner) else { return usual(cover) };
        let named = cover.iter().filter(|(_, of)| **of == winner).map(|(page, _)| *page);
        let named: Vec<Page> = named.chain([winner]).filter(|page| *page != preferred).collect();
        let is_copy = self.signature(preferred).map(Signature::content)
            == self.signature(winner).map(Signature::content);
        let is_careless = self.mistake == Some(Mistake::MarketsTearCovers);
        if !is_copy && !is_careless && !named.iter().all(|page| self.similar(preferred, *page)) {
            return usual(cover);
        }
        cover.remove(&preferred);
        cover.extend(named.into_iter().map(|page| (page, preferred)));
        Standing { winner: preferred, cover, market: Some(*market) }
    }

    /// The expected answers about every page on record by URL, to a question with an optional market.
    pub(crate) fn answers(&self, market: Option<&Market>) -> BTreeMap<String, Expected> {
        let components = self.components();
        let standings: Vec<Standing> =
            components.iter().map(|component| self.standing(component, market)).collect();
        let ends: BTreeMap<Page, Result<Page, &str>> =
            self.pages.keys().map(|page| (*page, self.end(*page))).collect();
        let mut answers = BTreeMap::new();
        for (page, state) in &self.pages {
            let fetched_at = Timestamp::from_millis(state.at).to_string();
            let alone = |status, reason| Expected {
                status,
                group: None,
                winner: None,
                duplicate_of: None,
                similarity: None,
                reason,
                rule: None,
                fetched_at: fetched_at.clone(),
            };
            let expected = match (state.body, ends[page]) {
                (Body::Dead, _) => alone("dead", None),
                (_, Err(reason)) => alone("unresolved", Some(reason)),
                (_, Ok(end)) => {
                    let number = components.iter().position(|component| component.contains(&end)).unwrap();
                    let component = &components[number];
                    let of_group = ends.values().filter(|end| end.is_ok_and(|end| component.contains(&end)));
                    if of_group.count() == 1 {
                        alone("unique", None)
                    } else {
                        let grouped = self.grouped(*page, end, &standings[number]);
                        Expected { group: Some(number), fetched_at: fetched_at.clone(), ..grouped }
                    }
                }
            };
            answers.insert(url(*page).to_string(), expected);
        }
        answers
    }

    /// The expected answer about a page in a group of several pages, without the group and the date.
    fn grouped(&self, page: Page, end: Page, standing: &Standing) -> Expected {
        let (winner, is_redirect) = (standing.winner, page != end);
        let of = standing.cover.get(&end).copied().or(is_redirect.then_some(end));
        let status = match of {
            Some(_) => "duplicate",
            None if page == winner => "winner",
            None => "secondary",
        };
        let pair = of.and_then(|of| self.signature(page).zip(self.signature(of)));
        let similarity = pair.map(|(a, b)| self.signatures.policy.compare(a, b).similarity.as_f64());
        let named = of.unwrap_or(winner);
        let is_told = !is_redirect && page != winner;
        Expected {
            status,
            group: None,
            winner: Some(url(winner).to_string()),
            duplicate_of: of.map(|of| url(of).to_string()),
            similarity,
            reason: None,
            rule: is_told.then(|| {
                let market = standing.market.filter(|market| named == winner && !market.has(page));
                market.map_or_else(|| self.order(named, page).1, |_| "market")
            }),
            fetched_at: String::new(),
        }
    }

    /// Number of pages of the largest component.
    pub(crate) fn largest(&self) -> usize {
        self.components().iter().map(Vec::len).max().unwrap_or_default()
    }
}
