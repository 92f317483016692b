//! Tier 1: the system of record.
//!
//! This crate stores pages, groups, pending work, and the change feed, divided into shards. A range is a run
//! of shards with one database and one writer thread. The writer feeds the commands of clients and of
//! background work into a deterministic state machine (`machine`). Several commands together become one
//! record of the range's log (`database`).
//!
//! Invariant (G2): the record is on disk before the range acknowledges a command or carries out an effect.
//!
//! The machine never compares signatures. A caller's thread compares a new version with its representative
//! (`service::submissions::hint`), and the worker thread makes all other comparisons.
//!
//! A submission takes this path: `service::api` (with the hint), `service::writer`, `machine::page`, the
//! commit to the store, the answer to the client. Then the effects go to tier 2 and to the worker, and their
//! results come back as commands.
#![forbid(unsafe_code)]

pub mod backup;
pub mod bulk;
pub mod check;
mod lease;
mod machine;
mod peers;
mod range;
mod regroup;
mod replica;
mod rows;
mod service;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
mod statuses;
mod storage;

pub use machine::{Retention, Rules};
pub use replica::{ReplicaError, TransferError};
pub use service::{
    Config, Error, IndexStateRows, Keeper, OtherRanges, ReplicatedRange, ReplicationConfig, Tier1,
};
pub use storage::database::Database;
pub use storage::store::{JoinedStore, Memory, Store, StoreError, Write};
