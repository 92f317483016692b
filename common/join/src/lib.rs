//! The exact similarity join of a whole collection: which contents are connected by chains of linked pairs.
//!
//! The index of tier 2 answers for one content at a time, beside others that come and go. When all contents are there at
//! once, sorting them by key finds the same pairs ([`Policy::linked`](doppel_model::pairwise::Policy::linked)) at a
//! fraction of the cost: no tables are kept, and contents that are connected already are not compared.
//!
//! [`Contents`] takes signatures, each content once. [`components`](Contents::components) joins those that count. It
//! reads signatures from where the caller has them: [`Signatures`] keeps them no longer than the process.
//!
//! Memory: about 150 bytes and a bitmap of at least 64 bytes for a content, under a policy without bands 8 more for each
//! key, and in [`Signatures`] signatures up to a limit; all after that are in a temporary file without a name. Only those
//! that are compared are read back.
#![forbid(unsafe_code)]

mod atomic_union_find;
mod candidates;
mod contents;
mod keyed;
mod signatures;
#[cfg(test)]
mod tests;

pub use contents::{ContentIndex, Contents, Read};
pub use signatures::Signatures;

/// The temporary file of signatures failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep signatures in a temporary file in {dir}", dir = dir.display())]
pub struct JoinError {
    /// Where the file is.
    pub dir: std::path::PathBuf,
    /// The reason.
    #[source]
    pub source: std::io::Error,
}
