//! New databases for all ranges: every signature goes to the range of its page as it comes, and the rows follow when the
//! groups are known.
//!
//! A content is written when a range first has a page with it. Contents that later versions replaced stay there and are
//! counted, so that compaction takes them when they are much.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_join::ContentIndex;
use doppel_model::signature::Signature;
use doppel_model::{PageId, RangeId, ShardId};
use doppel_protocol::RangeMap;
use rayon::prelude::*;

use super::rows::{Rows, Value};
use crate::database::NewDatabase;
use crate::files::sync_directory;
use crate::progress::Progress;
use crate::range_files::directories;
use crate::record::Meta;
use crate::signatures::SignatureId;
use crate::store::StoreError;

/// A signature, and the range that has it.
type Place = (RangeId, SignatureId);

/// The databases.
#[derive(Debug)]
pub(super) struct NewDatabases {
    dir: PathBuf,
    map: RangeMap,
    databases: Vec<NewDatabase>,
    /// By content: where it was first written.
    first: Vec<Place>,
    /// The same content in other ranges.
    others: HashMap<(RangeId, ContentIndex), SignatureId>,
}

impl NewDatabases {
    /// Makes them below `dir`.
    pub(super) fn create(dir: &Path, map: RangeMap) -> Result<Self, StoreError> {
        let dirs = directories(dir, map);
        let databases = dirs.iter().map(|(_, dir)| NewDatabase::create(dir));
        let databases = databases.collect::<Result<_, _>>()?;
        Ok(Self { dir: dir.to_owned(), map, databases, first: Vec::new(), others: HashMap::new() })
    }

    /// Takes the content of a page.
    pub(super) fn keep(
        &mut self,
        (content, is_new): (ContentIndex, bool),
        page: PageId,
        signature: &Signature,
    ) -> Result<(), StoreError> {
        let range = self.map.of_page(page);
        if is_new {
            let id = self.databases[usize::from(range.0)].add(signature)?;
            self.first.push((range, id));
        } else if self.id(range, content).is_none() {
            let id = self.databases[usize::from(range.0)].add(signature)?;
            self.others.insert((range, content), id);
        }
        Ok(())
    }

    /// Where a range has a content.
    fn id(&self, range: RangeId, content: ContentIndex) -> Option<SignatureId> {
        let (first, id) = self.first[content.0 as usize];
        if first == range { Some(id) } else { self.others.get(&(range, content)).copied() }
    }

    /// Makes all signatures readable.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        self.databases.iter_mut().try_for_each(NewDatabase::write)
    }

    /// The signature of a content.
    pub(super) fn signature(&self, content: ContentIndex) -> Result<Arc<Signature>, StoreError> {
        let (range, id) = self.first[content.0 as usize];
        self.databases[usize::from(range.0)].signature(id)
    }

    /// Writes the rows. Returns when everything is on disk.
    pub(super) fn finish(self, rows: &Rows<'_>) -> Result<(), StoreError> {
        let shards: Vec<ShardId> = (0..self.map.shards()).map(ShardId).collect();
        let metas = shards.par_iter().map(|shard| self.write(*shard, rows));
        let metas: Vec<Meta> = metas.collect::<Result<_, _>>()?;
        let unused = self.unused(rows);
        let Self { dir, map, databases, .. } = self;
        let each = databases.into_iter().zip(unused).zip(directories(&dir, map));
        for ((database, unused), (range, dir)) in each {
            database.finish(unused)?;
            let run = map.run(range);
            let metas = &metas[usize::from(run.start.0)..usize::from(run.end.0)];
            Progress::new(Some(dir)).note_now(metas);
        }
        sync_directory(&dir)
    }

    fn write(&self, shard: ShardId, rows: &Rows<'_>) -> Result<Meta, StoreError> {
        let range = self.map.of_shard(shard);
        let database = &self.databases[usize::from(range.0)];
        rows.of_shard(shard, &mut |key, value| match value {
            Value::Record(row) => database.put(key, row),
            Value::SignatureOf(content) => match self.id(range, content) {
                Some(id) => database.put(key, id.to_bytes().to_vec()),
                None => {
                    Err(StoreError::Engine(format!("range {range} has not the signature of {content:?}")))
                }
            },
        })
    }

    /// Bytes of signatures of contents that no page has any more, by range.
    fn unused(&self, rows: &Rows<'_>) -> Vec<u64> {
        let mut is_used = vec![false; self.first.len()];
        rows.contents().for_each(|content| is_used[content.0 as usize] = true);
        let others = self.others.iter().map(|((range, content), id)| (content.0 as usize, (*range, *id)));
        let all = self.first.iter().copied().enumerate().chain(others);
        let mut unused = vec![0; self.databases.len()];
        for (_, (range, id)) in all.filter(|(content, _)| !is_used[*content]) {
            unused[usize::from(range.0)] += u64::from(id.bytes);
        }
        unused
    }
}
