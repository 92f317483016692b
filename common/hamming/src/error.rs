//! What can be wrong with a design, a fingerprint or the size of a collection.

use crate::limits::{FINGERPRINTS_MAX, NEIGHBOURS_MAX, QUERIES_MAX, RECENT_MAX, TABLES_MAX, WIDTH_MAX};

/// Why a design, an index or a batch refused its input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HammingError {
    /// The width is out of range.
    #[error("fingerprints have from 1 to {WIDTH_MAX} bits, not {0}")]
    Width(u32),
    /// All pairs of fingerprints would match.
    #[error(
        "the distance {distance} is not less than the {width} bits of a fingerprint, so that all would match"
    )]
    Distance {
        /// Bits that may differ.
        distance: u32,
        /// Bits of a fingerprint.
        width: u32,
    },
    /// A split into so few blocks that all of them may differ, or into more blocks than there are bits.
    #[error("cannot split {bits} bits into {blocks} blocks: at least {least} are needed, and a bit for each")]
    Split {
        /// Bits that are left.
        bits: u32,
        /// Blocks that were asked for.
        blocks: u32,
        /// The smallest number of blocks of which one is always equal.
        least: u32,
    },
    /// More tables than are allowed.
    #[error(
        "the design has {0} tables, and at most {TABLES_MAX} are allowed; choose fewer blocks or fewer leading bits"
    )]
    Tables(u64),
    /// No design has so many leading bits.
    #[error(
        "no design for {width} bits and distance {distance} has {leading} leading bits in at most {TABLES_MAX} tables"
    )]
    Leading {
        /// Bits of a fingerprint.
        width: u32,
        /// Bits that may differ.
        distance: u32,
        /// Leading bits that were asked for.
        leading: u32,
    },
    /// A fingerprint has bits above its width.
    #[error("fingerprint {fingerprint:#x} has more than {width} bits")]
    Fingerprint {
        /// The fingerprint.
        fingerprint: u64,
        /// Bits of a fingerprint of this design.
        width: u32,
    },
    /// The collection is full.
    #[error("at most {FINGERPRINTS_MAX} distinct fingerprints fit; split the collection")]
    Full,
    /// The buffer in front of the sorted runs has a senseless size.
    #[error("the buffer of recent fingerprints holds from 1 to {RECENT_MAX}, not {0}")]
    Recent(usize),
    /// Runs would never be merged.
    #[error(
        "a run is merged with younger ones when it is at most some times as large: at least once, not {0} times"
    )]
    Growth(usize),
    /// Fingerprints of a compressed table must come in ascending order.
    #[error("fingerprint {0:#x} is out of order; sort before compressing")]
    Order(u64),
    /// The batch is too large.
    #[error("a batch has at most {QUERIES_MAX} queries; divide it")]
    Queries,
    /// A batch found more pairs than the caller wants.
    #[error("more than {limit} pairs were found; raise the limit or divide the batch")]
    Pairs {
        /// The limit of the caller.
        limit: usize,
    },
    /// Storing all neighbours would take too much memory.
    #[error(
        "the fingerprints have {0} neighbours, and at most {NEIGHBOURS_MAX} are stored; use a design with tables"
    )]
    Neighbours(u64),
}
