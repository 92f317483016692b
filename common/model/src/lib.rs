//! The nouns of Doppel: identifiers, URLs, time stamps, signatures, and the pairwise function F.
//!
//! The modules build on each other from left to right and never the other way: the nouns → `sketch` → `signature`
//! → `pairwise`. Nothing here knows a store, a socket or a clock.
#![forbid(unsafe_code)]

mod decimal;
mod hash;
mod id;
pub mod pairwise;
mod random;
pub mod signature;
pub mod sketch;
mod time;
mod union_find;
mod url;

pub use decimal::{Tau, TauError};
pub use hash::{stable_hash64, stable_hash128};
pub use id::{ContentHash, GroupId, IdError, PageId, ShardId};
pub use random::Random;
pub use time::{TimeError, Timestamp};
pub use union_find::UnionFind;
pub use url::{PageUrl, UrlError};
