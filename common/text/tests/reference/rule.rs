//! What each policy keeps of a page, what it writes, and when two pages are near-duplicates: F by its definition in words and bits.

use std::collections::{BTreeMap, BTreeSet};

use crate::bits::{self, Bits};
use crate::page::{Page, Site};
use crate::shingles::{Shingle, hashes, padded, sketch, supershingles};
use crate::terms::{Learnt, imatch, multi_simhash, payload};
use crate::written::{self, Written, content, content_with, hash, mix, polynomial};

/// A policy and its parameters. Thresholds of sets are in ten-thousandths.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    Jaccard { above: usize, words: usize },
    Supershingle { words: usize, equal: usize },
    Projection { agreeing: usize },
    Combined { equal: usize, agreeing: usize },
    BySite { site: Site, across: usize, equal: usize, agreeing: usize },
    Simhash { differing: usize },
    MultiSimhash { words: usize, lexicons: u64, below: usize },
    Imatch { lexicons: u64, percent: (u64, u64) },
    Overlap { lines: usize, shared: usize },
    Content { above: usize },
    Copies { text: usize, within: usize, across: usize, site: Site },
}

/// What a policy keeps of a page.
#[derive(Clone)]
pub(crate) enum Kept {
    /// Shingles, each as its number, and their hashes.
    Set(Vec<u32>, Vec<u64>),
    /// Fingerprints in their places.
    Fingerprints(Vec<Option<u64>>),
    Bits(Bits),
    /// Supershingles, if there are any, and a projection.
    Both(Option<[u64; 6]>, Bits),
    /// Bits in each lexicon that has some.
    Lexicons(Vec<Option<Bits>>),
    /// Fingerprints of chunks, each once, ascending.
    Chunks(Vec<u32>),
}

/// A page under a policy.
pub(crate) struct Compared {
    /// The words that are compared.
    pub(crate) words: Vec<String>,
    pub(crate) site: Option<String>,
    pub(crate) is_text: bool,
    pub(crate) kept: Kept,
}

/// Reads pages under a policy.
pub(crate) struct Reader<'p> {
    pub(crate) rule: Rule,
    /// Whether it reads the tokens of code.
    reads_code: bool,
    numbers: BTreeMap<Shingle<'p>, u32>,
    learnt: &'p Learnt,
}

impl<'p> Reader<'p> {
    pub(crate) fn new(rule: Rule, reads_code: bool, learnt: &'p Learnt) -> Self {
        Self { rule, reads_code, numbers: BTreeMap::new(), learnt }
    }

    pub(crate) fn read(&mut self, page: &'p Page) -> Compared {
        let words = match (self.rule, &page.main) {
            (Rule::Content { .. } | Rule::Copies { .. }, Some(main)) => main,
            _ if self.reads_code => &page.code,
            _ => &page.words,
        };
        let fingerprints = |all: Vec<u64>| all.into_iter().map(|one| (one != 0).then_some(one)).collect();
        let kept = match self.rule {
            Rule::Jaccard { words: length, .. } => self.set(words, length),
            Rule::Content { .. } => self.set(words, 5),
            Rule::Copies { .. } => self.set(words, 2),
            Rule::Supershingle { words: length, .. } => {
                Kept::Fingerprints(supershingles(words, length).into_iter().flatten().map(Some).collect())
            }
            Rule::Projection { .. } => Kept::Bits(bits::projection(words)),
            Rule::Combined { .. } | Rule::BySite { .. } => {
                Kept::Both(supershingles(words, 8), bits::projection(words))
            }
            Rule::Simhash { .. } => Kept::Bits(bits::simhash(words)),
            Rule::MultiSimhash { words, lexicons, .. } => {
                Kept::Lexicons(multi_simhash(&page.terms, self.learnt, words, lexicons))
            }
            Rule::Imatch { lexicons, percent } => {
                Kept::Fingerprints(fingerprints(imatch(&page.terms, self.learnt, lexicons, percent)))
            }
            Rule::Overlap { lines, .. } => {
                Kept::Chunks(if words.len() < 20 { Vec::new() } else { chunks(&page.lines, lines) })
            }
        };
        let site = match self.rule {
            Rule::BySite { site, .. } | Rule::Copies { site, .. } => Some(page.site(site)),
            _ => None,
        };
        let is_text = matches!(self.rule, Rule::Copies { .. }) && page.main.is_none();
        Compared { words: words.clone(), site, is_text, kept }
    }

