//! Takes documents, and says how they overlap.

use std::io;
use std::time::Instant;

use doppel_model::{pairwise, stable_hash128};
use serde::Serialize;

use crate::bits::Bits;
use crate::documents::Documents;
use crate::pairing;
use crate::replication::{Replication, Tally};
use crate::servers::{self, Greatest, Mirror, Replicated};
use crate::sorted::Sorted;
use crate::sorter::Sorter;
use crate::source::Source;
use crate::urls::Urls;
use crate::way::{Way, Work};
use crate::{Budget, Chunking, Claim, OverlapError};

/// Fingerprints for which there is room from one page to the next; that for those of larger ones ends with the page.
const FINGERPRINTS_KEPT: usize = 1 << 16;

/// A page to count.
#[derive(Debug, Clone, Copy)]
pub struct Document<'d> {
    /// Its URL.
    pub url: &'d str,
    /// Its host.
    pub host: &'d str,
    /// Its bytes.
    pub bytes: u64,
    /// The hash of its text. By 32 bits, as in the paper, some ten thousand pairs among 10 million pages would be copies that are none. A
    /// document without one has no copies.
    pub text: Option<u64>,
    /// The hashes of its lines.
    pub lines: &'d [u64],
}

/// What files of fingerprints took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Space {
    /// Lines of a chunk; none for whole texts.
    pub lines: Option<u32>,
    /// Fingerprints with their documents.
    pub fingerprints: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Seconds to bring them in order, after all were there.
    pub sort_seconds: f64,
}

/// Bytes of what names documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Maps {
    /// Of the URL of each.
    pub url_bytes: u64,
    /// Of the host of each, and of the names of hosts.
    pub host_bytes: u64,
}

/// Two documents that share enough, none of them an exact copy of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The smaller number.
    pub a: u32,
    /// The greater one.
    pub b: u32,
    /// Distinct fingerprints that both have.
    pub shared: u32,
    /// Those of either.
    pub of: (u32, u32),
}

/// What pairing found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Documents by the number of replicas.
    pub replication: Replication,
    /// What it took.
    pub work: Work,
    /// A hash of all pairs in order.
    pub digest: u64,
}

/// Takes documents.
#[derive(Debug)]
pub struct Builder {
    budget: Budget,
    chunkings: Vec<Chunking>,
    documents: Documents,
    urls: Urls,
    /// (URL, document), where the last version of a page counts alone.
    versions: Option<Sorter<u128>>,
    texts: Sorter<u128>,
    chunks: Vec<Sorter<u64>>,
    fingerprints: Vec<u32>,
}

impl Builder {
    /// None yet. With `every_version` each version of a page is a document of its own.
    ///
    /// # Errors
    /// When the budget is too small for anything.
    pub fn new(budget: &Budget, chunkings: &[Chunking], every_version: bool) -> Result<Self, OverlapError> {
        // Of memory 3/8 go to fingerprints, 3/16 to the rest of sorting and to URLs, and the others to documents.
        let parts = |parts: u64| budget.free() / 16 * parts;
        let (for_chunks, for_others) = (parts(6) / chunkings.len().max(1) as u64, parts(1));
        let sorter = |_: &Chunking| Sorter::new(budget, for_chunks, false);
        Ok(Self {
            budget: budget.clone(),
            chunkings: chunkings.to_vec(),
            documents: Documents::new(budget, chunkings.len())?,
            chunks: chunkings.iter().map(sorter).collect::<Result<_, _>>()?,
            urls: Urls::new(budget, for_others)?,
            versions: (!every_version).then(|| Sorter::new(budget, for_others, false)).transpose()?,
            texts: Sorter::new(budget, for_others, false)?,
            fingerprints: Vec::new(),
        })
    }

    /// Claims memory that a caller takes for pages, until the claim is dropped.
    ///
    /// # Errors
    /// When so much is not free.
    pub fn claim(&self, bytes: u64, what: &'static str) -> Result<Claim, OverlapError> {
        self.budget.claim(bytes, what)
    }

