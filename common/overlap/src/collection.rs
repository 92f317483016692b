//! The public interface: [`CollectionBuilder`] collects documents, and [`DocumentCollection`] compares them.

use std::io;
use std::time::Instant;

use doppel_model::{pairwise, stable_hash128};
use serde::Serialize;

use crate::bits::Bits;
use crate::documents::Documents;
use crate::external_sort::sorted::Sorted;
use crate::external_sort::sorter::Sorter;
use crate::hosts::{self, HostFingerprints, MirrorPair, ReplicatedCentral, ReplicatedPage, TopMirrors};
use crate::pairing;
use crate::pairing::method::{PairingMethod, PairingStatistics};
use crate::pairing::pair_source::PairSource;
use crate::replication::{ReplicaStatistics, ReplicationCounter};
use crate::urls::Urls;
use crate::{Budget, Chunking, MemoryClaim, OverlapError};

/// Maximum capacity, in fingerprints, of the buffer that [`CollectionBuilder::push`] reuses. A larger buffer
/// is freed after each use.
const FINGERPRINTS_REUSED_MAX: usize = 1 << 16;

/// A version of a page, to add to a [`CollectionBuilder`].
#[derive(Debug, Clone, Copy)]
pub struct Document<'d> {
    /// URL of the page.
    pub url: &'d str,
    /// Host of the page.
    pub host: &'d str,
    /// Size of the page in bytes. Statistics count at most 2^32 - 1 bytes for each page.
    pub bytes: u64,
    /// Hash of the text. Documents with equal hashes are exact copies. `None` if the document must not count
    /// as a copy of another. Shivakumar and Garcia-Molina (1998) use hashes of 32 bits. Among 10 million
    /// pages, hashes of 32 bits would declare about ten thousand pairs exact copies by collision.
    pub text: Option<u64>,
    /// Hashes of the lines, in order.
    pub lines: &'d [u64],
}

/// The size of one list of fingerprint records, and the time to end its sort. A list that does not fit into
/// memory is a temporary file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FingerprintFile {
    /// Number of lines per chunk. `None` for the list of the hashes of whole texts.
    pub lines: Option<u32>,
    /// Number of (fingerprint, document) records in the list, including records of documents that do not
    /// count.
    pub fingerprints: u64,
    /// Bytes of the fingerprints and document numbers in all records: 8 bytes per record. The list of whole
    /// texts counts 12 bytes per record, although such a record takes 16 bytes in memory or on disk.
    pub bytes: u64,
    /// How many seconds the sort took after the last document was added. If the records did not fit into
    /// memory, the sort leaves sorted runs, and each later scan merges them. These merges are not included.
    pub sort_seconds: f64,
}

/// The sizes, in bytes, of the tables that map document numbers to URLs and to hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TableSizes {
    /// Bytes of all URLs, including those in the temporary file, and of an 8-byte offset for each URL.
    pub url_bytes: u64,
    /// Bytes of the host numbers of all documents, and of the names of all hosts.
    pub host_bytes: u64,
}

/// Two central documents that share at least [`Chunking::shared`] fingerprints. A central document counts,
/// and is not an exact copy of an earlier document that counts. Removals do not count. Versions that a later
/// version or removal replaced count only if every version counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverlappingPair {
    /// Document number of the first document. This number is smaller than `b`.
    pub a: u32,
    /// Document number of the second document.
    pub b: u32,
    /// How many distinct fingerprints the two documents have in common.
    pub shared: u32,
    /// How many distinct fingerprints document `a` contains.
    pub of_a: u32,
    /// How many distinct fingerprints document `b` contains.
    pub of_b: u32,
}

/// A document that is an exact copy of an earlier document. Both documents count: neither is a removal, and
/// no later version or removal replaces either, unless every version counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactCopy {
    /// Document number of the central document, the first document with this text among the documents that
    /// count.
    pub central: u32,
    /// Document number of the copy.
    pub copy: u32,
}

