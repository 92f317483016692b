//! The exact baseline: which contents are near-duplicates, and which groups they form, by the plainest
//! correct method.
//!
//! The evaluation and the oracle of the tests compare the product with this crate, so the two share no code.
//! The baseline has its own tokens, shingles as ids of five interned words (without a hash that could
//! collide), an exact join of all pairs in integers, and connected components. It has no order, sketch,
//! partition or representative. Its answer can be wrong, but never early or late.
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
