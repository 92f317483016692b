//! `doppel-eval henzinger`: the tables and figures of M. Henzinger, *Finding Near-Duplicate Web Pages*, SIGIR 2006, in shape.
//!
//! B is `supershingle`, C is `projection`. Pages of equal token sequences are one content, as there; every content that has a token is compared,
//! and a site is what it is there. Pairs were drawn and judged by people there; here precision comes from judged pairs (a language model by a
//! written rule; other half than what decisions are tested on), from transplants and from pairs made to differ for one reason, each
//! kind on its own, with its counts.

mod degrees;
mod figures;
mod found;
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
use doppel_model::pairwise::Tokens;
use serde::Serialize;

use crate::ground_truth::labelled::{self, CrawledPages, Pair};
use crate::ground_truth::transplants::Transplants;
use crate::ground_truth::variants::{Reason, Variants};
use crate::report::percent;
use figures::{OfReason, Row, correlation, of_reason, row};
use found::{Found, Large, found};
use halves::Halves;
use measures::{Algorithm, Measured, Measures, SUPERSHINGLES, measured, sign};
use pairs::Graph;
use terms::Differences;

/// Bands of C-similarity, as in the source.
const BANDS: [(u32, u32); 4] = [(372, 375), (376, 378), (379, 381), (382, 384)];

/// Compare supershingles, projections and their combination as their source does.
///
/// Pairs of each similarity and what share of them is right; degrees; pairs on one site and on two (the host without its first label,
/// where two labels stay); the terms in which pairs differ; which pairs are found by why they differ; how the two measures go
/// together; precision against recall for every cutoff of the combination, chosen on one half of the labelled pairs and tried on the
/// other; and three equal supershingles as control.
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
    let choices = [Tokens::Words, Tokens::Source];
    Tokens::of_word(word, &choices).ok_or_else(|| format!("there are {}", Tokens::words(&choices)))
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
    /// How many B-similar pairs have each C-similarity, by B-similarity from 2 on.
    c_by_b: Vec<Vec<(u32, u64)>>,
    /// Correlation of the two measures over the B-similar pairs.
    correlation: Option<f64>,
    /// What is found of the pairs of each kind.
    truths: Vec<OfTruth>,
    seconds: f64,
}

/// What is found of the labelled pairs of one kind.
#[derive(Debug, Serialize)]
struct OfTruth {
    name: &'static str,
    found: Vec<Found>,
    /// Those that differ in many terms.
    large: Vec<Large>,
    halves: Halves,
}

/// What one algorithm finds.
#[derive(Debug, Serialize)]
struct OfAlgorithm {
    algorithm: Algorithm,
    graph: Graph,
    terms: Differences,
}

/// Pairs of one kind with their measures, and the family of each.
type Labelled<'p> = (&'static str, Vec<Measured<'p>>, Vec<usize>);

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
        // One that is not compared has no measures, and is left out.
        let mut by_reason: Vec<(Reason, Measured<'_>)> = Vec::new();
        for (reason, pair) in kinds.into_iter().zip(&pairs) {
            by_reason.extend(measured(std::slice::from_ref(pair), &mut sign).pop().map(|one| (reason, one)));
        }
        let reasons = Reason::ALL.map(|reason| of_reason(reason, &by_reason)).into();
        let truths: [Labelled<'_>; 3] = [
            labelled("judged pairs (language model)", measured(&judged, &mut sign), labelled::last_name),
            labelled("transplants", measured(&transplants.pairs, &mut sign), PageUrl::as_str),
            labelled(
                "pairs made to differ for one reason",
                by_reason.into_iter().map(|(_, pair)| pair).collect(),
                PageUrl::as_str,
            ),
        ];
        let mut contents = pairs::Contents::default();
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
            OfAlgorithm { algorithm, graph: contents.graph(&own), terms: contents.differences(&own) }
        });
        let mut terms = terms::Terms::default();
        let truths = truths.map(|(name, pairs, families)| OfTruth {
            name,
            found: found(&pairs.iter().collect::<Vec<_>>(), &Algorithm::ALL),
            large: found::large(&pairs, |one| Some(terms.between(page(&one.pair.a)?, page(&one.pair.b)?))),
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

/// Pairs with their families, by the names of their pages.
fn labelled<'p>(
    name: &'static str,
    pairs: Vec<Measured<'p>>,
    page_name: impl Fn(&'p PageUrl) -> &'p str,
) -> Labelled<'p> {
    let names = pairs.iter().map(|one| [&one.pair.a, &one.pair.b].map(&page_name));
    let families = labelled::families(names);
    (name, pairs, families)
}

/// A share in percent, or nothing.
fn cell(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), percent)
}
