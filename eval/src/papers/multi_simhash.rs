//! `doppel-eval multi-simhash`: simhashes of sequences of words in several lexicons, as their source measures them.
//!
//! *Shingling based multi fingerprints simhash*: among 143,798 texts of 4 KB five are drawn and modified 120 times each, and are the queries. The
//! source does so once; here it is done once for each seed, so that each figure has a spread. The texts stay the same, and so do the tables
//! of words, which are learnt of them before anything is modified, as for a collection.

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
use copies::{COPIES, Drawn, QUERIES};
use figures::OfPolicy;
use texts::Texts;

/// Thresholds of the source: a distance below 0 to 31.
const THRESHOLDS: usize = 32;
/// Words of a feature, and lexicons, that are measured.
const WORDS: std::ops::RangeInclusive<u32> = 1..=5;
const LEXICONS: std::ops::RangeInclusive<u32> = 1..=10;
/// Words of a feature where there are several lexicons.
const WORDS_OF_LEXICONS: u32 = 2;
/// The threshold of the product.
const BELOW: u32 = 3;
/// The fewest pieces of pages.
const REAL_MIN: usize = 2 * QUERIES;

/// Measure simhashes of sequences of words in several lexicons.
///
/// The pages of the inputs are cut into pieces of 4 KB, of which those are kept that are no near-duplicates of each other. For each seed
/// five of them are drawn and modified 120 times each: words are inserted, deleted and replaced at random places. The five
/// are then looked for among all texts and all copies, by every number of words of a feature, every number of lexicons and every
/// threshold, and by the two algorithms that the source compares with. Macro averages of precision, recall and F over the five; mean and
/// spread over the seeds.
///
/// Where the inputs have too few pieces for --texts, the other texts are recombined from stretches of 10 to 80 words of them. What is found among
/// these is told apart, and figures of pieces alone are beside the others.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel-eval multi-simhash crawl.warc.gz
  doppel-eval multi-simhash --texts 20000 --changed 5 crawl.warc.gz
  doppel-eval multi-simhash --only-pieces crawl.warc.gz         no recombined texts")]
pub(crate) struct MultiSimhash {
    #[command(flatten)]
    inputs: InputArgs,
    /// Texts to look among; the source has as many.
    #[arg(long, value_name = "N", default_value_t = 143_798, value_parser = clap::value_parser!(u32).range(10..=200_000))]
    texts: u32,
    /// Look among pieces of pages alone, at most --texts of them.
    #[arg(long)]
    only_pieces: bool,
    /// How often five texts are drawn and modified.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    seeds: u32,
    /// The largest share of its words that a copy changes, in percent; the share of a copy is drawn evenly up to it. The source does not say
    /// how many it changes.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    changed: u32,
    /// Seed of all that is drawn.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct MultiSimhashResult {
    /// Pieces of pages, before near-duplicates were left out.
    pieces: usize,
    /// Those that were kept.
    real: usize,
    recombined: usize,
    queries: usize,
    copies_each: usize,
    changed_percent: u32,
    seeds: u32,
    /// One lexicon, by words of a feature.
    by_words: Vec<OfPolicy>,
    /// Two words, by lexicons; at one lexicon that of `by_words`.
    by_lexicons: Vec<OfPolicy>,
    /// What the source compares with.
    baselines: Vec<OfPolicy>,
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
                "of {cut} pieces of 4 KB {real} are no near-duplicates of others, and {REAL_MIN} are needed"
            );
            return Err(Failure::BadInput(why).into());
        }
        let draw = |seed: u32| {
            let mut random = Random::of(self.seed, [u64::from(seed), 0, 0]);
            Drawn::new(texts.real(), self.changed, &mut random)
        };
        let drawn: Vec<Drawn> = (0..self.seeds).map(draw).collect();
        let sample = distances::sample(&texts);
        let baselines = baselines()?;
        let count = WORDS.count() + LEXICONS.count() - 1 + baselines.len();
        let bar = progress::pages((count * texts.all.len()) as u64, "comparing");
        let measure = |policy: Policy, thresholds: &[usize]| {
            let distances = distances::of(policy, &texts, &sample, &drawn)?;
            bar.inc(texts.all.len() as u64);
            anyhow::Ok(OfPolicy::new(policy, &distances, thresholds))
        };
        let thresholds: Vec<usize> = (0..THRESHOLDS).collect();
        let simhash =
            |words, lexicons| measure(Policy::MultiSimhash { words, lexicons, below: BELOW }, &thresholds);
        let by_words = WORDS.map(|words| simhash(words, 1)).collect::<anyhow::Result<_>>()?;
        let by_lexicons = LEXICONS.map(|lexicons| simhash(WORDS_OF_LEXICONS, lexicons));
        let by_lexicons = by_lexicons.collect::<anyhow::Result<_>>()?;
        // They have a threshold of their own, above which their distance is 0.
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

/// Supershingles of five words with the parameters of Fetterly, Manasse and Najork, as there; I-Match with one lexicon and with several.
fn baselines() -> anyhow::Result<Vec<Policy>> {
    let imatch = [0, 1, 2, 4, 7, 10].map(|lexicons| format!("imatch:lexicons={lexicons}"));
    let names = std::iter::once("supershingle:words=5".to_owned()).chain(imatch);
    Ok(names.map(|name| name.parse()).collect::<Result<_, _>>()?)
}