    fn set(&mut self, words: &'p [String], length: usize) -> Kept {
        let set = padded(words, length);
        let hashes = hashes(&set);
        let mut numbers: Vec<u32> = Vec::new();
        for shingle in set {
            let next = self.numbers.len() as u32;
            numbers.push(*self.numbers.entry(shingle).or_insert(next));
        }
        numbers.sort_unstable();
        Kept::Set(numbers, hashes)
    }
}

/// The 32-bit fingerprints of every so many lines and of what is left at the end: each once, and the least 4,096.
fn chunks(lines: &[String], lines_each: usize) -> Vec<u32> {
    let fingerprint = |chunk: &[String]| {
        let hashes: Vec<u64> = chunk.iter().map(|line| hash(line)).collect();
        (mix(polynomial(&hashes)) >> 32) as u32
    };
    let all: BTreeSet<u32> = lines.chunks(lines_each).map(fingerprint).collect();
    all.into_iter().take(4_096).collect()
}

impl Rule {
    fn kind(self) -> u8 {
        match self {
            Self::Jaccard { .. } => written::SHINGLES,
            Self::Supershingle { .. } => written::SUPERSHINGLES,
            Self::Projection { .. } => written::PROJECTION,
            Self::Combined { .. } => written::COMBINED,
            Self::BySite { .. } => written::BY_SITE,
            Self::Simhash { .. } => written::SIMHASH,
            Self::Imatch { .. } => written::IMATCH,
            Self::MultiSimhash { .. } => written::MULTI_SIMHASH,
            Self::Overlap { .. } => written::OVERLAP,
            Self::Content { .. } => written::CONTENT,
            Self::Copies { .. } => written::COPIES,
        }
    }

    /// The bytes of a page's signature.
    pub(crate) fn signature(self, page: &Compared) -> Vec<u8> {
        let text = content(&page.words);
        let numbers = |all: &[u64]| all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<u8>>();
        let site = page.site.as_deref().map(hash);
        let form = [u8::from(page.is_text)];
        let mut set = Vec::new();
        let payload = match &page.kept {
            Kept::Set(_, hashes) => {
                set.clone_from(hashes);
                let (mut own, is_copies) = (sketch(hashes), matches!(self, Self::Copies { .. }));
                own.extend(site.into_iter().flat_map(u64::to_le_bytes));
                own.extend(form.into_iter().filter(|_| is_copies));
                own
            }
            Kept::Fingerprints(all) => numbers(&all.iter().map(|one| one.unwrap_or(0)).collect::<Vec<_>>()),
            Kept::Bits(own) => bits::bytes(own),
            Kept::Both(supershingles, projection) => {
                let mut own = numbers(&supershingles.unwrap_or_default());
                own.extend(bits::bytes(projection));
                own.extend(site.into_iter().flat_map(u64::to_le_bytes));
                own
            }
            Kept::Lexicons(all) => payload(all),
            Kept::Chunks(all) => {
                set = all.iter().map(|one| u64::from(*one)).collect();
                text.to_vec()
            }
        };
        let content = match (&page.kept, site) {
            (Kept::Chunks(all), _) if !all.is_empty() => {
                content_with(text, &all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<u8>>())
            }
            (Kept::Set(..), Some(site)) => content_with(text, &[&site.to_be_bytes()[..], &form].concat()),
            (_, Some(site)) => content_with(text, &site.to_be_bytes()),
            (_, None) => text,
        };
        let tokens = page.words.len();
        let size = if let Kept::Set(..) = page.kept { set.len() } else { tokens };
        Written { kind: self.kind(), content, tokens, size, payload, set }.bytes()
    }