    /// Takes a page; a later one of the same URL is its new version.
    ///
    /// # Errors
    /// When the budget does not suffice, or a temporary file fails.
    pub fn push(&mut self, page: &Document<'_>) -> Result<(), OverlapError> {
        let mut counts = Vec::with_capacity(self.chunkings.len());
        // The number that it will have.
        let number = self.documents.len() as u64;
        for (chunking, sorter) in self.chunkings.iter().zip(&mut self.chunks) {
            let most = page.lines.len().div_ceil(chunking.lines.max(1) as usize);
            let claim = self.budget.claim((most * size_of::<u32>()) as u64, "cutting a page into chunks")?;
            self.fingerprints.clear();
            self.fingerprints.reserve_exact(most);
            pairwise::chunks(page.lines, chunking.lines, |one| self.fingerprints.push(one));
            self.fingerprints.sort_unstable();
            self.fingerprints.dedup();
            counts.push(self.fingerprints.len() as u32);
            for fingerprint in &self.fingerprints {
                sorter.push(u64::from(*fingerprint) << 32 | number)?;
            }
            if most > FINGERPRINTS_KEPT {
                self.fingerprints = Vec::new();
            }
            drop(claim);
        }
        let document = self.documents.push(page.host, page.bytes, &counts)?;
        if let Some(text) = page.text {
            self.texts.push(u128::from(text) << 32 | u128::from(document))?;
        }
        self.take_url(page.url, document)
    }

    /// Takes that a page is no page any more.
    ///
    /// # Errors
    /// The same.
    pub fn gone(&mut self, url: &str) -> Result<(), OverlapError> {
        let document = self.documents.push_none()?;
        self.take_url(url, document)
    }

    fn take_url(&mut self, url: &str, document: u32) -> Result<(), OverlapError> {
        if let Some(versions) = &mut self.versions {
            // 96 bits of its hash.
            versions.push(stable_hash128(url.as_bytes()) >> 32 << 32 | u128::from(document))?;
        }
        self.urls.push(url)
    }

    /// All of them: sorts, and finds exact copies.
    ///
    /// # Errors
    /// The same.
    pub fn finish(self) -> Result<Collection, OverlapError> {
        let Self { budget, chunkings, mut documents, urls, versions, texts, chunks, .. } = self;
        let versions = versions.map(Sorter::finish).transpose()?;
        documents.settle_versions(versions.as_ref())?;
        drop(versions);
        let mut space = Vec::new();
        let begin = Instant::now();
        let texts = texts.finish()?;
        space.push(Space::new(None, texts.len(), 12, begin));
        let begin = Instant::now();
        documents.settle_copies(&texts)?;
        let copies_seconds = begin.elapsed().as_secs_f64();
        drop(texts);
        let mut sorted = Vec::new();
        for (chunking, chunks) in chunkings.iter().zip(chunks) {
            let begin = Instant::now();
            let chunks = chunks.finish()?;
            space.push(Space::new(Some(chunking.lines), chunks.len(), 8, begin));
            sorted.push(chunks);
        }
        let (mut live, mut central) = (Bits::new(documents.len()), Bits::new(documents.len()));
        for document in documents.live() {
            live.set(document as usize);
            if documents.central(document) == document {
                central.set(document as usize);
            }
        }
        let chunks = sorted;
        Ok(Collection { budget, chunkings, documents, urls, chunks, live, central, space, copies_seconds })
    }
}

impl Space {
    fn new(lines: Option<u32>, fingerprints: u64, bytes_each: u64, begin: Instant) -> Self {
        let (bytes, sort_seconds) = (fingerprints * bytes_each, begin.elapsed().as_secs_f64());
        Self { lines, fingerprints, bytes, sort_seconds }
    }
}

