//! Entries that leave: handed out oldest first, then again those that have changed meanwhile.
//!
//! The order is fixed when the export begins; changes are noted from then on, so nothing is missed between the two. A
//! beginning that is asked for again fixes the order anew and keeps the notes: part of the first answer may be stored,
//! and an entry of it that was removed since is only among the changes.

use doppel_model::{ContentHash, InsertSeq, PartitionId};
use doppel_protocol::index_node::{
    BATCH_BYTES_MAX, ENTRIES_MAX, EntriesFrom, EntriesPage, EntriesRequest, EntryCenter, MovedEntry,
    NodeError, fitting,
};
use hashbrown::HashSet;

use super::LocalNode;
use super::columns::Center;
use super::core::Core;
use super::fetched::{Fetched, Wanted, with_fetched};
use super::tables::EntryRef;

/// An export that is under way.
#[derive(Debug)]
pub(super) struct Export {
    partitions: Vec<PartitionId>,
    /// The entries there were at the beginning, oldest first.
    queue: Vec<(InsertSeq, EntryRef)>,
    /// The number of the last answer with changed contents, and the contents.
    handed: (u64, Vec<ContentHash>),
}

impl LocalNode {
    pub(super) fn export(
        &self,
        export: &mut Option<Export>,
        request: EntriesRequest,
    ) -> Result<EntriesPage, NodeError> {
        let EntriesRequest { partitions, from, limit } = request;
        let limit = limit.clamp(1, ENTRIES_MAX);
        if from == EntriesFrom::Start {
            *export = Some(self.begin(partitions.clone())?);
        }
        let Some(export) = export.as_mut().filter(|export| export.partitions == partitions) else {
            return Err(NodeError::Unavailable("these entries were not asked for from the start".to_owned()));
        };
        match from {
            EntriesFrom::Start => self.queued(export, 0, limit),
            EntriesFrom::After(seq) => {
                let at = export.queue.partition_point(|(insert_seq, _)| *insert_seq <= seq);
                self.queued(export, at, limit)
            }
            EntriesFrom::Changes(after) => self.changes(export, after, limit),
        }
    }

    /// Notes changes of these partitions from now on, and fixes the order of what is there.
    fn begin(&self, partitions: Vec<PartitionId>) -> Result<Export, NodeError> {
        {
            let mut core = self.write();
            for id in &partitions {
                let local = core.tables.local(*id).ok_or(NodeError::NoPartition(*id))?;
                core.tables.partitions[local.index()].changed.get_or_insert_default();
            }
        }
        let core = self.read();
        let tables = &core.tables;
        let leaving = tables.entries().filter(|entry| tables.partition(*entry).changed.is_some());
        let mut queue: Vec<_> = leaving.map(|entry| (tables.insert_seq(entry), entry)).collect();
        queue.sort_unstable();
        Ok(Export { partitions, queue, handed: (0, Vec::new()) })
    }

    fn queued(&self, export: &Export, at: usize, limit: usize) -> Result<EntriesPage, NodeError> {
        let end = export.queue.len().min(at + limit);
        let end = at + self.fitting(&export.queue[at..end]);
        let some = &export.queue[at..end];
        let entries = with_fetched(&*self.source, |fetched| {
            let core = self.read();
            // One that is gone or began anew is among the changed.
            let live = some.iter().filter(|(insert_seq, entry)| core.tables.is_alive(*entry, *insert_seq));
            self.read_entries(&core, live.map(|(_, entry)| *entry), fetched)
        })?;
        let left = (export.queue.len() - end) as u64;
        let last = some.last().filter(|_| left > 0);
        let next = last.map(|(insert_seq, _)| EntriesFrom::After(*insert_seq));
        Ok(EntriesPage { entries: self.rewritten(entries), changed: Vec::new(), left, next })
    }

