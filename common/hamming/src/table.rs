//! One table of a design. Plain and compressed tables have the same interface.
//!
//! Invariant: plain and compressed tables report every key that shares the leading bits of a query. Either
//! may also report other keys.

mod plain;

use std::ops::ControlFlow;

use crate::compressed::CompressedFingerprints;
use crate::search;
use plain::PlainTable;

/// How a sorted run stores its tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// Takes eight bytes per fingerprint and table. Queries are fastest.
    #[default]
    Plain,
    /// Takes about half of the memory of `Plain`. A query usually decodes at least one block in each table.
    Compressed,
}

/// A sorted table of permuted fingerprints, which are called keys.
#[derive(Debug)]
pub(crate) enum FingerprintTable {
    Plain(PlainTable),
    Compressed { fingerprints: CompressedFingerprints, leading: u32 },
}

/// The candidates of a query in one table. The candidates are not read yet.
pub(crate) enum CandidateRange<'a> {
    Keys(&'a [u64]),
    Blocks { fingerprints: &'a CompressedFingerprints, leading: u32 },
}

impl FingerprintTable {
    /// Creates a table of ascending keys. A key has `width` bits, in its most significant bits. If the keys
    /// cannot be compressed, the table is plain.
    pub(crate) fn new(keys: Vec<u64>, width: u32, leading: u32, storage: Storage) -> Self {
        if storage == Storage::Compressed {
            let low: Vec<u64> = keys.iter().map(|key| key >> (64 - width)).collect();
            if let Ok(fingerprints) = CompressedFingerprints::new(width, &low) {
                return Self::Compressed { fingerprints, leading };
            }
        }
        Self::Plain(PlainTable::new(keys, leading))
    }

    /// Appends all keys of the table to `keys`, in ascending order.
    pub(crate) fn read(&self, keys: &mut Vec<u64>) {
        match self {
            Self::Plain(table) => keys.extend_from_slice(table.keys()),
            Self::Compressed { fingerprints, .. } => {
                let start = keys.len();
                (0..fingerprints.blocks()).for_each(|block| fingerprints.decode_block(block, keys));
                keys[start..].iter_mut().for_each(|key| *key <<= 64 - fingerprints.width());
            }
        }
    }

    /// Bytes of memory that the table takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Plain(table) => table.bytes(),
            Self::Compressed { fingerprints, .. } => fingerprints.bytes(),
        }
    }

    /// Finds the candidates of a key without reading them.
    #[inline]
    pub(crate) fn locate(&self, key: u64) -> CandidateRange<'_> {
        match self {
            Self::Plain(table) => CandidateRange::Keys(table.candidates(key)),
            Self::Compressed { fingerprints, leading } => {
                CandidateRange::Blocks { fingerprints, leading: *leading }
            }
        }
    }
}

impl CandidateRange<'_> {
    /// Reads the first candidate, so that the processor loads it into the cache. If a caller touches the
    /// candidates of several tables, the memory accesses overlap. The caller must use the result, or the
    /// compiler removes the read. Compressed candidates are not read.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        match self {
            Self::Keys(keys) => keys.first().copied().unwrap_or(0),
            Self::Blocks { .. } => 0,
        }
    }

    /// Calls `visit` with all candidates of a key, in slices, until `visit` breaks. `key` must be the key
    /// that the caller passed to [`locate`](FingerprintTable::locate). `decoded` is a reusable buffer for the
    /// fingerprints of a compressed block.
    #[inline]
    pub(crate) fn visit(
        &self,
        key: u64,
        decoded: &mut Vec<u64>,
        mut visit: impl FnMut(&[u64]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Self::Keys(keys) => visit(keys),
            Self::Blocks { fingerprints, leading } => {
                let (lowest, highest) = search::prefix_range(key, *leading).into_inner();
                let down = 64 - fingerprints.width();
                let mut aligned = Vec::new();
                fingerprints.between(lowest >> down, highest >> down, decoded, |block| {
                    if down == 0 {
                        return visit(block);
                    }
                    aligned.clear();
                    aligned.extend(block.iter().map(|fingerprint| fingerprint << down));
                    visit(&aligned)
                })
            }
        }
    }
}
