//! `doppel-eval multi-simhash`: measures simhashes of sequences of words in several lexicons, as the paper
//! does.
//!
//! *Shingling based multi fingerprints simhash* draws five texts among 143,798 texts of 4 KB, modifies each
//! 120 times, and uses the five texts as queries. The paper does so once. Here it is done once for each seed,
//! so that each figure has a spread. The texts are the same for all seeds. The tables of words are also the
//! same: they are learnt from the texts before any text is modified, as for a collection.

mod copies;
mod distances;
mod figures;
mod print;
mod texts;

use std::time::Instant;

use clap::Args;
use doppel_inputs::arguments::InputArgs;
use doppel_model::Random;
use doppel_model::pairwise::Policy;
use doppel_terminal::exit::Failure;
use doppel_terminal::progress;
use serde::Serialize;

use crate::ground_truth::labelled::CrawledPages;
use copies::{COPIES, QUERIES, QuerySet};
use figures::PolicyFigures;
use texts::Texts;

/// Number of thresholds in the paper: a distance below 0 to 31.
const THRESHOLDS: usize = 32;
/// Measured numbers of words of a feature.
const WORDS: std::ops::RangeInclusive<u32> = 1..=5;
/// Measured numbers of lexicons.
const LEXICONS: std::ops::RangeInclusive<u32> = 1..=10;
/// Number of words of a feature when lexicons are varied.
const WORDS_OF_LEXICONS: u32 = 2;
/// Default threshold of the product: a distance below 3.
const BELOW: u32 = 3;
/// Minimum number of pieces of pages.
const REAL_MIN: usize = 2 * QUERIES;

/// Measure simhashes of sequences of words in several lexicons.
///
/// The pages of the inputs are cut into pieces of 4 KB. Pieces that are near-duplicates of others are left
/// out. For each seed five pieces are drawn and modified 120 times each: words are inserted, deleted and
/// replaced at random places. The five pieces are then looked for among all texts and all copies. This is
/// done with every number of words of a feature, every number of lexicons and every threshold, and with the
/// two algorithms that the source compares with. Prints macro averages of precision, recall and F over the
/// five, as mean and spread over the seeds.
///
/// If the inputs have too few pieces for --texts, the other texts are recombined from stretches of 10 to 80
/// words of the pieces. Matches among recombined texts are counted apart, and figures of pieces alone are
/// beside the others.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel-eval multi-simhash crawl.warc.gz
  doppel-eval multi-simhash --texts 20000 --changed 5 crawl.warc.gz
  doppel-eval multi-simhash --only-pieces crawl.warc.gz         no recombined texts")]
pub(crate) struct MultiSimhash {
    #[command(flatten)]
    inputs: InputArgs,
    /// Number of texts to search. The default is that of the source.
    #[arg(long, value_name = "N", default_value_t = 143_798, value_parser = clap::value_parser!(u32).range(10..=200_000))]
    texts: u32,
    /// Search only pieces of pages, at most --texts of them.
    #[arg(long)]
    only_pieces: bool,
    /// Number of seeds. Each seed draws and modifies five texts.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    seeds: u32,
    /// The largest share of its words that a copy changes, in percent; the share of a copy is drawn evenly up
    /// to it. The source does not state its share.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    changed: u32,
    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

/// Figures of all policies.
#[derive(Debug, Serialize)]
pub(crate) struct MultiSimhashResult {
    /// Number of pieces of pages, before near-duplicates were left out.
    pieces: usize,
    /// Number of pieces that were kept.
    real: usize,
    recombined: usize,
    queries: usize,
    copies_each: usize,
    changed_percent: u32,
    seeds: u32,
    /// Figures with one lexicon, by words of a feature.
    by_words: Vec<PolicyFigures>,
    /// Figures with two words of a feature, by lexicons. The first entry equals the second of `by_words`.
    by_lexicons: Vec<PolicyFigures>,
    /// Figures of the policies that the paper compares with.
    baselines: Vec<PolicyFigures>,
    seconds: f64,
}

impl MultiSimhash {
    pub(crate) fn run(self) -> anyhow::Result<MultiSimhashResult> {
        let begin = Instant::now();
        let texts = {
            let crawled = CrawledPages::read(&self.inputs)?;
            Texts::new(&crawled, (self.texts as usize, !self.only_pieces), self.seed)?
        };
        if texts.real < REAL_MIN {
            let (real, cut) = (texts.real, texts.cut);
            let why = format!(
                "{real} of {cut} pieces of 4 KB are no near-duplicates of others, and {REAL_MIN} are needed; give more pages"
            );
            return Err(Failure::BadInput(why).into());
        }
        let draw = |seed: u32| {
            let mut random = Random::of(self.seed, [u64::from(seed), 0, 0]);
            QuerySet::new(texts.real(), self.changed, &mut random)
        };
        let drawn: Vec<QuerySet> = (0..self.seeds).map(draw).collect();
        let sample = distances::sample(&texts);
        let baselines = baselines()?;
        let count = WORDS.count() + LEXICONS.count() - 1 + baselines.len();
        let bar = progress::pages((count * texts.all.len()) as u64, "comparing");
        let measure = |policy: Policy, thresholds: &[usize]| {
            let distances = distances::from_queries(policy, &texts, &sample, &drawn)?;
            bar.inc(texts.all.len() as u64);
            anyhow::Ok(PolicyFigures::new(policy, &distances, thresholds))
        };
        let thresholds: Vec<usize> = (0..THRESHOLDS).collect();
        let simhash =
            |words, lexicons| measure(Policy::MultiSimhash { words, lexicons, below: BELOW }, &thresholds);
        let by_words = WORDS.map(|words| simhash(words, 1)).collect::<anyhow::Result<_>>()?;
        let by_lexicons = LEXICONS.map(|lexicons| simhash(WORDS_OF_LEXICONS, lexicons));
        let by_lexicons = by_lexicons.collect::<anyhow::Result<_>>()?;
        // A baseline has a threshold of its own. The distance of the pairs that it finds is 0.
        let baselines = baselines.into_iter().map(|policy| measure(policy, &[1]));
        let baselines = baselines.collect::<anyhow::Result<_>>()?;
        bar.finish_and_clear();
        Ok(MultiSimhashResult {
            pieces: texts.cut,
            real: texts.real,
            recombined: texts.all.len() - texts.real,
            queries: QUERIES,
            copies_each: COPIES,
            changed_percent: self.changed,
            seeds: self.seeds,
            by_words,
            by_lexicons,
            baselines,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }
}

/// Baselines of the paper: supershingles of five words with the parameters of Fetterly, Manasse and Najork,
/// and I-Match with one lexicon and with several.
fn baselines() -> anyhow::Result<Vec<Policy>> {
    let imatch = [0, 1, 2, 4, 7, 10].map(|lexicons| format!("imatch:lexicons={lexicons}"));
    let names = std::iter::once("supershingle:words=5".to_owned()).chain(imatch);
    Ok(names.map(|name| name.parse()).collect::<Result<_, _>>()?)
}
