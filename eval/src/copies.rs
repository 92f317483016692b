//! `doppel-eval copies`: compares what policies call copies with what people, or a written rule, call copies.
//!
//! Every figure is of one kind of truth. No threshold is judged on the pairs that chose it.
//!
//! | module | responsibility |
//! |---|---|
//! | `pairs` | the labelled pairs and their pages |
//! | `methods` | the compared methods: policies, and `copies` over the main contents of other extractors |
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

use figures::{CrossValidation, Figures};
use methods::{CONTENT, COPIES, JACCARD, Method};
use pairs::Pair;

use crate::ground_truth::kind::TruthKind;

/// Compare policies with what people call a copy, on labelled pairs of pages.
///
/// There are three kinds of truth. People graded pairs of plain texts. A language model judged pairs of HTML
/// pages on one host, and on two hosts, by a written rule. Each judged pair has a weight, and undecided pairs
/// are left out. Precision is the share of correct pairs among the pairs that a policy calls near-duplicates.
/// Recall is the share of the correct pairs that the policy finds. Both are by weight. Intervals hold 95 % of
/// 1,000 samples of families of pages, drawn with replacement. Pages with the same name are a family.
#[derive(Debug, Args)]
pub(crate) struct Copies {
    /// Directory of the corpora, with `labelled`, `cross` and `mid`.
    #[arg(value_name = "DIR", default_value = "../shared/data")]
    data: PathBuf,
}

/// Figures of all methods.
#[derive(Debug, Serialize)]
pub(crate) struct CopiesResult {
    /// Numbers of correct and of incorrect pairs, by kind of truth.
    pairs: Vec<(TruthKind, usize, usize)>,
    rows: Vec<Row>,
    sweep: Vec<Sweep>,
    chosen: Vec<ChosenRow>,
    /// Seconds that each method takes for the pages of all pairs.
    seconds: Vec<(String, f64)>,
}

/// Figures of a method on the pairs of one kind.
#[derive(Debug, Serialize)]
struct Row {
    kind: TruthKind,
    method: String,
    #[serde(flatten)]
    figures: Figures,
}

/// Figures of `copies` with one threshold for all pairs of a kind.
#[derive(Debug, Serialize)]
struct Sweep {
    kind: TruthKind,
    threshold: f64,
    #[serde(flatten)]
    figures: Figures,
}

/// Threshold of a measure, chosen by cross-validation.
#[derive(Debug, Serialize)]
struct ChosenRow {
    kind: TruthKind,
    method: String,
    #[serde(flatten)]
    chosen: CrossValidation,
}

/// Minimum recall of a chosen threshold. The minimum is higher within a site, because copies of a document
/// differ less there than across sites.
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
                result.rows.push(Row {
                    kind,
                    method: name.clone(),
                    figures: figures::with_intervals(&pairs, &accepted),
                });
            }
            let similarity =
                |method: &Method| numbers.iter().map(|at| method.similarity[*at]).collect::<Vec<f64>>();
            let is_swept = |method: &&Method| [JACCARD, CONTENT, COPIES].contains(&&*method.name);
            let swept = methods.iter().filter(is_swept).map(|method| (method, figures::POLICY_LEAST));
            for (method, least) in swept.chain(weighted.iter().map(|method| (method, weighted::LEAST))) {
                // The similarity of a policy does not depend on its threshold.
                let name = method.name.split(':').next().unwrap_or_default().to_owned();
                let chosen = figures::choose(&pairs, &similarity(method), least, wanted_recall(kind));
                result.chosen.push(ChosenRow { kind, method: name, chosen });
            }
            let copies = methods.iter().find(|method| method.name == COPIES).map(similarity);
            let Some(similarity) = copies else { continue };
            for threshold in figures::thresholds(figures::POLICY_LEAST) {
                let accepted: Vec<bool> = similarity.iter().map(|one| *one > threshold).collect();
                result.sweep.push(Sweep {
                    kind,
                    threshold,
                    figures: figures::with_intervals(&pairs, &accepted),
                });
            }
        }
        Ok(result)
    }
}
