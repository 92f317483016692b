//! Benchmarks single queries among ten million clustered fingerprints of 64 bits, k = 3. Compares designs,
//! storage, and naive methods.
//!
//! Run with `cargo bench -p doppel-hamming --bench online`. `DOPPEL_HAMMING` sets the number of fingerprints.
//! Needs about 5 GB of memory.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::ops::ControlFlow;

use doppel_hamming::naive::{FullScan, Neighbours, Probes};
use doppel_hamming::{
    CompressedFingerprints, Design, FingerprintIndex, IndexOptions, Storage, expected_ratio, search,
};

use crate::rounds::{BenchCase, measure};

mod data;
mod rounds;

/// Number of queries in one round.
const QUERIES: usize = 20_000;

fn main() {
    let count = std::env::var("DOPPEL_HAMMING").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000_000);
    let stored = data::clustered(count, 1);
    let mut sorted = stored.clone();
    sorted.sort_unstable();
    let clustered = CompressedFingerprints::new(64, &sorted).unwrap().ratio();
    let uniform = [10_000_000, 1 << 34].map(|n| expected_ratio(64, n).unwrap());
    println!(
        "{count} fingerprints; compressed to {clustered:.3}; uniform ones, 10 million and 2^34: {uniform:.3?}"
    );

    let selected = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    let is_selected = |part: &str| selected.as_deref().is_none_or(|selected| selected == part);
    if is_selected("queries") {
        queries(&stored);
    }
    if is_selected("updates") {
        updates(&stored);
    }
    if is_selected("search") {
        places(&stored, &sorted);
    }
    if is_selected("naive") {
        naive(&stored);
    }
}

/// Benchmarks searches for positions in one sorted table.
fn places(stored: &[u64], sorted: &[u64]) {
    let near = Near::new(stored);
    let find = |name: &str, find: fn(&[u64], u64) -> usize| {
        let near = &near;
        BenchCase::new(name, move || near.each(|query| find(sorted, query)))
    };
    let cases = vec![
        find("interpolation search", search::lower_bound),
        find("binary search", |sorted, query| sorted.partition_point(|&key| key < query)),
    ];
    measure("the place of a key in one sorted table", 11, cases);
}

/// Queries for eight rounds. Each round uses the next part, so that consecutive rounds differ.
struct Near {
    queries: Vec<u64>,
    at: Cell<usize>,
}

impl Near {
    fn new(stored: &[u64]) -> Self {
        Self { queries: data::queries(stored, QUERIES * 8, 2), at: Cell::new(0) }
    }

    /// Creates random queries, which have no match.
    fn random() -> Self {
        let mut random = data::Random::new(11);
        Self { queries: (0..QUERIES * 8).map(|_| random.next()).collect(), at: Cell::new(0) }
    }

    fn each(&self, mut ask: impl FnMut(u64) -> usize) -> usize {
        let at = self.at.replace((self.at.get() + 1) % 8) * QUERIES;
        std::hint::black_box(self.queries[at..at + QUERIES].iter().map(|&query| ask(query)).sum::<usize>());
        QUERIES
    }
}

fn built(splits: &[u32], options: IndexOptions, stored: &[u64]) -> FingerprintIndex {
    let design = Design::new(64, 3, splits).unwrap();
    FingerprintIndex::build(design, options, stored.iter().copied().zip(0..)).unwrap()
}

fn matches(index: &FingerprintIndex, query: u64) -> usize {
    let mut found = 0;
    let _ = index.search(query, 3, |_| {
        found += 1;
        ControlFlow::Continue(())
    });
    found
}

