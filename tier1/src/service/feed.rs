//! The change feed: for each shard a log that keeps the newest event of every URL. An event is deleted when a
//! newer event of its URL is written.
//!
//! A cursor is hexadecimal text. It contains the collection and, for each shard, the number of the last event
//! that the consumer has read. Until the consumer has caught up with a shard, the cursor also contains the
//! end of that shard's feed when the consumer began.
//!
//! A cursor is refused if retention has dropped an event that its consumer may need. It is also refused if it
//! comes from another collection, or from a later state of this collection that a restore has undone.

use std::fmt::Write as _;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use doppel_model::{PageId, ShardId, stable_hash64};
use doppel_protocol::range_owner::{FeedExtent, RangeState};
use doppel_protocol::{Change, Changes, Tier1Error};

use super::Tier1;
use super::read::line;
use crate::key;
use crate::record::Meta;

/// How often a waiting consumer looks for new events, and how often it asks other processes.
const LOOK: Duration = Duration::from_secs(1);
const OTHERS: Duration = Duration::from_millis(100);

/// How far a consumer has read the feed of a shard.
#[derive(Debug, Clone, Copy)]
struct Position {
    number: u64,
    /// End of the feed when the consumer began. The consumer does not need dropped events up to there,
    /// because it never saw their pages alive.
    began: u64,
}

/// What this process has last heard of the feeds of other processes.
#[derive(Debug, Default)]
pub(super) struct Others {
    asked: Option<Instant>,
    /// One hash over the collections from which all ranges began.
    collection: u64,
}

/// Extents of the feeds of all shards, and the collection that a cursor must name.
struct Feeds {
    /// Names the collection in cursors.
    collection: u64,
    extents: Vec<FeedExtent>,
}

/// How far the feed of a shard goes.
pub(crate) fn extent(meta: &Meta) -> FeedExtent {
    FeedExtent { end: meta.events, dropped: meta.events_dropped }
}

