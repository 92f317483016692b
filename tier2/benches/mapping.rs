//! The quality of partition maps for real pages, and the cost of learning them.
//!
//! `cargo bench -p doppel-tier2 --bench mapping`. Maps are learned from every second distinct content of the
//! corpora `mid` and `trace`, and measured on the others. N = 1 is the control: cuts of equal depth by the
//! number of distinct shingles.

use std::sync::OnceLock;

use divan::Bencher;
use doppel_model::Tau;
use doppel_model::signature::Signature;
use doppel_partitioning::{LengthVector, MappingLoad, PartitionMap};
use doppel_text::{Extraction, Extractor};

#[path = "../../common/text/tests/crawl/mod.rs"]
mod crawl;

fn main() {
    let (sample, others) = halves();
    if sample.is_empty() {
        return;
    }
    println!("learned from {} contents, measured on {}", sample.len(), others.len());
    println!("tau  partitions  N  imbalance  noise floor  fan-out saved");
    for tau in ["0.8", "0.9"].map(|tau| tau.parse::<Tau>().expect("the threshold parses")) {
        for partitions in [16, 64] {
            for dimensions in 1..=4 {
                let map = learn(partitions, tau, dimensions);
                let lengths: Vec<LengthVector> = others.iter().map(|s| map.lexicon().lengths(s)).collect();
                let load = map.measure(&lengths);
                let dealt = MappingLoad::at_random(partitions, others.len() as u64);
                println!(
                    "{tau}  {partitions:10}  {dimensions}  {:9.2}  {:11.2}  {:10.1} %",
                    load.imbalance(),
                    dealt.imbalance(),
                    100.0 * load.fan_out_saved()
                );
            }
        }
    }
    divan::main();
}

/// The distinct contents with tokens, sorted by their hashes. They go to the two halves in turn.
fn halves() -> &'static (Vec<Signature>, Vec<Signature>) {
    static HALVES: OnceLock<(Vec<Signature>, Vec<Signature>)> = OnceLock::new();
    HALVES.get_or_init(|| {
        let mut files: Vec<String> = (0..2).map(|i| format!("mid/mid-{i:02}")).collect();
        files.extend((0..10).map(|i| format!("trace/round-{i:02}")));
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let mut extractor = Extractor::default();
        let mut contents: Vec<Signature> = Vec::new();
        for page in crawl::html(&files).unwrap_or_default() {
            if let Extraction::Page(page) = extractor.html(&page.url, &page.bytes, page.charset.as_deref()) {
                contents.push(page.signature);
            }
        }
        contents.retain(|s| s.tokens() > 0);
        contents.sort_by_key(Signature::content);
        contents.dedup();
        let (even, odd): (Vec<_>, Vec<_>) = contents.into_iter().enumerate().partition(|(i, _)| i % 2 == 0);
        let plain = |half: Vec<(usize, Signature)>| half.into_iter().map(|(_, s)| s).collect();
        (plain(even), plain(odd))
    })
}

fn learn(partitions: usize, tau: Tau, dimensions: usize) -> PartitionMap {
    PartitionMap::learn(&halves().0, partitions, tau, dimensions, 1).expect("the parameters are in range")
}

#[divan::bench(args = [1, 3], sample_count = 3)]
fn learn_64_partitions(bencher: Bencher, dimensions: usize) {
    bencher.bench(|| learn(64, Tau::DEFAULT, dimensions));
}
