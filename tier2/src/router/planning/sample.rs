//! Sampling: signatures of some of the contents, read while passes go on.
//!
//! The sample consists of the contents with the smallest hashes. The same collection therefore gives the same
//! sample, however it is partitioned. Sampling starts again if the plan changes meanwhile.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, NodeId};
use doppel_partitioning::Plan;
use doppel_protocol::index_node::{NodeError, SampleAnswer, SampleRequest};

use crate::router::{Router, RouterError};

/// Approximate limit of the signatures in a sample, in bytes. About 100,000 signatures of common length fit.
const BYTES_MAX: usize = 256 << 20;

/// Number of contents that one call reads.
const STEP: usize = 256;

/// Number of attempts while the plan changes.
const TRIES: u32 = 8;

impl Router {
    /// Returns at most `limit` signatures, in the order of their content hashes.
    pub(crate) fn sample(&self, limit: usize) -> Result<Vec<Arc<Signature>>, RouterError> {
        take(self, limit)
    }
}

/// Takes a sample of at most `limit` signatures, in the order of their content hashes.
pub(in crate::router) fn take(router: &Router, limit: usize) -> Result<Vec<Arc<Signature>>, RouterError> {
    for _ in 0..TRIES {
        let plan = router.plan();
        match take_under(router, &plan, limit) {
            Err(RouterError::Node(_, NodeError::StalePlan { .. })) => {}
            // The sample could lack contents that moved meanwhile.
            Ok(_) if !Arc::ptr_eq(&plan, &router.plan()) => {}
            sample => return sample,
        }
    }
    Err(RouterError::Replanned)
}

fn take_under(router: &Router, plan: &Plan, limit: usize) -> Result<Vec<Arc<Signature>>, RouterError> {
    let mut chosen: Vec<(ContentHash, NodeId)> = Vec::new();
    for node in router.nodes.iter().map(|handle| handle.id) {
        let least = router.call(node, plan, |node, call| node.sample(call, SampleRequest::Least(limit)))?;
        if let SampleAnswer::Least(least) = least {
            chosen.extend(least.into_iter().map(|content| (content, node)));
        }
    }
    chosen.sort_unstable();
    chosen.truncate(limit);
    let mut sample = Vec::with_capacity(chosen.len());
    let mut bytes = 0;
    for chunk in chosen.chunks(STEP) {
        if bytes >= BYTES_MAX {
            break;
        }
        let from = sample.len();
        for node in router.nodes.iter().map(|handle| handle.id) {
            let here = chunk.iter().filter(|(_, at)| *at == node).map(|(content, _)| *content);
            let contents: Vec<ContentHash> = here.collect();
            if contents.is_empty() {
                continue;
            }
            let request = SampleRequest::Signatures(contents);
            if let SampleAnswer::Signatures(signatures) =
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
