//! `doppel-eval copies`: which pairs that people or a written rule call copies does a policy call so.
//!
//! | module | what |
//! |---|---|
//! | `pairs` | the labelled pairs and their pages |
//! | `methods` | what is compared: policies, and `copies` over what other extractors find |
//! | `weighted` | an experiment: shingles weighted by how common they are on a site |
//! | `figures` | precision and recall with intervals, and thresholds by cross-validation |
//! | `report` | tables and plots |

mod figures;
mod methods;
mod pairs;
mod report;
mod weighted;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use figures::{Chosen, Figures};
use methods::{CONTENT, COPIES, JACCARD, Method};
use pairs::Pair;

use crate::ground_truth::kind::TruthKind;

/// Compare policies with what people call a copy, on labelled pairs of pages.
///
/// Truth is of three kinds: pairs of plain texts that people graded, and pairs of HTML pages on one host and on two hosts, judged
/// by a language model after a written rule, each with a weight; undecided ones are left out. Precision is the share of correct pairs
/// among those that a policy calls near-duplicates, recall the share of the correct pairs that it calls so, both by weight.
/// Intervals hold 95 % of 1,000 samples of families of pages, with replacement; pages of one name are a family.
#[derive(Debug, Args)]
pub(crate) struct Copies {
    /// The corpora: a directory with `labelled`, `cross` and `mid`.
    #[arg(value_name = "DIR", default_value = "../shared/data")]
    data: PathBuf,
}

/// All figures.
#[derive(Debug, Serialize)]
pub(crate) struct CopiesResult {
    /// Pairs of each kind of truth: correct, incorrect.
    pairs: Vec<(TruthKind, usize, usize)>,
    rows: Vec<Row>,
    sweep: Vec<Sweep>,
    chosen: Vec<ChosenRow>,
    /// Seconds for the pages of all pairs, by method.
    seconds: Vec<(String, f64)>,
}

/// A method on pairs of one kind.
#[derive(Debug, Serialize)]
struct Row {
    kind: TruthKind,
    method: String,
    #[serde(flatten)]
    figures: Figures,
}

/// `copies` with one threshold for all pairs of a kind.
#[derive(Debug, Serialize)]
struct Sweep {
    kind: TruthKind,
    threshold: f64,
    #[serde(flatten)]
    figures: Figures,
}

/// The threshold of a measure by cross-validation.
#[derive(Debug, Serialize)]
struct ChosenRow {
    kind: TruthKind,
    method: String,
    #[serde(flatten)]
    chosen: Chosen,
}

/// The recall at which the most precise threshold is wanted: most of the copies. Within a site more is asked for, where copies of documents differ
/// less than across sites.
fn wanted_recall(kind: TruthKind) -> f64 {
    if kind == TruthKind::JudgedOneHost { 0.75 } else { 0.6 }
}

impl Copies {
    pub(crate) fn run(self) -> anyhow::Result<CopiesResult> {
        let set = pairs::read(&self.data)?;
        let of = |kind: TruthKind| -> Vec<usize> {
            (0..set.pairs.len()).filter(|at| set.pairs[*at].kind == kind).collect()
        };
        let methods = methods::all(&set)?;
        let weighted = weighted::all(&set)?;
        let mut result = CopiesResult {
            pairs: Vec::new(),
            rows: Vec::new(),
            sweep: Vec::new(),
            chosen: Vec::new(),
            seconds: methods
                .iter()
                .chain(&weighted)
                .map(|method| (method.name.clone(), method.seconds))
                .collect(),
        };
        for kind in TruthKind::LABELLED {
            let numbers = of(kind);
            let pairs: Vec<&Pair> = numbers.iter().map(|at| &set.pairs[*at]).collect();
            let correct = pairs.iter().filter(|pair| pair.is_copy()).count();
            result.pairs.push((kind, correct, pairs.len() - correct));
            for Method { name, accepted, .. } in &methods {
                let accepted: Vec<bool> = numbers.iter().map(|at| accepted[*at]).collect();
                result.rows.push(Row { kind, method: name.clone(), figures: figures::of(&pairs, &accepted) });
            }
            let similarity =
                |method: &Method| numbers.iter().map(|at| method.similarity[*at]).collect::<Vec<f64>>();
            let is_swept = |method: &&Method| [JACCARD, CONTENT, COPIES].contains(&&*method.name);
            let swept = methods.iter().filter(is_swept).map(|method| (method, figures::POLICY_LEAST));
            for (method, least) in swept.chain(weighted.iter().map(|method| (method, weighted::LEAST))) {
                // The measure of a policy does not depend on its threshold.
                let name = method.name.split(':').next().unwrap_or_default().to_owned();
                let chosen = figures::choose(&pairs, &similarity(method), least, wanted_recall(kind));
                result.chosen.push(ChosenRow { kind, method: name, chosen });
            }
            let copies = methods.iter().find(|method| method.name == COPIES).map(similarity);
            let Some(similarity) = copies else { continue };
            for threshold in figures::thresholds(figures::POLICY_LEAST) {
                let accepted: Vec<bool> = similarity.iter().map(|one| *one > threshold).collect();
                result.sweep.push(Sweep { kind, threshold, figures: figures::of(&pairs, &accepted) });
            }
        }
        Ok(result)
    }
}
