//! What a search is given: the content that is searched for, and scratch memory.

use doppel_model::signature::Signature;
use doppel_partitioning::LengthVector;

use super::interruption::InterruptedSearch;
use crate::node::tables::EntryRef;

/// Scratch memory of a thread.
#[derive(Debug, Default)]
pub(crate) struct SearchScratch {
    pub(super) buffer: Vec<u8>,
    pub(super) bitmap: Vec<u64>,
}

/// The content that is searched for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) lengths: LengthVector,
    /// Its entry, if this node stores the content.
    pub(crate) own: Option<EntryRef>,
    /// Where the search continues. `None` if it begins.
    pub(crate) interrupted: Option<&'a InterruptedSearch>,
    /// The cost at which the search is interrupted. `None` if it has no limit.
    pub(crate) limit: Option<u64>,
}
