//! Sub-dictionaries by which pages differ.
//!
//! The lengths of a page's sub-documents rise and fall together, and the more alike the sub-dictionaries,
//! the more so: a vector of three such lengths says little more than one. So buckets are split along
//! the principal direction of the page x bucket-share matrix, the first eigenvector of its covariance:
//! of all directions the one in which the pages' shares vary most. Buckets sorted by their weight in
//! it are cut where the wanted part of all shingles is reached, and each side is split again. The
//! eigenvector comes by power iteration (Golub, Van Loan, *Matrix Computations*, section 7.3).

use std::borrow::Borrow;

use super::lexicon::bucket;
use crate::model::stable_hash64;
use crate::signature::{BUCKETS, Signature};

/// Pages looked at; more hardly move the directions.
const PAGES_MAX: usize = 5_000;

/// A bucket on fewer pages of the sample keeps the sub-dictionary of its hash: its weight is chance.
const PAGES_MIN: u32 = 3;

/// Steps of the power iteration. What counts is the order of the weights, which settles long before
/// the last digits do.
const STEPS: usize = 30;

/// Writes the sub-dictionary of each bucket that the sample says something about to `table`.
pub(super) fn assign<S: Borrow<Signature>>(sample: &[S], dimensions: usize, table: &mut [u8]) {
    let shares = Shares::of(sample);
    let known = (0..BUCKETS).filter(|b| shares.pages[*b] >= PAGES_MIN).collect();
    let mut next = 0;
    split(&shares, known, dimensions, &mut next, table);
}

/// Splits `buckets` into `parts` sub-dictionaries, numbered from `next` on.
fn split(shares: &Shares, mut buckets: Vec<usize>, parts: usize, next: &mut u8, table: &mut [u8]) {
    if parts <= 1 {
        for bucket in buckets {
            table[bucket] = *next;
        }
        *next += 1;
        return;
    }
    let weights = shares.principal_direction(&buckets);
    buckets.sort_by(|a, b| weights[*a].total_cmp(&weights[*b]).then(a.cmp(b)));
    let mass: f64 = buckets.iter().map(|b| shares.mean[*b]).sum();
    let left_parts = parts / 2;
    let wanted = mass * left_parts as f64 / parts as f64;
    let mut sum = 0.0;
    let end = buckets.iter().position(|b| {
        // Up to the middle of the bucket that crosses the mark.
        let middle = sum + shares.mean[*b] / 2.0;
        sum += shares.mean[*b];
        middle > wanted
    });
    let right = buckets.split_off(end.unwrap_or(buckets.len()));
    split(shares, buckets, left_parts, next, table);
    split(shares, right, parts - left_parts, next, table);
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

    /// The first eigenvector of the covariance of `buckets`; 0 for all other buckets.
    fn principal_direction(&self, buckets: &[usize]) -> Vec<f64> {
        let mut direction = vec![0.0; BUCKETS];
        let mut inside = vec![0.0; BUCKETS];
        for &bucket in buckets {
            inside[bucket] = 1.0;
            // Any start that is not orthogonal to the eigenvector will do; it is the same every time.
            let hash = stable_hash64(&(bucket as u64 | 1 << 32).to_le_bytes());
            direction[bucket] = (hash >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        }
        for _ in 0..STEPS {
            let mut next = self.covariance_times(&direction);
            for (weight, inside) in next.iter_mut().zip(&inside) {
                *weight *= inside;
            }
            let norm = next.iter().map(|w| w * w).sum::<f64>().sqrt();
            if norm == 0.0 {
                break;
            }
            next.iter_mut().for_each(|weight| *weight /= norm);
            direction = next;
        }
        direction
    }

    /// The covariance matrix times a vector, up to a factor: (X - 1 m')' (X - 1 m') v.
    fn covariance_times(&self, vector: &[f64]) -> Vec<f64> {
        let centre: f64 = self.mean.iter().zip(vector).map(|(m, v)| m * v).sum();
        let mut product = vec![0.0; BUCKETS];
        let (mut start, mut sum) = (0, 0.0);
        for &end in &self.ends {
            let row = &self.entries[start..end];
            let score = row.iter().map(|(b, share)| f64::from(*share) * vector[usize::from(*b)]).sum::<f64>()
                - centre;
            for (bucket, share) in row {
                product[usize::from(*bucket)] += f64::from(*share) * score;
            }
            sum += score;
            start = end;
        }
        for (out, mean) in product.iter_mut().zip(&self.mean) {
            *out -= mean * sum;
        }
        product
    }
}
