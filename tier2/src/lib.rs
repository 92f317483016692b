//! Tier 2: the derived index.
//!
//! It keeps the signature of every content and finds, batch by batch, what new and changed pages are
//! near-duplicates of ([`Tier2`], the local form of [`Tier2Api`](doppel_protocol::Tier2Api)). Tier 1
//! sends orders and takes answers. Everything but an operator's requests can be rebuilt from tier 1's signatures.
//!
//! | module | what |
//! |---|---|
//! | `node` | has partitions and searches them; knows no plan |
//! | `router` | plan, passes, migration, rebalancing; sees nodes through [`IndexNode`] only |
//! | `embedded` | both in one process, or a router over nodes in others |
//! | `own_process` | a node in a process of its own |
//! | `state_files` | what the router keeps, in files |
//! | `check` | whether the files are sound |
//! | [`mod@reference`] | the definition, compared one by one; what tests hold the index against |
//!
//! Invariants: an answer names a partner only after exact comparison ([`Policy::linked`]); a page is stored
//! before anything of its pass is compared (G4); no signature is used that does not check.
//!
//! [`IndexNode`]: doppel_protocol::index_node::IndexNode
//! [`Policy::linked`]: doppel_model::pairwise::Policy::linked
#![forbid(unsafe_code)]

pub mod check;
mod config;
mod embedded;
mod error;
mod node;
mod numbers;
mod own_process;
pub mod reference;
mod router;
mod seed;
mod setup;
#[cfg(any(test, feature = "simulation"))]
#[doc(hidden)]
pub mod simulation;
mod state_files;

pub use config::{Config, SNAPSHOT_PAUSE};
pub use embedded::Tier2;
pub use error::Error;
pub use own_process::{Node, NodeSettings};
pub use state_files::StateFiles;

#[cfg(test)]
mod tests;
