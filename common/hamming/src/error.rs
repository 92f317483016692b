//! The errors of this crate: an invalid option or fingerprint, or a collection or result that is too large.

use crate::limits::{FINGERPRINTS_MAX, NEIGHBOURS_MAX, QUERIES_MAX, RECENT_MAX, TABLES_MAX, WIDTH_MAX};

/// Why a design, an index, a batch, a compressed sequence, or a method of [`naive`](crate::naive) cannot do
/// its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HammingError {
    /// The width of a fingerprint is out of range.
    #[error("fingerprints have from 1 to {WIDTH_MAX} bits, not {0}")]
    Width(u32),
    /// The distance is so large that every pair of fingerprints would match.
    #[error("the distance {distance} is not less than the {width} bits of a fingerprint, so all would match")]
    Distance {
        /// Number of bits that may differ.
        distance: u32,
        /// Number of bits in a fingerprint.
        width: u32,
    },
    /// A split has too few blocks, so that all of them may differ, or more blocks than bits.
    #[error(
        "cannot split {bits} bits into {blocks} blocks; a split needs at least {least} blocks and \
         one bit per block"
    )]
    Split {
        /// Number of bits that the split divides.
        bits: u32,
        /// Number of blocks that the caller requested.
        blocks: u32,
        /// Minimum number of blocks, which guarantees that at least one block is equal.
        least: u32,
    },
    /// The design has more tables than [`TABLES_MAX`].
    #[error(
        "the design has {0} tables, but at most {TABLES_MAX} are allowed; choose fewer blocks or \
         fewer leading bits"
    )]
    Tables(u64),
    /// No design within [`TABLES_MAX`] tables has the requested number of leading bits.
    #[error(
        "no design for {width} bits and distance {distance} has {leading} leading bits in at most \
         {TABLES_MAX} tables; choose fewer leading bits"
    )]
    Leading {
        /// Number of bits in a fingerprint.
        width: u32,
        /// Number of bits that may differ.
        distance: u32,
        /// Number of leading bits that the caller requested.
        leading: u32,
    },
    /// A fingerprint has bits above the width of the design or of the compressed sequence.
    #[error("fingerprint {fingerprint:#x} has more than the {width} bits of the design")]
    Fingerprint {
        /// The fingerprint that was rejected.
        fingerprint: u64,
        /// Number of bits that a fingerprint may have.
        width: u32,
    },
    /// The collection already has [`FINGERPRINTS_MAX`] distinct fingerprints.
    #[error("the collection has more than {FINGERPRINTS_MAX} distinct fingerprints; split it")]
    Full,
    /// The size of the buffer in front of the sorted runs is out of range.
    #[error("the buffer of recent fingerprints must hold from 1 to {RECENT_MAX} fingerprints, not {0}")]
    Recent(usize),
    /// The growth factor is zero, so runs would never be merged.
    #[error("the growth factor must be at least 1, not {0}; otherwise runs are never merged")]
    Growth(usize),
    /// The fingerprints to compress are not in ascending order.
    #[error("fingerprint {0:#x} is out of order; sort the fingerprints before compressing them")]
    Order(u64),
    /// The batch has more than [`QUERIES_MAX`] queries.
    #[error("the batch has more than {QUERIES_MAX} queries; split it")]
    Queries,
    /// A batch found more pairs than the caller allows.
    #[error("the batch has more than {limit} pairs; raise the limit or split the batch")]
    Pairs {
        /// The limit that the caller set.
        limit: usize,
    },
    /// All neighbours of all stored fingerprints would together take too much memory. A neighbour is a
    /// fingerprint within the distance of a stored fingerprint.
    #[error(
        "the fingerprints have {0} neighbours, but at most {NEIGHBOURS_MAX} can be stored; use a design with \
         tables"
    )]
    Neighbours(u64),
}
