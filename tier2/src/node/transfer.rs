//! Contents and entries that move between nodes and ranges: export of outgoing partitions, and ingestion.

mod export;
mod ingest;

use doppel_model::{ContentHash, InsertSeq, NodeId, PartitionId};
use hashbrown::HashMap;

use super::tables::EntryRef;
use crate::seed::Seeded;

/// An export that is under way.
#[derive(Debug)]
pub(super) struct Export {
    partitions: Vec<PartitionId>,
    /// Entries that the partitions contained when the export began, oldest first.
    queue: Vec<(InsertSeq, EntryRef)>,
    /// Number of the last answer with changed contents, and these contents.
    last_changes: (u64, Vec<ContentHash>),
}

/// Centers among the entries that other nodes have sent. Maps the node and insertion sequence that a center
/// had there to its insertion sequence on this node.
pub(super) type MovedCenters = HashMap<(NodeId, InsertSeq), InsertSeq, Seeded>;
