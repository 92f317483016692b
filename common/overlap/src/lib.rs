//! The overlap of all pairs of documents, in bounded memory: how many chunks of lines each two share, where they share enough.
//!
//! Shivakumar and Garcia-Molina, *Finding near-replicas of documents on the Web*, WebDB 1998, section 2. [`Builder`] takes documents and writes a
//! file of (fingerprint, document) for every [`Chunking`], and one of whole texts. Exact copies go to the document with the smallest
//! number, the *central* one, and leave the files of chunks. What is left is paired in one of two [`Way`]s, which give the same pairs in
//! the same order:
//!
//! | module | what it does |
//! |---|---|
//! | `by_sort` | writes every pair that shares a fingerprint, once for each, sorts that, and counts |
//! | `coarse` | counts pairs in buckets of a hash, and then exactly those of which all buckets are full; `pilot` chooses how many there are |
//! | `documents`, `urls` | what is kept of a document |
//! | `servers` | the same of hosts, a host being all its documents |
//! | `replication` | how many replicas documents have, and what would be saved without them |
//! | `sorter`, `sorted`, `spill` | sorting on disk |
//! | `budget` | the limits of memory and disk |
//!
//! Invariants: no way takes more than the budget of memory or disk; where it does not suffice, it says so. Everything on disk is in files
//! without a name, which end with the process however that ends.
#![forbid(unsafe_code)]

mod bits;
mod budget;
mod by_sort;
mod coarse;
mod collection;
mod counters;
mod documents;
mod pairing;
mod pilot;
mod record;
mod recount;
mod replication;
mod servers;
mod sorted;
mod sorter;
mod source;
mod spill;
#[cfg(test)]
mod tests;
mod urls;
mod way;

pub use budget::{Budget, Claim};
pub use collection::{Builder, Collection, Document, Found, Maps, Outcome, Space};
pub use replication::{Band, Replication};
pub use servers::{Mirror, Replicated};
pub use way::{Parameters, Way, Work};

use std::path::PathBuf;

/// How documents are cut into chunks, and how many of them two must share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Chunking {
    /// Lines of a chunk.
    pub lines: u32,
    /// T, the least number of shared chunks, 1 to 255.
    pub shared: u8,
}

/// Counting failed.
#[derive(Debug, thiserror::Error)]
pub enum OverlapError {
    /// The budget of memory does not suffice.
    #[error("{what} takes {needed} bytes of memory, and {free} of {limit} are free")]
    Memory {
        /// What needs it.
        what: &'static str,
        /// Bytes it needs.
        needed: u64,
        /// Bytes there are.
        free: u64,
        /// The budget.
        limit: u64,
    },
    /// The budget of disk does not suffice.
    #[error(
        "more than {limit} bytes of temporary files would be in {dir}: more disk is needed; sorting takes more of it than \
         coarse counting", dir = dir.display()
    )]
    Disk {
        /// Where the files are.
        dir: PathBuf,
        /// The budget.
        limit: u64,
    },
    /// A temporary file failed.
    #[error("a temporary file in {dir} failed", dir = dir.display())]
    File {
        /// Where it is.
        dir: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// Documents are numbered by 32 bits.
    #[error("there are more documents than 2^32 - 1")]
    TooMany,
    /// What was found could not be handed over.
    #[error("the pairs cannot be written")]
    Output(#[source] std::io::Error),
}
