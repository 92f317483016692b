//! The exact baseline: which contents are near-duplicates and which groups they form, worked out the plain way.
//!
//! The evaluation and the oracle of the tests hold the product against it, so it shares no code with the product:
//! its own tokens, shingles as ids of five interned words (no hash that could collide), an exact join of all pairs
//! in integers, connected components. It knows no order, no sketch, no partition and no representative, so it can
//! only be right or wrong, never early or late.
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