    /// F of two pages.
    pub(crate) fn near(self, a: &Compared, b: &Compared) -> bool {
        if (&a.words, &a.site, a.is_text) == (&b.words, &b.site, b.is_text) {
            return !a.words.is_empty();
        }
        a.words.len() >= 20 && b.words.len() >= 20 && self.resemble(a, b)
    }

    /// F of what is kept of two pages that are long enough.
    pub(crate) fn resemble(self, a: &Compared, b: &Compared) -> bool {
        let is_one_site = a.site == b.site;
        match (self, &a.kept, &b.kept) {
            (Self::Jaccard { above, .. } | Self::Content { above }, Kept::Set(x, _), Kept::Set(y, _)) => {
                exceeds(x, y, above)
            }
            (Self::Copies { text, within, across, .. }, Kept::Set(x, _), Kept::Set(y, _)) => {
                let by_site = if is_one_site { within } else { across };
                exceeds(x, y, if a.is_text && b.is_text { text } else { by_site })
            }
            (Self::Supershingle { equal, .. }, Kept::Fingerprints(x), Kept::Fingerprints(y)) => {
                same(x, y) >= equal
            }
            (Self::Projection { agreeing }, Kept::Bits(x), Kept::Bits(y)) => bits::agreeing(x, y) >= agreeing,
            (Self::Combined { equal, agreeing }, Kept::Both(s, x), Kept::Both(t, y)) => {
                both(s, t) >= equal && bits::agreeing(x, y) >= agreeing
            }
            (Self::BySite { across, .. }, Kept::Both(_, x), Kept::Both(_, y)) if !is_one_site => {
                bits::agreeing(x, y) >= across
            }
            (Self::BySite { equal, agreeing, .. }, Kept::Both(s, x), Kept::Both(t, y)) => {
                both(s, t) >= equal && bits::agreeing(x, y) >= agreeing
            }
            (Self::Simhash { differing }, Kept::Bits(x), Kept::Bits(y)) => {
                64 - bits::agreeing(x, y) <= differing
            }
            (Self::MultiSimhash { below, .. }, Kept::Lexicons(x), Kept::Lexicons(y)) => {
                let is_near = |(x, y): (&Option<Bits>, &Option<Bits>)| match (x, y) {
                    (Some(x), Some(y)) => 32 - bits::agreeing(x, y) < below,
                    _ => false,
                };
                x.iter().zip(y).any(is_near)
            }
            (Self::Imatch { .. }, Kept::Fingerprints(x), Kept::Fingerprints(y)) => same(x, y) >= 1,
            (Self::Overlap { shared, .. }, Kept::Chunks(x), Kept::Chunks(y)) => common(x, y) >= shared,
            _ => panic!("what is kept is not of this policy"),
        }
    }
}

/// How many fingerprints are equal in their places.
fn same(a: &[Option<u64>], b: &[Option<u64>]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a.is_some() && a == b).count()
}

fn both(a: &Option<[u64; 6]>, b: &Option<[u64; 6]>) -> usize {
    match (a, b) {
        (Some(a), Some(b)) => (0..6).filter(|at| a[*at] == b[*at]).count(),
        _ => 0,
    }
}

/// Whether what two sets have in common is above so many ten-thousandths of what either has.
fn exceeds(a: &[u32], b: &[u32], above: usize) -> bool {
    let shared = common(a, b);
    10_000 * shared > above * (a.len() + b.len() - shared)
}

/// How many numbers are in both of two ascending lists.
fn common(a: &[u32], b: &[u32]) -> usize {
    let mut others = b.iter().peekable();
    let is_there = |one: &&u32| {
        while others.next_if(|other| other < one).is_some() {}
        others.next_if_eq(one).is_some()
    };
    a.iter().filter(is_there).count()
}
