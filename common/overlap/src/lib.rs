//! Finds all pairs of documents that share enough chunks of lines, in bounded memory and disk space.
//!
//! The method is section 2 of Shivakumar and Garcia-Molina, *Finding near-replicas of documents on the Web*,
//! WebDB 1998. [`CollectionBuilder`] collects documents and cuts them into chunks of lines. A *fingerprint*
//! is a hash of a chunk. Two documents share a chunk if they have a common fingerprint. For every
//! [`Chunking`] the crate sorts (fingerprint, document) records. It sorts records for the hashes of whole
//! texts, too. Records that do not fit into memory go to temporary files.
//!
//! Removals do not *count*. Unless every version of a page is a document of its own, a version that a later
//! version or removal replaced does not count either. Among exact copies that count, the document with the
//! smallest number is the *central* document. A document that counts and has no copies is central, too.
//!
//! One of two [`PairingMethod`]s finds the pairs of central documents and the pairs of hosts. The pairs and
//! their order do not depend on the method. Pairs of documents contain only central documents. The
//! fingerprints of a host come from all its documents that count.
//!
//! | module | what it does |
//! |---|---|
//! | `pairing::by_sort` | writes a pair once for every shared fingerprint, sorts the pairs, and counts equal pairs |
//! | `pairing::coarse` | counts pairs by hash bucket, then counts exactly the pairs in buckets with high counts |
//! | `pairing::pilot` | chooses the number of counters and hash functions for `coarse` |
//! | `documents`, `urls` | store the attributes of documents |
//! | `hosts` | compares hosts, where a host has the fingerprints of all its documents that count |
//! | `replication` | counts the replicas of each document, and what a crawler saves if it skips replicas |
//! | `external_sort` | sorts records that do not fit into memory |
//! | `budget` | limits memory and disk space |
//!
//! Invariants: claimed memory and temporary files never exceed the budget. If the budget is too small, the
//! function returns an error. Temporary files have no name, so the operating system deletes them when the
//! process ends in any way.
#![forbid(unsafe_code)]

mod bits;
mod budget;
mod collection;
mod documents;
mod error;
mod external_sort;
mod hosts;
mod pairing;
mod replication;
mod urls;

pub use budget::{Budget, BudgetPeaks, MemoryClaim};
pub use collection::{
    CollectionBuilder, Document, DocumentCollection, ExactCopy, FingerprintFile, OverlappingPair,
    PairingResult, TableSizes,
};
pub use error::OverlapError;
pub use hosts::{MirrorPair, ReplicatedPage};
pub use pairing::method::{CoarseParameters, PairingMethod, PairingStatistics};
pub use replication::{Band, ReplicaStatistics};

/// How documents are cut into chunks, and how many chunks two documents or two hosts must share to be a pair.
/// Chunks do not overlap. The last chunk of a document can have fewer lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Chunking {
    /// Number of lines in a chunk, at least 1.
    pub lines: u32,
    /// Minimum number of distinct shared chunks, 1 to 255. Shivakumar and Garcia-Molina (1998) call this
    /// number T.
    pub shared: u8,
}

#[cfg(test)]
mod tests;
