//! The bounds of everything in this crate.

/// Bits of the widest fingerprint.
pub const WIDTH_MAX: u32 = 64;
/// Tables of the largest design.
pub const TABLES_MAX: usize = 256;
/// Distinct fingerprints of an index, or of a chunk of compressed ones: offsets have 32 bits.
pub const FINGERPRINTS_MAX: usize = u32::MAX as usize;
/// Fingerprints in the buffer that every query scans.
pub const RECENT_MAX: usize = 1 << 16;
/// Queries of one batch.
pub const QUERIES_MAX: usize = 1 << 26;
/// Neighbours that [`Neighbours`](crate::naive::Neighbours) stores.
pub const NEIGHBOURS_MAX: u64 = 1 << 27;
