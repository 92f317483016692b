//! Repairs of groups: the result of a repair, and the audit trail of applied repairs and quarantines.

use std::fmt;
use std::str::FromStr;

use doppel_contract::TrailEvent;
use doppel_contract::answer::{AppliedRepair, AppliedRepairUrls};
use doppel_model::{GroupId, PageUrl, ShardId, Timestamp};
use serde::{Deserialize, Serialize};

/// Maximum number of URLs that are stored for a repair, once as members before the repair and once as the
/// resulting sets. This is about 2 MB, so that a giant group does not make a giant record.
pub const REPAIR_URLS_KEPT: usize = 10_000;

/// The result of a repair or of a dry run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepairReport {
    /// The group that was repaired, after following merges.
    pub group: GroupId,
    /// The members before the repair.
    pub before: Vec<PageUrl>,
    /// The sets into which exact comparison divides the members. The winner's set is first.
    pub components: Vec<Vec<PageUrl>>,
    /// Whether the repair was applied.
    pub applied: bool,
}

/// Selects up to `room` URLs from the sets.
///
/// The URLs that leave the group matter most, and the winner's set, which is first, is usually the largest.
/// Therefore the winner's set is shortened first, down to a tenth of the room. The last set may be
/// incomplete.
#[must_use]
pub fn limit_urls(components: &[Vec<PageUrl>], room: usize) -> Vec<Vec<PageUrl>> {
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

/// Id of an entry in the audit trail. For example, `r7-0` is the seventh entry of shard 0. Ids are never
/// reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RepairId {
    /// The shard that owns the group.
    pub shard: ShardId,
    /// Number of the entry in its shard, counted from 1.
    pub number: u64,
}

impl fmt::Display for RepairId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}-{}", self.number, self.shard.0)
    }
}

/// A text is not a valid repair id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of a repair, such as r7-0")]
pub struct InvalidRepairId(String);

impl FromStr for RepairId {
    type Err = InvalidRepairId;

    fn from_str(text: &str) -> Result<Self, InvalidRepairId> {
        let parse = || {
            let (number, shard) = text.strip_prefix('r')?.split_once('-')?;
            let id = Self { shard: ShardId(shard.parse().ok()?), number: number.parse().ok()? };
            (id.to_string() == text).then_some(id)
        };
        parse().ok_or_else(|| InvalidRepairId(text.chars().take(40).collect()))
    }
}

/// An entry of the audit trail without its URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairEntry {
    /// Id of the entry.
    pub id: RepairId,
    /// Time of the event.
    pub at: Timestamp,
    /// Kind of the event.
    pub event: TrailEvent,
    /// Person who requested the repair, as the caller stated; empty for a quarantine.
    pub by: String,
    /// The group, under the id that it had at that time.
    pub group: GroupId,
    /// The group into which this group was merged, if the merge ended a quarantine.
    pub into: Option<GroupId>,
    /// Number of members before the repair, or when the quarantine began or ended.
    pub members: u64,
    /// Number of resulting components. For a truncated entry, the number of components that were stored; 0
    /// for a quarantine.
    pub component_count: u64,
    /// Whether some URLs were not stored, because there were more than [`REPAIR_URLS_KEPT`].
    pub truncated: bool,
}

/// An entry of the audit trail with its URLs. A quarantine has no URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairDetails {
    /// The entry without its URLs.
    pub entry: RepairEntry,
    /// The members before the repair.
    pub before: Vec<PageUrl>,
    /// The resulting components, the winner's first. A component is empty if all its pages were purged.
    pub components: Vec<Vec<PageUrl>>,
    /// Number of members that are no longer on record. Both lists omit their URLs.
    pub forgotten: u64,
}

impl From<RepairEntry> for AppliedRepair {
    fn from(entry: RepairEntry) -> Self {
        let RepairEntry { id, at, event, by, group, into, members, component_count, truncated } = entry;
        let into = into.map(|into| into.to_string());
        let by = Some(by).filter(|by| !by.is_empty());
        let (id, at, group) = (id.to_string(), at.to_string(), group.to_string());
        Self { id, at, event, by, group, into, members, component_count, truncated }
    }
}

impl From<RepairDetails> for AppliedRepairUrls {
    fn from(details: RepairDetails) -> Self {
        let urls = |pages: Vec<_>| pages.into_iter().map(String::from).collect();
        Self {
            repair: details.entry.into(),
            before: urls(details.before),
            components: details.components.into_iter().map(urls).collect(),
            forgotten: details.forgotten,
        }
    }
}

/// A page of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairTrail {
    /// The entries, newest first.
    pub repairs: Vec<RepairEntry>,
    /// Where the next page begins; `None` at the end. A page with few entries, or no entry, is not
    /// necessarily the last.
    pub next: Option<RepairPosition>,
}

/// A position in the audit trail: the number of remaining entries of each shard. The text form consists of
/// hexadecimal numbers separated by dots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairPosition(Vec<u64>);

impl RepairPosition {
    /// Maximum number of shards in the text form.
    const SHARDS_MAX: usize = 1_024;

    /// Maximum length of the text form in bytes: 16 digits and a separator for each shard.
    pub const BYTES_MAX: usize = 17 * Self::SHARDS_MAX;

    /// Creates a position from the number of the next entry of each shard, which is the newest remaining
    /// entry; 0 if no entry remains.
    #[must_use]
    pub fn new(numbers: Vec<u64>) -> Self {
        Self(numbers)
    }

    /// Returns the number of the next entry of each shard.
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

/// A text is not a valid position in the audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a position that an earlier answer returned as `next`")]
pub struct InvalidRepairPosition;

impl FromStr for RepairPosition {
    type Err = InvalidRepairPosition;

    fn from_str(text: &str) -> Result<Self, InvalidRepairPosition> {
        if text.len() > Self::BYTES_MAX {
            return Err(InvalidRepairPosition);
        }
        let number = |text: &str| {
            let is_hex = text.bytes().all(|b| b.is_ascii_hexdigit());
            u64::from_str_radix(text, 16).ok().filter(|_| is_hex).ok_or(InvalidRepairPosition)
        };
        let numbers = text.split('.').map(number).collect::<Result<Vec<_>, _>>()?;
        if numbers.len() > Self::SHARDS_MAX { Err(InvalidRepairPosition) } else { Ok(Self(numbers)) }
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
            assert_eq!(bad.parse::<RepairPosition>(), Err(InvalidRepairPosition), "{bad}");
        }
    }

    #[test]
    fn the_winners_set_is_shortened_first() {
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
            let found = limit_urls(&sets, room);
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), listed, "in {room}");
        }
    }
}
