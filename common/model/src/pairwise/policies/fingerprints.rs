//! Compares payloads that are arrays of 64-bit fingerprints. A fingerprint is compared only with the one at
//! the same index of the other payload.

/// The value in place of a missing fingerprint. It never equals another fingerprint, and has no key.
pub(in crate::pairwise) const MISSING: u64 = 0;

fn entries(payload: &[u8]) -> impl Iterator<Item = u64> + '_ {
    payload.chunks_exact(8).filter_map(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes))
}

/// Counts the equal fingerprints of two payloads.
pub(in crate::pairwise) fn equal(a: &[u8], b: &[u8]) -> u32 {
    entries(a).zip(entries(b)).filter(|(a, b)| a == b && *a != MISSING).count() as u32
}

/// Calls `each` for every key: a fingerprint with its index. Two payloads with an equal fingerprint share a
/// key.
pub(in crate::pairwise) fn keys(payload: &[u8], mut each: impl FnMut(u64)) {
    let present = entries(payload).enumerate().filter(|(_, fingerprint)| *fingerprint != MISSING);
    for (number, fingerprint) in present {
        each(fingerprint << 8 | number as u64);
    }
}
