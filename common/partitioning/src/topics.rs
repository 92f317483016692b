//! Halves of the dictionary by which pages differ.
//!
//! The lengths of a page's parts rise and fall together, and the more alike the parts of the dictionary, the
//! more so: a vector of three such lengths says little more than one. What tells pages apart is the
//! difference of the shares that two halves of the dictionary have in a page, if the halves are chosen so
//! that it varies most. With X the page x bucket-share matrix, centred, and w = +-1 per bucket, that is the w
//! with the largest |X w|: steps w <- sign(X' X w) never make it smaller, for X' X is positive semidefinite
//! (Journee, Nesterov, Richtarik, Sepulchre, JMLR 11, 2010, section 2), from where power iteration without
//! the sign has come to. The next direction is found where the scores X w of the earlier ones are taken out.

use std::borrow::Borrow;

use doppel_model::signature::{BUCKETS, Signature, bucket};
use doppel_model::stable_hash64;

/// Pages looked at; more hardly move the directions.
const PAGES_MAX: usize = 5_000;

/// A bucket on fewer pages of the sample keeps the halves of its hash: its weight is chance.
const PAGES_MIN: u32 = 3;

/// Steps of the power iteration, and at most so many with signs; a dozen usually do.
const STEPS: usize = 30;

/// Rows gone through between two offers to let other threads run.
const ROWS: usize = 512;

/// Starts of the iteration, of which the best counts: with signs it ends in a local maximum.
const STARTS: u64 = 3;

/// Writes the bits of so many `directions` to `table`, for each bucket that the sample says something about.
pub(super) fn assign<S: Borrow<Signature>>(sample: &[S], directions: usize, table: &mut [u8]) {
    if directions == 0 {
        return;
    }
    let shares = Shares::of(sample);
    let mut known: Vec<Vec<f64>> = Vec::new();
    for direction in 0..directions {
        let found = (0..STARTS).map(|start| shares.signs(&known, start));
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
        known.push(scores);
    }
}

/// Two halves of the dictionary.
struct Direction {
    /// 1 or -1 per bucket.
    signs: Vec<f64>,
    /// The difference of the halves' shares per page, less what the earlier directions say of it; of length
    /// 1.
    scores: Vec<f64>,
    /// Its length before.
    spread: f64,
}

impl Direction {
    fn better(self, other: Self) -> Self {
        if other.spread > self.spread { other } else { self }
    }
}

/// The share of each bucket in each page: a sparse matrix by rows.
struct Shares {
    /// (bucket, share), page after page.
    entries: Vec<(u16, f32)>,
    /// Where each page ends in `entries`.
    ends: Vec<usize>,
    /// Mean share per bucket.
    mean: Vec<f64>,
    /// Number of pages that have the bucket.
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
        if signature.shingles() == 0 {
            return;
        }
        let one = 1.0 / f64::from(signature.shingles());
        let start = self.entries.len();
        // The set ascends, so equal buckets follow each other.
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

    /// The signs with the largest scores, apart from `known` ones, that the iteration finds from a start.
    fn signs(&self, known: &[Vec<f64>], start: u64) -> Direction {
        // Any start that is not orthogonal to the maximum will do; it is the same every time.
        let random = |bucket: u64| {
            let hash = stable_hash64(&(bucket | (start + 1) << 32).to_le_bytes());
            (hash >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let mut weights: Vec<f64> = (0..BUCKETS as u64).map(random).collect();
        for _ in 0..STEPS {
            weights = self.back(&self.scores(&weights, known));
            let norm = norm(&weights);
            if norm == 0.0 {
                break;
            }
            weights.iter_mut().for_each(|weight| *weight /= norm);
        }
        let sign = |weight: &f64| if *weight < 0.0 { -1.0 } else { 1.0 };
        let mut signs: Vec<f64> = weights.iter().map(sign).collect();
        for _ in 0..STEPS {
            let next: Vec<f64> = self.back(&self.scores(&signs, known)).iter().map(sign).collect();
            if next == signs {
                break;
            }
            signs = next;
        }
        let mut scores = self.scores(&signs, known);
        let spread = norm(&scores);
        if spread > 0.0 {
            scores.iter_mut().for_each(|score| *score /= spread);
        }
        Direction { signs, scores, spread }
    }

    /// X w, less its part along the `known` scores.
    fn scores(&self, weights: &[f64], known: &[Vec<f64>]) -> Vec<f64> {
        let centre = dot(&self.mean, weights);
        let mut start = 0;
        let score = |(row, &end): (usize, &usize)| {
            rest(row);
            let row = &self.entries[start..end];
            start = end;
            row.iter().map(|(b, share)| f64::from(*share) * weights[usize::from(*b)]).sum::<f64>() - centre
        };
        let mut scores: Vec<f64> = self.ends.iter().enumerate().map(score).collect();
        for earlier in known {
            let part = dot(&scores, earlier);
            scores.iter_mut().zip(earlier).for_each(|(score, e)| *score -= part * e);
        }
        scores
    }

    /// X' s.
    fn back(&self, scores: &[f64]) -> Vec<f64> {
        let mut weights = vec![0.0; BUCKETS];
        let mut start = 0;
        for (row, (&end, score)) in self.ends.iter().zip(scores).enumerate() {
            rest(row);
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

/// Called for each row that is gone through.
fn rest(row: usize) {
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
