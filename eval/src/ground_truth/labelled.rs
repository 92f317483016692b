//! Pairs of pages whose truth comes from a file of labels, and the pages of the crawls that the pairs name.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use doppel_crawls::FetchedPage;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::reading::crawl;
use doppel_model::pairwise::{Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::tables::{Tables, TermSample};
use doppel_model::{PageUrl, UnionFind};
use doppel_text::Extractor;
use serde::Deserialize;

/// Right answer for a pair: the pages are the same, are others, or nobody could decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    Same,
    Other,
    Undecided,
}

/// Two pages whose truth is known.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) a: PageUrl,
    pub(crate) b: PageUrl,
    pub(crate) truth: Truth,
    /// Number of pairs of the collection that this sampled pair stands for.
    pub(crate) weight: f64,
}

impl Pair {
    /// Whether both pages are on one host.
    pub(crate) fn is_on_one_host(&self) -> bool {
        self.a.host() == self.b.host()
    }
}

#[derive(Deserialize)]
struct PairLine {
    a: String,
    b: String,
    label: Label,
    weight: Option<f64>,
}

/// Label of a pair: a grade, where 0 means no duplicate, or a verdict.
#[derive(Deserialize)]
#[serde(untagged)]
enum Label {
    Grade(u8),
    Verdict(String),
}

impl Label {
    fn truth(&self) -> anyhow::Result<Truth> {
        match self {
            Self::Grade(0) => Ok(Truth::Other),
            Self::Grade(_) => Ok(Truth::Same),
            Self::Verdict(word) => match word.as_str() {
                "correct" => Ok(Truth::Same),
                "incorrect" => Ok(Truth::Other),
                "undecided" => Ok(Truth::Undecided),
                _ => bail!(
                    "{word:?} is no label; use a grade (0 means no duplicate), correct, incorrect or undecided"
                ),
            },
        }
    }
}

/// Reads the pairs of a file of JSON lines with the fields `a`, `b`, `label` and optionally `weight`.
///
/// # Errors
/// If the file cannot be read, or if a line is not a pair.
pub(crate) fn pairs(path: &Path) -> anyhow::Result<Vec<Pair>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let parse = |(number, line): (usize, &str)| {
        let pair = |line: &str| -> anyhow::Result<Pair> {
            let PairLine { a, b, label, weight } = serde_json::from_str(line)?;
            let (a, b, truth) = (PageUrl::parse(&a)?, PageUrl::parse(&b)?, label.truth()?);
            Ok(Pair { a, b, truth, weight: weight.unwrap_or(1.0) })
        };
        pair(line).with_context(|| format!("{}, line {}", path.display(), number + 1))
    };
    text.lines().enumerate().map(parse).collect()
}

/// Assigns each pair to a family by the names of its pages. Two pairs are of one family if they have a name
/// in common, or if a chain of such pairs connects them.
pub(crate) fn families<'p>(names: impl IntoIterator<Item = [&'p str; 2]>) -> Vec<usize> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut families = UnionFind::new(0);
    let mut pairs = Vec::new();
    for names in names {
        let [a, b] = names.map(|name| *numbers.entry(name).or_insert_with(|| families.add()));
        families.union(a, b);
        pairs.push(a);
    }
    pairs.into_iter().map(|page| families.root(page)).collect()
}

