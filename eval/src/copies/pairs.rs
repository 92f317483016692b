//! The labelled pairs, and the pages that they are of.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use doppel_crawls::FetchedBody;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::reading::crawl;
use doppel_model::PageUrl;

use crate::ground_truth::kind::TruthKind;
use crate::ground_truth::labelled::{self, Truth};

/// A labelled pair, which is one of copies or not.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) pair: labelled::Pair,
    pub(super) kind: TruthKind,
    /// Pairs of one family are never apart.
    pub(super) family: usize,
}

impl Pair {
    pub(super) fn is_copy(&self) -> bool {
        self.pair.truth == Truth::Same
    }
}

/// All pairs and their pages.
pub(super) struct Set {
    pub(super) pairs: Vec<Pair>,
    pub(super) pages: HashMap<PageUrl, FetchedBody>,
    /// The files of the corpora that they are in.
    pub(super) inputs: InputArgs,
}

/// The sets of graded pairs.
const GRADED: [&str; 2] = ["trecdup-web.train", "trecdup-gov2.train"];

/// Reads them from the directory of the corpora.
///
/// # Errors
/// When a file cannot be read, or a page is in none.
pub(super) fn read(data: &Path) -> anyhow::Result<Set> {
    let (mut pairs, mut inputs) = (Vec::new(), Vec::new());
    let mut add = |path: &str, kind: fn(&labelled::Pair) -> TruthKind| -> anyhow::Result<()> {
        let read = labelled::pairs(&data.join(path))?;
        let decided = read.into_iter().filter(|pair| pair.truth != Truth::Undecided);
        pairs.extend(decided.map(|pair| Pair { kind: kind(&pair), pair, family: 0 }));
        Ok(())
    };
    for set in GRADED {
        add(&format!("labelled/{set}.labels.jsonl"), |_| TruthKind::Graded)?;
        inputs.push(data.join(format!("labelled/{set}.warc.gz")));
    }
    add("cross/cross.pairs.train.jsonl", TruthKind::of_judged)?;
    inputs.extend(
        ["cross/cross-00", "mid/mid-00", "mid/mid-01"].map(|name| data.join(format!("{name}.warc.gz"))),
    );
    let inputs = InputArgs::from(inputs);
    let pages = pages(&pairs, &inputs)?;
    for url in pairs.iter().flat_map(|Pair { pair, .. }| [&pair.a, &pair.b]) {
        anyhow::ensure!(pages.contains_key(url), "{url} is in no file of {}", data.display());
    }
    group(&mut pairs);
    Ok(Set { pairs, pages, inputs })
}

/// The first version of each page of the pairs.
fn pages(pairs: &[Pair], inputs: &InputArgs) -> anyhow::Result<HashMap<PageUrl, FetchedBody>> {
    let mut pages = HashMap::new();
    let wanted: HashSet<&PageUrl> = pairs.iter().flat_map(|Pair { pair, .. }| [&pair.a, &pair.b]).collect();
    let tally = crawl::read(inputs, |page| {
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
    // Graded texts are named by their collection, each apart.
    let name =
        |url, kind| if kind == TruthKind::Graded { PageUrl::as_str(url) } else { labelled::last_name(url) };
    let names = pairs.iter().map(|Pair { pair, kind, .. }| [&pair.a, &pair.b].map(|url| name(url, *kind)));
    let families = labelled::families(names);
    pairs.iter_mut().zip(families).for_each(|(pair, family)| pair.family = family);
}
