//! Tier 2: an index of signatures that is derived from tier 1.
//!
//! The index stores the signature of every content. Batch by batch, it finds the near-duplicates of new and
//! changed pages. [`Tier2`] implements [`Tier2Api`](doppel_protocol::Tier2Api) in this process. Tier 1 sends
//! orders and receives answers. The index can be rebuilt from the signatures of tier 1, except for the
//! requests of an operator.
//!
//! | module | responsibility |
//! |---|---|
//! | `node` | stores partitions and searches them; does not know the plan |
//! | `router` | plan, passes, migration, rebalancing; calls nodes through [`IndexNode`] only |
//! | `embedded` | a router with nodes in its process, or over nodes in other processes |
//! | `own_process` | a node in a process of its own |
//! | `state_files` | the plan and the requests of the router, in files |
//! | `check` | finds damage in the files of an index |
//!
//! Invariants:
//! - An answer names a partner only after an exact comparison ([`Policy::linked`]).
//! - A pass stores all its pages before it compares any of them (G4).
//! - The index uses no signature whose checksum is wrong.
//!
//! [`IndexNode`]: doppel_protocol::index_node::IndexNode
//! [`Policy::linked`]: doppel_model::pairwise::Policy::linked
#![forbid(unsafe_code)]

pub mod check;
mod config;
mod embedded;
mod error;
mod incarnations;
mod node;
mod own_process;
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
pub use node::partition::buckets::CrowdingLimits;
pub use own_process::{NodeProcess, NodeSettings};
pub use state_files::StateFiles;

#[cfg(test)]
mod tests;
