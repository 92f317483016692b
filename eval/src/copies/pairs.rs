//! The labelled pairs, and the pages that they are of.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use doppel::args::InputArgs;
use doppel::crawl;
use doppel_crawls::FetchedBody;
use doppel_model::{PageUrl, UnionFind};
use serde::{Deserialize, Serialize};

/// What says whether a pair is one of copies, and of which pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Truth {
    /// Plain texts that people graded; a grade of 1 or more is a copy.
    Graded,
    /// Judged pages on one host.
    OneHost,
    /// Judged pages on two hosts.
    TwoHosts,
}

impl Truth {
    pub(super) const ALL: [Self; 3] = [Self::Graded, Self::OneHost, Self::TwoHosts];
}

/// A labelled pair.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) a: PageUrl,
    pub(super) b: PageUrl,
    pub(super) truth: Truth,
    pub(super) is_copy: bool,
    pub(super) weight: f64,
    /// Pairs of one family are never apart.
    pub(super) family: usize,
}

/// All pairs and their pages.
pub(super) struct Set {
    pub(super) pairs: Vec<Pair>,
    pub(super) pages: HashMap<PageUrl, FetchedBody>,
}

/// The sets of graded pairs.
const GRADED: [&str; 2] = ["trecdup-web.train", "trecdup-gov2.train"];

#[derive(Deserialize)]
struct Graded {
    a: PageUrl,
    b: PageUrl,
    label: u8,
}

#[derive(Deserialize)]
struct Judged {
    a: PageUrl,
    b: PageUrl,
    label: String,
    same_host: bool,
    weight: f64,
}

fn lines<T: for<'d> Deserialize<'d>>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let read = |line| serde_json::from_str(line).with_context(|| format!("{}: {line}", path.display()));
    text.lines().map(read).collect()
}

/// Reads them from the directory of the corpora.
///
/// # Errors
/// When a file cannot be read, or a page is in none.
pub(super) fn read(data: &Path) -> anyhow::Result<Set> {
    let (mut pairs, mut inputs) = (Vec::new(), Vec::new());
    for set in GRADED {
        let own: Vec<Graded> = lines(&data.join(format!("labelled/{set}.labels.jsonl")))?;
        inputs.push(data.join(format!("labelled/{set}.warc.gz")));
        pairs.extend(own.into_iter().map(|Graded { a, b, label }| Pair {
            a,
            b,
            truth: Truth::Graded,
            is_copy: label > 0,
            weight: 1.0,
            family: 0,
        }));
    }
    for Judged { a, b, label, same_host, weight } in lines(&data.join("cross/cross.pairs.train.jsonl"))? {
        let is_copy = match &*label {
            "correct" => true,
            "incorrect" => false,
            _ => continue,
        };
        let truth = if same_host { Truth::OneHost } else { Truth::TwoHosts };
        pairs.push(Pair { a, b, truth, is_copy, weight, family: 0 });
    }
    inputs.extend(
        ["cross/cross-00", "mid/mid-00", "mid/mid-01"].map(|name| data.join(format!("{name}.warc.gz"))),
    );
    let pages = pages(&pairs, inputs)?;
    for url in pairs.iter().flat_map(|pair| [&pair.a, &pair.b]) {
        anyhow::ensure!(pages.contains_key(url), "{url} is in no file of {}", data.display());
    }
    group(&mut pairs);
    Ok(Set { pairs, pages })
}

/// The first version of each page of the pairs.
fn pages(pairs: &[Pair], inputs: Vec<PathBuf>) -> anyhow::Result<HashMap<PageUrl, FetchedBody>> {
    let mut pages = HashMap::new();
    let wanted: std::collections::HashSet<&PageUrl> =
        pairs.iter().flat_map(|pair| [&pair.a, &pair.b]).collect();
    let inputs = InputArgs { inputs, strict: false };
    let tally = crawl::read(&inputs, |page| {
        if wanted.contains(&page.url) {
            pages.entry(page.url).or_insert(page.body);
        }
        Ok(())
    })?;
    tally.verdict(inputs.strict, 0)?;
    Ok(pages)
}

/// Pages that are in a pair, or are called the same, are a family.
fn group(pairs: &mut [Pair]) {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut families = UnionFind::new(0);
    let mut number = |families: &mut UnionFind, url: &PageUrl, truth| {
        let name = url.as_str().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        // Graded texts are named by their collection, each apart.
        let name = if truth == Truth::Graded { url.as_str() } else { name };
        *numbers.entry(name.to_owned()).or_insert_with(|| families.add())
    };
    for pair in pairs.iter_mut() {
        let (a, b) = (number(&mut families, &pair.a, pair.truth), number(&mut families, &pair.b, pair.truth));
        families.union(a, b);
        pair.family = a;
    }
    for pair in pairs {
        pair.family = families.root(pair.family);
    }
}
