//! Counts the replicas of each document, and what a crawler saves if it skips replicas.
//!
//! The replicas of a document are the document itself, its exact copies, and its *near* documents. Two
//! documents are near if their central documents share enough fingerprints. The savings assume a crawler that
//! visits documents in order of their numbers. The crawler skips a document if it has visited a replica of
//! that document before. So the crawler has visited a replica of every document that it skips.

use serde::Serialize;

use crate::bits::Bits;
use crate::documents::Documents;

/// Minimum number of replicas in each band of the histogram, the document itself included.
const BANDS: [u64; 6] = [1, 2, 3, 10, 100, 1_000];

/// How many documents have how many replicas, and how many documents and bytes a crawler saves if it skips
/// replicas. Only documents that count are included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplicaStatistics {
    /// Number of documents that count. Removals do not count. Versions that a later version or removal
    /// replaced count only if every version counts.
    pub pages: u64,
    /// Total size, in bytes, of the documents that count.
    pub bytes: u64,
    /// Number of documents that have a replica other than themselves.
    pub replicated: u64,
    /// Histogram of documents by their number of replicas, in ascending bands.
    pub replicas: Vec<Band>,
    /// Number of documents that a crawler can skip, because it has visited a replica of each skipped document
    /// before.
    pub saved_pages: u64,
    /// Total size of the documents that a crawler can skip, in bytes.
    pub saved_bytes: u64,
}

/// One band of the histogram of replicas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Band {
    /// Minimum number of replicas in this band, the document itself included.
    pub from: u64,
    /// Maximum number of replicas in this band, included in the band. `None` for the last band, which has no
    /// maximum.
    pub to: Option<u64>,
    /// Number of documents in this band.
    pub pages: u64,
}

/// Computes [`ReplicaStatistics`] from the pairs of central documents. The pairs must be added in ascending
/// order.
pub(crate) struct ReplicationCounter<'d> {
    documents: &'d Documents,
    /// For each central document, the number of other documents that share enough fingerprints with it. Exact
    /// copies of the other documents are included. Exact copies of the central document itself are not.
    near: Vec<u32>,
    /// The central documents that the crawler skips, because it has visited a near document.
    skipped: Bits,
}

impl<'d> ReplicationCounter<'d> {
    pub(crate) fn new(documents: &'d Documents) -> Self {
        let (near, skipped) = (vec![0; documents.len()], Bits::new(documents.len()));
        Self { documents, near, skipped }
    }

    /// Adds a pair of central documents that share enough fingerprints. Each pair must be added once. `a` must
    /// be smaller than `b`, and must not be smaller than in the previous call. Then all pairs that could make
    /// a crawler skip `a` have been added before.
    pub(crate) fn add(&mut self, a: u32, b: u32) {
        for (one, other) in [(a, b), (b, a)] {
            let near = &mut self.near[one as usize];
            *near = near.saturating_add(self.documents.copies(other));
        }
        if !self.skipped.get(a as usize) {
            self.skipped.set(b as usize);
        }
    }

    pub(crate) fn finish(self) -> ReplicaStatistics {
        let mut bands: Vec<Band> = BANDS.map(|from| Band { from, to: None, pages: 0 }).into();
        for at in 1..bands.len() {
            bands[at - 1].to = Some(BANDS[at] - 1);
        }
        let (pages, bytes) = (0, 0);
        let mut all = ReplicaStatistics {
            pages,
            bytes,
            replicated: 0,
            replicas: Vec::new(),
            saved_pages: 0,
            saved_bytes: 0,
        };
        for document in self.documents.live() {
            let central = self.documents.central(document);
            let replicas = u64::from(self.documents.copies(central)) + u64::from(self.near[central as usize]);
            let bytes = self.documents.bytes(document);
            let is_saved = central != document || self.skipped.get(document as usize);
            all.pages += 1;
            all.bytes += bytes;
            all.replicated += u64::from(replicas > 1);
            all.saved_pages += u64::from(is_saved);
            all.saved_bytes += if is_saved { bytes } else { 0 };
            if let Some(band) = bands.iter_mut().rev().find(|band| band.from <= replicas) {
                band.pages += 1;
            }
        }
        all.replicas = bands;
        all
    }
}
