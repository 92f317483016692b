//! Tier 1: the system of record.
//!
//! Pages, groups, the pending queue and the change feed live in shards. The shards of one process are
//! a deterministic state machine (`machine`) that one writer thread feeds with commands; a group of
//! commands becomes one record of the range's log (`database`), on disk before anything is acknowledged or any
//! effect is carried out (G2). Comparison of signatures happens outside the machine: for a new version
//! in the caller's thread (`service::hint`), for background work in the worker thread.
//!
//! The way of a submission: `service::api` (hint) → `service::writer` → `machine::page` → store commit
//! → answer; then `Effect`s → tier 2 and the worker, whose answers come back as commands.
#![forbid(unsafe_code)]

pub mod backup;
pub mod bulk;
pub mod check;
mod database;
mod files;
mod key;
mod lease;
mod log;
mod machine;
mod peers;
mod progress;
mod range;
mod range_files;
mod record;
mod regroup;
mod replica;
mod service;
mod signatures;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
mod statuses;
mod store;
mod totals;
mod txn;

pub use database::Database;
pub use machine::{Retention, Rules};
pub use replica::{ReplicaError, TransferError};
pub use service::{Config, Error, IndexStateRows, Keeper, OtherRanges, ReplicatedRange, Replication, Tier1};
pub use store::{Joined, Memory, Store, StoreError, Write};
