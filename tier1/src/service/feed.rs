//! The change feed: per shard a log that keeps the newest event of every URL.
//!
//! A cursor is the collection and the last number read of each shard, in hexadecimal. Superseded
//! events are gone at once, so a cursor never grows too old; one of another collection is refused.

use std::fmt::Write as _;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use doppel_common::api::{Change, Changes, Refused};
use doppel_common::model::{PageId, ShardId};

use super::Tier1;
use super::read::line;
use crate::key;
use crate::record::PageRecord;
use crate::txn::read;

impl Tier1 {
    pub(super) fn feed_ends(&self) -> Vec<u64> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn format_cursor(&self, numbers: &[u64]) -> String {
        let mut text = format!("{:x}", self.collection);
        for number in numbers {
            // Writing to a String cannot fail.
            let _ = write!(text, ".{number:x}");
        }
        text
    }

    fn parse_cursor(&self, text: &str) -> Result<Vec<u64>, Refused> {
        let mut parts = text.split('.').map(|part| u64::from_str_radix(part, 16));
        if parts.next() != Some(Ok(self.collection)) {
            return Err(Refused::CursorGone);
        }
        let numbers: Vec<u64> = parts.collect::<Result<_, _>>().map_err(|_| Refused::CursorGone)?;
        // A number that was never given is of a later state than this, which was restored.
        let ends = self.feed_ends();
        if numbers.len() != ends.len() || numbers.iter().zip(&ends).any(|(number, end)| number > end) {
            return Err(Refused::CursorGone);
        }
        Ok(numbers)
    }

    pub(super) fn read_changes(
        &self,
        cursor: Option<&str>,
        limit: usize,
        wait: Duration,
    ) -> Result<Changes, Refused> {
        let mut numbers = match cursor {
            Some(text) => self.parse_cursor(text)?,
            None => vec![0; usize::from(self.settings.shards)],
        };
        let deadline = Instant::now() + wait;
        loop {
            let ends = self.feed_ends();
            let changes = self.collect(&mut numbers, &ends, limit)?;
            if !changes.is_empty() || Instant::now() >= deadline {
                let at_end = numbers.iter().zip(&ends).all(|(number, end)| number >= end);
                return Ok(Changes { changes, cursor: self.format_cursor(&numbers), at_end });
            }
            self.check()?;
            let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
            if *feed == ends {
                let left = deadline.saturating_duration_since(Instant::now()).min(Duration::from_secs(1));
                drop(self.feed_grew.wait_timeout(feed, left));
            }
        }
    }

    /// Events after `numbers` up to `ends`; moves `numbers` on.
    fn collect(&self, numbers: &mut [u64], ends: &[u64], limit: usize) -> Result<Vec<Change>, Refused> {
        let mut changes = Vec::new();
        let mut behind: Vec<(ShardId, &mut u64, u64)> = (0..)
            .map(ShardId)
            .zip(numbers)
            .zip(ends)
            .filter(|((_, number), end)| **number < **end)
            .map(|((shard, number), end)| (shard, number, *end))
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
            let (from, to) = (key::feed(shard, *number + 1), key::feed(shard, end + 1));
            self.store.range(&from, &to, &mut |key, value| {
                if let (Some(at), Some(page)) = (key::last_number(key), value.first_chunk::<16>()) {
                    events.push((at, PageId::from_bytes(*page)));
                }
                events.len() < room
            })?;
            *number = if events.len() < room { end } else { events.last().map_or(end, |(at, _)| *at) };
            for (at, page) in events {
                // A newer event of the page is further on in the feed and will be met there.
                if let Some(record) = read::<PageRecord>(&*self.store, &key::page(shard, page))?
                    && record.event == at
                {
                    changes.push(Change { line: line(&record), fetched_at: record.fetched_at });
                }
            }
        }
        Ok(changes)
    }
}
