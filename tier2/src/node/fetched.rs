//! Signatures that cannot be read here, and are fetched from tier 1.
//!
//! Work that needs such signatures gives up its lock and returns which. They are fetched in one call, and the work is
//! done again with them. So no lock is held while tier 1 is asked.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::index_node::NodeError;
use doppel_protocol::{SIGNATURES_MAX, SignatureSource};
use hashbrown::HashMap;

use crate::seed::Seeded;

/// Pages of a content that are asked for its signature. They agree, unless tier 1 is ahead of us.
pub(crate) const PAGES_MAX: usize = 16;

/// What was fetched; none where no page has the content any more.
pub(crate) type Fetched = HashMap<ContentHash, Option<Arc<Signature>>, Seeded>;

/// A signature that is needed and not here.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) content: ContentHash,
    /// Some of the pages that have the content.
    pub(crate) pages: Vec<PageId>,
}

/// Does `work` until nothing that it needs is missing. `work` holds no lock when it returns.
pub(crate) fn with_fetched<T>(
    source: &dyn SignatureSource,
    work: impl FnMut(&Fetched) -> Result<T, Vec<Wanted>>,
) -> Result<T, NodeError> {
    with_known(source, &mut Fetched::default(), work)
}

/// Like [`with_fetched`], but with what was fetched before. What is fetched is added to it.
pub(crate) fn with_known<T>(
    source: &dyn SignatureSource,
    fetched: &mut Fetched,
    mut work: impl FnMut(&Fetched) -> Result<T, Vec<Wanted>>,
) -> Result<T, NodeError> {
    loop {
        match work(fetched) {
            Ok(done) => return Ok(done),
            // Each is asked for once, so this ends.
            Err(wanted) => fetch(source, &wanted, fetched)?,
        }
    }
}

fn fetch(source: &dyn SignatureSource, wanted: &[Wanted], fetched: &mut Fetched) -> Result<(), NodeError> {
    for some in wanted.chunks(SIGNATURES_MAX / PAGES_MAX) {
        let pages: Vec<PageId> = some.iter().flat_map(|one| &one.pages).copied().collect();
        let signatures =
            source.signatures(&pages).map_err(|error| NodeError::Unavailable(error.to_string()))?;
        let mut signatures = signatures.into_iter();
        for Wanted { content, pages } in some {
            let own: Vec<_> = signatures.by_ref().take(pages.len()).flatten().collect();
            fetched.insert(*content, own.into_iter().find(|signature| signature.content() == *content));
        }
    }
    Ok(())
}
