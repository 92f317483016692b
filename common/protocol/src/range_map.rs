//! The division of shards into ranges. Each range has a fixed, contiguous run of shards. The lengths of the
//! runs differ by at most one.

use std::ops::Range;

use doppel_model::{PageId, RangeId, ShardId};

/// Maps each shard to its range. The map follows from the two counts, so a collection stores only these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeMap {
    shards: u16,
    ranges: u16,
}

/// A number of shards or ranges that a collection cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RangeMapError {
    /// Number of shards that is not in 1..=1024.
    #[error("{0} shards; 1 to 1024 are possible")]
    Shards(u16),
    /// Number of ranges that is 0 or greater than the number of shards.
    #[error(
        "{ranges} ranges for {shards} shards; each range needs at least one shard, and there must be at least one range"
    )]
    Ranges {
        /// Requested number of ranges.
        ranges: u16,
        /// Requested number of shards.
        shards: u16,
    },
}

impl RangeMap {
    /// Divides `shards` shards into `ranges` ranges.
    ///
    /// # Errors
    /// If either number is 0, if there are more than 1024 shards, or if there are more ranges than shards.
    pub fn new(shards: u16, ranges: u16) -> Result<Self, RangeMapError> {
        match (shards, ranges) {
            (1..=1024, 1..) if ranges <= shards => Ok(Self { shards, ranges }),
            (1..=1024, _) => Err(RangeMapError::Ranges { ranges, shards }),
            _ => Err(RangeMapError::Shards(shards)),
        }
    }

    /// Number of all shards of the collection.
    #[must_use]
    pub fn shards(self) -> u16 {
        self.shards
    }

    /// All ranges, in the order of their shards.
    pub fn ranges(self) -> impl Iterator<Item = RangeId> {
        (0..self.ranges).map(RangeId)
    }

    /// Number of ranges of the collection.
    #[must_use]
    pub fn count(self) -> usize {
        usize::from(self.ranges)
    }

    /// The run of shards of a range, as a half-open interval.
    #[must_use]
    pub fn run(self, range: RangeId) -> Range<ShardId> {
        let cut = |range: u16| {
            let shard = u32::from(range) * u32::from(self.shards) / u32::from(self.ranges);
            ShardId(u16::try_from(shard).unwrap_or(self.shards))
        };
        cut(range.0)..cut(range.0.saturating_add(1).min(self.ranges))
    }

    /// Like [`run`](Self::run), but iterates over the shards.
    pub fn shards_of(self, range: RangeId) -> impl Iterator<Item = ShardId> {
        let Range { start, end } = self.run(range);
        (start.0..end.0).map(ShardId)
    }

    /// The range of a shard. Shards that do not exist belong to the last range.
    #[must_use]
    pub fn of_shard(self, shard: ShardId) -> RangeId {
        let shard = shard.0.min(self.shards - 1);
        let range = ((u32::from(shard) + 1) * u32::from(self.ranges) - 1) / u32::from(self.shards);
        RangeId(u16::try_from(range).unwrap_or(self.ranges - 1))
    }

    /// The range that stores a page.
    #[must_use]
    pub fn of_page(self, page: PageId) -> RangeId {
        self.of_shard(page.shard(self.shards))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_is_in_the_run_of_its_range_and_run_lengths_differ_by_at_most_one() {
        for shards in (1..=40).chain([256, 1023, 1024]) {
            for ranges in 1..=shards.min(40) {
                let map = RangeMap::new(shards, ranges).unwrap();
                let mut next = 0;
                for range in map.ranges() {
                    let run = map.run(range);
                    assert_eq!(run.start.0, next, "{map:?}");
                    let even = shards / ranges..=shards.div_ceil(ranges);
                    assert!(even.contains(&(run.end.0 - run.start.0)), "{map:?} {run:?}");
                    map.shards_of(range).for_each(|shard| assert_eq!(map.of_shard(shard), range, "{map:?}"));
                    next = run.end.0;
                }
                assert_eq!(next, shards);
                assert_eq!(map.of_shard(ShardId(u16::MAX)).0, ranges - 1);
            }
        }
    }

    #[test]
    fn impossible_numbers_of_shards_or_ranges_are_refused() {
        assert_eq!(RangeMap::new(0, 1), Err(RangeMapError::Shards(0)));
        assert_eq!(RangeMap::new(1025, 1), Err(RangeMapError::Shards(1025)));
        assert_eq!(RangeMap::new(4, 0), Err(RangeMapError::Ranges { ranges: 0, shards: 4 }));
        assert_eq!(RangeMap::new(4, 5), Err(RangeMapError::Ranges { ranges: 5, shards: 4 }));
        assert!(RangeMap::new(4, 4).is_ok());
    }
}
