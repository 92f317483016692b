//! Distances of the texts of a set from its queries under a policy, computed by the code that compares pages
//! in the product.
//!
//! The distance of two signatures is the part that they do not share. For `multi-simhash`, this is the number
//! of differing bits in the lexicon with the fewest differing bits. A distance does not depend on the
//! threshold, so one histogram of distances gives the figures of all thresholds.

use std::sync::Arc;

use doppel_model::pairwise::{Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::tables::{Tables, TermSample};
use doppel_text::Extractor;
use rayon::prelude::*;

use super::copies::QuerySet;
use super::texts::Texts;

/// Number of possible distances of 32 bits.
pub(super) const DISTANCES: usize = 33;
/// Number of texts that a thread signs at a time. Smaller pieces would read the stop words too often.
const PIECE: usize = 256;

/// Numbers of texts at each distance from a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Distances {
    /// Number of copies of the query at each distance.
    pub(super) copies: [u32; DISTANCES],
    /// Number of other pieces of pages, and of copies of other queries, at each distance.
    pub(super) real: [u32; DISTANCES],
    /// Number of texts recombined from pieces, at each distance.
    pub(super) recombined: [u32; DISTANCES],
}

impl Default for Distances {
    fn default() -> Self {
        let none = [0; DISTANCES];
        Self { copies: none, real: none, recombined: none }
    }
}

/// Collects the words of the texts, from which policies learn their tables.
pub(super) fn sample(texts: &Texts) -> TermSample {
    let (mut extractor, mut sample) = (Extractor::default(), TermSample::new());
    for text in &texts.all {
        let words = extractor.text_terms(text);
        if sample.wants(words.content) {
            sample.add(words.content, &mut words.terms.to_vec());
        }
    }
    sample
}

/// Distance of two texts. A policy with a measure of its own has one threshold, and its near-duplicates have
/// distance 0.
fn distance(policy: Policy, a: &Signature, b: &Signature) -> usize {
    let comparison = policy.compare(a, b);
    match policy {
        Policy::MultiSimhash { .. } => (comparison.similarity.of - comparison.similarity.shared) as usize,
        _ if comparison.similar => 0,
        _ => DISTANCES - 1,
    }
}

/// Computes the distances from each query of each set.
///
/// # Errors
/// If the policy cannot sign with the learnt tables.
pub(super) fn from_queries(
    policy: Policy,
    texts: &Texts,
    sample: &TermSample,
    drawn: &[QuerySet],
) -> anyhow::Result<Vec<Vec<Distances>>> {
    let signer = if policy.reads_tables() {
        Signer::with_tables(policy, Arc::new(Tables::learn(policy.name(), sample)))?
    } else {
        Signer::new(policy)
    };
    let extractor = || Extractor::signing(signer.clone());
    let sign = |extractor: &mut Extractor, text: &String| extractor.text(text).signature;
    let signed: Vec<Signature> = texts.all.par_iter().with_min_len(PIECE).map_init(extractor, sign).collect();
    let of_drawn = |drawn: &QuerySet| {
        let mut extractor = extractor();
        let copies: Vec<Vec<Signature>> = drawn
            .copies
            .iter()
            .map(|copies| copies.iter().map(|copy| sign(&mut extractor, copy)).collect())
            .collect();
        let of_query = |(number, query): (usize, &usize)| {
            let mut distances = Distances::default();
            let distance = |other: &Signature| distance(policy, &signed[*query], other);
            for (at, other) in signed.iter().enumerate().filter(|(at, _)| at != query) {
                let counts = if at < texts.real { &mut distances.real } else { &mut distances.recombined };
                counts[distance(other)] += 1;
            }
            for (of, copies) in copies.iter().enumerate() {
                let counts = if of == number { &mut distances.copies } else { &mut distances.real };
                copies.iter().for_each(|copy| counts[distance(copy)] += 1);
            }
            distances
        };
        drawn.queries.iter().enumerate().map(of_query).collect()
    };
    Ok(drawn.par_iter().map(of_drawn).collect())
}

#[cfg(test)]
mod tests {
    use doppel_model::Random;

    use super::super::texts::tests::crawl;
    use super::*;

