//! The nouns of Doppel: identifiers, URLs, time stamps, signatures, and the pairwise function F.
//!
//! The modules build on each other from left to right and never the other way: the nouns → `sketch` → `signature`
//! → `pairwise`. Nothing here knows a store, a socket or a clock.
#![forbid(unsafe_code)]

mod cluster_id;
mod decimal;
mod hash;
mod id;
pub mod pairwise;
pub mod signature;
pub mod sketch;
mod time;
mod url;

pub use cluster_id::{Epoch, Incarnation, InsertSeq, NodeId, PartitionId, PlanVersion, RangeId};
pub use decimal::{Tau, TauError};
pub use hash::{stable_hash64, stable_hash128};
pub use id::{ContentHash, GroupId, IdError, PageId, ShardId};
pub use time::{TimeError, Timestamp};
pub use url::{PageUrl, UrlError};
