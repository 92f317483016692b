//! 64-bit fingerprints in a row: how many of those of two contents are equal, each compared with the one in the same place.

/// Stands for a fingerprint where there is none and its place is kept.
pub(super) const NONE: u64 = 0;

fn entries(payload: &[u8]) -> impl Iterator<Item = u64> + '_ {
    payload.chunks_exact(8).filter_map(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes))
}

/// How many are equal.
pub(super) fn equal(a: &[u8], b: &[u8]) -> u32 {
    entries(a).zip(entries(b)).filter(|(a, b)| a == b && *a != NONE).count() as u32
}

/// The keys: each is a fingerprint in its place. Two contents with an equal one share a key.
pub(super) fn keys(payload: &[u8], mut each: impl FnMut(u64)) {
    for (number, fingerprint) in entries(payload).enumerate().filter(|(_, fingerprint)| *fingerprint != NONE)
    {
        each(fingerprint << 8 | number as u64);
    }
}
