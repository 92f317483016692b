//! What one call to a node of tier 2 may bring.

/// The maximum number of orders or searches in one call.
pub const BATCH_MAX: usize = 8_192;

/// The maximum number of entries or signatures in one call.
pub const ENTRIES_MAX: usize = 1_024;

/// The approximate maximum size of the signatures in one call, in bytes.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// How many of the first signatures or entries a call may bring, by their sizes in bytes: as many as [`BATCH_BYTES_MAX`] has
/// room for, and at least one where there is one.
pub fn fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let mut sizes = sizes.peekable();
    let (least, mut bytes) = (usize::from(sizes.peek().is_some()), 0);
    let fits = |size: &usize| {
        bytes += size;
        bytes <= BATCH_BYTES_MAX
    };
    sizes.take_while(fits).count().max(least)
}
