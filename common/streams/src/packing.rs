//! The compressions that a stream can unpack.

/// How a file is compressed. The first bytes of the file decide, never its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// No compression.
    Plain,
    /// One or more gzip members.
    Gzip,
    /// One or more zstd frames.
    Zstd,
    /// The bzip2 format.
    Bzip2,
    /// The xz format.
    Xz,
}
