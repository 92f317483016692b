//! Compares hosts: finds hosts with similar content, and documents that are replicated on many hosts.
//!
//! The fingerprints of a host are the union of the fingerprints of its documents that count. An exact copy
//! counts for its own host, even if its central document is on another host.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;

use crate::bits::Bits;
use crate::documents::Documents;
use crate::external_sort::sorted::Sorted;
use crate::external_sort::sorter::Sorter;
use crate::pairing::pair_source::{PairSource, pair, unpack_pair};
use crate::{Budget, OverlapError};

/// Two hosts that share at least [`Chunking::shared`](crate::Chunking::shared) distinct chunks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MirrorPair {
    /// Name of the first host.
    pub a: String,
    /// Name of the second host.
    pub b: String,
    /// Number of distinct chunks that the two hosts have in common.
    pub shared: u64,
    /// Number of distinct chunks of host `a`.
    pub of_a: u64,
    /// Number of distinct chunks of host `b`.
    pub of_b: u64,
    /// Shared chunks as a fraction of the chunks of the host that has fewer, from 0 to 1.
    pub share: f64,
}

/// A central document with exact copies on several hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplicatedPage {
    /// URL of the central document, which is the first of the copies that count.
    pub url: String,
    /// Number of exact copies that count, the central document included.
    pub pages: u64,
    /// Number of hosts that have at least one of the copies. The host of the central document is included.
    pub hosts: u64,
}

/// Which distinct fingerprints each host has, from its documents that count. One sorted list holds a record
/// for each fingerprint and host.
pub(crate) struct HostFingerprints {
    /// Sorted records, each with the number of a fingerprint in the upper 32 bits and a host number in the
    /// lower 32 bits. The fingerprints are numbered from 0 in ascending order.
    pub(crate) sorted: Sorted<u64>,
    /// Number of distinct fingerprints of each host.
    pub(crate) sizes: Vec<u64>,
}

/// Computes the distinct fingerprints of every host: the union of the fingerprints of its documents that
/// count. `live` marks the documents that count. `chunks` contains the (fingerprint, document) records.
pub(crate) fn fingerprints(
    documents: &Documents,
    live: &Bits,
    chunks: &Sorted<u64>,
    budget: &Budget,
) -> Result<HostFingerprints, OverlapError> {
    let room = budget.free().saturating_sub(chunks.scan_bytes()) / 3;
    let mut sorter = Sorter::new(budget, room, false)?;
    let mut groups = PairSource { sorted: chunks, included: Some(live) }.groups()?;
    let mut fingerprint = 0_u32;
    let (mut hosts, mut sizes) = (Vec::new(), vec![0; documents.hosts()]);
    while let Some(group) = groups.next()? {
        hosts.clear();
        hosts.extend(group.iter().map(|document| documents.host(*document)));
        hosts.sort_unstable();
        hosts.dedup();
        // The record only needs a number that is unique for each fingerprint, so the number of the group
        // suffices.
        for host in &hosts {
            sizes[*host as usize] += 1;
            sorter.push(pair(fingerprint, *host))?;
        }
        fingerprint = fingerprint.wrapping_add(1);
    }
    Ok(HostFingerprints { sorted: sorter.finish()?, sizes })
}

/// Keeps a limited number of pairs of hosts: the pairs with the greatest shares. The share of a pair is a
/// fraction: the number of shared chunks over the number of chunks of the host that has fewer.
#[derive(Debug)]
pub(crate) struct TopMirrors {
    max: usize,
    /// At most `max` shares with their pairs of hosts. The least share is on top of the heap.
    heap: BinaryHeap<Reverse<(ChunkShare, Reverse<u64>)>>,
}

/// The share of a pair of hosts: the fraction `shared / of`, compared exactly. `shared` is the number of
/// shared chunks, and `of` is the number of chunks of the host that has fewer. Of two equal fractions, the
/// one with more shared chunks is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChunkShare {
    shared: u64,
    of: u64,
}

impl Ord for ChunkShare {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let shares = product(self.shared, other.of).cmp(&product(other.shared, self.of));
        shares.then(self.shared.cmp(&other.shared)).then(self.of.cmp(&other.of))
    }
}

impl PartialOrd for ChunkShare {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl TopMirrors {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, heap: BinaryHeap::new() }
    }

    pub(crate) fn add(&mut self, a: u32, b: u32, shared: u32, sizes: &[u64]) {
        let of = sizes[a as usize].min(sizes[b as usize]);
        self.heap.push(Reverse((ChunkShare { shared: shared.into(), of }, Reverse(pair(a, b)))));
        if self.heap.len() > self.max {
            self.heap.pop();
        }
    }

    /// Returns the kept pairs of hosts, in descending order of their shares. `sizes` is the number of
    /// distinct fingerprints of each host.
    pub(crate) fn finish(self, documents: &Documents, sizes: &[u64]) -> Vec<MirrorPair> {
        let sorted = self.heap.into_sorted_vec();
        let mirror = |(share, pair): (ChunkShare, Reverse<u64>)| {
            let (a, b) = unpack_pair(pair.0);
            MirrorPair {
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

/// A central document (the first of several exact copies that count) whose copies are on several hosts.
pub(crate) struct ReplicatedCentral {
    /// Number of hosts that have at least one of the copies. The host of the central document is included.
    pub(crate) hosts: u64,
    /// Number of exact copies that count, the central document included.
    pub(crate) copies: u64,
    /// Document number of the central document.
    pub(crate) document: u32,
}

/// At most `max` central documents: the documents whose copies are on the most hosts, in descending order of
/// the number of hosts. Leaves out documents whose copies are all on one host.
pub(crate) fn most_replicated(
    documents: &Documents,
    max: usize,
    budget: &Budget,
) -> Result<Vec<ReplicatedCentral>, OverlapError> {
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
    let mut heap = BinaryHeap::new();
    while let Some(first) = head {
        let central = unpack_pair(first).0;
        let mut hosts = 0;
        while head.is_some_and(|next| unpack_pair(next).0 == central) {
            hosts += 1;
            head = scan.next()?;
        }
        if hosts < 2 {
            continue;
        }
        heap.push(Reverse((hosts, u64::from(documents.copies(central)), Reverse(central))));
        if heap.len() > max {
            heap.pop();
        }
    }
    let sorted = heap.into_sorted_vec();
    let replicated =
        |Reverse((hosts, copies, Reverse(document)))| ReplicatedCentral { hosts, copies, document };
    Ok(sorted.into_iter().map(replicated).collect())
}
