//! Which stored fingerprints differ from a given one in at most k bits?
//!
//! After G. S. Manku, A. Jain and A. Das Sarma, *Detecting Near-Duplicates for Web Crawling*, WWW 2007. Fingerprints such
//! as simhash have up to 64 bits, and near-duplicates differ in few of them. A [`Design`] says which tables are needed so
//! that every near fingerprint shares the leading bits of a query in one of them.
//!
//! - [`Index`] answers one query at a time while fingerprints come and go (section 3.1).
//! - [`Batch`] answers many queries with one scan of what is stored (section 3.3).
//! - [`Compressed`] keeps sorted fingerprints in about half of the memory (section 3.2); [`expected_ratio`] says in how
//!   much. An index keeps its tables so with [`Storage::Compressed`].
//! - [`naive`] has the ways that these are measured against.
//!
//! Nothing here is an approximation: index and batch give exactly what a scan of everything gives. Fingerprints that
//! cluster, or that an adversary chose, cost more time, never an answer.
//!
//! # Example
//!
//! ```
//! use doppel_hamming::{Design, HammingError, Index, Options};
//!
//! let mut index = Index::new(Design::new(64, 3, &[4])?, Options::default())?;
//! index.insert(0x0123_4567_89ab_cdef, 1)?;
//! index.insert(0x0123_4567_89ab_cdee, 2)?;
//! let near = index.within(0x0123_4567_89ab_cdef, 3, 10)?;
//! assert_eq!(near.iter().map(|found| (found.id, found.distance)).collect::<Vec<_>>(), [(1, 0), (2, 1)]);
//! # Ok::<(), HammingError>(())
//! ```
#![deny(unsafe_code)]

mod arrangement;
mod batch;
mod compressed;
mod design;
#[cfg(test)]
mod design_tests;
mod error;
mod huffman;
mod ids;
mod index;
pub mod limits;
pub mod naive;
pub mod patterns;
mod permutation;
mod plain;
mod quarters;
mod query_table;
mod ratio;
mod run;
mod scan;
pub mod search;
mod table;

pub use batch::{Batch, Pair};
pub use compressed::Compressed;
pub use design::{Design, Layout, SCANNED};
pub use error::HammingError;
pub use index::{Index, Match, Options, Size};
pub use permutation::Permutation;
pub use ratio::{ExpectedRatio, expected_ratio};
pub use table::Storage;
