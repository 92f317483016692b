//! The cover of a group: the contents that are kept, and for each other content the kept content that it is a
//! duplicate of.

use doppel_model::pairwise::{Comparison, Policy};
use hashbrown::HashMap;

use super::{CACHE_BYTES_MAX, CachedSignatures, SignatureReader, Stars};

/// The contents of a cover.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoveredContents {
    /// Number of contents. They are in the winner order.
    pub(crate) count: usize,
    /// Number of first contents that are kept in any case.
    pub(crate) protected: usize,
    /// Whether all other contents are kept, too, unless they are similar to one of these. Otherwise one that is
    /// similar to any kept content before it is a duplicate.
    pub(crate) only_by_protected: bool,
}

impl CoveredContents {
    /// Contents of which none is kept in any case.
    pub(crate) fn unprotected(count: usize) -> Self {
        Self { count, protected: 0, only_by_protected: false }
    }
}

/// Returns the cover of the contents 0 to `count - 1`. For each content, the result has the first kept content before
/// it that is similar to it, with the comparison. If there is none, or if a content has no signature, the result is
/// `None`. Contents with a result are duplicates, except protected ones.
///
/// The cover is the assignment of contents to stars: each content goes to the first center that is similar to
/// it, and the centers are kept.
///
/// # Errors
/// The errors of `read`.
pub(crate) fn cover<E>(
    policy: Policy,
    contents: CoveredContents,
    read: &mut SignatureReader<'_, E>,
) -> Result<Vec<Option<(usize, Comparison)>>, E> {
    let CoveredContents { count, protected, only_by_protected } = contents;
    let cache = CachedSignatures { read, signatures: HashMap::new(), bytes: 0, limit: CACHE_BYTES_MAX };
    let mut stars = Stars::new(policy, count, cache)?;
    let mut cover = vec![None; count];
    let centers = 0..if only_by_protected { protected } else { count };
    stars.assign_each((centers, protected), &mut |center, number, comparison| {
        cover[number] = Some((center, *comparison));
    })?;
    Ok(cover)
}
