//! Benchmark of families whose pages share most of their words and are mostly not near-duplicates.
//!
//! `cargo bench -p doppel-join --bench families -- PAGES...`
//!
//! The join is measured in processor time of all threads. A page is a template of 100 words, in which some
//! words are replaced by words of its own. In `half`, half of the pages have one word of their own, and the
//! others have six. In `templates`, the pages have one of two templates, which share half of their words.
//! `vocabulary` draws the own words from 1,000 words.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::Arc;

use doppel_join::{ContentIndex, Contents};
use doppel_model::Random;
use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::Signature;
use rustix::time::{ClockId, clock_gettime};

const WORDS: u64 = 100;

/// How the words of a page are chosen.
#[derive(Clone, Copy)]
struct Family {
    name: &'static str,
    /// Numbers of own words; a page has one of them.
    own: &'static [usize],
    vocabulary: u64,
    templates: u64,
}

const RARE: u64 = 1_000_000_000;

const FAMILIES: [Family; 8] = [
    Family { name: "1 own word", own: &[1], vocabulary: RARE, templates: 1 },
    Family { name: "2 own words", own: &[2], vocabulary: RARE, templates: 1 },
    Family { name: "3 own words", own: &[3], vocabulary: RARE, templates: 1 },
    Family { name: "10 own words", own: &[10], vocabulary: RARE, templates: 1 },
    Family { name: "half", own: &[1, 6], vocabulary: RARE, templates: 1 },
    Family { name: "templates, 3 own words", own: &[3], vocabulary: RARE, templates: 2 },
    Family { name: "vocabulary, 3 own words", own: &[3], vocabulary: 1_000, templates: 1 },
    Family {
        name: "mixed, 0 to 20 own words",
        own: &[0, 1, 2, 3, 4, 5, 7, 9, 12, 16, 20],
        vocabulary: RARE,
        templates: 1,
    },
];

impl Family {
    fn signatures(self, pages: usize) -> Vec<Arc<Signature>> {
        let mut random = Random::new(1);
        let mut signer = Signer::new(Policy::default());
        let word =
            |template: u64, at: u64| (if at.is_multiple_of(2) { 0 } else { template } << 32 | at) + (1 << 50);
        (0..pages)
            .map(|_| {
                let template = random.below(self.templates);
                let mut tokens: Vec<u64> = (0..WORDS).map(|at| word(template, at)).collect();
                let own = self.own[random.below(self.own.len() as u64) as usize];
                for _ in 0..own {
                    tokens[random.below(WORDS) as usize] = random.below(self.vocabulary);
                }
                let tokens: Vec<u64> =
                    tokens.iter().map(|token| doppel_model::stable_hash64(&token.to_le_bytes())).collect();
                Arc::new(signer.sign(Features { tokens: &tokens, ..Features::default() }))
            })
            .collect()
    }
}

fn main() {
    let mut sizes: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![5_000, 10_000, 20_000];
    }
    println!("{:26} {:>9} {:>9} {:>9} {:>7}", "family", "pages", "groups", "us/page", "ratio");
    for family in FAMILIES {
        let mut first = None;
        for pages in &sizes {
            let signatures = family.signatures(*pages);
            let mut contents = Contents::new(Policy::default());
            let distinct: Vec<Arc<Signature>> =
                signatures.into_iter().filter(|signature| contents.add(signature).1).collect();
            let read = |content: ContentIndex| Ok::<_, Infallible>(Arc::clone(&distinct[content.0 as usize]));
            let before = seconds();
            let Ok(roots) = contents.components(&read, |_| true);
            let spent = (seconds() - before) * 1e6 / *pages as f64;
            let groups = roots.iter().enumerate().filter(|(at, root)| root.0 as usize == *at).count();
            let ratio = spent / *first.get_or_insert(spent);
            println!("{:26} {pages:9} {groups:9} {spent:9.1} {ratio:7.2}", family.name);
        }
    }
}

fn seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