/// Benchmarks queries. Builds all indexes before the first round, so that each round measures all of them.
fn queries(stored: &[u64]) {
    let (near, random) = (Near::new(stored), Near::random());
    let (plain, compressed) = (Storage::Plain, Storage::Compressed);
    let kinds: [(&[u32], Storage, bool); 8] = [
        (&[4], plain, false),
        (&[5], plain, false),
        (&[4, 4], plain, false),
        (&[6], plain, false),
        (&[4], compressed, false),
        (&[5], compressed, false),
        (&[4], plain, true),
        (&[5], plain, true),
    ];
    // With more than 20 million fingerprints, not all indexes fit into memory.
    let kinds = kinds.into_iter().take(if stored.len() > 20_000_000 { 2 } else { 8 });
    let indexes: Vec<(String, FingerprintIndex)> = kinds
        .map(|(splits, storage, inserts)| {
            let options = IndexOptions { storage, ..IndexOptions::default() };
            let mut index = built(splits, options, stored);
            if inserts {
                // Create runs of all sizes, and fill the buffer up to one free place.
                let more = data::clustered(stored.len() / 10, 3);
                for (&fingerprint, id) in more.iter().zip(1 << 40..) {
                    index.insert(fingerprint, id).unwrap();
                }
                index.flush();
                let mut random = data::Random::new(7);
                (1..options.recent as u64).for_each(|id| assert!(index.insert(random.next(), id).unwrap()));
            }
            let (size, tables) = (index.size(), index.design().layouts().len());
            let name =
                format!("{tables} tables, {storage:?}, {} MB, {} runs", size.table_bytes >> 20, size.runs);
            (name, index)
        })
        .collect();
    for (title, near) in [("half of them near, k = 3", &near), ("no match, k = 3", &random)] {
        let case = |(name, index)| {
            BenchCase::new(String::clone(name), move || near.each(|query| matches(index, query)))
        };
        let cases = indexes.iter().map(|(name, index)| case((name, index))).collect();
        measure(&format!("an online query, {title}"), 7, cases);
    }
}

/// Benchmarks insertions into an index of ten times as many fingerprints, including all merges, and removals.
fn updates(stored: &[u64]) {
    let more = data::clustered(stored.len() / 10, 3);
    let mut index = built(&[4], IndexOptions::default(), stored);
    let (mut at, mut gone) = (0, 0);
    let piece = (more.len() / 8).max(1);
    let cell = std::cell::RefCell::new(&mut index);
    let insert = BenchCase::new("insert, 4 tables", || {
        let piece = &more[at..more.len().min(at + piece)];
        for (&fingerprint, id) in piece.iter().zip(1 << 40..) {
            cell.borrow_mut().insert(fingerprint, id).unwrap();
        }
        at += piece.len();
        piece.len().max(1)
    });
    let remove = BenchCase::new("remove, 4 tables", || {
        for (id, &fingerprint) in (gone as u64..).zip(&stored[gone..gone + piece]) {
            assert!(cell.borrow_mut().remove(fingerprint, id));
        }
        gone += piece;
        piece
    });
    measure("updates", 6, vec![insert, remove]);
}

fn naive(stored: &[u64]) {
    let near = data::queries(stored, 16, 2);
    let mut index = built(&[4], IndexOptions::default(), stored);
    index.compact();
    let (scan, probes) =
        (FullScan::new(stored.iter().copied()), Probes::new(64, stored.iter().copied()).unwrap());
    let few = &stored[..1_000];
    let small = FingerprintIndex::build(
        Design::fitting(64, 3, 1_000).unwrap(),
        IndexOptions::default(),
        few.iter().copied().zip(0..),
    );
    let (small, table) = (small.unwrap(), Neighbours::new(64, 3, few.iter().copied()).unwrap());
    let near_few = data::queries(few, 16, 2);
    let each = |name: &str, ask: &dyn Fn(u64) -> usize, count: usize| {
        let start = std::time::Instant::now();
        let near = if name.starts_with("1,000") { &near_few } else { &near };
        let found: usize = near.iter().cycle().take(count).map(|&query| ask(query)).sum();
        println!("{name:44} {:12.1} ns, {found} found", start.elapsed().as_nanos() as f64 / count as f64);
    };
    println!("\nnaive methods, elapsed time");
    each("4 tables", &|query| matches(&index, query), 16_000);
    each("43,745 probes of a hash table", &|query| probes.within(query, 3).len(), 16);
    each("scan of everything", &|query| scan.within(query, 3).len(), 16);
    each("1,000 fingerprints: all neighbours sorted", &|query| table.within(query).len(), 16_000);
    each("1,000 fingerprints: the design that fits", &|query| matches(&small, query), 16_000);
}
