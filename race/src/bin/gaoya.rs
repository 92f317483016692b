//! The peer: near-duplicates among pages of text by gaoya's MinHash index, in memory and unverified.
//!
//! `gaoya FILE` reads JSON lines with a `text`, and prints how many pages have a near-duplicate. Text is in lower case;
//! pages of less than 20 words are left out; a page is the set of its shingles of five words; 128 permutations and a
//! threshold of 0.8, from which gaoya itself takes 21 bands of 6. Two threads parse and sign; one bulk insert and a
//! query for each page follow.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use anyhow::Context;
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32, calculate_minhash_params};
use gaoya::text::whitespace_split;
use rayon::prelude::*;
use serde::Deserialize;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const THREADS: usize = 2;
const PERMUTATIONS: usize = 128;
const THRESHOLD: f64 = 0.8;
const SHINGLE_WORDS: usize = 5;
const WORDS_MIN: usize = 20;
/// The bytes of lines that are parsed and signed at a time.
const BLOCK: u64 = 16 << 20;

#[derive(Deserialize)]
struct Page<'p> {
    #[serde(borrow)]
    text: Cow<'p, str>,
}

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).context("usage: gaoya FILE")?;
    rayon::ThreadPoolBuilder::new().num_threads(THREADS).build_global()?;
    let (bands, width) = calculate_minhash_params(THRESHOLD, PERMUTATIONS);
    let hasher = MinHasher32::new(bands * width);
    let mut file = BufReader::new(File::open(&path).with_context(|| format!("cannot read {path:?}"))?);
    let mut signatures = Vec::new();
    loop {
        let mut block = Vec::new();
        file.by_ref().take(BLOCK).read_to_end(&mut block)?;
        if block.is_empty() {
            break;
        }
        file.read_until(b'\n', &mut block)?;
        let lines: Vec<&[u8]> = block.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        let signed: Vec<Option<Vec<u32>>> =
            lines.into_par_iter().map(|line| sign(&hasher, line)).collect::<anyhow::Result<_>>()?;
        signatures.extend(signed.into_iter().flatten());
    }
    let pages: Vec<u32> = (0..signatures.len() as u32).collect();
    let mut index = MinHashIndex::new(bands, width, THRESHOLD);
    index.par_bulk_insert(pages.clone(), signatures);
    // A page finds itself.
    let near = pages.par_iter().filter(|page| index.query_by_id(page).len() > 1).count();
    println!("{}", serde_json::json!({ "pages": pages.len(), "with_near_duplicate": near }));
    Ok(())
}

/// The signature of a page; none if it is too short.
fn sign(hasher: &impl MinHasher<V = u32>, line: &[u8]) -> anyhow::Result<Option<Vec<u32>>> {
    let page: Page<'_> = serde_json::from_slice(line).context("a line is no page of text")?;
    let text = page.text.to_lowercase();
    let words: Vec<&str> = whitespace_split(&text).collect();
    let enough = words.len() >= WORDS_MIN;
    Ok(enough.then(|| hasher.create_signature(words.windows(SHINGLE_WORDS))))
}
