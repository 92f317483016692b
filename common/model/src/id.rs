//! Identifiers of shards, pages, clients, contents and groups.
//!
//! Each identifier is a newtype, so that function signatures carry no bare integers.

pub(crate) mod cluster_id;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::hash::stable_hash128;

/// A shard: a slice of the space of page ids and group ids. Shards are numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ShardId(pub u16);

/// The id of a page: the 128-bit stable hash of the identity of its URL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PageId([u8; 16]);

impl PageId {
    /// Hashes a URL identity (see [`PageUrl`](super::PageUrl)) to its page id.
    #[must_use]
    pub fn of(identity: &str) -> Self {
        Self(stable_hash128(identity.as_bytes()).to_be_bytes())
    }

    /// Builds an id from its 16 bytes, in the order that [`bytes`](Self::bytes) returns.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes of the id, most significant first.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The shard that owns this page. Shards are equal slices of the hash space.
    #[must_use]
    pub fn shard(&self, shards: u16) -> ShardId {
        let [a, b, c, d, ..] = self.0;
        let top = u64::from(u32::from_be_bytes([a, b, c, d]));
        ShardId(u16::try_from((top * u64::from(shards)) >> 32).unwrap_or(0))
    }

    /// The smallest page id that a shard owns.
    #[must_use]
    pub fn first_of(shard: ShardId, shards: u16) -> Self {
        let top = (u64::from(shard.0) << 32).div_ceil(u64::from(shards.max(1)));
        let top = u32::try_from(top).unwrap_or(u32::MAX).to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&top);
        Self(bytes)
    }
}

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{:08x}", u128::from_be_bytes(self.0) >> 96)
    }
}

/// The client for which work is done: a 32-bit hash of its name.
///
/// Two clients whose names have the same hash count as one client, and share one client's limits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct ClientId(pub u32);

impl ClientId {
    /// Stands for the service itself, and for callers without limits.
    pub const NONE: Self = Self(0);

    /// The id of the client with this name. Never [`NONE`](Self::NONE).
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self((stable_hash128(name.as_bytes()) as u32).max(1))
    }
}

/// The id of a content: the 128-bit stable hash of its token sequence.
///
/// Some policies also hash the site or the lines of the page; see [`signature`](crate::signature).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentHash(pub [u8; 16]);

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{:08x}", u128::from_be_bytes(self.0) >> 96)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The id of a group. The shard that owns the group assigns the id and never reuses it.
///
/// Ids are totally ordered: by counter first, so that older groups have smaller ids, and then by shard. The
/// public form is the text `g<counter>-<shard>`, because many JSON readers keep only 53 bits of a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupId(u64);

impl GroupId {
    /// The id of the `counter`-th group of `shard`. `counter` must be below 2^48.
    #[must_use]
    pub const fn new(counter: u64, shard: ShardId) -> Self {
        Self(counter << 16 | shard.0 as u64)
    }

    /// The shard that owns the group's record.
    #[must_use]
    pub const fn shard(self) -> ShardId {
        ShardId((self.0 & 0xffff) as u16)
    }

    /// The integer form of the id, which stored records use.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Builds an id from the integer that [`get`](Self::get) returned.
    #[must_use]
    pub const fn from_stored(stored: u64) -> Self {
        Self(stored)
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g{}-{}", self.0 >> 16, self.0 & 0xffff)
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a valid group id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a group id; a group id looks like g12-0")]
pub struct IdError(String);

impl FromStr for GroupId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let (counter, shard) = text.strip_prefix('g')?.split_once('-')?;
            let counter: u64 = counter.parse().ok().filter(|c| *c < 1 << 48)?;
            let id = Self::new(counter, ShardId(shard.parse().ok()?));
            (id.to_string() == text).then_some(id)
        };
        parse().ok_or_else(|| IdError(text.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_ids_round_trip_and_order_by_age() {
        let id = GroupId::new(12, ShardId(3));
        assert_eq!(id.to_string(), "g12-3");
        assert_eq!("g12-3".parse::<GroupId>(), Ok(id));
        assert_eq!(id.shard(), ShardId(3));
        assert!(GroupId::new(11, ShardId(9)) < id);
        for bad in ["", "12-3", "g12", "g-1", "g012-3", "g1-70000", "g+1-2"] {
            assert!(bad.parse::<GroupId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn shards_are_equal_slices() {
        let first = PageId::from_bytes([0; 16]);
        let last = PageId::from_bytes([0xff; 16]);
        for shards in [1, 4, 16, 1000] {
            assert_eq!(first.shard(shards), ShardId(0));
            assert_eq!(last.shard(shards), ShardId(shards - 1));
            assert_eq!(PageId::first_of(ShardId(0), shards), first);
            for shard in 1..shards {
                let first = u128::from_be_bytes(PageId::first_of(ShardId(shard), shards).0);
                let page = |number: u128| PageId::from_bytes(number.to_be_bytes()).shard(shards);
                assert_eq!(page(first - 1), ShardId(shard - 1));
                assert_eq!(page(first), ShardId(shard));
            }
        }
    }
}
