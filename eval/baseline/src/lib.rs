//! The exact baseline: which contents are near-duplicates, and which groups they form, by the plainest
//! correct method.
//!
//! The evaluation and the oracle of the tests compare the product with this crate, so the two share no code.
//! The baseline has its own tokens, shingles as ids of five interned words (without a hash that could
//! collide), an exact join of all pairs in integers, and connected components. The baseline computes its
//! answer from all contents at once. Unlike the answer of the product, its answer depends neither on the
//! order of arrival nor on unfinished work. It has no sketch, partition or representative.
//!
//! Invariant: this crate depends on no other crate of the workspace.
#![forbid(unsafe_code)]

mod components;
mod contents;
pub mod join;
mod tau;
pub mod tokens;

pub use components::components;
pub use contents::{Content, ContentId, Contents, SHINGLE_WORDS, TOKENS_MIN};
pub use join::{Similar, near_duplicate, similar_contents};
pub use tau::{Tau, TauError};