/// Last segment of a page's URL, which versions and mirrors of a page have in common.
pub(crate) fn last_name(url: &PageUrl) -> &str {
    url.as_str().trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Newest version of each live page that has content, in the order in which the pages first came.
#[derive(Default)]
pub(crate) struct CrawledPages {
    pub(crate) pages: Vec<FetchedPage>,
    numbers: HashMap<PageUrl, usize>,
    /// Pages that are dead or redirect by now.
    gone: HashSet<PageUrl>,
    /// Words of all pages, read on first use.
    words: OnceCell<TermSample>,
}

impl CrawledPages {
    /// Reads crawls. A later crawl is newer.
    ///
    /// # Errors
    /// If an input does not exist or has no page.
    pub(crate) fn read(inputs: &InputArgs) -> anyhow::Result<Self> {
        let mut crawled = Self::default();
        let tally = crawl::read(inputs, |page| {
            crawled.add(page);
            Ok(())
        })?;
        tally.verdict(inputs.strict, 0)?;
        let Self { pages, gone, .. } = crawled;
        let mut live = Self::default();
        pages.into_iter().filter(|page| !gone.contains(&page.url)).for_each(|page| live.add(page));
        Ok(live)
    }

    /// Records the next version of a page. A version without content ends the page.
    pub(crate) fn add(&mut self, page: FetchedPage) {
        if !page.body.has_content() {
            self.gone.insert(page.url);
            return;
        }
        self.gone.remove(&page.url);
        match self.numbers.get(&page.url) {
            Some(number) => self.pages[*number] = page,
            None => {
                self.numbers.insert(page.url.clone(), self.pages.len());
                self.pages.push(page);
            }
        }
    }

    /// Creates the signer of a policy. If the policy reads tables, they are learnt from all pages, as in
    /// `doppel dedup`.
    pub(crate) fn signer(&self, policy: Policy) -> anyhow::Result<Signer> {
        if !policy.reads_tables() {
            return Ok(Signer::new(policy));
        }
        let words = self.words.get_or_init(|| self.sample());
        Ok(Signer::with_tables(policy, Arc::new(Tables::learn(policy.name(), words)))?)
    }

    /// Collects the words of all pages, from which tables are learnt.
    fn sample(&self) -> TermSample {
        let (mut extractor, mut sample) = (Extractor::default(), TermSample::new());
        for page in &self.pages {
            let words = page.body.raw_content().and_then(|raw| extractor.terms(&page.url, raw));
            if let Some(words) = words {
                sample.add(words.content, &mut words.terms.to_vec());
            }
        }
        sample
    }

    /// Number of a page, in the order of `pages`. `None` if the crawls do not have the page.
    pub(crate) fn number(&self, url: &PageUrl) -> Option<usize> {
        self.numbers.get(url).copied()
    }

    /// Finds a page by its URL.
    pub(crate) fn page(&self, url: &PageUrl) -> Option<&FetchedPage> {
        Some(&self.pages[self.number(url)?])
    }
}

/// Signs a page. `None` if the page redirects.
pub(crate) fn sign(extractor: &mut Extractor, page: &FetchedPage) -> Option<Signature> {
    Some(extractor.extract(&page.url, page.body.raw_content()?).page()?.signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_died_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("crawl.jsonl");
        let lines = [
            r#"{"url":"http://a/1","text":"one"}"#,
            r#"{"url":"http://a/2","text":"two"}"#,
            r#"{"url":"http://a/1","dead":true}"#,
            r#"{"url":"http://a/2","dead":true}"#,
            r#"{"url":"http://a/2","text":"again"}"#,
        ];
        fs::write(&path, lines.join("\n")).unwrap();
        let crawled = CrawledPages::read(&InputArgs::from(vec![path])).unwrap();
        let urls: Vec<&str> = crawled.pages.iter().map(|page| page.url.as_str()).collect();
        assert_eq!(urls, ["http://a/2"]);
        assert_eq!(crawled.number(&crawled.pages[0].url), Some(0));
    }

    #[test]
    fn pairs_that_share_a_name_are_of_one_family() {
        let families = families([["a", "b"], ["c", "d"], ["e", "b"], ["d", "d"], ["f", "g"]]);
        assert_eq!((families[0], families[1]), (families[2], families[3]));
        assert!(families[0] != families[1] && families[4] != families[0] && families[4] != families[1]);
        assert_eq!(last_name(&PageUrl::parse("http://h/1.2/tree/").unwrap()), "tree");
    }

    #[test]
    fn grades_and_verdicts_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pairs.jsonl");
        let lines = [
            r#"{"a":"http://a/1","b":"http://a/2","label":0,"s3":0.5}"#,
            r#"{"a":"http://a/1","b":"http://a/3","label":2}"#,
            r#"{"a":"http://a/1","b":"http://b/3","label":"undecided","weight":3.5}"#,
        ];
        fs::write(&path, lines.join("\n")).unwrap();
        let read = pairs(&path).unwrap();
        let truths: Vec<_> =
            read.iter().map(|pair| (pair.truth, pair.weight, pair.is_on_one_host())).collect();
        let expected = [(Truth::Other, 1.0, true), (Truth::Same, 1.0, true), (Truth::Undecided, 3.5, false)];
        assert_eq!(truths, expected);
        fs::write(&path, r#"{"a":"http://a/1","b":"http://a/2","label":"perhaps"}"#).unwrap();
        assert!(format!("{:#}", pairs(&path).unwrap_err()).contains("line 1: \"perhaps\" is no label"));
    }
}
