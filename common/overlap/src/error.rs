//! Errors of adding documents and of comparing them: memory, disk space, and files.

use std::path::PathBuf;

/// Why a function of this crate failed.
#[derive(Debug, thiserror::Error)]
pub enum OverlapError {
    /// The memory budget has too few free bytes.
    #[error("{needed} bytes of memory are needed for {what}, but only {free} of {limit} bytes are free")]
    Memory {
        /// What the memory is for.
        what: &'static str,
        /// Bytes of memory that the crate tried to claim.
        needed: u64,
        /// Bytes of the memory budget that are free.
        free: u64,
        /// The memory budget in bytes.
        limit: u64,
    },
    /// The temporary files would exceed the disk budget.
    #[error(
        "the temporary files in {dir} would exceed the limit of {limit} bytes; raise the limit or count \
         coarsely, which takes less disk than sorting",
        dir = dir.display()
    )]
    Disk {
        /// The directory of the temporary files.
        dir: PathBuf,
        /// The disk budget in bytes.
        limit: u64,
    },
    /// A temporary file cannot be created, written, or read.
    #[error("cannot create, write or read a temporary file in {dir}", dir = dir.display())]
    File {
        /// The directory of the temporary files.
        dir: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// There are more documents than document numbers, which have 32 bits.
    #[error("there are more than 2^32 - 1 documents, and each needs a number of 32 bits")]
    TooMany,
    /// The caller's function that receives the pairs returned this error.
    #[error("cannot write the pairs")]
    Output(#[source] std::io::Error),
}
