//! What is kept of every document in memory: some numbers each, as the paper assumes.

use std::collections::HashMap;

use crate::bits::Bits;
use crate::budget::Claim;
use crate::sorted::Sorted;
use crate::{Budget, OverlapError};

/// The host of what is no page.
const NONE: u32 = u32::MAX;

/// Bytes of a host beside its name, in a map and a list.
const HOST_BYTES: u64 = 80;

/// Documents by number.
#[derive(Debug)]
pub(crate) struct Documents {
    hosts: Vec<u32>,
    bytes: Vec<u32>,
    /// How many distinct fingerprints there are, by chunking.
    chunks: Vec<Vec<u32>>,
    /// The document with the smallest number that is an exact copy, or itself.
    central: Vec<u32>,
    /// Of a central one, the documents that are exact copies, itself included.
    copies: Vec<u32>,
    /// Whether it is the version of its page that counts.
    live: Bits,
    host_numbers: HashMap<Box<str>, u32>,
    host_names: Vec<Box<str>>,
    capacity: usize,
    claim: Claim,
    host_claim: Claim,
}

impl Documents {
    /// None yet.
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

    /// Bytes of a document: four columns and one for each chunking, the end of its URL, its place in a group of documents that share a
    /// fingerprint, and what is counted of it.
    fn document_bytes(&self) -> u64 {
        4 * (4 + self.chunks.len() as u64) + 8 + 4 + 8
    }

    /// Takes the next one: its host, its bytes, and its fingerprints by chunking.
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
        self.push_column(number, bytes, chunks)
    }

    /// Takes what is no page.
    pub(crate) fn push_none(&mut self) -> Result<u32, OverlapError> {
        self.push_column(NONE, 0, &[])
    }

    fn push_column(&mut self, host: u32, bytes: u64, chunks: &[u32]) -> Result<u32, OverlapError> {
        let number = u32::try_from(self.hosts.len()).ok().filter(|number| *number < NONE);
        let number = number.ok_or(OverlapError::TooMany)?;
        if self.hosts.len() == self.capacity {
            // By a quarter, and no column grows otherwise.
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

    /// Finds the versions that count: of each URL, if `versions` has (URL, document), the last one.
    pub(crate) fn settle_versions(&mut self, versions: Option<&Sorted<u128>>) -> Result<(), OverlapError> {
        self.live = Bits::new(self.len());
        let pages = self.hosts.iter().enumerate().filter(|(_, host)| **host != NONE);
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

    /// Finds the central documents: of all that have an equal text, by (text, document), the one with the smallest number.
    pub(crate) fn settle_copies(&mut self, texts: &Sorted<u128>) -> Result<(), OverlapError> {
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

    /// Documents, whether they count or not.
    pub(crate) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Those that count.
    pub(crate) fn live(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len() as u32).filter(|document| self.is_live(*document))
    }

    pub(crate) fn is_live(&self, document: u32) -> bool {
        self.live.get(document as usize)
    }

    pub(crate) fn central(&self, document: u32) -> u32 {
        self.central[document as usize]
    }

    /// How many copies a central document has, itself included.
    pub(crate) fn copies(&self, central: u32) -> u32 {
        self.copies[central as usize]
    }

    pub(crate) fn bytes(&self, document: u32) -> u64 {
        self.bytes[document as usize].into()
    }

    pub(crate) fn host(&self, document: u32) -> u32 {
        self.hosts[document as usize]
    }

    /// How many hosts there are.
    pub(crate) fn hosts(&self) -> usize {
        self.host_names.len()
    }

    /// Bytes of the names of hosts, and of the number that each document has of its host.
    pub(crate) fn host_bytes(&self) -> u64 {
        let names: usize = self.host_names.iter().map(|name| name.len()).sum();
        names as u64 + 4 * self.hosts.len() as u64
    }

    pub(crate) fn host_name(&self, host: u32) -> &str {
        &self.host_names[host as usize]
    }

    /// How many distinct fingerprints a document has.
    pub(crate) fn chunks(&self, chunking: usize, document: u32) -> u32 {
        self.chunks[chunking][document as usize]
    }
}
