//! `doppel-eval henzinger`: the tables and figures of M. Henzinger, *Finding Near-Duplicate Web Pages*, SIGIR 2006, in shape.
//!
//! B is `supershingle`, C is `projection`. Pages of equal token sequences are one content, as there, and contents of fewer than 20
//! words are left out. Pairs were drawn and judged by people there; here precision comes from judged pairs (a language model by a
//! written rule; other half than what decisions are tested on) and from transplants, each kind on its own, with its counts.

mod pairs;
mod print;
mod terms;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use doppel::args::InputArgs;
use doppel_model::PageUrl;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_text::Extractor;
use serde::Serialize;

use crate::labelled::{self, Crawled, Pair};
use crate::score::Score;
use crate::transplants::Transplants;
use crate::variants::{Reason, Variants};
use pairs::Graph;
use terms::Differences;

/// Bits of a projection.
const BITS: u32 = 384;
/// B-similarities that pairs have.
const SUPERSHINGLES: u32 = 6;
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
    /// Seed of the transplants and the pairs by reason.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Algorithm {
    /// Two equal supershingles.
    B,
    /// 372 agreeing bits.
    C,
    /// Two equal supershingles and 355 agreeing bits.
    Combined,
    /// Three equal supershingles.
    Control,
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::B, Self::C, Self::Combined, Self::Control];

    fn name(self) -> &'static str {
        match self {
            Self::B => "B (at least 2 of 6)",
            Self::C => "C (at least 372 of 384)",
            Self::Combined => "combined (2 of 6, and 355)",
            Self::Control => "B, at least 3 of 6",
        }
    }

    fn holds(self, Measures { b, c }: Measures) -> bool {
        match self {
            Self::B => b >= 2,
            Self::C => c >= 372,
            Self::Combined => b >= 2 && c >= 355,
            Self::Control => b >= 3,
        }
    }
}

/// Equal supershingles, and agreeing bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Measures {
    b: u32,
    c: u32,
}

/// Both signatures of a page.
#[derive(Debug, Clone)]
struct Signed {
    b: Signature,
    c: Signature,
}

impl Signed {
    fn measures(&self, other: &Self) -> Measures {
        let of = |policy: Policy, a: &Signature, b: &Signature| policy.compare(a, b).similarity.shared;
        if self.b.content() == other.b.content() {
            return Measures { b: SUPERSHINGLES, c: BITS };
        }
        Measures { b: of(B, &self.b, &other.b), c: of(C, &self.c, &other.c) }
    }
}

const B: Policy = Policy::Supershingle { equal: 2, words: 8 };
const C: Policy = Policy::Projection { agreeing: 372 };

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
    /// Correlation of the two measures over all pairs that B or C finds.
    correlation: Option<f64>,
    /// Precision and recall of B with a cutoff of C: judged pairs, and transplants.
    cutoffs: [Vec<Cutoff>; 2],
    seconds: f64,
}

/// Pairs of one similarity.
#[derive(Debug, Serialize)]
struct Row {
    least: u32,
    most: u32,
    pairs: u64,
    share: f64,
    /// The mean of the other measure.
    other_mean: f64,
    judged: Score,
    transplants: Score,
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

/// Pairs that differ for one reason.
#[derive(Debug, Serialize)]
struct OfReason {
    reason: Reason,
    pairs: u64,
    /// How many of them each algorithm finds.
    found: Vec<u64>,
    mean_b: f64,
    mean_c: f64,
}

#[derive(Debug, Serialize)]
struct Cutoff {
    bits: u32,
    precision: Option<f64>,
    recall: Option<f64>,
}

/// A labelled pair with what the measures say.
struct Measured<'p> {
    pair: &'p Pair,
    measures: Measures,
}

