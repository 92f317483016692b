//! Benchmark of families whose pages share most of their words and are mostly not near-duplicates.
//!
//! `cargo bench -p doppel-join --bench families -- [PAGES...] [FAMILY]`
//!
//! The join is measured in processor time of all threads. A page is a template of 100 words, in which some
//! words are replaced by words of its own. In `half`, half of the pages have one word of their own, and the
//! others have six. In `templates`, the pages have one of two templates, which share half of their words.
//! `vocabulary` draws the own words from 1,000 words. A page of `sections` has ten sections of ten words, and
//! three variants of each section exist. In `long`, a template has 2,000 words.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::Arc;

use doppel_join::{ContentIndex, Contents};
use doppel_model::Random;
use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::Signature;
use rustix::time::{ClockId, clock_gettime};

/// How the words of a page are chosen.
#[derive(Clone, Copy)]
struct Family {
    name: &'static str,
    /// Numbers of own words; a page has one of them.
    own: &'static [usize],
    vocabulary: u64,
    templates: u64,
    words: u64,
    /// Number of variants of every ten words of a template.
    variants: u64,
    policy: &'static str,
}

const RARE: u64 = 1_000_000_000;

const PLAIN: Family = Family {
    name: "3 own words",
    own: &[3],
    vocabulary: RARE,
    templates: 1,
    words: 100,
    variants: 1,
    policy: "jaccard",
};

const FAMILIES: [Family; 12] = [
    Family { name: "1 own word", own: &[1], ..PLAIN },
    Family { name: "2 own words", own: &[2], ..PLAIN },
    PLAIN,
    Family { name: "10 own words", own: &[10], ..PLAIN },
    Family { name: "half", own: &[1, 6], ..PLAIN },
    Family { name: "templates, 3 own words", templates: 2, ..PLAIN },
    Family { name: "vocabulary, 3 own words", vocabulary: 1_000, ..PLAIN },
    Family { name: "mixed, 0 to 20 own words", own: &[0, 1, 2, 3, 4, 5, 7, 9, 12, 16, 20], ..PLAIN },
    Family { name: "sections", own: &[0], variants: 3, ..PLAIN },
    Family { name: "sections, 1 own word", own: &[1], variants: 3, ..PLAIN },
    Family { name: "long, 60 own words", own: &[60], words: 2_000, ..PLAIN },
    Family { name: "copies, 3 own words", policy: "copies", ..PLAIN },
];

impl Family {
    fn policy(self) -> Policy {
        self.policy.parse().unwrap()
    }

    fn signatures(self, pages: usize) -> Vec<Arc<Signature>> {
        let mut random = Random::new(1);
        let mut signer = Signer::new(self.policy());
        let word = |template: u64, variant: u64, at: u64| {
            (if at.is_multiple_of(2) { 0 } else { template } << 40 | variant << 32 | at) + (1 << 50)
        };
        (0..pages)
            .map(|_| {
                let template = random.below(self.templates);
                let variants: Vec<u64> =
                    (0..self.words.div_ceil(10)).map(|_| random.below(self.variants)).collect();
                let mut tokens: Vec<u64> =
                    (0..self.words).map(|at| word(template, variants[at as usize / 10], at)).collect();
                let own = self.own[random.below(self.own.len() as u64) as usize];
                for _ in 0..own {
                    tokens[random.below(self.words) as usize] = random.below(self.vocabulary);
                }
                let tokens: Vec<u64> =
                    tokens.iter().map(|token| doppel_model::stable_hash64(&token.to_le_bytes())).collect();
                Arc::new(signer.sign(Features { tokens: &tokens, site: Some(1), ..Features::default() }))
            })
            .collect()
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let mut sizes: Vec<usize> = arguments.iter().filter_map(|arg| arg.parse().ok()).collect();
    let name = arguments.iter().find(|arg| arg.parse::<usize>().is_err());
    if sizes.is_empty() {
        sizes = vec![5_000, 10_000, 20_000];
    }
    println!("{:26} {:>9} {:>9} {:>9} {:>7}", "family", "pages", "groups", "us/page", "ratio");
    for family in FAMILIES.iter().filter(|family| name.is_none_or(|name| family.name == name)) {
        let mut first = None;
        for pages in &sizes {
            let signatures = family.signatures(*pages);
            let mut contents = Contents::new(family.policy());
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
