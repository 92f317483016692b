//! The change feed: per shard a log that keeps the newest event of every URL.
//!
//! A cursor is the collection and the last number read of each shard, in hexadecimal, and while the
//! consumer is still behind it, where the feed ended when it began. Superseded events are gone at once.
//! A cursor is refused when retention has dropped an event that its consumer may need, or when it is of
//! another collection or a later state of this one.

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

/// While a consumer waits, it looks so often whether something new is there, and asks other processes so often.
const LOOK: Duration = Duration::from_secs(1);
const OTHERS: Duration = Duration::from_millis(100);

/// How far a consumer has read a shard's feed.
#[derive(Debug, Clone, Copy)]
struct Position {
    number: u64,
    /// The feed's end when the consumer began. It has no need of dropped events up to there: it never saw
    /// those pages alive.
    began: u64,
}

/// What other processes have said of their feeds.
#[derive(Debug, Default)]
pub(super) struct Others {
    asked: Option<Instant>,
    /// The collections that all ranges began from, in one number.
    collection: u64,
}

/// How far the feed of every shard goes.
struct Feeds {
    /// Names the collection.
    collection: u64,
    extents: Vec<FeedExtent>,
}

/// How far the feed of a shard goes.
pub(crate) fn extent(meta: &Meta) -> FeedExtent {
    FeedExtent { end: meta.events, dropped: meta.events_dropped }
}

impl Tier1 {
    /// How far the feed of every shard goes. What other processes have said is at most so old.
    fn feed_extents(&self, age: Duration) -> Result<Feeds, Tier1Error> {
        let mut collection = self.collection;
        let fresh = Instant::now().checked_sub(age);
        // Also where all ranges are here at present: a cursor is good wherever they are.
        if self.ranges.has_others() {
            // Those that wait here meanwhile do not ask for the same again.
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

    /// The cursor to read on from now.
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

    /// Events after `positions` up to the ends; moves `positions` on.
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
        // Every shard has its share of the answer, and the one that is furthest behind comes first, so a busy
        // one does not keep the others from it.
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
                // A newer event of the page is further on in the feed and will be met there.
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
    // A number that was never given is of a later state than this, which was restored.
    let sound = |(position, extent): (&Position, &FeedExtent)| {
        position.number.max(position.began) <= extent.end
            && extent.dropped <= position.number.max(position.began)
    };
    let fits = positions.len() == extents.len() && positions.iter().zip(extents).all(sound);
    fits.then_some(positions)
}
