//! Core types of Doppel: identifiers, URLs, time stamps, signatures, and the pairwise near-duplicate function
//! F.
//!
//! Modules depend on each other in one direction only: identifiers, URLs and time stamps first, then
//! `sketch`, then `signature` and `tables`, and last `pairwise` and `parity`. This crate never opens a store
//! or a socket. It reads the clock only in [`Timestamp::now`].
#![forbid(unsafe_code)]

mod decimal;
mod hash;
mod id;
pub mod pairwise;
pub mod parity;
mod random;
mod random_number;
mod raw_content;
pub mod signature;
pub mod sketch;
pub mod tables;
mod time;
mod union_find;
mod url;

pub use decimal::{Tau, TauError};
pub use hash::{StableHasher64, stable_hash64, stable_hash64_seeded, stable_hash128};
pub use id::cluster_id::{Epoch, Incarnation, InsertSeq, NodeId, PartitionId, PlanVersion, RangeId};
pub use id::{ClientId, ContentHash, GroupId, IdError, PageId, ShardId};
pub use random::Random;
pub use random_number::random_number;
pub use raw_content::RawContent;
pub use time::{TimeError, Timestamp};
pub use union_find::UnionFind;
pub use url::{PageUrl, UrlError};
