//! `doppel-eval henzinger`: reproduces the tables and figures of M. Henzinger, *Finding Near-Duplicate Web
//! Pages*, SIGIR 2006.
//!
//! B is the policy `supershingle`, C is `projection`. As in the paper, pages with equal token sequences are
//! one content, and every content with a token is compared. The definition of a site is the paper's too.
//!
//! In the paper people judged a sample of the pairs. Here precision comes from three kinds of truth, which
//! are never mixed, and each kind has its own counts:
//!
//! - Judged pairs: a language model judged them by a written rule. They are not from the half on which
//!   decisions are tested.
//! - Transplants (`ground_truth::transplants`).
//! - Pairs made to differ for one reason (`ground_truth::variants`).

mod degrees;
mod figures;
mod found_pairs;
mod halves;
mod measures;
mod pairs;
mod print;
mod terms;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use doppel_inputs::arguments::InputArgs;
use doppel_model::PageUrl;
use doppel_model::pairwise::ComparedTokens;
use serde::Serialize;

use crate::ground_truth::labelled::{self, CrawledPages, Pair};
use crate::ground_truth::transplants::Transplants;
use crate::ground_truth::variants::{Reason, Variants};
use crate::report::percent;
use figures::{ReasonCounts, Row, correlation, count_reason, row};
use found_pairs::{LargeDifferences, PartScore, score_large_differences, score_parts};
use halves::Halves;
use measures::{Algorithm, MeasuredPair, Measures, SUPERSHINGLES, measure_pairs, sign};
use pairs::Graph;
use terms::Differences;

/// Bands of C-similarity in the paper.
const BANDS: [(u32, u32); 4] = [(372, 375), (376, 378), (379, 381), (382, 384)];