impl Henzinger {
    pub(crate) fn run(self) -> anyhow::Result<HenzingerResult> {
        let begin = Instant::now();
        let crawled = Crawled::read(&self.inputs)?;
        let transplants = Transplants::new(&crawled, self.transplants, self.seed);
        let variants = Variants::new(&crawled, self.variants, self.seed);
        let mut extractors = [B, C].map(Extractor::new);
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
        // One that is not compared has no measures, and is found by none.
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
        let all: Vec<Measures> = found.iter().map(|pair| pair.measures).collect();
        Ok(HenzingerResult {
            contents: contents.len(),
            by_b,
            by_c,
            algorithms: algorithms.into(),
            reasons: Reason::ALL.map(|reason| of_reason(reason, &by_reason)).into(),
            by_reason: Algorithm::ALL.map(|algorithm| scores_by_reason(algorithm, &by_reason)).into(),
            correlation: correlation(&all),
            cutoffs: [&judged, &transplanted].map(|pairs| cutoffs(pairs)),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }
}

/// Both signatures of a page; none if it redirects or is too short to be compared.
fn sign(extractors: &mut [Extractor; 2], page: &doppel_crawls::Fetched) -> Option<Signed> {
    let [b, c] = extractors;
    let signed = Signed { b: labelled::sign(b, page)?, c: labelled::sign(c, page)? };
    (signed.b.tokens() >= doppel_model::pairwise::TOKENS_MIN).then_some(signed)
}

/// The measures of pairs; those with a page that is not there or too short are left out.
fn measured<'p>(pairs: &'p [Pair], sign: &mut impl FnMut(&PageUrl) -> Option<Signed>) -> Vec<Measured<'p>> {
    let measured = |pair: &'p Pair| {
        let measures = sign(&pair.a)?.measures(&sign(&pair.b)?);
        Some(Measured { pair, measures })
    };
    pairs.iter().filter_map(measured).collect()
}

/// The pairs whose similarity is in a band, and those of known truth.
fn row(
    pairs: &[Measures],
    (least, most): (u32, u32),
    of: impl Fn(Measures) -> u32,
    other: impl Fn(Measures) -> f64,
    (judged, transplants): (&[Measured<'_>], &[Measured<'_>]),
) -> Row {
    let is_in = |measures| (least..=most).contains(&of(measures));
    let own: Vec<Measures> = pairs.iter().copied().filter(|measures| is_in(*measures)).collect();
    let score = |pairs: &[Measured<'_>]| {
        let mut score = Score::default();
        for Measured { pair, measures } in pairs.iter().filter(|pair| is_in(pair.measures)) {
            let _: &Measures = measures;
            score.add(pair.truth, true, pair.weight);
        }
        score
    };
    Row {
        least,
        most,
        pairs: own.len() as u64,
        share: own.len() as f64 / pairs.len().max(1) as f64,
        other_mean: own.iter().map(|measures| other(*measures)).sum::<f64>() / own.len().max(1) as f64,
        judged: score(judged),
        transplants: score(transplants),
    }
}

