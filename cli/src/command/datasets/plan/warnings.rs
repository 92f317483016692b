//! Finds warnings about the figures of a plan.

use std::collections::{HashMap, HashSet};

use doppel_control::layout::{self, ContentLayout, Shape};
use doppel_model::NodeId;
use doppel_model::signature::Signature;
use doppel_partitioning::{Drift, LengthVector, Plan};
use doppel_terminal::output::{count, plural};

use super::summary::Summary;

/// Imbalance, relative to a random deal, above which there is a warning.
const IMBALANCE_MAX: f64 = 1.2;

/// Returns the warnings about a summary and a layout that was learned from `sample`.
pub(super) fn warnings(
    summary: &Summary,
    layout: &ContentLayout,
    shape: Shape,
    sample: &[&Signature],
) -> Vec<String> {
    let Summary { contents, drift, load, imbalance_floor, .. } = summary;
    let few = |number, what| layout::warn_if_few(number, what, &[shape.nodes]);
    let mut warnings = Vec::new();
    warnings.extend(few(sample.len(), " to learn from").or_else(|| few(*contents, "")));
    warnings.extend(idle(layout, &load.stored, sample));
    let imbalance = load.imbalance();
    if imbalance > IMBALANCE_MAX * imbalance_floor {
        warnings.push(format!("the fullest node stores {imbalance:.2} times the mean"));
    }
    match layout {
        // A single content differs from no other, so no dimension can be checked.
        ContentLayout::Learned(_) if sample.len() < 2 => {}
        ContentLayout::Learned(plan) => warnings.extend(constant(plan, shape.dimensions)),
        ContentLayout::Paper(_) if shape.dimensions > 1 => {
            warnings.push("the paper's mapping may lose pairs; `doppel-eval mapping` counts them".to_owned());
        }
        ContentLayout::Paper(_) => {}
    }
    if let Some(drift) = drift.filter(Drift::is_unlike) {
        warnings.push(format!(
            "the contents are unlike the sample: {:.0} % of them lie elsewhere, chance alone would make it {:.0} %",
            100.0 * drift.distance,
            100.0 * drift.chance
        ));
    }
    warnings
}

/// Says how many nodes store nothing, and why.
fn idle(layout: &ContentLayout, stored: &[u64], sample: &[&Signature]) -> Vec<String> {
    let of = |idle: usize, verbs: [&str; 2]| {
        format!("{idle} of {} {}", plural(stored.len() as u64, "node"), verbs[usize::from(idle > 1)])
    };
    let empty = || (0..).zip(stored).filter(|(_, stored)| **stored == 0).map(|(node, _)| NodeId(node));
    let plan = match layout {
        ContentLayout::Learned(plan) => plan,
        ContentLayout::Paper(_) => {
            let idle = empty().count();
            let why = "in the paper's grid a box is empty where a dimension has fewer intervals than wanted, or \
                       no content has such lengths";
            return (idle > 0)
                .then(|| format!("{}: {why}", of(idle, ["has nothing to store", "have nothing to store"])))
                .into_iter()
                .collect();
        }
    };
    let serving: HashSet<NodeId> = plan.assignments().iter().map(|assignment| assignment.node).collect();
    let (without, unmet): (Vec<NodeId>, Vec<NodeId>) = empty().partition(|node| !serving.contains(node));
    let mut warnings = Vec::new();
    if !without.is_empty() {
        let idle = of(without.len(), ["has no partition", "have no partition"]);
        warnings.push(format!("{idle}: {}", unparted(plan, sample)));
    }
    if !unmet.is_empty() {
        let idle = of(unmet.len(), ["has nothing to store", "have nothing to store"]);
        warnings.push(format!("{idle}: no content has lengths that lie in its partitions"));
    }
    warnings
}

/// Says why the sample cannot be divided into as many partitions as there are nodes.
fn unparted(plan: &Plan, sample: &[&Signature]) -> String {
    let mut vectors: HashMap<LengthVector, usize> = HashMap::new();
    for signature in sample {
        *vectors.entry(plan.map().lexicon().lengths(signature)).or_default() += 1;
    }
    let why = if vectors.len() < plan.nodes() as usize {
        format!("the sample has only {}", plural(vectors.len() as u64, "different length vector"))
    } else {
        let commonest = vectors.values().copied().max().unwrap_or(0);
        let (commonest, sample) = (count(commonest as u64), plural(sample.len() as u64, "content"));
        format!("{commonest} of the sample's {sample} have the same length vector")
    };
    format!("{why}, and contents of one vector stay together")
}

/// Names the dimensions in which all contents of the sample are equal.
fn constant(plan: &Plan, dimensions: usize) -> Option<String> {
    let constant: Vec<String> =
        plan.map().sample().constant_features().map(|number| (number + 1).to_string()).collect();
    let noun = if constant.len() > 1 { "dimensions" } else { "dimension" };
    (!constant.is_empty()).then(|| {
        let constant = constant.join(", ");
        format!("no content of the sample differs from another in {noun} {constant} of {dimensions}")
    })
}
