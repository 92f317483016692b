//! The routes of the tag `advice`: what a page is, why, and by which rules winners are elected.
//!
//! Invariant: advice calls a page a duplicate only after the pairwise function F was verified on current
//! contents (guarantee G5, `doppel_engine::advise`).

pub(crate) mod explain;
pub(crate) mod probe;
pub(crate) mod status;
mod status_batch;
pub(crate) mod winners;
