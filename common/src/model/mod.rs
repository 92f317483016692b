//! The nouns of Doppel: identifiers, URLs, time stamps, the pages' own facts.

mod decimal;
mod hash;
mod id;
mod time;
mod url;

pub use decimal::{Tau, TauError};
pub use hash::{stable_hash64, stable_hash128};
pub use id::{ContentHash, GroupId, IdError, PageId, ShardId};
pub use time::{TimeError, Timestamp};
pub use url::{PageUrl, UrlError};