/// Compare supershingles, projections and their combination, as M. Henzinger did (SIGIR 2006).
///
/// Prints the pairs of each similarity and the share of them that is right, and the degrees of the graph.
/// Prints pairs on one site and on two; a site is the host without its first label, where two labels stay.
/// Prints the terms in which pairs differ, the pairs that are found by why they differ, and how the two
/// measures go together. Prints precision against recall for every cutoff of the combination, chosen on one
/// half of the labelled pairs and tried on the other. Three equal supershingles are the control.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel-eval henzinger --judged pairs.jsonl crawl.warc.gz")]
pub(crate) struct Henzinger {
    #[command(flatten)]
    inputs: InputArgs,
    /// Judged pairs, as JSON lines with a, b, label and weight.
    #[arg(long, value_name = "FILE")]
    judged: Vec<PathBuf>,
    /// Sets of four transplanted pairs.
    #[arg(long, value_name = "N", default_value_t = 500)]
    transplants: usize,
    /// Pairs of pages that differ for each known reason.
    #[arg(long, value_name = "N", default_value_t = 300)]
    variants: usize,
    /// Tokens that are compared: `source`, the tokens of the paper, with those of URLs of images; or `words`,
    /// those of the product.
    #[arg(long, value_name = "TOKENS", default_value = "source", value_parser = tokens)]
    tokens: ComparedTokens,
    /// Seed of the transplants and the pairs by reason.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

fn tokens(word: &str) -> Result<ComparedTokens, String> {
    let choices = [ComparedTokens::Words, ComparedTokens::Source];
    ComparedTokens::of_word(word, &choices)
        .ok_or_else(|| format!("{word:?} names no tokens; use {}", ComparedTokens::words(&choices)))
}

/// Figures of all tables and plots.
#[derive(Debug, Serialize)]
pub(crate) struct HenzingerResult {
    contents: usize,
    /// Pairs of each B-similarity from 2 on, with their mean C-similarity.
    by_b: Vec<Row>,
    /// Pairs of each band of C-similarity, with their mean B-similarity.
    by_c: Vec<Row>,
    algorithms: Vec<AlgorithmGraph>,
    /// Pairs by the reason why they differ.
    reasons: Vec<ReasonCounts>,
    /// Number of B-similar pairs of each C-similarity, by B-similarity from 2 on.
    c_by_b: Vec<Vec<(u32, u64)>>,
    /// Correlation of the two measures over the B-similar pairs.
    correlation: Option<f64>,
    /// Scores of the algorithms, by kind of labelled pairs.
    truths: Vec<TruthScores>,
    seconds: f64,
}

/// Scores of the algorithms on the labelled pairs of one kind.
#[derive(Debug, Serialize)]
struct TruthScores {
    name: &'static str,
    found: Vec<PartScore>,
    /// Scores on the pairs that differ in many terms.
    large: Vec<LargeDifferences>,
    halves: Halves,
}

/// Near-duplicates that one algorithm finds among the contents of the crawl.
#[derive(Debug, Serialize)]
struct AlgorithmGraph {
    algorithm: Algorithm,
    graph: Graph,
    terms: Differences,
}

/// Name of a kind of pairs, its measured pairs, and the family of each pair.
type Labelled<'p> = (&'static str, Vec<MeasuredPair<'p>>, Vec<usize>);

impl Henzinger {
    pub(crate) fn run(self) -> anyhow::Result<HenzingerResult> {
        let begin = Instant::now();
        let crawled = CrawledPages::read(&self.inputs)?;
        let transplants = Transplants::new(&crawled, self.transplants, self.seed);
        let variants = Variants::new(&crawled, self.variants, self.seed);
        let mut extractors = measures::extractors(self.tokens);
        let mut judged = Vec::new();
        for path in &self.judged {
            judged.extend(labelled::pairs(path)?);
        }
        let page = |url: &PageUrl| {
            let made = transplants.made.page(url).or_else(|| variants.made.page(url));
            made.or_else(|| crawled.page(url))
        };
        let mut sign = |url: &PageUrl| sign(&mut extractors, page(url)?);
        let (kinds, pairs): (Vec<Reason>, Vec<Pair>) = variants.pairs.iter().cloned().unzip();
        // A pair that cannot be compared has no measures, and is left out.
        let mut by_reason: Vec<(Reason, MeasuredPair<'_>)> = Vec::new();
        for (reason, pair) in kinds.into_iter().zip(&pairs) {
            by_reason
                .extend(measure_pairs(std::slice::from_ref(pair), &mut sign).pop().map(|one| (reason, one)));
        }
        let reasons = Reason::ALL.map(|reason| count_reason(reason, &by_reason)).into();
        let truths: [Labelled<'_>; 3] = [
            labelled("judged pairs (language model)", measure_pairs(&judged, &mut sign), labelled::last_name),
            labelled("transplants", measure_pairs(&transplants.pairs, &mut sign), PageUrl::as_str),
            labelled(
                "pairs made to differ for one reason",
                by_reason.into_iter().map(|(_, pair)| pair).collect(),
                PageUrl::as_str,
            ),
        ];
        let mut contents = pairs::ComparedContents::default();
        for page in &crawled.pages {
            if let Some(signed) = sign(&page.url) {
                contents.add(signed, page);
            }
        }
        let near = contents.pairs();
        let b_pairs: Vec<Measures> = near.iter().map(|pair| pair.measures).filter(|m| m.b >= 2).collect();
        let c_pairs: Vec<Measures> = near.iter().map(|pair| pair.measures).filter(|m| m.c >= 372).collect();
        let [(_, judged, _), (_, transplanted, _), _] = &truths;
        let both = (&judged[..], &transplanted[..]);
        let by_b =
            (2..=SUPERSHINGLES).map(|b| row(&b_pairs, (b, b), |m| m.b, |m| f64::from(m.c), both)).collect();
        let by_c = BANDS.map(|band| row(&c_pairs, band, |m| m.c, |m| f64::from(m.b), both)).into();
        let algorithms = Algorithm::ALL.map(|algorithm| {
            let own: Vec<_> = near.iter().filter(|pair| algorithm.holds(pair.measures)).copied().collect();
            AlgorithmGraph { algorithm, graph: contents.graph(&own), terms: contents.differences(&own) }
        });
        let mut terms = terms::Terms::default();
        let truths = truths.map(|(name, pairs, families)| TruthScores {
            name,
            found: score_parts(&pairs.iter().collect::<Vec<_>>(), &Algorithm::ALL),
            large: score_large_differences(&pairs, |one| {
                Some(terms.between(page(&one.pair.a)?, page(&one.pair.b)?))
            }),
            halves: Halves::new(&pairs, &families),
        });
        Ok(HenzingerResult {
            contents: contents.len(),
            by_b,
            by_c,
            algorithms: algorithms.into(),
            reasons,
            c_by_b: figures::c_by_b(&b_pairs),
            correlation: correlation(&b_pairs),
            truths: truths.into(),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }
}

/// Assigns families to measured pairs, by the names of their pages.
fn labelled<'p>(
    name: &'static str,
    pairs: Vec<MeasuredPair<'p>>,
    page_name: impl Fn(&'p PageUrl) -> &'p str,
) -> Labelled<'p> {
    let names = pairs.iter().map(|one| [&one.pair.a, &one.pair.b].map(&page_name));
    let families = labelled::families(names);
    (name, pairs, families)
}

/// Formats a share in percent, or `-` if there is none.
fn cell(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), percent)
}