/// All documents.
#[derive(Debug)]
pub struct Collection {
    budget: Budget,
    chunkings: Vec<Chunking>,
    documents: Documents,
    urls: Urls,
    /// (fingerprint, document) by chunking, of all documents.
    chunks: Vec<Sorted<u64>>,
    /// The documents that count, and those of them that are no copies.
    live: Bits,
    central: Bits,
    space: Vec<Space>,
    copies_seconds: f64,
}

impl Collection {
    /// How documents were cut.
    #[must_use]
    pub fn chunkings(&self) -> &[Chunking] {
        &self.chunkings
    }

    /// What files of fingerprints took: that of whole texts, and that of each chunking.
    #[must_use]
    pub fn space(&self) -> &[Space] {
        &self.space
    }

    /// What the names of documents take.
    #[must_use]
    pub fn maps(&self) -> Maps {
        Maps { url_bytes: self.urls.bytes(), host_bytes: self.documents.host_bytes() }
    }

    /// Seconds to find exact copies in the sorted file of whole texts.
    #[must_use]
    pub fn copies_seconds(&self) -> f64 {
        self.copies_seconds
    }

    /// The URL of a document.
    ///
    /// # Errors
    /// When a temporary file fails.
    pub fn url(&self, document: u32) -> Result<String, OverlapError> {
        self.urls.get(document)
    }

    /// Documents by the number of their exact copies.
    #[must_use]
    pub fn exact(&self) -> Replication {
        Tally::new(&self.documents).finish()
    }

    /// Every document that is an exact copy, after the central one that it is a copy of.
    pub fn copies(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let both = self.documents.live().map(|document| (self.documents.central(document), document));
        both.filter(|(central, document)| central != document)
    }

    /// Pairs documents by a chunking, and hands each pair over, ascending.
    ///
    /// # Errors
    /// When the budget does not suffice, a temporary file fails, or `each` does.
    pub fn overlap(
        &self,
        chunking: usize,
        way: Way,
        mut each: impl FnMut(Found) -> io::Result<()>,
    ) -> Result<Outcome, OverlapError> {
        let source = Source { sorted: &self.chunks[chunking], counts: Some(&self.central) };
        let mut tally = Tally::new(&self.documents);
        let mut digest = 0_u64;
        let least = self.chunkings[chunking].shared;
        let work = pairing::pairs(way, source, least, &self.budget, &mut |a, b, shared| {
            tally.add(a, b);
            for number in [a, b, shared] {
                digest = (digest.rotate_left(23) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            let of = (self.documents.chunks(chunking, a), self.documents.chunks(chunking, b));
            each(Found { a, b, shared, of }).map_err(OverlapError::Output)
        })?;
        Ok(Outcome { replication: tally.finish(), work, digest })
    }

    /// Pairs hosts by a chunking: those that share at least as many chunks as two documents must, the greatest shares first. Also what
    /// it took.
    ///
    /// # Errors
    /// When the budget does not suffice, or a temporary file fails.
    pub fn mirrors(
        &self,
        chunking: usize,
        way: Way,
        most: usize,
    ) -> Result<(Vec<Mirror>, Work), OverlapError> {
        let chunks = &self.chunks[chunking];
        let (sorted, sizes) = servers::fingerprints(&self.documents, &self.live, chunks, &self.budget)?;
        let source = Source { sorted: &sorted, counts: None };
        let mut greatest = Greatest::new(most);
        let least = self.chunkings[chunking].shared;
        let work = pairing::pairs(way, source, least, &self.budget, &mut |a, b, shared| {
            greatest.add(a, b, shared, &sizes);
            Ok(())
        })?;
        Ok((greatest.finish(&self.documents, &sizes), work))
    }

    /// The documents whose exact copies are on most hosts, those first; none whose copies are all on one.
    ///
    /// # Errors
    /// The same.
    pub fn most_replicated(&self, most: usize) -> Result<Vec<Replicated>, OverlapError> {
        let found = servers::most_replicated(&self.documents, most, &self.budget)?;
        let replicated = |(hosts, pages, document)| Ok(Replicated { url: self.url(document)?, pages, hosts });
        found.into_iter().map(replicated).collect()
    }
}