fn score(pairs: &[Measured<'_>], one_host: bool, holds: impl Fn(Measures) -> bool) -> Score {
    let mut score = Score::default();
    for Measured { pair, measures } in pairs.iter().filter(|one| one.pair.is_on_one_host() == one_host) {
        score.add(pair.truth, holds(*measures), pair.weight);
    }
    score
}

fn of_reason(reason: Reason, pairs: &[(Reason, Measured<'_>)]) -> OfReason {
    let own: Vec<Measures> =
        pairs.iter().filter(|(of, _)| *of == reason).map(|(_, pair)| pair.measures).collect();
    let mean =
        |of: fn(&Measures) -> u32| own.iter().map(of).map(f64::from).sum::<f64>() / own.len().max(1) as f64;
    let found = |algorithm: Algorithm| own.iter().filter(|measures| algorithm.holds(**measures)).count();
    OfReason {
        reason,
        pairs: own.len() as u64,
        found: Algorithm::ALL.map(|algorithm| found(algorithm) as u64).into(),
        mean_b: mean(|measures| measures.b),
        mean_c: mean(|measures| measures.c),
    }
}

fn scores_by_reason(algorithm: Algorithm, pairs: &[(Reason, Measured<'_>)]) -> [Score; 2] {
    [true, false].map(|one_host| {
        let mut score = Score::default();
        let on_hosts = pairs.iter().map(|(_, pair)| pair).filter(|one| one.pair.is_on_one_host() == one_host);
        on_hosts.for_each(|one| score.add(one.pair.truth, algorithm.holds(one.measures), 1.0));
        score
    })
}

/// B with a cutoff of C, for every cutoff. Recall is in relation to what B alone finds.
fn cutoffs(pairs: &[Measured<'_>]) -> Vec<Cutoff> {
    let found: Vec<&Measured<'_>> = pairs.iter().filter(|pair| pair.measures.b >= 2).collect();
    let cutoff = |bits| {
        let mut score = Score::default();
        found.iter().for_each(|one| score.add(one.pair.truth, one.measures.c >= bits, one.pair.weight));
        Cutoff { bits, precision: score.precision(), recall: score.recall() }
    };
    (0..=BITS).map(cutoff).collect()
}

/// Pearson's correlation of the two measures.
fn correlation(pairs: &[Measures]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mean = |of: fn(&Measures) -> u32| pairs.iter().map(|m| f64::from(of(m))).sum::<f64>() / n;
    let (b, c) = (mean(|m| m.b), mean(|m| m.c));
    let (mut both, mut of_b, mut of_c) = (0.0, 0.0, 0.0);
    for measures in pairs {
        let (x, y) = (f64::from(measures.b) - b, f64::from(measures.c) - c);
        both += x * y;
        of_b += x * x;
        of_c += y * y;
    }
    (of_b * of_c > 0.0).then(|| both / (of_b * of_c).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labelled::Truth;

    #[test]
    fn rows_cutoffs_and_correlation_are_counted() {
        let url = |n: u32| PageUrl::parse(&format!("http://h{}/{n}", n % 2)).unwrap();
        let pair = |truth, weight| Pair { a: url(0), b: url(1), truth, weight };
        let labelled = [pair(Truth::Same, 3.0), pair(Truth::Other, 1.0), pair(Truth::Same, 1.0)];
        let measures = [(2, 380), (2, 360), (1, 384)].map(|(b, c)| Measures { b, c });
        let pairs: Vec<_> =
            labelled.iter().zip(measures).map(|(pair, measures)| Measured { pair, measures }).collect();
        let of_b: Vec<Measures> = measures[..2].to_vec();
        let row = row(&of_b, (2, 2), |m| m.b, |m| f64::from(m.c), (&pairs, &[]));
        assert_eq!((row.pairs, row.share, row.other_mean), (2, 1.0, 370.0));
        assert_eq!((row.judged.precision(), row.transplants.precision()), (Some(0.75), None));
        let cutoffs = cutoffs(&pairs);
        let at = |bits: usize| (cutoffs[bits].precision, cutoffs[bits].recall);
        assert_eq!(
            (at(0), at(361), at(381)),
            ((Some(0.75), Some(1.0)), (Some(1.0), Some(1.0)), (None, Some(0.0)))
        );
        let line = [(1, 10), (2, 20), (3, 30)].map(|(b, c)| Measures { b, c });
        assert!((correlation(&line).unwrap() - 1.0).abs() < 1e-12 && correlation(&line[..1]).is_none());
        let found = |algorithm: Algorithm| measures.map(|m| algorithm.holds(m));
        assert_eq!(found(Algorithm::B), [true, true, false]);
        assert_eq!(found(Algorithm::C), [true, false, true]);
        assert_eq!(
            (found(Algorithm::Combined), found(Algorithm::Control)),
            ([true, true, false], [false; 3])
        );
    }
}