/// Statistics and a digest of the pairs that [`DocumentCollection::overlap`] found. The pairs themselves are
/// not included: `overlap` passes them to a function of the caller.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairingResult {
    /// How many replicas documents have, and what a crawler saves if it skips replicas.
    pub replication: ReplicaStatistics,
    /// Statistics of the pairing: numbers of pairs and scans, time, memory, and disk space.
    pub work: PairingStatistics,
    /// Hash of all pairs in order, with the numbers of their shared fingerprints. If the digests of two
    /// pairings are equal, both pairings almost certainly found the same pairs.
    pub digest: u64,
}

/// Collects documents for a [`DocumentCollection`]. Each call of [`push`](Self::push) or
/// [`push_removal`](Self::push_removal) takes the next document number, from 0.
#[derive(Debug)]
pub struct CollectionBuilder {
    budget: Budget,
    chunkings: Vec<Chunking>,
    documents: Documents,
    urls: Urls,
    /// Records of (URL hash, document). `None` if every version of a page counts.
    versions: Option<Sorter<u128>>,
    /// Records of (hash of the text, document), without documents that must not count as copies.
    texts: Sorter<u128>,
    /// Records of (fingerprint, document) for each chunking.
    chunks: Vec<Sorter<u64>>,
    fingerprints: Vec<u32>,
}

