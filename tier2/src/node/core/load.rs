//! The load of a node.

use doppel_protocol::index_node::{HostedLoad, NodeLoadReport};

use super::Core;
use crate::node::signatures::file::SignatureFile;

/// The load under the present plan.
pub(in crate::node) fn of(core: &Core) -> NodeLoadReport {
    let tables = &core.tables;
    let load = |partition: &crate::node::partition::Partition| {
        let stored = partition.columns.len();
        let directory = tables.contents.allocation_size() * stored / tables.contents.len().max(1);
        HostedLoad {
            id: partition.id,
            contents: stored as u64,
            pages: (stored + partition.pages.len()) as u64,
            received: partition.received,
            comparisons: partition.comparisons,
            bytes: (partition.bytes() + directory) as u64,
        }
    };
    NodeLoadReport {
        partitions: tables.serving().map(load).collect(),
        bytes: tables.bytes() as u64,
        file_bytes: core.signatures.own().map_or(0, SignatureFile::bytes),
    }
}