impl Tier1 {
    /// The extents of all feeds. What other processes have said is at most `age` old.
    fn feed_extents(&self, age: Duration) -> Result<Feeds, Tier1Error> {
        let mut collection = self.collection;
        let fresh = Instant::now().checked_sub(age);
        // The collection of a cursor depends on all ranges even if this process owns all at present. So a
        // cursor stays valid when ranges move.
        if self.ranges.has_others() {
            // Other consumers wait here instead of asking the same again.
            let mut others = self.other_feeds.lock().unwrap_or_else(PoisonError::into_inner);
            if others.asked.zip(fresh).is_none_or(|(asked, fresh)| asked < fresh) {
                let began = Instant::now();
                let mut collections = Vec::with_capacity(self.map.count());
                for range in self.map.ranges() {
                    let RangeState { collection, feeds, .. } = self.at(range)?.state(range)?;
                    collections.extend(collection.to_le_bytes());
                    let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
                    if self.ranges.here(range).is_none() {
                        for (shard, extent) in self.map.shards_of(range).zip(feeds) {
                            feed[usize::from(shard.0)] = extent;
                        }
                    }
                }
                *others = Others { asked: Some(began), collection: stable_hash64(&collections) };
            }
            collection = others.collection;
        }
        let extents = self.feed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Feeds { collection, extents })
    }

    /// A cursor from which a consumer reads only future events.
    pub(super) fn cursor_at_end(&self) -> Result<String, Tier1Error> {
        let Feeds { collection, extents } = self.feed_extents(Duration::ZERO)?;
        let ends = extents.into_iter().map(|extent| Position { number: extent.end, began: extent.end });
        Ok(format_cursor(collection, ends))
    }

    pub(super) fn read_changes(
        &self,
        cursor: Option<&str>,
        limit: usize,
        wait: Duration,
    ) -> Result<Changes, Tier1Error> {
        let Feeds { collection, extents } = self.feed_extents(Duration::ZERO)?;
        let mut positions = match cursor {
            Some(text) => parse_cursor(text, collection, &extents).ok_or(Tier1Error::CursorGone)?,
            None => extents.iter().map(|extent| Position { number: 0, began: extent.end }).collect(),
        };
        let deadline = Instant::now() + wait;
        loop {
            let now = self.feed_extents(OTHERS)?;
            if now.collection != collection {
                return Err(Tier1Error::CursorGone);
            }
            let extents = now.extents;
            let changes = self.collect(&mut positions, &extents, limit)?;
            if !changes.is_empty() || Instant::now() >= deadline {
                let at_end =
                    positions.iter().zip(&extents).all(|(position, extent)| position.number >= extent.end);
                let cursor = format_cursor(collection, positions.into_iter());
                return Ok(Changes { changes, cursor, at_end });
            }
            self.check()?;
            let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
            if *feed == extents {
                let look = if self.ranges.has_others() { OTHERS } else { LOOK };
                let left = deadline.saturating_duration_since(Instant::now()).min(look);
                drop(self.feed_grew.wait_timeout(feed, left));
            }
        }
    }

    /// Reads up to `limit` events after `positions` and moves `positions` behind them.
    fn collect(
        &self,
        positions: &mut [Position],
        extents: &[FeedExtent],
        limit: usize,
    ) -> Result<Vec<Change>, Tier1Error> {
        let mut changes = Vec::new();
        let mut behind: Vec<(ShardId, &mut u64, u64)> = (0..)
            .map(ShardId)
            .zip(positions.iter_mut().zip(extents))
            .filter(|(_, (position, extent))| position.number < extent.end)
            .map(|(shard, (position, extent))| (shard, &mut position.number, extent.end))
            .collect();
        // Every shard gets a share of the answer, so that a busy shard does not crowd out the others. The
        // shard that is furthest behind comes first.
        behind.sort_by_key(|(_, number, end)| std::cmp::Reverse(*end - **number));
        let mut left = behind.len();
        for (shard, number, end) in behind {
            if changes.len() >= limit {
                break;
            }
            let mut events: Vec<(u64, PageId)> = Vec::new();
            let room = (limit - changes.len()).div_ceil(left);
            left -= 1;
            let (mut from, to) = (key::feed(shard, *number + 1), key::feed(shard, end + 1));
            while events.len() < room {
                let rows = self.rows.piece(&from, &to, room - events.len())?;
                let Some((last, _)) = rows.last() else { break };
                from = key::after(last);
                events.extend(rows.iter().filter_map(|(key, value)| {
                    let page = value.first_chunk::<16>().copied().map(PageId::from_bytes);
                    key::last_number(key).zip(page)
                }));
            }
            *number = if events.len() < room { end } else { events.last().map_or(end, |(at, _)| *at) };
            let pages: Vec<PageId> = events.iter().map(|(_, page)| *page).collect();
            for ((at, _), record) in events.into_iter().zip(self.rows.pages(&pages)?) {
                // If the record has a newer event, the consumer meets that one further on in the feed.
                if let Some(record) = record.filter(|record| record.event == at) {
                    changes.push(Change { line: line(&record), fetched_at: record.fetched_at });
                }
            }
        }
        Ok(changes)
    }
}

fn format_cursor(collection: u64, positions: impl Iterator<Item = Position>) -> String {
    let mut text = format!("{collection:x}");
    for Position { number, began } in positions {
        // Writing to a String cannot fail.
        let _ = write!(text, ".{number:x}");
        if number < began {
            let _ = write!(text, "-{began:x}");
        }
    }
    text
}

fn parse_cursor(text: &str, collection: u64, extents: &[FeedExtent]) -> Option<Vec<Position>> {
    let number = |text| u64::from_str_radix(text, 16).ok();
    let mut parts = text.split('.');
    if parts.next().and_then(number) != Some(collection) {
        return None;
    }
    let positions: Vec<Position> = parts
        .map(|part| match part.split_once('-') {
            Some((at, began)) => Some(Position { number: number(at)?, began: number(began)? }),
            None => number(part).map(|number| Position { number, began: number }),
        })
        .collect::<Option<_>>()?;
    // A number that was never given comes from a later state that a restore has undone.
    let sound = |(position, extent): (&Position, &FeedExtent)| {
        position.number.max(position.began) <= extent.end
            && extent.dropped <= position.number.max(position.began)
    };
    let fits = positions.len() == extents.len() && positions.iter().zip(extents).all(sound);
    fits.then_some(positions)
}
