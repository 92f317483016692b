//! Signatures of some of the contents, while passes go on.
//!
//! Those with the least hashes are taken, so that the same collection gives the same sample however it is stored. When
//! the plan changes meanwhile it is begun again.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, NodeId};
use doppel_partitioning::Plan;
use doppel_protocol::index_node::{NodeError, SampleRequest, Sampled};

use super::{Router, RouterError};

/// Bytes of a sample's signatures, about: a hundred thousand of common length.
const BYTES_MAX: usize = 256 << 20;

/// Contents read in one call.
const STEP: usize = 256;

/// How often it is begun again.
const TRIES: u32 = 8;

impl Router {
    /// At most `limit` signatures, in the order of their contents' hashes.
    pub(crate) fn sample(&self, limit: usize) -> Result<Vec<Arc<Signature>>, RouterError> {
        take(self, limit)
    }
}

/// At most `limit` signatures, in the order of their contents' hashes.
pub(super) fn take(router: &Router, limit: usize) -> Result<Vec<Arc<Signature>>, RouterError> {
    for _ in 0..TRIES {
        let plan = router.plan();
        match once(router, &plan, limit) {
            Err(RouterError::Node(_, NodeError::StalePlan { .. })) => {}
            // What moved meanwhile would be left out.
            Ok(_) if !Arc::ptr_eq(&plan, &router.plan()) => {}
            sample => return sample,
        }
    }
    Err(RouterError::Replanned)
}

fn once(router: &Router, plan: &Plan, limit: usize) -> Result<Vec<Arc<Signature>>, RouterError> {
    let mut chosen: Vec<(ContentHash, NodeId)> = Vec::new();
    for node in router.nodes.iter().map(|handle| handle.id) {
        let least = router.call(node, plan, |node, call| node.sample(call, SampleRequest::Least(limit)))?;
        if let Sampled::Least(least) = least {
            chosen.extend(least.into_iter().map(|content| (content, node)));
        }
    }
    chosen.sort_unstable();
    chosen.truncate(limit);
    let mut sample = Vec::with_capacity(chosen.len());
    let mut bytes = 0;
    for some in chosen.chunks(STEP) {
        if bytes >= BYTES_MAX {
            break;
        }
        let from = sample.len();
        for node in router.nodes.iter().map(|handle| handle.id) {
            let here = some.iter().filter(|(_, at)| *at == node).map(|(content, _)| *content);
            let contents: Vec<ContentHash> = here.collect();
            if contents.is_empty() {
                continue;
            }
            let request = SampleRequest::Signatures(contents);
            if let Sampled::Signatures(signatures) =
                router.call(node, plan, |node, call| node.sample(call, request))?
            {
                bytes += signatures.iter().map(|one| one.as_bytes().len()).sum::<usize>();
                sample.extend(signatures);
            }
        }
        sample[from..].sort_unstable_by_key(|signature| signature.content());
    }
    Ok(sample)
}
