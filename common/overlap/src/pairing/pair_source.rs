//! Reads sorted records of (fingerprint, document) or (fingerprint, host). Passes the records as groups of
//! documents or hosts that share a fingerprint, and as pairs from such groups.

use crate::bits::Bits;
use crate::error::OverlapError;
use crate::external_sort::sorted::{RecordScan, Sorted};

/// Packs two numbers into one, with `a` in the upper 32 bits. For a pair of documents or hosts, the caller
/// passes the smaller number as `a`, so that a pair has only one form.
pub(crate) fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Returns the two numbers that [`pair`] packed, the upper 32 bits first.
pub(crate) fn unpack_pair(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// The records to pair, and the documents or hosts that take part.
#[derive(Clone, Copy)]
pub(crate) struct PairSource<'s> {
    /// Distinct records, with a fingerprint in the upper 32 bits, and the number of a document or host in the
    /// lower 32 bits.
    pub(crate) sorted: &'s Sorted<u64>,
    /// The documents or hosts that take part. `None` if all take part.
    pub(crate) included: Option<&'s Bits>,
}

impl<'s> PairSource<'s> {
    /// Starts a scan over all groups. A group consists of the documents or hosts that take part and contain a
    /// particular fingerprint.
    pub(crate) fn groups(self) -> Result<Groups<'s>, OverlapError> {
        let mut scan = self.sorted.scan()?;
        let head = scan.next()?;
        Ok(Groups { scan, head, included: self.included, documents: Vec::new() })
    }

    /// Passes every pair of documents or hosts that take part and have a common fingerprint to `each`, once
    /// for each fingerprint that the pair shares.
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

/// Reads groups one by one. A group consists of the documents or hosts that take part and contain a
/// particular fingerprint.
pub(crate) struct Groups<'s> {
    scan: RecordScan<'s, u64>,
    head: Option<u64>,
    included: Option<&'s Bits>,
    documents: Vec<u32>,
}

impl Groups<'_> {
    /// Reads the group of the next fingerprint. Fingerprints ascend, and so do the members of a group. A group
    /// has only the documents or hosts that take part, so it can have fewer than two members. `None` after the
    /// last fingerprint.
    pub(crate) fn next(&mut self) -> Result<Option<&[u32]>, OverlapError> {
        let Some(first) = self.head else { return Ok(None) };
        self.documents.clear();
        let mut head = Some(first);
        while let Some(record) = head.filter(|record| record >> 32 == first >> 32) {
            let document = record as u32;
            if self.included.is_none_or(|included| included.get(document as usize)) {
                self.documents.push(document);
            }
            head = self.scan.next()?;
        }
        self.head = head;
        Ok(Some(&self.documents))
    }
}
