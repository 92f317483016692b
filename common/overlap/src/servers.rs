//! Hosts: which share their documents, and which documents are on many of them.
//!
//! A host is the union of its documents, exact copies of others included, so its fingerprints are theirs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;

use crate::bits::Bits;
use crate::documents::Documents;
use crate::sorted::Sorted;
use crate::sorter::Sorter;
use crate::source::{Source, pair, parted};
use crate::{Budget, OverlapError};

/// Two hosts that share chunks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mirror {
    /// One host.
    pub a: String,
    /// The other.
    pub b: String,
    /// Distinct chunks that both have.
    pub shared: u64,
    /// Distinct chunks of one.
    pub of_a: u64,
    /// Those of the other.
    pub of_b: u64,
    /// What is shared of the host that has fewer, from 0 to 1.
    pub share: f64,
}

/// A document with exact copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replicated {
    /// The URL of the central document.
    pub url: String,
    /// Documents, the central one included.
    pub pages: u64,
    /// Hosts that have one of them.
    pub hosts: u64,
}

/// The fingerprints of hosts, each once: (fingerprint, host).
pub(crate) fn fingerprints(
    documents: &Documents,
    live: &Bits,
    chunks: &Sorted<u64>,
    budget: &Budget,
) -> Result<(Sorted<u64>, Vec<u64>), OverlapError> {
    let room = budget.free().saturating_sub(chunks.scan_bytes()) / 3;
    let mut sorter = Sorter::new(budget, room, false)?;
    let mut groups = Source { sorted: chunks, counts: Some(live) }.groups()?;
    let mut fingerprint = 0_u32;
    let (mut hosts, mut sizes) = (Vec::new(), vec![0; documents.hosts()]);
    while let Some(group) = groups.next()? {
        hosts.clear();
        hosts.extend(group.iter().map(|document| documents.host(*document)));
        hosts.sort_unstable();
        hosts.dedup();
        // Groups are numbered: which fingerprint it is makes no difference.
        for host in &hosts {
            sizes[*host as usize] += 1;
            sorter.push(pair(fingerprint, *host))?;
        }
        fingerprint = fingerprint.wrapping_add(1);
    }
    Ok((sorter.finish()?, sizes))
}

/// The mirrors with the greatest shares, of all that are taken.
#[derive(Debug)]
pub(crate) struct Greatest {
    most: usize,
    /// The least share first: shared and of how much, and the pair.
    kept: BinaryHeap<Reverse<(Share, Reverse<u64>)>>,
}

/// A share with what it is of, compared exactly; of equal ones the one of more is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    shared: u64,
    of: u64,
}

impl Ord for Share {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let shares = product(self.shared, other.of).cmp(&product(other.shared, self.of));
        shares.then(self.shared.cmp(&other.shared)).then(self.of.cmp(&other.of))
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Greatest {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: BinaryHeap::new() }
    }

    pub(crate) fn add(&mut self, a: u32, b: u32, shared: u32, sizes: &[u64]) {
        let of = sizes[a as usize].min(sizes[b as usize]);
        self.kept.push(Reverse((Share { shared: shared.into(), of }, Reverse(pair(a, b)))));
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

    /// The greatest first.
    pub(crate) fn finish(self, documents: &Documents, sizes: &[u64]) -> Vec<Mirror> {
        let sorted = self.kept.into_sorted_vec();
        let mirror = |(share, pair): (Share, Reverse<u64>)| {
            let (a, b) = parted(pair.0);
            Mirror {
                a: documents.host_name(a).to_owned(),
                b: documents.host_name(b).to_owned(),
                shared: share.shared,
                of_a: sizes[a as usize],
                of_b: sizes[b as usize],
                share: share.shared as f64 / share.of.max(1) as f64,
            }
        };
        sorted.into_iter().map(|Reverse(one)| mirror(one)).collect()
    }
}

/// The central documents that are on most hosts, of those on several: (hosts, copies, document), the greatest first.
pub(crate) fn most_replicated(
    documents: &Documents,
    most: usize,
    budget: &Budget,
) -> Result<Vec<(u64, u64, u32)>, OverlapError> {
    let mut sorter = Sorter::new(budget, budget.free() / 3, true)?;
    for document in documents.live() {
        let central = documents.central(document);
        if documents.copies(central) > 1 {
            sorter.push(pair(central, documents.host(document)))?;
        }
    }
    let sorted = sorter.finish()?;
    let mut scan = sorted.scan()?;
    let mut head = scan.next()?;
    let mut kept = BinaryHeap::new();
    while let Some(first) = head {
        let central = parted(first).0;
        let mut hosts = 0;
        while head.is_some_and(|next| parted(next).0 == central) {
            hosts += 1;
            head = scan.next()?;
        }
        if hosts < 2 {
            continue;
        }
        kept.push(Reverse((hosts, u64::from(documents.copies(central)), Reverse(central))));
        if kept.len() > most {
            kept.pop();
        }
    }
    let sorted = kept.into_sorted_vec();
    Ok(sorted.into_iter().map(|Reverse((hosts, copies, central))| (hosts, copies, central.0)).collect())
}