    fn set() -> (Texts, Vec<QuerySet>) {
        let texts = Texts::new(&crawl(6), (40, true), 3).unwrap();
        let drawn = (0..2).map(|seed| QuerySet::new(texts.real(), 30, &mut Random::new(seed))).collect();
        (texts, drawn)
    }

    #[test]
    fn a_threshold_on_distances_finds_what_the_product_finds() {
        let (texts, drawn) = set();
        let sample = sample(&texts);
        assert_eq!(sample.contents(), 40);
        let policy = |below| Policy::MultiSimhash { words: 2, lexicons: 4, below };
        let distances = from_queries(policy(3), &texts, &sample, &drawn).unwrap();
        let tables = Arc::new(Tables::learn("multi-simhash", &sample));
        let mut extractor = Extractor::signing(Signer::with_tables(policy(3), tables).unwrap());
        let mut sign = |texts: &[String]| -> Vec<Signature> {
            texts.iter().map(|text| extractor.text(text).signature).collect()
        };
        let signed = sign(&texts.all);
        let (mut found_copies, mut found_others) = (0, 0);
        for (drawn, distances) in drawn.iter().zip(&distances) {
            let copies: Vec<Vec<Signature>> = drawn.copies.iter().map(|copies| sign(copies)).collect();
            for (number, (query, distances)) in drawn.queries.iter().zip(distances).enumerate() {
                // With a threshold of 0 the product still finds equal contents, so the test begins at 1.
                for below in 1..DISTANCES as u32 {
                    let found = |others: &[Signature]| -> u32 {
                        let is_found = |other| u32::from(policy(below).similar(&signed[*query], other));
                        others.iter().map(is_found).sum()
                    };
                    let upto = |counts: &[u32]| counts[..below as usize].iter().sum::<u32>();
                    let own = found(&copies[number]);
                    assert_eq!(own, upto(&distances.copies), "{below}");
                    let others: u32 = copies.iter().map(|copies| found(copies)).sum();
                    // The query finds itself, which does not count.
                    let real = found(&signed[..texts.real]) - 1 + others - own;
                    assert_eq!(real, upto(&distances.real), "{below}");
                    let recombined = found(&signed[texts.real..]);
                    assert_eq!(recombined, upto(&distances.recombined), "{below}");
                    found_copies += own;
                    found_others += recombined;
                }
            }
        }
        assert!(found_copies > 0 && found_others > 0);
    }

    #[test]
    fn more_lexicons_find_all_that_fewer_find() {
        let (texts, drawn) = set();
        let sample = sample(&texts);
        let mut before: Option<Vec<Vec<Distances>>> = None;
        for lexicons in 1..=5 {
            let policy = Policy::MultiSimhash { words: 2, lexicons, below: 3 };
            let distances = from_queries(policy, &texts, &sample, &drawn).unwrap();
            for (more, fewer) in distances.iter().flatten().zip(before.iter().flatten().flatten()) {
                for (more, fewer) in [
                    (more.copies, fewer.copies),
                    (more.real, fewer.real),
                    (more.recombined, fewer.recombined),
                ] {
                    let upto = |counts: &[u32; DISTANCES], end: usize| counts[..end].iter().sum::<u32>();
                    assert!((0..=DISTANCES).all(|end| upto(&more, end) >= upto(&fewer, end)));
                }
            }
            before = Some(distances);
        }
    }

    #[test]
    fn a_policy_with_one_threshold_puts_near_duplicates_at_distance_zero() {
        let (texts, drawn) = set();
        let sample = sample(&texts);
        for policy in ["supershingle:words=5", "imatch:lexicons=0", "imatch:lexicons=10"] {
            let policy: Policy = policy.parse().unwrap();
            let all = from_queries(policy, &texts, &sample, &drawn).unwrap();
            let sum = |of: fn(&Distances) -> &[u32; DISTANCES]| -> (u32, u32) {
                let sums = all.iter().flatten().map(|one| (of(one)[0], of(one)[DISTANCES - 1]));
                sums.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            };
            let (found, missed) = sum(|one| &one.copies);
            assert_eq!(found + missed, 2 * 5 * 120);
            assert!(found > 0 && found < 900, "{policy}: {found}");
            assert_eq!(sum(|one| &one.recombined), (0, 2 * 5 * 10));
        }
    }
}
