//! Signatures of some of the contents, while passes go on.
//!
//! Those with the least hashes are taken, so that the same collection gives the same sample however it is stored. The
//! lock is given up between partitions and between a few reads. When the plan changes meanwhile it is begun again.

use std::sync::Arc;

use doppel_model::ContentHash;
use doppel_model::signature::Signature;

use crate::cluster::Address;
use crate::partition::State;
use crate::service::Shared;
use crate::tables::EntryRef;

/// Bytes of a sample's signatures, about: a hundred thousand of common length.
const BYTES_MAX: usize = 256 << 20;

/// Contents read under one lock.
const STEP: usize = 256;

/// A content that may be taken.
#[derive(Clone, Copy)]
struct Chosen {
    content: ContentHash,
    address: Address,
    insert_seq: u32,
}

/// At most `limit` signatures, in the order of their contents' hashes.
pub(crate) fn take(shared: &Shared, limit: usize) -> Vec<Arc<Signature>> {
    loop {
        let plan = Arc::clone(&shared.read().plan);
        let sample = once(shared, limit);
        // What moves meanwhile would be left out.
        if Arc::ptr_eq(&plan, &shared.read().plan) {
            return sample;
        }
    }
}

fn once(shared: &Shared, limit: usize) -> Vec<Arc<Signature>> {
    let mut sample = Vec::new();
    let (mut bytes, mut buffer) = (0, Vec::new());
    for some in choose(shared, limit).chunks(STEP) {
        let cluster = shared.read();
        for Chosen { address: Address { node, entry }, insert_seq, .. } in some {
            let index = cluster.node(*node);
            if bytes < BYTES_MAX
                && index.tables.is_alive(*entry, *insert_seq)
                && let Some(read) = index.read(*entry, &mut buffer)
            {
                bytes += read.signature.as_bytes().len();
                sample.push(read.signature);
            }
        }
    }
    sample
}

/// The contents with the least hashes, ascending.
fn choose(shared: &Shared, limit: usize) -> Vec<Chosen> {
    let content = |chosen: &Chosen| chosen.content;
    let mut chosen: Vec<Chosen> = Vec::new();
    for node in 0..shared.config.nodes {
        for partition in 0.. {
            let cluster = shared.read();
            let tables = &cluster.node(node).tables;
            let Some(here) = tables.partitions.get(partition as usize) else { break };
            if here.state != State::Serving {
                continue;
            }
            chosen.extend(here.columns.slots().map(|slot| Chosen {
                content: here.columns.content(slot),
                address: Address { node, entry: EntryRef { partition, slot } },
                insert_seq: here.columns.insert_seq(slot),
            }));
            drop(cluster);
            if chosen.len() > limit {
                chosen.select_nth_unstable_by_key(limit, content);
                chosen.truncate(limit);
            }
        }
    }
    chosen.sort_unstable_by_key(content);
    chosen
}
