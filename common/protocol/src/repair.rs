//! Repairs of groups: what one did, and the trail of those that were applied.

use std::fmt;
use std::str::FromStr;

use doppel_model::{GroupId, PageUrl, ShardId, Timestamp};

/// URLs of a repair that are written down, once as members before and once as the sets they fall into: about
/// 2 MB, so that a giant group does not make a giant record.
pub const REPAIR_URLS_KEPT: usize = 10_000;

/// What a repair did, or would do.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairReport {
    /// The group that was looked at (after following merges).
    pub group: GroupId,
    /// Members before.
    pub before: Vec<PageUrl>,
    /// The sets the members fall into by exact comparison, the winner's first.
    pub components: Vec<Vec<PageUrl>>,
    /// Whether it was applied.
    pub applied: bool,
}

/// As much of the sets that a group falls into as there is room for, in URLs.
///
/// What falls out is what a repair is about, and the winner's set, the first, is mostly the largest: it gives
/// way to the others, down to a tenth of the room. The last set listed may be a part.
#[must_use]
pub fn within(components: &[Vec<PageUrl>], room: usize) -> Vec<Vec<PageUrl>> {
    let others: usize = components.iter().skip(1).map(Vec::len).sum();
    let winners = room.saturating_sub(others).max(room.div_ceil(10));
    let mut left = room;
    let mut listed: Vec<Vec<PageUrl>> = Vec::new();
    for component in components {
        if left == 0 {
            break;
        }
        let most = if listed.is_empty() { winners } else { left };
        let part: Vec<PageUrl> = component.iter().take(most).cloned().collect();
        left -= part.len();
        listed.push(part);
    }
    listed
}

/// Names a repair that was applied: `r7-0` is the seventh of shard 0. Never given again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RepairId {
    /// The shard of the group.
    pub shard: ShardId,
    /// From 1 in each shard.
    pub number: u64,
}

impl fmt::Display for RepairId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}-{}", self.number, self.shard.0)
    }
}

/// Not a repair's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a repair's id looks like r7-0, this is {0:?}")]
pub struct NoRepairId(String);

impl FromStr for RepairId {
    type Err = NoRepairId;

    fn from_str(text: &str) -> Result<Self, NoRepairId> {
        let parse = || {
            let (number, shard) = text.strip_prefix('r')?.split_once('-')?;
            let id = Self { shard: ShardId(shard.parse().ok()?), number: number.parse().ok()? };
            (id.to_string() == text).then_some(id)
        };
        parse().ok_or_else(|| NoRepairId(text.chars().take(40).collect()))
    }
}

/// A repair that was applied, without its URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairEntry {
    /// Names it.
    pub id: RepairId,
    /// When it was applied.
    pub at: Timestamp,
    /// Who asked for it, as they said.
    pub by: String,
    /// The group.
    pub group: GroupId,
    /// Members before.
    pub members: u64,
    /// Sets that they fell into; of a truncated entry those that were written down.
    pub sets: u64,
    /// Whether there were more URLs than [`REPAIR_URLS_KEPT`], so that not all were written down.
    pub truncated: bool,
}

/// A repair that was applied, with its URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairDetails {
    /// The rest.
    pub entry: RepairEntry,
    /// Members before.
    pub before: Vec<PageUrl>,
    /// The sets they fell into, the winner's first. One is empty when all its pages are forgotten.
    pub components: Vec<Vec<PageUrl>>,
    /// Members that no page is on record of any more, and whose URLs are therefore gone from both lists.
    pub forgotten: u64,
}

/// A piece of the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairTrail {
    /// Newest first.
    pub repairs: Vec<RepairEntry>,
    /// Where to go on; none at the end. Few repairs, or none, do not mean the end.
    pub next: Option<RepairPosition>,
}

/// A place in the trail: how many repairs of each shard are still to come. As text, hexadecimal numbers
/// with dots between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPosition(Vec<u64>);

impl RepairPosition {
    /// The most shards that a text may name.
    const SHARDS_MAX: usize = 1_024;

    /// The longest text, in bytes: a number of 16 digits and a separator for each shard.
    pub const BYTES_MAX: usize = 17 * Self::SHARDS_MAX;

    /// From the number of the next repair of each shard, the newest that is still to come; 0 for none.
    #[must_use]
    pub fn new(numbers: Vec<u64>) -> Self {
        Self(numbers)
    }

    /// The number of the next repair of each shard.
    #[must_use]
    pub fn numbers(&self) -> &[u64] {
        &self.0
    }
}

impl fmt::Display for RepairPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, number) in self.0.iter().enumerate() {
            write!(f, "{}{number:x}", if at == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

/// Not a place in the trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not what an earlier answer gave as next")]
pub struct NoRepairPosition;

impl FromStr for RepairPosition {
    type Err = NoRepairPosition;

    fn from_str(text: &str) -> Result<Self, NoRepairPosition> {
        if text.len() > Self::BYTES_MAX {
            return Err(NoRepairPosition);
        }
        let number = |text: &str| {
            let is_hex = text.bytes().all(|b| b.is_ascii_hexdigit());
            u64::from_str_radix(text, 16).ok().filter(|_| is_hex).ok_or(NoRepairPosition)
        };
        let numbers = text.split('.').map(number).collect::<Result<Vec<_>, _>>()?;
        if numbers.len() > Self::SHARDS_MAX { Err(NoRepairPosition) } else { Ok(Self(numbers)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_positions_round_trip() {
        let id = RepairId { shard: ShardId(3), number: 7 };
        assert_eq!(id.to_string(), "r7-3");
        assert_eq!("r7-3".parse(), Ok(id));
        for bad in ["", "7-3", "r7", "r-3", "r07-3", "r7-70000", "r+7-3", "g7-3", "r99999999999999999999-0"] {
            assert!(bad.parse::<RepairId>().is_err(), "{bad}");
        }
        let position = RepairPosition::new(vec![0, 255, u64::MAX]);
        assert_eq!(position.to_string(), "0.ff.ffffffffffffffff");
        assert_eq!(position.to_string().parse(), Ok(position));
        let many = vec!["1"; 1_025].join(".");
        for bad in ["", ".", "1.", "x", "-1", "+1", "1 ", "10000000000000000", &many] {
            assert_eq!(bad.parse::<RepairPosition>(), Err(NoRepairPosition), "{bad}");
        }
    }

    #[test]
    fn the_sets_that_fall_out_are_listed_before_the_winners() {
        for (sets, room, listed) in [
            (&[4, 1, 2][..], 9, &[4, 1, 2][..]),
            (&[4, 1, 2], 7, &[4, 1, 2]),
            (&[4, 1, 2], 6, &[3, 1, 2]),
            (&[40, 1, 2], 6, &[3, 1, 2]),
            (&[4, 1, 20, 3], 6, &[1, 1, 4]),
            (&[300, 400], 100, &[10, 90]),
            (&[1, 9], 4, &[1, 3]),
            (&[5], 2, &[2]),
            (&[5, 1], 0, &[]),
        ] {
            let url = |set: usize, n: usize| PageUrl::parse(&format!("http://{set}/{n}")).unwrap();
            let set = |(number, &size): (usize, &usize)| (0..size).map(|n| url(number, n)).collect();
            let sets: Vec<Vec<PageUrl>> = sets.iter().enumerate().map(set).collect();
            let found = within(&sets, room);
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), listed, "in {room}");
        }
    }
}
