//! Fetching signatures from tier 1 that cannot be read here.
//!
//! Work that needs such signatures releases its lock, and returns which ones are missing. They are fetched in
//! one call, and the work is repeated with them. So no lock is held during a call to tier 1.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::index_node::NodeError;
use doppel_protocol::{SIGNATURES_MAX, SignatureSource};
use hashbrown::HashMap;

use crate::seed::Seeded;

/// Maximum number of pages of a content that a request for its signature names. These pages have the same
/// signature, unless tier 1 has newer contents than the node.
pub(crate) const PAGES_MAX: usize = 16;

/// Fetched signatures by content. `None` if no page has the content any more.
pub(crate) type FetchedSignatures = HashMap<ContentHash, Option<Arc<Signature>>, Seeded>;

/// A signature that is needed and cannot be read here.
#[derive(Debug, Clone)]
pub(crate) struct MissingSignature {
    pub(crate) content: ContentHash,
    /// Some of the pages that have the content.
    pub(crate) pages: Vec<PageId>,
}

/// Repeats `work` until no signature is missing. `work` must hold no lock when it returns.
pub(crate) fn with_fetched<T>(
    source: &dyn SignatureSource,
    work: impl FnMut(&FetchedSignatures) -> Result<T, Vec<MissingSignature>>,
) -> Result<T, NodeError> {
    with_fetched_before(source, &mut FetchedSignatures::default(), work)
}

/// Like [`with_fetched`], but starts with the signatures in `fetched`, and adds to them.
pub(crate) fn with_fetched_before<T>(
    source: &dyn SignatureSource,
    fetched: &mut FetchedSignatures,
    mut work: impl FnMut(&FetchedSignatures) -> Result<T, Vec<MissingSignature>>,
) -> Result<T, NodeError> {
    loop {
        match work(fetched) {
            Ok(done) => return Ok(done),
            // Each signature is requested once, so the loop ends.
            Err(missing) => fetch(source, &missing, fetched)?,
        }
    }
}

/// Returns all results, or all signatures that are missing for them.
pub(crate) fn all_or_missing<T, M: IntoIterator<Item = MissingSignature>>(
    results: Vec<Result<T, M>>,
) -> Result<Vec<T>, Vec<MissingSignature>> {
    let (mut complete, mut missing) = (Vec::with_capacity(results.len()), Vec::new());
    for result in results {
        match result {
            Ok(one) => complete.push(one),
            Err(more) => missing.extend(more),
        }
    }
    if missing.is_empty() { Ok(complete) } else { Err(missing) }
}

/// Fetches the missing signatures.
fn fetch(
    source: &dyn SignatureSource,
    missing: &[MissingSignature],
    fetched: &mut FetchedSignatures,
) -> Result<(), NodeError> {
    for chunk in missing.chunks(SIGNATURES_MAX / PAGES_MAX) {
        let pages: Vec<PageId> = chunk.iter().flat_map(|one| &one.pages).copied().collect();
        let signatures =
            source.signatures(&pages).map_err(|error| NodeError::Unavailable(error.to_string()))?;
        let mut signatures = signatures.into_iter();
        for MissingSignature { content, pages } in chunk {
            let own: Vec<_> = signatures.by_ref().take(pages.len()).flatten().collect();
            fetched.insert(*content, own.into_iter().find(|signature| signature.content() == *content));
        }
    }
    Ok(())
}