    fn changes(&self, export: &mut Export, after: u64, limit: usize) -> Result<EntriesPage, NodeError> {
        if after >= export.handed.0 {
            let mut core = self.write();
            let (mut contents, mut bytes): (Vec<ContentHash>, usize) = (Vec::new(), 0);
            for id in &export.partitions {
                let local = core.tables.local(*id).ok_or(NodeError::NoPartition(*id))?;
                let changed = core.tables.partitions[local.index()].changed.iter().flatten();
                let some: Vec<ContentHash> = changed.take(limit - contents.len()).copied().collect();
                for content in some {
                    bytes += core.tables.find(content).map_or(0, |entry| core.bytes_of(entry));
                    if !contents.is_empty() && bytes > BATCH_BYTES_MAX {
                        break;
                    }
                    contents.push(content);
                    if let Some(changed) = &mut core.tables.partitions[local.index()].changed {
                        changed.remove(&content);
                    }
                }
            }
            drop(core);
            // The same run of the same orders gives the same index.
            contents.sort_unstable();
            export.handed = (after + 1, contents);
        }
        let (number, contents) = &export.handed;
        let entries = with_fetched(&*self.source, |fetched| {
            let core = self.read();
            let there = contents.iter().filter_map(|content| core.tables.find(*content));
            self.read_entries(&core, there, fetched)
        })?;
        let left = {
            let core = self.read();
            let changed = core.tables.partitions.iter().filter_map(|partition| partition.changed.as_ref());
            changed.map(HashSet::len).sum::<usize>() as u64
        };
        Ok(EntriesPage {
            entries: self.rewritten(entries),
            changed: contents.clone(),
            left,
            next: Some(EntriesFrom::Changes(*number)),
        })
    }

    /// How many of the first entries a call may bring: at least one.
    fn fitting(&self, entries: &[(InsertSeq, EntryRef)]) -> usize {
        let core = self.read();
        let size = |(insert_seq, entry): &(InsertSeq, EntryRef)| {
            if core.tables.is_alive(*entry, *insert_seq) { core.bytes_of(*entry) } else { 0 }
        };
        fitting(entries.iter().map(size))
    }

    /// Entries as they are now, and whether their signatures had to be fetched.
    fn read_entries(
        &self,
        core: &Core,
        entries: impl Iterator<Item = EntryRef>,
        fetched: &Fetched,
    ) -> Result<Vec<(EntryRef, MovedEntry, bool)>, Vec<Wanted>> {
        let (mut moved_entries, mut wanted, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            let partition = core.tables.partition(entry);
            let columns = &partition.columns;
            let read = match core.read(entry, fetched, &mut buffer) {
                Ok(Some(read)) => read,
                Ok(None) => {
                    tracing::debug!(content = %columns.content(entry.slot), "no page has this content any more; it is dropped");
                    continue;
                }
                Err(more) => {
                    wanted.push(more);
                    continue;
                }
            };
            // The second center only saves comparisons, and stays behind.
            let center = columns.center(entry.slot);
            let moved = MovedEntry {
                origin: (self.config.id, columns.insert_seq(entry.slot)),
                signature: read.signature,
                pages: partition.pages_of(entry.slot).collect(),
                center: match center {
                    Center::UNKNOWN => EntryCenter::Unknown,
                    Center::NONE => EntryCenter::Nobody,
                    Center { insert_seq: seq, distance } => EntryCenter::Entry { seq, distance },
                },
                is_center: columns.is_center(entry.slot),
                searched: columns.is_searched(entry.slot),
            };
            moved_entries.push((entry, moved, read.fetched));
        }
        if wanted.is_empty() { Ok(moved_entries) } else { Err(wanted) }
    }

    /// Stores again what had to be fetched.
    fn rewritten(&self, entries: Vec<(EntryRef, MovedEntry, bool)>) -> Vec<MovedEntry> {
        for (entry, moved, _) in entries.iter().filter(|(.., fetched)| *fetched) {
            self.write().rewrite(*entry, &moved.signature);
        }
        entries.into_iter().map(|(_, moved, _)| moved).collect()
    }
}
