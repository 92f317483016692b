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
    /// Entries at the beginning of the export, oldest first.
    queue: Vec<(InsertSeq, EntryRef)>,
    /// Number of the last answer with changed contents, and these contents.
    last_changes: (u64, Vec<ContentHash>),
}

/// Centers among the entries that came. Maps their origin to their insertion sequence here.
pub(super) type MovedCenters = HashMap<(NodeId, InsertSeq), InsertSeq, Seeded>;
