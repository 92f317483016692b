//! The attributes of documents that stay in memory: a few numbers for each document. Shivakumar and
//! Garcia-Molina (1998) also assume that these numbers fit into memory.

use std::collections::HashMap;

use crate::bits::Bits;
use crate::budget::MemoryClaim;
use crate::external_sort::sorted::Sorted;
use crate::{Budget, OverlapError};

/// Host number of a document that records the removal of a page.
const NO_HOST: u32 = u32::MAX;

/// Estimated bytes of memory that a host takes in the map of host numbers and in the list of host names. The
/// bytes of the name are not included.
const HOST_BYTES: u64 = 80;

/// The attributes of all documents, in columns that are indexed by document number.
#[derive(Debug)]
pub(crate) struct Documents {
    hosts: Vec<u32>,
    /// Size of each document in bytes. A size above 2^32 - 1 is stored as 2^32 - 1.
    bytes: Vec<u32>,
    /// For each chunking, the number of distinct fingerprints of each document.
    chunks: Vec<Vec<u32>>,
    /// For each document that counts, its *central document*. Among all exact copies that count, the central
    /// document has the smallest number. A document without copies is its own central document.
    central: Vec<u32>,
    /// For each central document, the number of its exact copies that count. The central document is one of
    /// the copies.
    copies: Vec<u32>,
    /// Whether a document counts: it is not a removal, and no later version or removal of its page replaces
    /// it, unless every version counts.
    live: Bits,
    host_numbers: HashMap<Box<str>, u32>,
    host_names: Vec<Box<str>>,
    capacity: usize,
    claim: MemoryClaim,
    host_claim: MemoryClaim,
}

impl Documents {
    /// Creates an empty table. For each of `chunkings` chunkings, a column stores how many fingerprints a
    /// document has.
    pub(crate) fn new(budget: &Budget, chunkings: usize) -> Result<Self, OverlapError> {
        Ok(Self {
            hosts: Vec::new(),
            bytes: Vec::new(),
            chunks: vec![Vec::new(); chunkings],
            central: Vec::new(),
            copies: Vec::new(),
            live: Bits::default(),
            host_numbers: HashMap::new(),
            host_names: Vec::new(),
            capacity: 0,
            claim: budget.claim(0, "documents")?,
            host_claim: budget.claim(0, "hosts")?,
        })
    }

    /// Estimates how many bytes of memory a document takes here and elsewhere in the crate: four columns, a
    /// column per chunking, the end offset of its URL, a place in a group of documents with a common
    /// fingerprint, and entries in the replica counts and in the bit vectors. The text of the URL and the
    /// sorted records have claims of their own.
    fn document_bytes(&self) -> u64 {
        4 * (4 + self.chunks.len() as u64) + 8 + 4 + 8
    }

    /// Adds a document of `bytes` bytes on `host`, and returns the number of the document. `chunks` lists,
    /// for each chunking, how many distinct fingerprints the document has.
    pub(crate) fn push(&mut self, host: &str, bytes: u64, chunks: &[u32]) -> Result<u32, OverlapError> {
        let number = match self.host_numbers.get(host) {
            Some(number) => *number,
            None => {
                self.host_claim.grow(2 * host.len() as u64 + HOST_BYTES, "host names")?;
                let number = self.host_names.len() as u32;
                self.host_names.push(host.into());
                self.host_numbers.insert(host.into(), number);
                number
            }
        };
        self.push_row(number, bytes, chunks)
    }

    /// Adds a document that records the removal of a page, and returns the number of the document.
    pub(crate) fn push_removal(&mut self) -> Result<u32, OverlapError> {
        self.push_row(NO_HOST, 0, &[])
    }

