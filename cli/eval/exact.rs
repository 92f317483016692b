//! The baseline of the evaluation: what the groups must be, worked out the plain way on one machine.
//!
//! It shares the reading of crawls and the text of HTML with the service, and nothing after that: its
//! own tokens, exact sets of shingles (ids of five interned words: no hash that could collide), an exact
//! join of all pairs, connected components, redirects followed. It knows no order but that of dates, no
//! sketch, no partition and no representative, so it is never early or late.

mod collection;
mod contents;
mod join;
mod tokens;

pub(super) use collection::{Collection, Label, Taken, Version};
pub(super) use contents::{ContentId, Contents};
pub(super) use join::{all_pairs, near_duplicate};
