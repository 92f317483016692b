//! The change feed: per shard a log that keeps the newest event of every URL.
//!
//! A cursor is the collection and the last number read of each shard, in hexadecimal, and while the
//! consumer is still behind it, where the feed ended when it began. Superseded events are gone at once.
//! A cursor is refused when retention has dropped an event that its consumer may need, or when it is of
//! another collection or a later state of this one.

use std::fmt::Write as _;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use doppel_model::{PageId, ShardId};
use doppel_protocol::{Change, Changes, Tier1Error};

use super::Tier1;
use super::read::line;
use crate::key;
use crate::record::Meta;

/// How far a shard's feed goes.
#[allow(unreachable_pub, reason = "the simulation hands it about")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The number of its newest event.
    end: u64,
    /// The greatest number of an event that retention has dropped.
    dropped: u64,
}

/// How far a consumer has read a shard's feed.
#[derive(Debug, Clone, Copy)]
struct Position {
    number: u64,
    /// The feed's end when the consumer began. It has no need of dropped events up to there: it never saw
    /// those pages alive.
    began: u64,
}

impl Extent {
    pub(crate) fn of(meta: &Meta) -> Self {
        Self { end: meta.events, dropped: meta.events_dropped }
    }
}

impl Tier1 {
    fn feed_extents(&self) -> Vec<Extent> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The cursor to read on from now.
    pub(super) fn cursor_at_end(&self) -> String {
        let ends = self.feed_extents().into_iter();
        self.format_cursor(ends.map(|extent| Position { number: extent.end, began: extent.end }))
    }

    fn format_cursor(&self, positions: impl Iterator<Item = Position>) -> String {
        let mut text = format!("{:x}", self.collection);
        for Position { number, began } in positions {
            // Writing to a String cannot fail.
            let _ = write!(text, ".{number:x}");
            if number < began {
                let _ = write!(text, "-{began:x}");
            }
        }
        text
    }

    fn parse_cursor(&self, text: &str, extents: &[Extent]) -> Option<Vec<Position>> {
        let number = |text| u64::from_str_radix(text, 16).ok();
        let mut parts = text.split('.');
        if parts.next().and_then(number) != Some(self.collection) {
            return None;
        }
        let positions: Vec<Position> = parts
            .map(|part| match part.split_once('-') {
                Some((at, began)) => Some(Position { number: number(at)?, began: number(began)? }),
                None => number(part).map(|number| Position { number, began: number }),
            })
            .collect::<Option<_>>()?;
        // A number that was never given is of a later state than this, which was restored.
        let sound = |(position, extent): (&Position, &Extent)| {
            position.number.max(position.began) <= extent.end
                && extent.dropped <= position.number.max(position.began)
        };
        let fits = positions.len() == extents.len() && positions.iter().zip(extents).all(sound);
        fits.then_some(positions)
    }

    pub(super) fn read_changes(
        &self,
        cursor: Option<&str>,
        limit: usize,
        wait: Duration,
    ) -> Result<Changes, Tier1Error> {
        let extents = self.feed_extents();
        let mut positions = match cursor {
            Some(text) => self.parse_cursor(text, &extents).ok_or(Tier1Error::CursorGone)?,
            None => extents.iter().map(|extent| Position { number: 0, began: extent.end }).collect(),
        };
        let deadline = Instant::now() + wait;
        loop {
            let extents = self.feed_extents();
            let changes = self.collect(&mut positions, &extents, limit)?;
            if !changes.is_empty() || Instant::now() >= deadline {
                let at_end =
                    positions.iter().zip(&extents).all(|(position, extent)| position.number >= extent.end);
                let cursor = self.format_cursor(positions.into_iter());
                return Ok(Changes { changes, cursor, at_end });
            }
            self.check()?;
            let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
            if *feed == extents {
                let left = deadline.saturating_duration_since(Instant::now()).min(Duration::from_secs(1));
                drop(self.feed_grew.wait_timeout(feed, left));
            }
        }
    }

    /// Events after `positions` up to the ends; moves `positions` on.
    fn collect(
        &self,
        positions: &mut [Position],
        extents: &[Extent],
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
