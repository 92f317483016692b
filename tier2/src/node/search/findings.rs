//! The findings of one search on a node.

use std::sync::Arc;

use doppel_model::InsertSeq;
use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;

use crate::node::partition::buckets::BucketVisits;
use crate::node::partition::candidates::{CrowdedList, EntryKeys};
use crate::node::partition::columns::Center;
use crate::node::partition::local_index::LocalIndex;
use crate::node::tables::EntryRef;

/// A verified partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundPartner {
    pub(crate) entry: EntryRef,
    pub(crate) insert_seq: InsertSeq,
    pub(crate) similarity: Similarity,
}

/// The findings of a search. The node stores them in its tables.
#[derive(Debug, Default)]
pub(crate) struct SearchFindings {
    /// Partners, oldest first.
    pub(crate) partners: Vec<FoundPartner>,
    /// Partitions of the node that were searched, and the number of exact comparisons in each.
    pub(crate) probed_partitions: Vec<(LocalIndex, u32)>,
    /// The keys of the searched entry, if this node stores it and it has a center. Otherwise empty.
    pub(crate) keys: EntryKeys,
    /// The center and second center for the searched entry.
    pub(crate) centers: Option<(EntryRef, [Center; 2])>,
    /// Centers for entries that had none, or whose center has left.
    pub(crate) adopted_centers: Vec<AdoptedCenter>,
    /// An entry that becomes a center for the first time, with its keys.
    pub(crate) new_center: Option<(EntryRef, EntryKeys)>,
    /// Lists of large buckets, and how many of their members were visited or rejected.
    pub(crate) list_visits: Vec<ListVisits>,
    /// Cost of the search, see [`SearchLimits`](doppel_protocol::index_node::SearchLimits).
    pub(crate) cost: u64,
    /// Whether an earlier part of the search was counted already.
    pub(crate) continues: bool,
    /// Signatures that had to be fetched.
    pub(crate) fetched: Vec<(EntryRef, Arc<Signature>)>,
}

/// A center for an entry that had none, or whose center has left.
#[derive(Debug)]
pub(crate) struct AdoptedCenter {
    pub(crate) entry: EntryRef,
    pub(crate) center: Center,
    /// Keys of the entry if its center has left, otherwise empty.
    pub(crate) keys: EntryKeys,
}

/// How many members of a list a search has visited or rejected. The list is the rest or a run of a large bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListVisits {
    pub(crate) partition: LocalIndex,
    pub(crate) list: CrowdedList,
    pub(crate) visits: BucketVisits,
}
