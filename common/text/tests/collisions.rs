//! Measures the error that the 40 bits of a shingle hash cause: compares the Jaccard coefficients of real
//! pairs by hashes with those by the shingles themselves.
//!
//! `cargo test -p doppel-text --release --test collisions -- --ignored --nocapture`
#![allow(clippy::unwrap_used)]

use std::collections::{HashMap, HashSet};

use doppel_model::pairwise::Policy;
use doppel_model::signature::{SHINGLE_TOKENS, Signature};
use doppel_text::{Extraction, Extractor, decode};

mod crawl;
#[path = "html/oracle.rs"]
mod oracle;

/// Assigns a number to each distinct word and shingle, so that sets of shingles are exact.
#[derive(Default)]
struct Shingles {
    words: HashMap<String, u32>,
    shingles: HashMap<[u32; SHINGLE_TOKENS], u32>,
}

impl Shingles {
    /// Returns the numbers of the distinct shingles of a text, and the number of its tokens.
    fn of(&mut self, text: &str) -> (Vec<u32>, usize) {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let mut tokens: Vec<u32> = words
            .map(|word| {
                let next = self.words.len() as u32 + 1;
                *self.words.entry(word.to_lowercase()).or_insert(next)
            })
            .collect();
        let count = tokens.len();
        // Dummy tokens after the text have the number 0, which no word has.
        tokens.resize(count + SHINGLE_TOKENS - 1, 0);
        let mut set: Vec<u32> = tokens
            .windows(SHINGLE_TOKENS)
            .map(|shingle| {
                let next = self.shingles.len() as u32;
                *self.shingles.entry(shingle.try_into().unwrap()).or_insert(next)
            })
            .collect();
        set.truncate(count);
        set.sort_unstable();
        set.dedup();
        (set, count)
    }
}

fn shared(a: &[u32], b: &[u32]) -> usize {
    let a: HashSet<u32> = a.iter().copied().collect();
    b.iter().filter(|shingle| a.contains(shingle)).count()
}

#[test]
#[ignore = "a measurement, in a release build"]
fn hash_collisions_hardly_change_the_jaccard_coefficient() {
    let Some(pages) = crawl::html(&["mid/mid-00", "mid/mid-01"]) else { return };
    let mut extractor = Extractor::default();
    let mut numbers = Shingles::default();
    let mut seen = HashSet::new();
    let mut contents: Vec<(Signature, Vec<u32>)> = Vec::new();
    let mut excluded = 0;
    for page in &pages {
        let Extraction::Page(read) = extractor.html(&page.url, &page.bytes, page.charset.as_deref()) else {
            continue;
        };
        if read.signature.tokens() < 20 || !seen.insert(read.signature.content()) {
            continue;
        }
        let text = oracle::text(decode(&page.bytes, page.charset.as_deref(), &mut String::new()));
        let (set, tokens) = numbers.of(&text);
        // This simple reading does not cut bigrams, so pages in scripts without spaces are excluded.
        if tokens == read.signature.tokens() as usize {
            contents.push((read.signature, set));
        } else {
            excluded += 1;
        }
    }
    let hashes: HashSet<u64> =
        contents.iter().flat_map(|(signature, _)| signature.set().collect::<Vec<_>>()).collect();
    let shingles: HashSet<u32> = contents.iter().flat_map(|(_, set)| set.iter().copied()).collect();
    let within: usize = contents.iter().map(|(signature, set)| set.len() - signature.size() as usize).sum();
    println!(
        "{} contents ({excluded} excluded), {} distinct shingles, {} distinct hashes; {within} shingles lost to a \
         collision within their page",
        contents.len(),
        shingles.len(),
        hashes.len()
    );

    let loose = Policy::jaccard("0.5".parse().unwrap());
    let mut bands: HashMap<(usize, u32), Vec<usize>> = HashMap::new();
    for (number, (signature, _)) in contents.iter().enumerate() {
        for band in loose.bands().unwrap().keys(signature.sketch()).enumerate() {
            bands.entry(band).or_default().push(number);
        }
    }
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for members in bands.values() {
        // A few neighbours of each content are enough.
        for (at, a) in members.iter().enumerate() {
            pairs.extend(members[at + 1..].iter().take(8).map(|b| (*a, *b)));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();

    let policies = ["0.8", "0.9"].map(|tau| Policy::jaccard(tau.parse().unwrap()));
    let (mut other, mut largest, mut decided) = (0, 0.0f64, [0, 0]);
    for &(a, b) in &pairs {
        let ((a, a_set), (b, b_set)) = (&contents[a], &contents[b]);
        let exact = shared(a_set, b_set);
        let union = a_set.len() + b_set.len() - exact;
        let difference = (policies[0].compare(a, b).similarity.as_f64() - exact as f64 / union as f64).abs();
        other += usize::from(difference > 0.0);
        largest = largest.max(difference);
        for (policy, decided) in policies.iter().zip(&mut decided) {
            let similar =
                policy.metric().unwrap().exceeded_by(exact as u64, a_set.len() as u64, b_set.len() as u64);
            *decided += usize::from(similar != policy.similar(a, b));
        }
    }
    println!(
        "{} pairs: J differs in {other}, by at most {largest:.6}; F differs in {} at 0.8 and {} at 0.9",
        pairs.len(),
        decided[0],
        decided[1]
    );
    assert!(largest < 0.005, "collisions change the Jaccard coefficient by {largest}, at least 0.005");
    assert!(
        decided.iter().all(|d| d * 10_000 <= pairs.len()),
        "collisions change F for {decided:?} of {} pairs, more than 1 in 10,000",
        pairs.len()
    );
}