impl CollectionBuilder {
    /// Creates a builder without documents. If `every_version` is true, each version of a page counts, even
    /// after a removal of the page. Otherwise only the last version of each URL counts, and none if the page
    /// was removed last.
    ///
    /// # Errors
    /// If the budget is too small for the buffers, or a temporary file cannot be created.
    pub fn new(budget: &Budget, chunkings: &[Chunking], every_version: bool) -> Result<Self, OverlapError> {
        // Sorting fingerprints gets 3/8 of the memory. URLs, versions, and texts get 1/16 each. The rest is
        // for documents.
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

    /// Claims `bytes` bytes of memory, which the caller uses to prepare pages. Dropping the claim returns the
    /// memory. `what` names the purpose in the error.
    ///
    /// # Errors
    /// If fewer than `bytes` bytes are free.
    pub fn claim(&self, bytes: u64, what: &'static str) -> Result<MemoryClaim, OverlapError> {
        self.budget.claim(bytes, what)
    }

    /// Adds a page to the collection. A later page with an equal URL is a new version of the page.
    ///
    /// # Errors
    /// If the budget is too small, there are too many documents, or a temporary file fails.
    pub fn push(&mut self, page: &Document<'_>) -> Result<(), OverlapError> {
        let mut counts = Vec::with_capacity(self.chunkings.len());
        // The number that `documents` will give to this page below.
        let number = self.documents.len() as u64;
        for (chunking, sorter) in self.chunkings.iter().zip(&mut self.chunks) {
            let count_max = page.lines.len().div_ceil(chunking.lines.max(1) as usize);
            let claim = self.budget.claim((count_max * size_of::<u32>()) as u64, "the chunks of a page")?;
            self.fingerprints.clear();
            self.fingerprints.reserve_exact(count_max);
            pairwise::chunks(page.lines, chunking.lines, |one| self.fingerprints.push(one));
            self.fingerprints.sort_unstable();
            self.fingerprints.dedup();
            counts.push(self.fingerprints.len() as u32);
            for fingerprint in &self.fingerprints {
                sorter.push(u64::from(*fingerprint) << 32 | number)?;
            }
            if count_max > FINGERPRINTS_REUSED_MAX {
                self.fingerprints = Vec::new();
            }
            drop(claim);
        }
        let document = self.documents.push(page.host, page.bytes, &counts)?;
        if let Some(text) = page.text {
            self.texts.push(u128::from(text) << 32 | u128::from(document))?;
        }
        self.push_url(page.url, document)
    }

    /// Records that `url` no longer is a page. The earlier versions of the page then do not count, unless the
    /// builder treats every version as a document of its own.
    ///
    /// # Errors
    /// If the budget is too small, there are too many documents, or a temporary file fails.
    pub fn push_removal(&mut self, url: &str) -> Result<(), OverlapError> {
        let document = self.documents.push_removal()?;
        self.push_url(url, document)
    }

    fn push_url(&mut self, url: &str, document: u32) -> Result<(), OverlapError> {
        if let Some(versions) = &mut self.versions {
            // The record keeps 96 bits of the hash of the URL.
            versions.push(stable_hash128(url.as_bytes()) >> 32 << 32 | u128::from(document))?;
        }
        self.urls.push(url)
    }

    /// Sorts the fingerprints, selects the documents that count, and finds exact copies. Removals do not
    /// count. Unless every version is a document of its own, a version that a later version or removal of its
    /// page replaced does not count either.
    ///
    /// # Errors
    /// If the budget is too small, or a temporary file fails.
    pub fn finish(self) -> Result<DocumentCollection, OverlapError> {
        let Self { budget, chunkings, mut documents, urls, versions, texts, chunks, .. } = self;
        let versions = versions.map(Sorter::finish).transpose()?;
        documents.select_live(versions.as_ref())?;
        drop(versions);
        let mut fingerprint_files = Vec::new();
        let begin = Instant::now();
        let texts = texts.finish()?;
        fingerprint_files.push(FingerprintFile::new(None, texts.len(), 12, begin));
        let begin = Instant::now();
        documents.find_copies(&texts)?;
        let copies_seconds = begin.elapsed().as_secs_f64();
        drop(texts);
        let mut sorted = Vec::new();
        for (chunking, chunks) in chunkings.iter().zip(chunks) {
            let begin = Instant::now();
            let chunks = chunks.finish()?;
            fingerprint_files.push(FingerprintFile::new(Some(chunking.lines), chunks.len(), 8, begin));
            sorted.push(chunks);
        }
        let (mut live, mut central) = (Bits::new(documents.len()), Bits::new(documents.len()));
        for document in documents.live() {
            live.set(document as usize);
            if documents.central(document) == document {
                central.set(document as usize);
            }
        }
        Ok(DocumentCollection {
            budget,
            chunkings,
            documents,
            urls,
            chunks: sorted,
            live,
            central,
            fingerprint_files,
            copies_seconds,
        })
    }
}

impl FingerprintFile {
    fn new(lines: Option<u32>, fingerprints: u64, bytes_each: u64, begin: Instant) -> Self {
        let (bytes, sort_seconds) = (fingerprints * bytes_each, begin.elapsed().as_secs_f64());
        Self { lines, fingerprints, bytes, sort_seconds }
    }
}

/// A set of documents whose fingerprints are sorted, ready to be compared.
#[derive(Debug)]
pub struct DocumentCollection {
    budget: Budget,
    chunkings: Vec<Chunking>,
    documents: Documents,
    urls: Urls,
    /// Sorted records of (fingerprint, document) for each chunking, including documents that do not count.
    chunks: Vec<Sorted<u64>>,
    /// `live` marks the documents that count: no removals, and no replaced versions unless every version
    /// counts. `central` marks the documents that count and are not an exact copy of an earlier document
    /// that counts.
    live: Bits,
    central: Bits,
    fingerprint_files: Vec<FingerprintFile>,
    copies_seconds: f64,
}

impl DocumentCollection {
    /// The ways in which documents were cut into chunks.
    #[must_use]
    pub fn chunkings(&self) -> &[Chunking] {
        &self.chunkings
    }

    /// Statistics of each list of fingerprint records: first that of whole texts, then that of each chunking.
    #[must_use]
    pub fn fingerprint_files(&self) -> &[FingerprintFile] {
        &self.fingerprint_files
    }

    /// Returns the sizes, in bytes, of the tables that map document numbers to URLs and to hosts. The size of
    /// the URL table includes the URLs in the temporary file.
    #[must_use]
    pub fn table_sizes(&self) -> TableSizes {
        TableSizes { url_bytes: self.urls.bytes(), host_bytes: self.documents.host_bytes() }
    }

    /// Returns how many seconds the search for exact copies took. The search scans the sorted hashes of whole
    /// texts. If the hashes did not fit into memory, the scan also merges sorted runs. The rest of the sort
    /// is not included.
    #[must_use]
    pub fn copies_seconds(&self) -> f64 {
        self.copies_seconds
    }

