//! New databases for all ranges. Each signature goes to the range of its page as it comes. The rows follow
//! when the groups are known, together with the snapshots of the status tables.
//!
//! A content is written to a range when the first page with this content comes. Contents that later versions
//! replaced stay there. They are counted, so that compaction removes them when there are many.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_join::ContentIndex;
use doppel_model::signature::Signature;
use doppel_model::{PageId, RangeId, ShardId};
use doppel_protocol::RangeMap;
use rayon::prelude::*;

use super::index_contents::{NewContents, RangeSignatures};
use super::rows::{CollectionRows, RowValue};
use crate::rows::record::Meta;
use crate::statuses::{Basis, NewStatusSnapshot, SecretKey};
use crate::storage::database::NewDatabase;
use crate::storage::files::sync_directory;
use crate::storage::progress::Progress;
use crate::storage::range_files::directories;
use crate::storage::signatures::SignatureId;
use crate::storage::store::StoreError;

/// A range, and the id of a signature in it.
type SignatureLocation = (RangeId, SignatureId);

/// The new databases of all ranges.
#[derive(Debug)]
pub(super) struct NewDatabases {
    dir: PathBuf,
    map: RangeMap,
    databases: Vec<NewDatabase>,
    /// Where each content was first written.
    first: Vec<SignatureLocation>,
    /// Where contents were written again, in other ranges.
    others: HashMap<(RangeId, ContentIndex), SignatureId>,
}

impl NewDatabases {
    /// Creates the databases below `dir`.
    pub(super) fn create(dir: &Path, map: RangeMap) -> Result<Self, StoreError> {
        let dirs = directories(dir, map);
        let databases = dirs.iter().map(|(_, dir)| NewDatabase::create(dir));
        let databases = databases.collect::<Result<_, _>>()?;
        Ok(Self { dir: dir.to_owned(), map, databases, first: Vec::new(), others: HashMap::new() })
    }

    /// Stores the content of a page in its range, unless the range has it already.
    pub(super) fn store(
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

    /// Returns the id of a content in a range.
    fn id(&self, range: RangeId, content: ContentIndex) -> Option<SignatureId> {
        let (first, id) = self.first[content.0 as usize];
        if first == range { Some(id) } else { self.others.get(&(range, content)).copied() }
    }

    /// Writes buffered signatures, so that all signatures can be read.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        self.databases.iter_mut().try_for_each(NewDatabase::write)
    }

    /// Returns the signature of a content.
    pub(super) fn signature(&self, content: ContentIndex) -> Result<Arc<Signature>, StoreError> {
        let (range, id) = self.first[content.0 as usize];
        self.databases[usize::from(range.0)].signature(id)
    }

    /// Writes the rows, and the snapshots of the status tables. All databases are on disk on return. Returns
    /// what the index needs.
    pub(super) fn finish(self, rows: &CollectionRows<'_>) -> Result<NewContents, StoreError> {
        let statuses = self.status_snapshots()?;
        let shards: Vec<ShardId> = (0..self.map.shards()).map(ShardId).collect();
        let metas = shards.par_iter().map(|shard| self.write(*shard, rows, &statuses));
        let metas: Vec<Meta> = metas.collect::<Result<_, _>>()?;
        statuses.into_iter().try_for_each(NewStatusSnapshot::finish)?;
        let unused = self.unused(rows);
        let Self { dir, map, databases, .. } = self;
        let each = databases.into_iter().zip(unused).zip(directories(&dir, map));
        let mut ranges = Vec::with_capacity(map.count());
        for ((database, unused), (range, dir)) in each {
            let log = database.log_position();
            let bytes = unused.iter().map(|id| u64::from(id.bytes)).sum();
            ranges.push(RangeSignatures { log, signatures: database.finish(bytes)?, unused });
            let run = map.run(range);
            let metas = &metas[usize::from(run.start.0)..usize::from(run.end.0)];
            Progress::new(Some(dir)).note_now(metas);
        }
        sync_directory(&dir)?;
        Ok(NewContents::new(map, ranges, rows.pages_with_tokens()))
    }

    /// Begins the snapshots of the status tables of all ranges.
    fn status_snapshots(&self) -> Result<Vec<NewStatusSnapshot>, StoreError> {
        // The tables of all ranges have one key.
        let key = SecretKey::random();
        let create = |(range, database): (RangeId, &NewDatabase)| {
            let (run, moment) = (self.map.run(range), database.log_position());
            NewStatusSnapshot::create(database.dir(), Basis { first: run.start, end: run.end, moment }, key)
        };
        self.map.ranges().zip(&self.databases).map(create).collect()
    }

    fn write(
        &self,
        shard: ShardId,
        rows: &CollectionRows<'_>,
        statuses: &[NewStatusSnapshot],
    ) -> Result<Meta, StoreError> {
        let range = self.map.of_shard(shard);
        let database = &self.databases[usize::from(range.0)];
        let mut entries = statuses[usize::from(range.0)].entries();
        let meta = rows.of_shard(shard, &mut |key, value| match value {
            RowValue::Record(row) => {
                entries.take(&key, &row)?;
                database.put(key, row)
            }
            RowValue::SignatureOf(content) => match self.id(range, content) {
                Some(id) => database.put(key, id.to_bytes().to_vec()),
                None => Err(StoreError::Engine(format!(
                    "range {range} does not have the signature of {content:?}"
                ))),
            },
        })?;
        entries.finish()?;
        Ok(meta)
    }

    /// Returns, for each range, the signatures that no page has any more.
    fn unused(&self, rows: &CollectionRows<'_>) -> Vec<HashSet<SignatureId>> {
        let mut is_used = vec![false; self.first.len()];
        rows.contents().for_each(|content| is_used[content.0 as usize] = true);
        let others = self.others.iter().map(|((range, content), id)| (content.0 as usize, (*range, *id)));
        let all = self.first.iter().copied().enumerate().chain(others);
        let mut unused = vec![HashSet::new(); self.databases.len()];
        for (_, (range, id)) in all.filter(|(content, _)| !is_used[*content]) {
            unused[usize::from(range.0)].insert(id);
        }
        unused
    }
}
