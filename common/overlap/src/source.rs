//! Sorted (fingerprint, document) as groups of documents that share a fingerprint, and these as pairs.

use crate::OverlapError;
use crate::bits::Bits;
use crate::sorted::{Scan, Sorted};

/// A pair of documents as one number: the smaller number above the greater one.
pub(crate) fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// The smaller number of a pair, and the greater one.
pub(crate) fn parted(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// What is paired.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    /// The fingerprint above the document, each once.
    pub(crate) sorted: &'s Sorted<u64>,
    /// The documents that count; all where there is none.
    pub(crate) counts: Option<&'s Bits>,
}

impl<'s> Source<'s> {
    /// Begins to read all groups.
    pub(crate) fn groups(self) -> Result<Groups<'s>, OverlapError> {
        let mut scan = self.sorted.scan()?;
        let head = scan.next()?;
        Ok(Groups { scan, head, counts: self.counts, documents: Vec::new() })
    }

    /// Calls `each` for every pair that shares a fingerprint, once for each that it shares.
    pub(crate) fn pairs(
        self,
        mut each: impl FnMut(u64) -> Result<(), OverlapError>,
    ) -> Result<(), OverlapError> {
        let mut groups = self.groups()?;
        while let Some(documents) = groups.next()? {
            for (at, a) in documents.iter().enumerate() {
                for b in &documents[at + 1..] {
                    each(pair(*a, *b))?;
                }
            }
        }
        Ok(())
    }
}

/// Reads groups.
pub(crate) struct Groups<'s> {
    scan: Scan<'s, u64>,
    head: Option<u64>,
    counts: Option<&'s Bits>,
    documents: Vec<u32>,
}

impl Groups<'_> {
    /// The documents of the next fingerprint, ascending; there may be fewer than two.
    pub(crate) fn next(&mut self) -> Result<Option<&[u32]>, OverlapError> {
        let Some(first) = self.head else { return Ok(None) };
        self.documents.clear();
        let mut head = Some(first);
        while let Some(record) = head.filter(|record| record >> 32 == first >> 32) {
            let document = record as u32;
            if self.counts.is_none_or(|counts| counts.get(document as usize)) {
                self.documents.push(document);
            }
            head = self.scan.next()?;
        }
        self.head = head;
        Ok(Some(&self.documents))
    }
}
