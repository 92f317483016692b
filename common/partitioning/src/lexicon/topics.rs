//! Learns the halves of the dictionary in which pages differ most.
//!
//! The lengths of a page's parts grow together with the page. If the parts of the dictionary are similar, a
//! vector of three such lengths says little more than one. What distinguishes pages is the difference between
//! the shares that two halves of the dictionary have in a page, for halves chosen such that this difference
//! varies most. Let X be the centred matrix of pages by bucket shares, and let w have an entry +1 or -1 per
//! bucket. We look for the w that maximises |X w|. Steps w <- sign(X' X w) never decrease it, because X' X is
//! positive semidefinite (Journee, Nesterov, Richtarik, Sepulchre, JMLR 11, 2010, section 2). They start from
//! the result of a power iteration without signs. For the next direction, the components along the scores X w
//! of the earlier directions are removed.

use std::borrow::Borrow;

use doppel_model::signature::{BUCKETS, Signature, bucket};
use doppel_model::stable_hash64;

/// The number of pages used. More pages hardly change the directions.
const PAGES_MAX: usize = 5_000;

/// A bucket that occurs on fewer pages of the sample keeps the halves given by its hash: its weight would be
/// chance.
const PAGES_MIN: u32 = 3;

/// The number of steps of the power iteration, and the maximum number of steps with signs. A dozen usually
/// suffice.
const STEPS: usize = 30;

/// The number of rows processed between two calls that let other threads run.
const ROWS: usize = 512;

/// The number of random starts; the best result is used, because the iteration with signs ends in a local
/// maximum.
const STARTS: u64 = 3;

/// Writes the bits of `directions` halves to `table`, for each bucket for which the sample has enough pages.
pub(super) fn assign<S: Borrow<Signature>>(sample: &[S], directions: usize, table: &mut [u8]) {
    if directions == 0 {
        return;
    }
    let shares = Shares::of(sample);
    let mut earlier_scores: Vec<Vec<f64>> = Vec::new();
    for direction in 0..directions {
        let found = (0..STARTS).map(|start| shares.signs(&earlier_scores, start));
        let Some(Direction { signs, scores, spread }) = found.reduce(Direction::better) else { break };
        if spread == 0.0 {
            break;
        }
        let bit = 1 << direction;
        for ((bits, sign), pages) in table.iter_mut().zip(&signs).zip(&shares.pages) {
            if *pages >= PAGES_MIN {
                *bits = if *sign > 0.0 { *bits | bit } else { *bits & !bit };
            }
        }
        earlier_scores.push(scores);
    }
}

/// A division of the dictionary into two halves.
struct Direction {
    /// 1 or -1 per bucket.
    signs: Vec<f64>,
    /// For each page, the difference between the shares of the two halves, with the components along earlier
    /// directions removed; normalised to length 1.
    scores: Vec<f64>,
    /// The length of the scores before normalisation.
    spread: f64,
}

impl Direction {
    fn better(self, other: Self) -> Self {
        if other.spread > self.spread { other } else { self }
    }
}

/// The share of each bucket in each page: a sparse matrix in row order.
struct Shares {
    /// Pairs of bucket and share, page after page.
    entries: Vec<(u16, f32)>,
    /// For each page, the end of its entries.
    ends: Vec<usize>,
    /// The mean share of each bucket.
    mean: Vec<f64>,
    /// The number of pages in which each bucket occurs.
    pages: Vec<u32>,
}

impl Shares {
    fn of<S: Borrow<Signature>>(sample: &[S]) -> Self {
        let step = sample.len().div_ceil(PAGES_MAX).max(1);
        let mut shares =
            Self { entries: Vec::new(), ends: Vec::new(), mean: vec![0.0; BUCKETS], pages: vec![0; BUCKETS] };
        for signature in sample.iter().step_by(step).map(Borrow::borrow) {
            shares.push(signature);
        }
        let rows = shares.ends.len().max(1) as f64;
        shares.mean.iter_mut().for_each(|share| *share /= rows);
        shares
    }

    fn push(&mut self, signature: &Signature) {
        if signature.size() == 0 {
            return;
        }
        let one = 1.0 / f64::from(signature.size());
        let start = self.entries.len();
        // The set is ascending, so equal buckets are adjacent.
        for bucket in signature.set().map(bucket) {
            self.mean[bucket] += one;
            match self.entries[start..].last_mut() {
                Some((last, share)) if usize::from(*last) == bucket => *share += one as f32,
                _ => {
                    self.entries.push((bucket as u16, one as f32));
                    self.pages[bucket] += 1;
                }
            }
        }
        self.ends.push(self.entries.len());
    }

    /// The signs with the largest scores, orthogonal to the `earlier_scores`, that the iteration finds from
    /// this start.
    fn signs(&self, earlier_scores: &[Vec<f64>], start: u64) -> Direction {
        // Any start that is not orthogonal to the maximum works. It is deterministic.
        let random = |bucket: u64| {
            let hash = stable_hash64(&(bucket | (start + 1) << 32).to_le_bytes());
            (hash >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let mut weights: Vec<f64> = (0..BUCKETS as u64).map(random).collect();
        for _ in 0..STEPS {
            weights = self.transposed(&self.scores(&weights, earlier_scores));
            let norm = norm(&weights);
            if norm == 0.0 {
                break;
            }
            weights.iter_mut().for_each(|weight| *weight /= norm);
        }
        let sign = |weight: &f64| if *weight < 0.0 { -1.0 } else { 1.0 };
        let mut signs: Vec<f64> = weights.iter().map(sign).collect();
        for _ in 0..STEPS {
            let next: Vec<f64> =
                self.transposed(&self.scores(&signs, earlier_scores)).iter().map(sign).collect();
            if next == signs {
                break;
            }
            signs = next;
        }
        let mut scores = self.scores(&signs, earlier_scores);
        let spread = norm(&scores);
        if spread > 0.0 {
            scores.iter_mut().for_each(|score| *score /= spread);
        }
        Direction { signs, scores, spread }
    }

    /// X w, without the components along the `earlier_scores`.
    fn scores(&self, weights: &[f64], earlier_scores: &[Vec<f64>]) -> Vec<f64> {
        let centre = dot(&self.mean, weights);
        let mut start = 0;
        let score = |(row, &end): (usize, &usize)| {
            yield_periodically(row);
            let row = &self.entries[start..end];
            start = end;
            row.iter().map(|(b, share)| f64::from(*share) * weights[usize::from(*b)]).sum::<f64>() - centre
        };
        let mut scores: Vec<f64> = self.ends.iter().enumerate().map(score).collect();
        for earlier in earlier_scores {
            let part = dot(&scores, earlier);
            scores.iter_mut().zip(earlier).for_each(|(score, e)| *score -= part * e);
        }
        scores
    }

    /// X' s, where X' is the transpose of X.
    fn transposed(&self, scores: &[f64]) -> Vec<f64> {
        let mut weights = vec![0.0; BUCKETS];
        let mut start = 0;
        for (row, (&end, score)) in self.ends.iter().zip(scores).enumerate() {
            yield_periodically(row);
            for (bucket, share) in &self.entries[start..end] {
                weights[usize::from(*bucket)] += f64::from(*share) * score;
            }
            start = end;
        }
        let sum: f64 = scores.iter().sum();
        weights.iter_mut().zip(&self.mean).for_each(|(weight, mean)| *weight -= mean * sum);
        weights
    }
}

/// Yields to other threads once every [`ROWS`] rows.
fn yield_periodically(row: usize) {
    if row.is_multiple_of(ROWS) {
        std::thread::yield_now();
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}
