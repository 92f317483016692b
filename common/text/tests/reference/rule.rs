//! The policies of the reference: the features that a policy extracts from a page, and the signature that it
//! writes. Also decides whether two pages are near-duplicates (F), by its definition in words and bits.

use std::collections::{BTreeMap, BTreeSet};

use crate::bits::{self, Bits};
use crate::layout::{self, SignatureParts, content, content_with, hash, mix, polynomial};
use crate::page::{Page, Site};
use crate::shingles::{Shingle, hashes, padded, sketch, supershingles};
use crate::terms::{TermStatistics, imatch, multi_simhash, payload};

/// Policy with its parameters. Thresholds of Jaccard coefficients (`above`, `text`, `within`, `across` of
/// sets) are in units of 1/10,000.
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

/// Features of a page that a policy compares.
#[derive(Clone)]
pub(crate) enum PolicyFeatures {
    /// Numbers of the shingles, ascending, and the hashes of the shingles.
    Set(Vec<u32>, Vec<u64>),
    /// Fingerprints that are compared by position.
    Fingerprints(Vec<Option<u64>>),
    /// Bits that are compared by Hamming distance.
    Bits(Bits),
    /// Supershingles, if the page has enough words, and a projection.
    Both(Option<[u64; 6]>, Bits),
    /// Fingerprint of each lexicon that has terms of the page.
    Lexicons(Vec<Option<Bits>>),
    /// Distinct fingerprints of chunks, ascending.
    Chunks(Vec<u32>),
}

/// Page as a policy compares it.
pub(crate) struct PolicyPage {
    /// Words that the policy compares.
    pub(crate) words: Vec<String>,
    pub(crate) site: Option<String>,
    pub(crate) is_text: bool,
    pub(crate) features: PolicyFeatures,
}

/// Reads pages for a policy.
pub(crate) struct Reader<'p> {
    pub(crate) rule: Rule,
    /// Whether the policy reads the tokens of code.
    reads_code: bool,
    numbers: BTreeMap<Shingle<'p>, u32>,
    statistics: &'p TermStatistics,
}

impl<'p> Reader<'p> {
    pub(crate) fn new(rule: Rule, reads_code: bool, statistics: &'p TermStatistics) -> Self {
        Self { rule, reads_code, numbers: BTreeMap::new(), statistics }
    }

    pub(crate) fn read(&mut self, page: &'p Page) -> PolicyPage {
        let words = match (self.rule, &page.main) {
            (Rule::Content { .. } | Rule::Copies { .. }, Some(main)) => main,
            _ if self.reads_code => &page.code,
            _ => &page.words,
        };
        let fingerprints = |all: Vec<u64>| all.into_iter().map(|one| (one != 0).then_some(one)).collect();
        let features = match self.rule {
            Rule::Jaccard { words: length, .. } => self.set(words, length),
            Rule::Content { .. } => self.set(words, 5),
            Rule::Copies { .. } => self.set(words, 2),
            Rule::Supershingle { words: length, .. } => PolicyFeatures::Fingerprints(
                supershingles(words, length).into_iter().flatten().map(Some).collect(),
            ),
            Rule::Projection { .. } => PolicyFeatures::Bits(bits::projection(words)),
            Rule::Combined { .. } | Rule::BySite { .. } => {
                PolicyFeatures::Both(supershingles(words, 8), bits::projection(words))
            }
            Rule::Simhash { .. } => PolicyFeatures::Bits(bits::simhash(words)),
            Rule::MultiSimhash { words, lexicons, .. } => {
                PolicyFeatures::Lexicons(multi_simhash(&page.terms, self.statistics, words, lexicons))
            }
            Rule::Imatch { lexicons, percent } => PolicyFeatures::Fingerprints(fingerprints(imatch(
                &page.terms,
                self.statistics,
                lexicons,
                percent,
            ))),
            Rule::Overlap { lines, .. } => {
                PolicyFeatures::Chunks(if words.len() < 20 { Vec::new() } else { chunks(&page.lines, lines) })
            }
        };
        let site = match self.rule {
            Rule::BySite { site, .. } | Rule::Copies { site, .. } => Some(page.site(site)),
            _ => None,
        };
        let is_text = matches!(self.rule, Rule::Copies { .. }) && page.main.is_none();
        PolicyPage { words: words.clone(), site, is_text, features }
    }