    /// Reads the URL of the document with number `document`.
    ///
    /// # Errors
    /// If the temporary file of URLs cannot be read.
    pub fn url(&self, document: u32) -> Result<String, OverlapError> {
        self.urls.get(document)
    }

    /// How many exact copies documents have, and what a crawler saves if it skips exact copies.
    #[must_use]
    pub fn exact_replication(&self) -> ReplicaStatistics {
        ReplicationCounter::new(&self.documents).finish()
    }

    /// All exact copies in ascending order of their document numbers, each with its central document. The
    /// central document itself is not listed as a copy.
    pub fn copies(&self) -> impl Iterator<Item = ExactCopy> + '_ {
        let documents = self.documents.live();
        let copies = documents.map(|copy| ExactCopy { central: self.documents.central(copy), copy });
        copies.filter(|ExactCopy { central, copy }| central != copy)
    }

    /// Finds all pairs of central documents that share at least [`Chunking::shared`] chunks. A central
    /// document counts, and is not an exact copy of an earlier document that counts. Removals do not count,
    /// nor do replaced versions, unless every version counts. `chunking` is an index into
    /// [`chunkings`](Self::chunkings). Passes each pair to `each`, in ascending order of the first document,
    /// then of the second.
    ///
    /// # Errors
    /// If the budget is too small, a temporary file fails, or `each` returns an error.
    pub fn overlap(
        &self,
        chunking: usize,
        method: PairingMethod,
        mut each: impl FnMut(OverlappingPair) -> io::Result<()>,
    ) -> Result<PairingResult, OverlapError> {
        let source = PairSource { sorted: &self.chunks[chunking], included: Some(&self.central) };
        let mut counter = ReplicationCounter::new(&self.documents);
        let mut digest = 0_u64;
        let min_shared = self.chunkings[chunking].shared;
        let work = pairing::pairs(method, source, min_shared, &self.budget, &mut |a, b, shared| {
            counter.add(a, b);
            for number in [a, b, shared] {
                digest = (digest.rotate_left(23) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            let of_a = self.documents.chunks(chunking, a);
            let of_b = self.documents.chunks(chunking, b);
            each(OverlappingPair { a, b, shared, of_a, of_b }).map_err(OverlapError::Output)
        })?;
        Ok(PairingResult { replication: counter.finish(), work, digest })
    }

    /// Finds pairs of hosts that share at least [`Chunking::shared`] chunks. The chunks of a host are the
    /// chunks of all its documents that count, exact copies included. `chunking` is an index into
    /// [`chunkings`](Self::chunkings). Returns at most `max` pairs: the pairs with the greatest shares
    /// ([`MirrorPair::share`]), the greatest first. Also returns statistics of the pairing.
    ///
    /// # Errors
    /// If the budget is too small, or a temporary file fails.
    pub fn mirrors(
        &self,
        chunking: usize,
        method: PairingMethod,
        max: usize,
    ) -> Result<(Vec<MirrorPair>, PairingStatistics), OverlapError> {
        let chunks = &self.chunks[chunking];
        let HostFingerprints { sorted, sizes } =
            hosts::fingerprints(&self.documents, &self.live, chunks, &self.budget)?;
        let source = PairSource { sorted: &sorted, included: None };
        let mut top = TopMirrors::new(max);
        let min_shared = self.chunkings[chunking].shared;
        let work = pairing::pairs(method, source, min_shared, &self.budget, &mut |a, b, shared| {
            top.add(a, b, shared, &sizes);
            Ok(())
        })?;
        Ok((top.finish(&self.documents, &sizes), work))
    }

    /// At most `max` documents: the documents whose exact copies are on the most hosts, in descending order
    /// of the number of hosts. Leaves out documents whose copies are all on one host.
    ///
    /// # Errors
    /// If the budget is too small, or a temporary file fails.
    pub fn most_replicated(&self, max: usize) -> Result<Vec<ReplicatedPage>, OverlapError> {
        let found = hosts::most_replicated(&self.documents, max, &self.budget)?;
        let replicated = |ReplicatedCentral { hosts, copies, document }| {
            Ok(ReplicatedPage { url: self.url(document)?, pages: copies, hosts })
        };
        found.into_iter().map(replicated).collect()
    }
}
