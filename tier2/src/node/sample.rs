//! Samples of a node's contents, taken while other calls go on. The lock is released between partitions and
//! between calls.

use doppel_model::ContentHash;
use doppel_protocol::index_node::{ENTRIES_MAX, NodeError, SampleAnswer, SampleRequest, VECTORS_MAX};

use super::partition::PartitionState;
use super::signatures::fetch::FetchedSignatures;
use super::{LocalNode, check_limit};

/// Takes the requested sample.
pub(super) fn of(node: &LocalNode, request: SampleRequest) -> Result<SampleAnswer, NodeError> {
    match request {
        SampleRequest::Lengths { partition, skip, step } => {
            let core = node.read();
            let local = core.tables.local(partition).ok_or(NodeError::NoPartition(partition))?;
            let columns = &core.tables.partitions[local.index()].columns;
            let slots = columns.slots().skip(skip as usize).step_by(step.max(1) as usize).take(VECTORS_MAX);
            let lengths = slots.map(|slot| columns.vector(slot)).collect();
            Ok(SampleAnswer::Lengths(lengths, columns.len() as u64))
        }
        SampleRequest::Least(limit) => Ok(SampleAnswer::Least(least(node, limit))),
        SampleRequest::Signatures(contents) => {
            check_limit(contents.len(), ENTRIES_MAX)?;
            let (core, mut buffer) = (node.read(), Vec::new());
            // A signature that cannot be read is left out.
            let read = |content| {
                let entry = core.tables.find(content)?;
                core.read(entry, &FetchedSignatures::default(), &mut buffer)
                    .ok()
                    .flatten()
                    .map(|read| read.signature)
            };
            Ok(SampleAnswer::Signatures(contents.into_iter().filter_map(read).collect()))
        }
    }
}

/// The contents with the smallest hashes, in ascending order.
fn least(node: &LocalNode, limit: usize) -> Vec<ContentHash> {
    let mut chosen: Vec<ContentHash> = Vec::new();
    for partition in 0.. {
        let core = node.read();
        let Some(here) = core.tables.partitions.get(partition) else { break };
        if here.state != PartitionState::Serving {
            continue;
        }
        chosen.extend(here.columns.slots().map(|slot| here.columns.content(slot)));
        drop(core);
        if chosen.len() > limit {
            chosen.select_nth_unstable(limit);
            chosen.truncate(limit);
        }
    }
    chosen.sort_unstable();
    chosen
}
