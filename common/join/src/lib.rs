//! The exact similarity join of a whole collection: finds the contents that are connected by chains of linked
//! pairs.
//!
//! The index of tier 2 searches for one content at a time, while other contents are added and removed. If all
//! contents are known from the start, sorting them by key finds the same pairs
//! ([`Policy::linked`](doppel_model::pairwise::Policy::linked)) at a fraction of the cost. The join needs no
//! lookup tables, and it does not compare contents that are connected already. Its cost grows in proportion to
//! the contents, also for large families of near-duplicates, and for large families of pages that are not.
//!
//! [`ReferenceIndex`] compares single contents with a fixed set of contents, without groups.
//!
//! [`Contents`] collects the distinct contents, and [`components`](Contents::components) joins them. The
//! caller decides where signatures are stored, and passes a function that reads them. [`Signatures`] is a
//! store that lasts no longer than the process.
//!
//! Memory: under a policy with bands about 150 bytes per content, and under every other policy about 90 bytes
//! and 8 bytes for each key. Each content that can be compared also takes a bitmap of at least 64 bytes.
//! [`Signatures`] holds signatures in memory up to a limit, and writes all others to a temporary file without
//! a name. The join reads back only the signatures that it compares.
#![forbid(unsafe_code)]

mod atomic_union_find;
mod budget;
mod components;
mod contents;
mod reference;
mod signatures;
mod sort_keys;
#[cfg(test)]
mod tests;
mod trees;

pub use contents::{ContentIndex, Contents, ReadSignature};
pub use reference::{ReferenceBuilder, ReferenceIndex, ReferencePartner, SearchScratch};
pub use signatures::Signatures;

/// The temporary file of signatures could not be created, written, or read, or contains an invalid signature.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write or read a temporary file of signatures in {dir}; check its free space and permissions",
    dir = dir.display()
)]
pub struct JoinError {
    /// The directory of the temporary file.
    pub dir: std::path::PathBuf,
    /// The error of the operating system, or the reason why a stored signature is invalid.
    #[source]
    pub source: std::io::Error,
}
