//! How many replicas documents have, and what would be saved without them.
//!
//! A replica of a document is itself, its exact copies, and each document that shares enough with one of these. What is saved is all that a
//! crawler would leave out that visits documents in order and leaves out those that are replicas of one that it has visited: so
//! each that is left out has a replica that is kept.

use serde::Serialize;

use crate::bits::Bits;
use crate::documents::Documents;

/// Where the bands of numbers of replicas begin.
const BANDS: [u64; 6] = [1, 2, 3, 10, 100, 1_000];

/// Documents by how many replicas they have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replication {
    /// Documents, and bytes of them.
    pub pages: u64,
    /// See `pages`.
    pub bytes: u64,
    /// Documents that have a replica beside themselves.
    pub replicated: u64,
    /// The histogram.
    pub replicas: Vec<Band>,
    /// What need not be visited.
    pub saved_pages: u64,
    /// Bytes of that.
    pub saved_bytes: u64,
}

/// A band of the histogram.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Band {
    /// The fewest replicas, the document itself included.
    pub from: u64,
    /// The most; none in the last band.
    pub to: Option<u64>,
    /// Documents.
    pub pages: u64,
}

/// Takes pairs of central documents in order.
pub(crate) struct Tally<'d> {
    documents: &'d Documents,
    /// Of a central document, those that share enough with it, their copies included.
    near: Vec<u32>,
    left_out: Bits,
}

impl<'d> Tally<'d> {
    pub(crate) fn new(documents: &'d Documents) -> Self {
        let (near, left_out) = (vec![0; documents.len()], Bits::new(documents.len()));
        Self { documents, near, left_out }
    }

    /// Takes a pair. Its smaller number is no less than that of the pair before, so whether that document is visited is known.
    pub(crate) fn add(&mut self, a: u32, b: u32) {
        for (one, other) in [(a, b), (b, a)] {
            let near = &mut self.near[one as usize];
            *near = near.saturating_add(self.documents.copies(other));
        }
        if !self.left_out.get(a as usize) {
            self.left_out.set(b as usize);
        }
    }

    pub(crate) fn finish(self) -> Replication {
        let mut bands: Vec<Band> = BANDS.map(|from| Band { from, to: None, pages: 0 }).into();
        for at in 1..bands.len() {
            bands[at - 1].to = Some(BANDS[at] - 1);
        }
        let (pages, bytes) = (0, 0);
        let mut all =
            Replication { pages, bytes, replicated: 0, replicas: Vec::new(), saved_pages: 0, saved_bytes: 0 };
        for document in self.documents.live() {
            let central = self.documents.central(document);
            let replicas = u64::from(self.documents.copies(central)) + u64::from(self.near[central as usize]);
            let bytes = self.documents.bytes(document);
            let is_saved = central != document || self.left_out.get(document as usize);
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
