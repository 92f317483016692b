//! Upper bounds for the inputs of this crate.

/// Maximum number of bits in a fingerprint.
pub const WIDTH_MAX: u32 = 64;
/// Maximum number of tables in a design.
pub const TABLES_MAX: usize = 256;
/// Maximum number of distinct fingerprints in an index or in a
/// [`CompressedFingerprints`](crate::CompressedFingerprints) sequence. Offsets have 32 bits.
pub const FINGERPRINTS_MAX: usize = u32::MAX as usize;
/// Maximum number of fingerprints in the buffer that every query scans.
pub const RECENT_MAX: usize = 1 << 16;
/// Maximum number of queries in one batch.
pub const QUERIES_MAX: usize = 1 << 26;
/// Maximum number of neighbours that [`Neighbours`](crate::naive::Neighbours) stores.
pub const NEIGHBOURS_MAX: u64 = 1 << 27;
