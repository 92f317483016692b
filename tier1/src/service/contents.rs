//! The contents that tier 2 must have, read in pieces while it takes them.

use doppel_model::{ContentHash, PageId, ShardId};

use super::Tier1;
use super::rows::PIECE_ROWS;
use crate::key::{self, Kind};
use crate::record::{PageRecord, decode};
use doppel_protocol::Tier1Error;

/// Every page with a content that has tokens, and that content. It ends early when a row cannot be read; then
/// [`failure`](Self::failure) says why.
pub struct Contents<'t> {
    tier1: &'t Tier1,
    shard: u16,
    after: Option<Vec<u8>>,
    piece: std::vec::IntoIter<(PageId, ContentHash)>,
    failed: Option<Tier1Error>,
}

impl Tier1 {
    /// The contents that tier 2 must have.
    #[must_use]
    pub fn contents(&self) -> Contents<'_> {
        Contents { tier1: self, shard: 0, after: None, piece: Vec::new().into_iter(), failed: None }
    }
}

impl Contents<'_> {
    /// Why not all of them were given.
    #[must_use]
    pub fn failure(self) -> Option<Tier1Error> {
        self.failed
    }

    fn read(&mut self) -> Result<(), Tier1Error> {
        let (mut from, to) = key::all(ShardId(self.shard), Kind::Page);
        if let Some(after) = self.after.take() {
            from = key::after(&after);
        }
        let rows = self.tier1.rows.piece(&from, &to, PIECE_ROWS)?;
        match rows.last() {
            Some((last, _)) => self.after = Some(last.clone()),
            None => self.shard += 1,
        }
        let mut contents = Vec::new();
        for (key, bytes) in &rows {
            let record: PageRecord = decode(key, bytes)?;
            let state = record.content().filter(|state| state.tokens > 0);
            contents.extend(key::last_page(key).zip(state.map(|state| state.content)));
        }
        self.piece = contents.into_iter();
        Ok(())
    }
}

impl Iterator for Contents<'_> {
    type Item = (PageId, ContentHash);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(content) = self.piece.next() {
                return Some(content);
            }
            if self.shard >= self.tier1.settings.shards || self.failed.is_some() {
                return None;
            }
            if let Err(refused) = self.read() {
                self.failed = Some(refused);
            }
        }
    }
}
