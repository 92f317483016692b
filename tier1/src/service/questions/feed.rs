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
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use doppel_model::{PageId, RangeId, ShardId, stable_hash64};
use doppel_protocol::range_owner::{FeedExtent, PeerError, RangeState};
use doppel_protocol::{FeedBatch, FeedEvent, Tier1Error};

use crate::rows::key;
use crate::service::ownership::OwnedRanges;
use crate::service::ownership::collection::CollectionFacts;
use crate::service::ownership::feed_extents::FeedExtents;
use crate::service::ownership::ranges::RangeRegistry;
use crate::service::ownership::refusals::Refusals;
use crate::service::questions::pages::line;
use crate::service::questions::rows::RowReader;

/// How often a waiting consumer looks for new events, and how often it asks other processes.
const LOOK: Duration = Duration::from_secs(1);
const OTHERS: Duration = Duration::from_millis(100);

/// How far a consumer has read the feed of a shard.
#[derive(Debug, Clone, Copy)]
struct FeedPosition {
    number: u64,
    /// End of the feed when the consumer began. The consumer does not need dropped events up to there,
    /// because it never saw their pages alive.
    began: u64,
}

/// What this process has last heard of the feeds of other processes.
#[derive(Debug, Default)]
struct OtherFeeds {
    asked: Option<Instant>,
    /// One hash over the collections from which all ranges began.
    collection: u64,
}

/// Extents of the feeds of all shards, and the collection that a cursor must name.
struct FeedsAtOnce {
    /// Names the collection in cursors.
    collection: u64,
    extents: Vec<FeedExtent>,
}

/// Reads the change feed of all shards.
pub(in crate::service) struct Feed {
    collection: CollectionFacts,
    ranges: Arc<RangeRegistry>,
    refusals: Arc<Refusals>,
    rows: RowReader,
    extents: Arc<FeedExtents>,
    others: Mutex<OtherFeeds>,
}

/// Asks the owner of a range for its state, whether this process is the owner or another one.
type StateOf<'s> = dyn Fn(RangeId) -> Result<RangeState, PeerError> + 's;

impl Feed {
    /// Creates a reader of the feed over the rows of all ranges.
    pub(super) fn new(owned: &OwnedRanges, rows: RowReader) -> Self {
        Self {
            collection: owned.collection,
            ranges: Arc::clone(&owned.ranges),
            refusals: Arc::clone(&owned.refusals),
            rows,
            extents: Arc::clone(&owned.feed),
            others: Mutex::default(),
        }
    }

    /// The extents of all feeds. What other processes have said is at most `age` old.
    fn extents(&self, state_of: &StateOf<'_>, age: Duration) -> Result<FeedsAtOnce, Tier1Error> {
        let mut collection = self.collection.id;
        let fresh = Instant::now().checked_sub(age);
        // The collection of a cursor depends on all ranges even if this process owns all at present. So a
        // cursor stays valid when ranges move.
        if self.ranges.has_others() {
            // Other consumers wait here instead of asking the same again.
            let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            if others.asked.zip(fresh).is_none_or(|(asked, fresh)| asked < fresh) {
                let began = Instant::now();
                let mut collections = Vec::with_capacity(self.collection.map.count());
                for range in self.collection.map.ranges() {
                    let RangeState { collection, feeds, .. } = state_of(range)?;
                    collections.extend(collection.to_le_bytes());
                    let mut extents = self.extents.lock();
                    if self.ranges.local_owner(range).is_none() {
                        for (shard, extent) in self.collection.map.shards_of(range).zip(feeds) {
                            extents[usize::from(shard.0)] = extent;
                        }
                    }
                }
                *others = OtherFeeds { asked: Some(began), collection: stable_hash64(&collections) };
            }
            collection = others.collection;
        }
        let extents = self.extents.lock().clone();
        Ok(FeedsAtOnce { collection, extents })
    }

    /// A cursor from which a consumer reads only future events.
    pub(in crate::service) fn cursor_at_end(&self, state_of: &StateOf<'_>) -> Result<String, Tier1Error> {
        let FeedsAtOnce { collection, extents } = self.extents(state_of, Duration::ZERO)?;
        let ends = extents.into_iter().map(|extent| FeedPosition { number: extent.end, began: extent.end });
        Ok(format_cursor(collection, ends))
    }

    pub(in crate::service) fn changes(
        &self,
        state_of: &StateOf<'_>,
        cursor: Option<&str>,
        limit: usize,
        wait: Duration,
    ) -> Result<FeedBatch, Tier1Error> {
        let FeedsAtOnce { collection, extents } = self.extents(state_of, Duration::ZERO)?;
        let mut positions = match cursor {
            Some(text) => parse_cursor(text, collection, &extents).ok_or(Tier1Error::CursorGone)?,
            None => extents.iter().map(|extent| FeedPosition { number: 0, began: extent.end }).collect(),
        };
        let deadline = Instant::now() + wait;
        loop {
            let now = self.extents(state_of, OTHERS)?;
            if now.collection != collection {
                return Err(Tier1Error::CursorGone);
            }
            let extents = now.extents;
            let changes = self.collect_changes(&mut positions, &extents, limit)?;
            if !changes.is_empty() || Instant::now() >= deadline {
                let at_end =
                    positions.iter().zip(&extents).all(|(position, extent)| position.number >= extent.end);
                let cursor = format_cursor(collection, positions.into_iter());
                return Ok(FeedBatch { changes, cursor, at_end });
            }
            self.refusals.check()?;
            self.extents.wait_beyond(&extents, || {
                let look = if self.ranges.has_others() { OTHERS } else { LOOK };
                deadline.saturating_duration_since(Instant::now()).min(look)
            });
        }
    }

    /// Reads up to `limit` events after `positions` and moves `positions` behind them.
    fn collect_changes(
        &self,
        positions: &mut [FeedPosition],
        extents: &[FeedExtent],
        limit: usize,
    ) -> Result<Vec<FeedEvent>, Tier1Error> {
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
                    changes.push(FeedEvent { line: line(&record), fetched_at: record.fetched_at });
                }
            }
        }
        Ok(changes)
    }
}

fn format_cursor(collection: u64, positions: impl Iterator<Item = FeedPosition>) -> String {
    let mut text = format!("{collection:x}");
    for FeedPosition { number, began } in positions {
        // Writing to a String cannot fail.
        let _ = write!(text, ".{number:x}");
        if number < began {
            let _ = write!(text, "-{began:x}");
        }
    }
    text
}

fn parse_cursor(text: &str, collection: u64, extents: &[FeedExtent]) -> Option<Vec<FeedPosition>> {
    let number = |text| u64::from_str_radix(text, 16).ok();
    let mut parts = text.split('.');
    if parts.next().and_then(number) != Some(collection) {
        return None;
    }
    let positions: Vec<FeedPosition> = parts
        .map(|part| match part.split_once('-') {
            Some((at, began)) => Some(FeedPosition { number: number(at)?, began: number(began)? }),
            None => number(part).map(|number| FeedPosition { number, began: number }),
        })
        .collect::<Option<_>>()?;
    // A number that was never given comes from a later state that a restore has undone.
    let sound = |(position, extent): (&FeedPosition, &FeedExtent)| {
        position.number.max(position.began) <= extent.end
            && extent.dropped <= position.number.max(position.began)
    };
    let fits = positions.len() == extents.len() && positions.iter().zip(extents).all(sound);
    fits.then_some(positions)
}