    fn push_row(&mut self, host: u32, bytes: u64, chunks: &[u32]) -> Result<u32, OverlapError> {
        let number = u32::try_from(self.hosts.len()).ok().filter(|number| *number < NO_HOST);
        let number = number.ok_or(OverlapError::TooMany)?;
        if self.hosts.len() == self.capacity {
            // Columns grow by a quarter here and nowhere else, so the claim covers their capacity.
            let more = (self.capacity / 4).max(64);
            self.claim.grow(more as u64 * self.document_bytes(), "documents")?;
            self.capacity += more;
            let columns = [&mut self.hosts, &mut self.bytes, &mut self.central, &mut self.copies];
            for column in columns.into_iter().chain(&mut self.chunks) {
                column.reserve_exact(more);
            }
        }
        self.hosts.push(host);
        self.bytes.push(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.central.push(number);
        self.copies.push(1);
        for (at, column) in self.chunks.iter_mut().enumerate() {
            column.push(chunks.get(at).copied().unwrap_or(0));
        }
        Ok(number)
    }

    /// Selects the documents that count. Without `versions`, all documents except removals count. With
    /// `versions`, the sorted records of (URL hash, document), only the last document of each URL counts. If
    /// the last document is a removal, no document of the URL counts.
    pub(crate) fn select_live(&mut self, versions: Option<&Sorted<u128>>) -> Result<(), OverlapError> {
        self.live = Bits::new(self.len());
        let pages = self.hosts.iter().enumerate().filter(|(_, host)| **host != NO_HOST);
        pages.for_each(|(at, _)| self.live.set(at));
        let Some(versions) = versions else { return Ok(()) };
        let mut scan = versions.scan()?;
        let mut last: Option<u128> = None;
        while let Some(version) = scan.next()? {
            if let Some(older) = last.replace(version).filter(|older| older >> 32 == version >> 32) {
                self.live.unset(older as u32 as usize);
            }
        }
        Ok(())
    }

    /// Finds the central documents, and counts their copies, from the sorted records of (hash of the text,
    /// document). Among documents that count and have equal hashes, the document with the smallest number is
    /// the central document.
    pub(crate) fn find_copies(&mut self, texts: &Sorted<u128>) -> Result<(), OverlapError> {
        let mut scan = texts.scan()?;
        let mut central: Option<u128> = None;
        while let Some(text) = scan.next()? {
            let document = text as u32 as usize;
            if !self.live.get(document) {
                continue;
            }
            match central.filter(|central| central >> 32 == text >> 32) {
                Some(central) => {
                    self.central[document] = central as u32;
                    self.copies[central as u32 as usize] += 1;
                }
                None => central = Some(text),
            }
        }
        Ok(())
    }

    /// Number of all documents, including removals and versions of pages that a later version or removal
    /// replaced.
    pub(crate) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// The documents that count, by number, in ascending order. Removals do not count, nor do replaced
    /// versions, unless every version counts.
    pub(crate) fn live(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len() as u32).filter(|document| self.is_live(*document))
    }

    pub(crate) fn is_live(&self, document: u32) -> bool {
        self.live.get(document as usize)
    }

    pub(crate) fn central(&self, document: u32) -> u32 {
        self.central[document as usize]
    }

    /// Number of exact copies of a central document that count. The central document is one of the copies.
    pub(crate) fn copies(&self, central: u32) -> u32 {
        self.copies[central as usize]
    }

    pub(crate) fn bytes(&self, document: u32) -> u64 {
        self.bytes[document as usize].into()
    }

    pub(crate) fn host(&self, document: u32) -> u32 {
        self.hosts[document as usize]
    }

    /// Number of distinct hosts of all documents.
    pub(crate) fn hosts(&self) -> usize {
        self.host_names.len()
    }

    /// Bytes of the names of all hosts, and of the host numbers of all documents.
    pub(crate) fn host_bytes(&self) -> u64 {
        let names: usize = self.host_names.iter().map(|name| name.len()).sum();
        names as u64 + 4 * self.hosts.len() as u64
    }

    pub(crate) fn host_name(&self, host: u32) -> &str {
        &self.host_names[host as usize]
    }

    /// Number of distinct fingerprints that a document has under a chunking.
    pub(crate) fn chunks(&self, chunking: usize, document: u32) -> u32 {
        self.chunks[chunking][document as usize]
    }
}
