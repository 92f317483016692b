//! Limits on the size of a call to a node of tier 2.

/// Maximum number of orders, searches, changed pages, or claims in one call.
pub const BATCH_ORDERS_MAX: usize = 8_192;

/// Maximum number of entries or signatures in one call.
pub const ENTRIES_MAX: usize = 1_024;

/// Approximate maximum size of the signatures in one call, in bytes.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// Returns how many leading signatures or entries fit into one call, given their sizes in bytes. The sum of
/// the sizes is at most [`BATCH_BYTES_MAX`], but a call carries at least one item if there is any.
pub fn fitting_count(sizes: impl Iterator<Item = usize>) -> usize {
    let mut sizes = sizes.peekable();
    let (least, mut bytes) = (usize::from(sizes.peek().is_some()), 0);
    let fits = |size: &usize| {
        bytes += size;
        bytes <= BATCH_BYTES_MAX
    };
    sizes.take_while(fits).count().max(least)
}
