//! Batches of queries against 16 million fingerprints in memory, k = 3.
//!
//! `cargo bench -p doppel-hamming --bench batch`. Time is processor time of all threads, so a figure is that of one core;
//! `RAYON_NUM_THREADS=1` keeps threads from sharing a cache.
#![allow(clippy::unwrap_used)]

use doppel_hamming::{Batch, Compressed, Design};

use crate::rounds::{Way, measure};

mod data;
mod rounds;

const STORED: usize = 1 << 24;

fn way<'a>(name: &str, batch: Batch, stored: &'a [u64]) -> Way<'a> {
    let (tables, pairs) = (batch.design().layouts().len(), batch.scan(stored, usize::MAX).unwrap().len());
    Way::new(format!("{name}, {tables} tables, {pairs} pairs"), move || {
        batch.scan(stored, usize::MAX).unwrap();
        stored.len()
    })
}

fn main() {
    let mut random = data::Random::new(4);
    let uniform: Vec<u64> = (0..STORED).map(|_| random.next()).collect();
    let mut clustered = data::clustered(STORED, 1);
    // In no order, as pages come.
    for at in (1..clustered.len()).rev() {
        clustered.swap(at, random.below(at as u64 + 1) as usize);
    }
    let mut sorted = uniform.clone();
    sorted.sort_unstable();
    let compressed = &Compressed::new(64, &sorted).unwrap();
    drop(sorted);

    let asked = |stored: &[u64], count| Batch::new(64, 3, &data::queries(stored, count, 5)).unwrap();
    let only = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    let is_asked = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if is_asked("small") {
        let mut ways: Vec<Way<'_>> = [1_000, 10_000, 100_000]
            .map(|count| way(&format!("{count} uniform"), asked(&uniform, count), &uniform))
            .into();
        ways.push(way("10000 clustered", asked(&clustered, 10_000), &clustered));
        for splits in [&[5][..], &[4, 4]] {
            let design = Design::new(64, 3, splits).unwrap();
            let batch = Batch::with_design(design, &data::queries(&uniform, 10_000, 5)).unwrap();
            ways.push(way("10000 uniform", batch, &uniform));
        }
        let batch = asked(&uniform, 10_000);
        ways.push(Way::new("10000 uniform, compressed", move || {
            batch.scan_compressed(compressed, usize::MAX).unwrap();
            STORED
        }));
        for splits in [&[4][..], &[4, 4]] {
            let design = Design::new(64, 3, splits).unwrap();
            let batch = Batch::with_design(design, &data::queries(&uniform, 100_000, 5)).unwrap();
            ways.push(way("100000 uniform", batch, &uniform));
        }
        measure("a stored fingerprint against some queries", 9, ways);
    }
    if is_asked("large") {
        let mut ways = vec![way("1000000 uniform", asked(&uniform, 1_000_000), &uniform)];
        ways.push(way("1000000 clustered", asked(&clustered, 1_000_000), &clustered));
        for splits in [&[4, 4][..], &[6]] {
            let design = Design::new(64, 3, splits).unwrap();
            let batch = Batch::with_design(design, &data::queries(&uniform, 1_000_000, 5)).unwrap();
            ways.push(way("1000000 uniform", batch, &uniform));
        }
        measure("a stored fingerprint against a million queries", 2, ways);
    }
}
