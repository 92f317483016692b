//! Benchmarks batches of queries against 16 million fingerprints in memory, k = 3.
//!
//! Run with `cargo bench -p doppel-hamming --bench batch`. Times are processor time of all threads, so they
//! correspond to one core. `RAYON_NUM_THREADS=1` keeps threads from sharing a cache.
#![allow(clippy::unwrap_used)]

use doppel_hamming::{CompressedFingerprints, Design, QueryBatch};

use crate::rounds::{BenchCase, measure};

mod data;
mod rounds;

const STORED: usize = 1 << 24;

fn case<'a>(name: &str, batch: QueryBatch, stored: &'a [u64]) -> BenchCase<'a> {
    let (tables, pairs) = (batch.design().layouts().len(), batch.scan(stored, usize::MAX).unwrap().len());
    BenchCase::new(format!("{name}, {tables} tables, {pairs} pairs"), move || {
        batch.scan(stored, usize::MAX).unwrap();
        stored.len()
    })
}

fn main() {
    let mut random = data::Random::new(4);
    let uniform: Vec<u64> = (0..STORED).map(|_| random.next()).collect();
    let mut clustered = data::clustered(STORED, 1);
    // Shuffle, because pages arrive in no particular order.
    for at in (1..clustered.len()).rev() {
        clustered.swap(at, random.below(at as u64 + 1) as usize);
    }
    let mut sorted = uniform.clone();
    sorted.sort_unstable();
    let compressed = &CompressedFingerprints::new(64, &sorted).unwrap();
    drop(sorted);

    let batch_for = |stored: &[u64], count| QueryBatch::new(64, 3, &data::queries(stored, count, 5)).unwrap();
    let selected = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    let is_selected = |part: &str| selected.as_deref().is_none_or(|selected| selected == part);
    if is_selected("small") {
        let mut cases: Vec<BenchCase<'_>> = [1_000, 10_000, 100_000]
            .map(|count| case(&format!("{count} uniform"), batch_for(&uniform, count), &uniform))
            .into();
        cases.push(case("10000 clustered", batch_for(&clustered, 10_000), &clustered));
        for splits in [&[5][..], &[4, 4]] {
            let design = Design::new(64, 3, splits).unwrap();
            let batch = QueryBatch::with_design(design, &data::queries(&uniform, 10_000, 5)).unwrap();
            cases.push(case("10000 uniform", batch, &uniform));
        }
        let batch = batch_for(&uniform, 10_000);
        cases.push(BenchCase::new("10000 uniform, compressed", move || {
            batch.scan_compressed(compressed, usize::MAX).unwrap();
            STORED
        }));
        for splits in [&[4][..], &[4, 4]] {
            let design = Design::new(64, 3, splits).unwrap();
            let batch = QueryBatch::with_design(design, &data::queries(&uniform, 100_000, 5)).unwrap();
            cases.push(case("100000 uniform", batch, &uniform));
        }
        measure("a stored fingerprint against some queries", 9, cases);
    }
    if is_selected("large") {
        let mut cases = vec![case("1000000 uniform", batch_for(&uniform, 1_000_000), &uniform)];
        cases.push(case("1000000 clustered", batch_for(&clustered, 1_000_000), &clustered));
        for splits in [&[4, 4][..], &[6]] {
            let design = Design::new(64, 3, splits).unwrap();
            let batch = QueryBatch::with_design(design, &data::queries(&uniform, 1_000_000, 5)).unwrap();
            cases.push(case("1000000 uniform", batch, &uniform));
        }
        measure("a stored fingerprint against a million queries", 2, cases);
    }
}
