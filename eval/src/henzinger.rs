//! `doppel-eval henzinger`: the tables and figures of M. Henzinger, *Finding Near-Duplicate Web Pages*, SIGIR 2006, in shape.
//!
//! B is `supershingle`, C is `projection`. Pages of equal token sequences are one content, as there, and contents of fewer than 20
//! words are left out. Pairs were drawn and judged by people there; here precision comes from judged pairs (a language model by a
//! written rule; other half than what decisions are tested on) and from transplants, each kind on its own, with its counts.

mod figures;
mod measures;
mod pairs;
mod print;
mod terms;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use doppel::args::InputArgs;
use doppel_model::PageUrl;
use doppel_model::pairwise::Tokens;
use serde::Serialize;

use crate::labelled::{self, Crawled, Pair};
use crate::score::Score;
use crate::transplants::Transplants;
use crate::variants::{Reason, Variants};
use figures::{Cutoff, OfReason, Row, correlation, cutoffs, of_reason, row, score, scores_by_reason};
use measures::{Algorithm, Measured, Measures, SUPERSHINGLES, measured, sign};
use pairs::Graph;
use terms::Differences;

/// Bands of C-similarity, as in the source.
const BANDS: [(u32, u32); 4] = [(372, 375), (376, 378), (379, 381), (382, 384)];

/// Compare supershingles, projections and their combination as their source does.
///
/// Pairs of each similarity and what share of them is right; degrees; pairs on one host and on two; the terms in which pairs
/// differ; which pairs are found by why they differ; how the two measures go together; precision against recall for every cutoff of the combination; and three equal
/// supershingles as control.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel-eval henzinger --judged pairs.jsonl crawl.warc.gz")]
pub(crate) struct Henzinger {
    #[command(flatten)]
    inputs: InputArgs,
    /// Pairs that were judged, as JSON lines with a, b, label and weight.
    #[arg(long, value_name = "FILE")]
    judged: Vec<PathBuf>,
    /// Sets of four transplanted pairs.
    #[arg(long, value_name = "N", default_value_t = 500)]
    transplants: usize,
    /// Pairs of pages that differ for each known reason.
    #[arg(long, value_name = "N", default_value_t = 300)]
    variants: usize,
    /// What is compared: `source`, the tokens of the paper, with those of URLs of images; or `words`, those of the product.
    #[arg(long, value_name = "TOKENS", default_value = "source", value_parser = tokens)]
    tokens: Tokens,
    /// Seed of the transplants and the pairs by reason.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

fn tokens(word: &str) -> Result<Tokens, String> {
    Tokens::of_word(word).ok_or_else(|| format!("there are {}", Tokens::WORDS.join(", ")))
}

/// All figures.
#[derive(Debug, Serialize)]
pub(crate) struct HenzingerResult {
    contents: usize,
    /// Pairs of each B-similarity from 2 on, with the mean C-similarity.
    by_b: Vec<Row>,
    /// Pairs of each band of C-similarity, with the mean B-similarity.
    by_c: Vec<Row>,
    algorithms: Vec<OfAlgorithm>,
    /// Pairs by why they differ.
    reasons: Vec<OfReason>,
    /// All of them, by algorithm; on one host and on two.
    by_reason: Vec<[Score; 2]>,
    /// How many B-similar pairs have each C-similarity, by B-similarity from 2 on.
    c_by_b: Vec<Vec<(u32, u64)>>,
    /// Correlation of the two measures over the B-similar pairs.
    correlation: Option<f64>,
    /// Precision and recall of B with a cutoff of C: judged pairs, and transplants.
    cutoffs: [Vec<Cutoff>; 2],
    seconds: f64,
}

/// What one algorithm finds.
#[derive(Debug, Serialize)]
struct OfAlgorithm {
    algorithm: Algorithm,
    graph: Graph,
    terms: Differences,
    /// On one host and on two.
    judged: [Score; 2],
    transplants: [Score; 2],
}

impl Henzinger {
    pub(crate) fn run(self) -> anyhow::Result<HenzingerResult> {
        let begin = Instant::now();
        let crawled = Crawled::read(&self.inputs)?;
        let transplants = Transplants::new(&crawled, self.transplants, self.seed);
        let variants = Variants::new(&crawled, self.variants, self.seed);
        let mut extractors = measures::extractors(self.tokens);
        let mut judged = Vec::new();
        for path in &self.judged {
            judged.extend(labelled::pairs(path)?);
        }
        let mut sign = |url: &PageUrl| {
            let made = transplants.made.page(url).or_else(|| variants.made.page(url));
            let page = made.or_else(|| crawled.page(url))?;
            sign(&mut extractors, page)
        };
        let judged = measured(&judged, &mut sign);
        let transplanted = measured(&transplants.pairs, &mut sign);
        let (kinds, pairs): (Vec<Reason>, Vec<Pair>) = variants.pairs.iter().cloned().unzip();
        // One that is not compared has no measures, and is left out.
        let mut by_reason: Vec<(Reason, Measured<'_>)> = Vec::new();
        for (reason, pair) in kinds.into_iter().zip(&pairs) {
            by_reason.extend(measured(std::slice::from_ref(pair), &mut sign).pop().map(|one| (reason, one)));
        }
        let mut contents = pairs::Contents::default();
        for page in &crawled.pages {
            if let Some(signed) = sign(&page.url) {
                contents.add(signed, page);
            }
        }
        let found = contents.pairs();
        let b_pairs: Vec<Measures> = found.iter().map(|pair| pair.measures).filter(|m| m.b >= 2).collect();
        let c_pairs: Vec<Measures> = found.iter().map(|pair| pair.measures).filter(|m| m.c >= 372).collect();
        let truths = (&judged[..], &transplanted[..]);
        let by_b =
            (2..=SUPERSHINGLES).map(|b| row(&b_pairs, (b, b), |m| m.b, |m| f64::from(m.c), truths)).collect();
        let by_c = BANDS.map(|band| row(&c_pairs, band, |m| m.c, |m| f64::from(m.b), truths)).into();
        let algorithms = Algorithm::ALL.map(|algorithm| {
            let own: Vec<_> = found.iter().filter(|pair| algorithm.holds(pair.measures)).copied().collect();
            OfAlgorithm {
                algorithm,
                graph: contents.graph(&own),
                terms: contents.differences(&own),
                judged: [true, false].map(|one| score(&judged, one, |m| algorithm.holds(m))),
                transplants: [true, false].map(|one| score(&transplanted, one, |m| algorithm.holds(m))),
            }
        });
        Ok(HenzingerResult {
            contents: contents.len(),
            by_b,
            by_c,
            algorithms: algorithms.into(),
            reasons: Reason::ALL.map(|reason| of_reason(reason, &by_reason)).into(),
            by_reason: Algorithm::ALL.map(|algorithm| scores_by_reason(algorithm, &by_reason)).into(),
            c_by_b: figures::c_by_b(&b_pairs),
            correlation: correlation(&b_pairs),
            cutoffs: [&judged, &transplanted].map(|pairs| cutoffs(pairs)),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }
}