    fn set(&mut self, words: &'p [String], length: usize) -> PolicyFeatures {
        let set = padded(words, length);
        let hashes = hashes(&set);
        let mut numbers: Vec<u32> = Vec::new();
        for shingle in set {
            let next = self.numbers.len() as u32;
            numbers.push(*self.numbers.entry(shingle).or_insert(next));
        }
        numbers.sort_unstable();
        PolicyFeatures::Set(numbers, hashes)
    }
}

/// Returns the distinct 32-bit fingerprints of chunks of `lines_each` lines, of which the last may be
/// shorter. Returns only the 4,096 smallest.
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
            Self::Jaccard { .. } => layout::SHINGLES,
            Self::Supershingle { .. } => layout::SUPERSHINGLES,
            Self::Projection { .. } => layout::PROJECTION,
            Self::Combined { .. } => layout::COMBINED,
            Self::BySite { .. } => layout::BY_SITE,
            Self::Simhash { .. } => layout::SIMHASH,
            Self::Imatch { .. } => layout::IMATCH,
            Self::MultiSimhash { .. } => layout::MULTI_SIMHASH,
            Self::Overlap { .. } => layout::OVERLAP,
            Self::Content { .. } => layout::CONTENT,
            Self::Copies { .. } => layout::COPIES,
        }
    }

    /// Returns the bytes of the signature of a page.
    pub(crate) fn signature(self, page: &PolicyPage) -> Vec<u8> {
        let text = content(&page.words);
        let numbers = |all: &[u64]| all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<u8>>();
        let site = page.site.as_deref().map(hash);
        let form = [u8::from(page.is_text)];
        let mut set = Vec::new();
        let payload = match &page.features {
            PolicyFeatures::Set(_, hashes) => {
                set.clone_from(hashes);
                let (mut own, is_copies) = (sketch(hashes), matches!(self, Self::Copies { .. }));
                own.extend(site.into_iter().flat_map(u64::to_le_bytes));
                own.extend(form.into_iter().filter(|_| is_copies));
                own
            }
            PolicyFeatures::Fingerprints(all) => {
                numbers(&all.iter().map(|one| one.unwrap_or(0)).collect::<Vec<_>>())
            }
            PolicyFeatures::Bits(own) => bits::bytes(own),
            PolicyFeatures::Both(supershingles, projection) => {
                let mut own = numbers(&supershingles.unwrap_or_default());
                own.extend(bits::bytes(projection));
                own.extend(site.into_iter().flat_map(u64::to_le_bytes));
                own
            }
            PolicyFeatures::Lexicons(all) => payload(all),
            PolicyFeatures::Chunks(all) => {
                set = all.iter().map(|one| u64::from(*one)).collect();
                text.to_vec()
            }
        };
        let content = match (&page.features, site) {
            (PolicyFeatures::Chunks(all), _) if !all.is_empty() => {
                content_with(text, &all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<u8>>())
            }
            (PolicyFeatures::Set(..), Some(site)) => {
                content_with(text, &[&site.to_be_bytes()[..], &form].concat())
            }
            (_, Some(site)) => content_with(text, &site.to_be_bytes()),
            (_, None) => text,
        };
        let tokens = page.words.len();
        let size = if let PolicyFeatures::Set(..) = page.features { set.len() } else { tokens };
        SignatureParts { kind: self.kind(), content, tokens, size, payload, set }.bytes()
    }

    /// Whether two pages are near-duplicates (F), or copies with at least a word.
    pub(crate) fn near(self, a: &PolicyPage, b: &PolicyPage) -> bool {
        if (&a.words, &a.site, a.is_text) == (&b.words, &b.site, b.is_text) {
            return !a.words.is_empty();
        }
        a.words.len() >= 20 && b.words.len() >= 20 && self.resemble(a, b)
    }

    /// Whether the features of two pages are near. Both pages have enough words.
    pub(crate) fn resemble(self, a: &PolicyPage, b: &PolicyPage) -> bool {
        let is_one_site = a.site == b.site;
        match (self, &a.features, &b.features) {
            (
                Self::Jaccard { above, .. } | Self::Content { above },
                PolicyFeatures::Set(x, _),
                PolicyFeatures::Set(y, _),
            ) => exceeds(x, y, above),
            (
                Self::Copies { text, within, across, .. },
                PolicyFeatures::Set(x, _),
                PolicyFeatures::Set(y, _),
            ) => {
                let by_site = if is_one_site { within } else { across };
                exceeds(x, y, if a.is_text && b.is_text { text } else { by_site })
            }
            (
                Self::Supershingle { equal, .. },
                PolicyFeatures::Fingerprints(x),
                PolicyFeatures::Fingerprints(y),
            ) => equal_fingerprints(x, y) >= equal,
            (Self::Projection { agreeing }, PolicyFeatures::Bits(x), PolicyFeatures::Bits(y)) => {
                bits::agreeing(x, y) >= agreeing
            }
            (Self::Combined { equal, agreeing }, PolicyFeatures::Both(s, x), PolicyFeatures::Both(t, y)) => {
                equal_supershingles(s, t) >= equal && bits::agreeing(x, y) >= agreeing
            }
            (Self::BySite { across, .. }, PolicyFeatures::Both(_, x), PolicyFeatures::Both(_, y))
                if !is_one_site =>
            {
                bits::agreeing(x, y) >= across
            }
            (
                Self::BySite { equal, agreeing, .. },
                PolicyFeatures::Both(s, x),
                PolicyFeatures::Both(t, y),
            ) => equal_supershingles(s, t) >= equal && bits::agreeing(x, y) >= agreeing,
            (Self::Simhash { differing }, PolicyFeatures::Bits(x), PolicyFeatures::Bits(y)) => {
                64 - bits::agreeing(x, y) <= differing
            }
            (Self::MultiSimhash { below, .. }, PolicyFeatures::Lexicons(x), PolicyFeatures::Lexicons(y)) => {
                let is_near = |(x, y): (&Option<Bits>, &Option<Bits>)| match (x, y) {
                    (Some(x), Some(y)) => 32 - bits::agreeing(x, y) < below,
                    _ => false,
                };
                x.iter().zip(y).any(is_near)
            }
            (Self::Imatch { .. }, PolicyFeatures::Fingerprints(x), PolicyFeatures::Fingerprints(y)) => {
                equal_fingerprints(x, y) >= 1
            }
            (Self::Overlap { shared, .. }, PolicyFeatures::Chunks(x), PolicyFeatures::Chunks(y)) => {
                common(x, y) >= shared
            }
            _ => panic!("the features of the pages are not those of the policy"),
        }
    }
}

/// Returns the number of positions at which both lists have the same fingerprint.
fn equal_fingerprints(a: &[Option<u64>], b: &[Option<u64>]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a.is_some() && a == b).count()
}

/// Returns the number of positions at which both pages have the same supershingle.
fn equal_supershingles(a: &Option<[u64; 6]>, b: &Option<[u64; 6]>) -> usize {
    match (a, b) {
        (Some(a), Some(b)) => (0..6).filter(|at| a[*at] == b[*at]).count(),
        _ => 0,
    }
}

/// Whether the Jaccard coefficient of two sets exceeds `above` / 10,000.
fn exceeds(a: &[u32], b: &[u32], above: usize) -> bool {
    let shared = common(a, b);
    10_000 * shared > above * (a.len() + b.len() - shared)
}

/// Returns the number of elements that two ascending lists share.
fn common(a: &[u32], b: &[u32]) -> usize {
    let mut others = b.iter().peekable();
    let is_shared = |one: &&u32| {
        while others.next_if(|other| other < one).is_some() {}
        others.next_if_eq(one).is_some()
    };
    a.iter().filter(is_shared).count()
}
