//! What one search found out on a node.

use std::sync::Arc;

use doppel_model::InsertSeq;
use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;

use super::bands::{BandKey, BandKeys};
use super::columns::Center;
use super::local_index::LocalIndex;
use super::tables::EntryRef;

/// A verified partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partner {
    pub(crate) entry: EntryRef,
    pub(crate) insert_seq: InsertSeq,
    pub(crate) similarity: Similarity,
}

/// What a search found out.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Oldest first.
    pub(crate) partners: Vec<Partner>,
    /// Partitions of the node that were searched, and exact comparisons in each.
    pub(crate) probed_partitions: Vec<(LocalIndex, u32)>,
    pub(crate) band_keys: BandKeys,
    /// The center and the second center of the entry that was searched for.
    pub(crate) centers: Option<(EntryRef, [Center; 2])>,
    /// Centers of entries that were never searched for or whose center has left; of the latter with their band keys.
    pub(crate) adopted: Vec<(EntryRef, Center, BandKeys)>,
    /// An entry that is a center for the first time.
    pub(crate) new_center: Option<(EntryRef, BandKeys)>,
    /// Counted lists, and how far they were passed.
    pub(crate) passed: Vec<Passed>,
    /// What it has cost, see [`SearchLimits`](doppel_protocol::index_node::SearchLimits).
    pub(crate) cost: u64,
    /// Whether an earlier part of the search was counted already.
    pub(crate) continues: bool,
    /// Signatures that were not in the file.
    pub(crate) fetched: Vec<(EntryRef, Arc<Signature>)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    pub(crate) partition: LocalIndex,
    pub(crate) band_key: BandKey,
    pub(crate) steps: u32,
}
