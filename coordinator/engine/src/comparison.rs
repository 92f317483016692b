//! Explains a policy's decision in the form of the public answers: the comparison of two contents, and the
//! part of a page that counts as its main content.
//!
//! `GET /v1/explain` and `POST /v1/probe` use this module, and so do programs that compare pages without a
//! server.

use std::cmp::Ordering;

use doppel_contract::answer::{
    ComparisonMeasures, CriterionResult, MainContentAnswer, OmittedPart, ShingleComparison, ShingleExamples,
};
use doppel_model::pairwise::{Bands, Comparison, Policy, TOKENS_MIN};
use doppel_model::signature::Signature;
use doppel_text::{MainContentReport, OmittedText};

use crate::limits::EXAMPLES;

/// Result of a comparison, with the measures behind the result.
#[derive(Debug, Clone)]
pub struct MeasuredComparison {
    /// The decision of the policy.
    pub comparison: Comparison,
    /// The measures in the form of the public answers.
    pub measures: ComparisonMeasures,
}

/// Compares two contents under a policy and reports every measure.
#[must_use]
pub fn compare(policy: Policy, a: &Signature, b: &Signature) -> MeasuredComparison {
    let comparison = policy.compare(a, b);
    let criteria = policy.criteria(a, b).into_iter().map(|criterion| CriterionResult {
        what: criterion.what.to_owned(),
        shared: criterion.has.shared,
        of: criterion.has.of,
        needed: criterion.needed,
        met: criterion.is_met,
    });
    let measures = ComparisonMeasures {
        same_content: comparison.same_content,
        similarity: comparison.similarity.as_f64(),
        criteria: criteria.collect(),
        shingles: policy.bands().map(|bands| shingles(bands, a, b)),
    };
    MeasuredComparison { comparison, measures }
}

/// Measures of two contents from their shingle sets and their sketches.
fn shingles(bands: Bands, a: &Signature, b: &Signature) -> ShingleComparison {
    let shared = a.shared_with(b);
    let equal = a.sketch().iter().zip(b.sketch()).filter(|(x, y)| x == y).count();
    // The low bytes of different minima agree by chance one time in 256.
    let share = equal as f64 / a.sketch().len() as f64;
    let estimate = ((share - 1.0 / 256.0) / (1.0 - 1.0 / 256.0)).max(0.0);
    let has_sketch = a.size() > 0 && b.size() > 0;
    let keys = bands.keys(a.sketch()).zip(bands.keys(b.sketch()));
    ShingleComparison {
        only_a: a.size().saturating_sub(shared),
        only_b: b.size().saturating_sub(shared),
        sketch_estimate: if has_sketch { estimate } else { 0.0 },
        equal_bands: if has_sketch { keys.filter(|(x, y)| x == y).count() } else { 0 },
        bands: bands.count,
        examples: examples(a, b),
    }
}

/// Returns the first [`EXAMPLES`] shingles that only `a`, only `b`, and both contain, from one merge pass
/// over the two ascending sets.
fn examples(a: &Signature, b: &Signature) -> ShingleExamples {
    let mut found = ShingleExamples::default();
    let (mut xs, mut ys) = (a.set().peekable(), b.set().peekable());
    loop {
        let (list, hash) = match (xs.peek().copied(), ys.peek().copied()) {
            (None, None) => return found,
            (Some(x), None) => (&mut found.only_a, x),
            (None, Some(y)) => (&mut found.only_b, y),
            (Some(x), Some(y)) => match x.cmp(&y) {
                Ordering::Less => (&mut found.only_a, x),
                Ordering::Greater => (&mut found.only_b, y),
                Ordering::Equal => (&mut found.common, x),
            },
        };
        if list.len() < EXAMPLES {
            list.push(format!("{hash:010x}"));
        }
        xs.next_if_eq(&hash);
        ys.next_if_eq(&hash);
    }
}

/// Explains in words why two contents are near-duplicates under a policy or not. `a` and `b` are the numbers
/// of tokens of the two contents.
#[must_use]
pub fn reason(policy: Policy, (a, b): (u32, u32), compared: &MeasuredComparison) -> String {
    let MeasuredComparison { comparison, measures } = compared;
    let few = [a, b].into_iter().find(|tokens| *tokens < TOKENS_MIN);
    match (comparison.same_content, comparison.similar, few) {
        (true, true, _) => format!("they have {}", policy.equality()),
        (true, false, _) => "neither has any text".to_owned(),
        (false, _, Some(tokens)) => {
            let site = if policy.reads_site() { " on the same site" } else { "" };
            let noun = if tokens == 1 { "token" } else { "tokens" };
            let units = policy.units();
            format!(
                "one has {tokens} {noun}; below {TOKENS_MIN} only the same {units}{site} make a duplicate"
            )
        }
        (false, _, None) => {
            let mut text = describe(&measures.criteria);
            let is_apart = measures.shingles.as_ref().is_some_and(|shingles| shingles.equal_bands == 0);
            if comparison.similar && is_apart {
                text += "; no band of the sketches is equal, so this pair alone links no groups";
            }
            text
        }
    }
}

/// Describes in words each criterion of F, and whether the pair meets it.
fn describe(criteria: &[CriterionResult]) -> String {
    let each = criteria.iter().map(|CriterionResult { what, shared, of, needed, met }| {
        let verdict = if *met { "" } else { "not " };
        format!("{shared} of {of} {what} are in both, which is {verdict}{needed}")
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Converts the result of main-content extraction to its public form.
#[must_use]
pub fn main_content(taken: MainContentReport) -> MainContentAnswer {
    let MainContentReport { part, tokens, of, left_out } = taken;
    let left_out = left_out.into_iter().map(|OmittedText { rule, tokens, text }| OmittedPart {
        rule: rule.name().to_owned(),
        tokens: tokens as u64,
        text,
    });
    MainContentAnswer {
        part: part.name().to_owned(),
        page_tokens: of as u64,
        taken_tokens: tokens as u64,
        left_out_tokens: of.saturating_sub(tokens) as u64,
        left_out: left_out.collect(),
    }
}
