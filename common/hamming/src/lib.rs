//! Finds the stored fingerprints that differ from a given fingerprint in at most k bits.
//!
//! The method is from G. S. Manku, A. Jain and A. Das Sarma, *Detecting Near-Duplicates for Web Crawling*,
//! WWW 2007. Fingerprints such as simhashes have up to 64 bits, and the fingerprints of near-duplicates
//! differ in few bits. A [`Design`] lists sorted tables with permuted bits. Each stored fingerprint near a
//! query shares the leading bits of that query in at least one table.
//!
//! - [`FingerprintIndex`] answers one query at a time, while fingerprints are added and removed (section 3.1).
//! - [`QueryBatch`] answers many queries in one scan of the stored fingerprints (section 3.3).
//! - [`CompressedFingerprints`] stores sorted fingerprints in about half of the memory (section 3.2).
//!   [`expected_ratio`] computes the exact ratio for random fingerprints. An index with
//!   [`Storage::Compressed`] stores its tables in this form.
//! - [`naive`] contains the simple methods that serve as a reference in tests and benchmarks.
//!
//! The results are exact, never approximate: an index and a batch return exactly what a full scan returns.
//! Fingerprints that cluster, or that an adversary chose, cost time but never change a result.
//!
//! # Example
//!
//! ```
//! use doppel_hamming::{Design, FingerprintIndex, HammingError, IndexOptions};
//!
//! let mut index = FingerprintIndex::new(Design::new(64, 3, &[4])?, IndexOptions::default())?;
//! index.insert(0x0123_4567_89ab_cdef, 1)?;
//! index.insert(0x0123_4567_89ab_cdee, 2)?;
//! let near = index.within(0x0123_4567_89ab_cdef, 3, 10)?;
//! assert_eq!(near.iter().map(|found| (found.id, found.distance)).collect::<Vec<_>>(), [(1, 0), (2, 1)]);
//! # Ok::<(), HammingError>(())
//! ```
#![deny(unsafe_code)]

mod batch;
mod compressed;
mod design;
mod error;
mod index;
pub mod limits;
pub mod naive;
pub mod patterns;
mod permutation;
mod ratio;
pub mod search;
mod table;

pub use batch::{NearPair, QueryBatch};
pub use compressed::CompressedFingerprints;
pub use design::{Design, SCANNED, TableLayout};
pub use error::HammingError;
pub use index::{FingerprintIndex, IndexOptions, IndexSize, Match};
pub use permutation::Permutation;
pub use ratio::{ExpectedRatio, expected_ratio};
pub use table::Storage;
