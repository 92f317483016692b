//! Tier 2: the derived index.
//!
//! It keeps the signature of every content and finds, batch by batch, what new and changed pages are
//! near-duplicates of ([`Tier2`], the local form of [`Tier2Api`](doppel_protocol::Tier2Api)). Tier 1
//! sends orders and takes answers. All but what an operator requests of the nodes can be rebuilt from tier 1's
//! signatures.
//!
//! From the outside in:
//!
//! | module | what |
//! |---|---|
//! | `service` | the worker: collects orders by count or age, runs passes |
//! | `pass` | store, search, answer |
//! | `search` | one search: candidates, rejection, exact comparison; why its cost does not grow with a cluster |
//! | `cluster` | the nodes, and the plan that says which of them does what |
//! | `migration` | from one plan to the next while everything goes on |
//! | `index` | a node: its tables and its signature file |
//! | `tables`, `partition` | which content is where; columns and candidate tables of each partition |
//! | `columns`, `pages`, `bands`, `buckets`, `truncated_minhash` | what a partition is made of |
//! | `file`, `map_file`, `rebalance_file`, `replace`, `open`, `rebuild` | disk, start, re-homing, compaction |
//! | `mapping`, `learn`, `sample` | the next plan, as the load or an operator asks for it |
//! | `load` | load per partition |
//! | `check` | whether the files are sound |
//! | [`mod@reference`] | the definition, compared one by one; what tests hold the index against |
//!
//! Invariants: an answer names a partner only after exact comparison ([`Policy::linked`]); a page is stored
//! before anything of its pass is compared (G4); no signature is used that does not check.
//!
//! [`Policy::linked`]: doppel_model::pairwise::Policy::linked
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "simulation"))]
mod any_plan;
mod bands;
mod buckets;
pub mod check;
mod cluster;
mod columns;
mod error;
mod file;
mod index;
mod learn;
mod load;
mod map_file;
mod mapping;
mod migration;
mod open;
mod pages;
mod partition;
mod pass;
mod rebalance_file;
mod rebuild;
pub mod reference;
mod replace;
mod sample;
mod search;
mod seed;
mod service;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
mod tables;
mod truncated_minhash;

pub use error::Error;
pub use index::Fetch;
pub use service::{Config, ResultSink, Tier2};

#[cfg(test)]
mod tests;
