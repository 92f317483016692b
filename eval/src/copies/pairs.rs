//! Labelled pairs and their pages, read from the corpora.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use doppel_crawls::FetchedBody;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::reading::crawl;
use doppel_model::PageUrl;

use crate::ground_truth::kind::TruthKind;
use crate::ground_truth::labelled::{self, Truth};

/// Labelled pair that is decided: copies, or not.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) pair: labelled::Pair,
    pub(super) kind: TruthKind,
    /// Number of the pair's family. Samples and folds never split a family.
    pub(super) family: usize,
}

impl Pair {
    /// Whether the label says that the two pages are copies.
    pub(super) fn is_copy(&self) -> bool {
        self.pair.truth == Truth::Same
    }
}

/// All labelled pairs and their pages.
pub(super) struct LabelledPairs {
    pub(super) pairs: Vec<Pair>,
    pub(super) pages: HashMap<PageUrl, FetchedBody>,
    /// Files of the corpora that the pages come from.
    pub(super) inputs: InputArgs,
}

/// Names of the sets of graded pairs.
const GRADED: [&str; 2] = ["trecdup-web.train", "trecdup-gov2.train"];

/// Reads the pairs and their pages from the directory of the corpora.
///
/// # Errors
/// If a file cannot be read, or if a page of a pair is in no file.
pub(super) fn read(data: &Path) -> anyhow::Result<LabelledPairs> {
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
        anyhow::ensure!(
            pages.contains_key(url),
            "{url} of a labelled pair is in no file of {}; download the corpora again",
            data.display()
        );
    }
    group(&mut pairs);
    Ok(LabelledPairs { pairs, pages, inputs })
}

/// Reads the first version of each page of the pairs.
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

/// Assigns families: pages of one pair, and pages with the same name, are of one family.
fn group(pairs: &mut [Pair]) {
    // Graded texts have unrelated names, so only equal URLs count.
    let name =
        |url, kind| if kind == TruthKind::Graded { PageUrl::as_str(url) } else { labelled::last_name(url) };
    let names = pairs.iter().map(|Pair { pair, kind, .. }| [&pair.a, &pair.b].map(|url| name(url, *kind)));
    let families = labelled::families(names);
    pairs.iter_mut().zip(families).for_each(|(pair, family)| pair.family = family);
}
