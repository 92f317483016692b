//! Export: hands out the entries of outgoing partitions, oldest first, and then again the entries that have
//! changed meanwhile.
//!
//! The export fixes the order of the entries when it begins. The node notes changes from that moment on, so
//! no change is missed. If the router requests the beginning again, the export fixes the order anew and keeps
//! the notes. The reason is that the router may have stored part of the first answer. An entry of that answer
//! that was removed since then is only among the changes.

use doppel_model::{ContentHash, InsertSeq, PartitionId};
use doppel_protocol::index_node::{
    BATCH_BYTES_MAX, ENTRIES_MAX, EntriesFrom, EntriesPage, EntriesRequest, EntryCenter, MovedEntry,
    NodeError, fitting_count,
};
use hashbrown::HashSet;

use super::Export;
use crate::node::LocalNode;
use crate::node::core::Core;
use crate::node::partition::columns::Center;
use crate::node::signatures::fetch::{FetchedSignatures, MissingSignature, with_fetched};
use crate::node::tables::EntryRef;

/// An entry in the form in which it is sent, and its place on this node.
struct ExportedEntry {
    entry: EntryRef,
    moved: MovedEntry,
    /// Whether the signature had to be fetched.
    was_fetched: bool,
}

impl LocalNode {
    pub(in crate::node) fn export(
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
            return Err(NodeError::Unavailable("the export of these partitions has not begun".to_owned()));
        };
        match from {
            EntriesFrom::Start => self.page_of_queue(export, 0, limit),
            EntriesFrom::After(seq) => {
                let at = export.queue.partition_point(|(insert_seq, _)| *insert_seq <= seq);
                self.page_of_queue(export, at, limit)
            }
            EntriesFrom::Changes(after) => self.page_of_changes(export, after, limit),
        }
    }

    /// Starts noting changes of these partitions, and fixes the order of their entries.
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
        Ok(Export { partitions, queue, last_changes: (0, Vec::new()) })
    }

    fn page_of_queue(&self, export: &Export, at: usize, limit: usize) -> Result<EntriesPage, NodeError> {
        let end = export.queue.len().min(at + limit);
        let end = at + self.fitting(&export.queue[at..end]);
        let chunk = &export.queue[at..end];
        let entries = with_fetched(&*self.source, |fetched| {
            let core = self.read();
            // An entry that was removed or began anew is among the changes.
            let live = chunk.iter().filter(|(insert_seq, entry)| core.tables.is_alive(*entry, *insert_seq));
            self.read_entries(&core, live.map(|(_, entry)| *entry), fetched)
        })?;
        let left = (export.queue.len() - end) as u64;
        let last = chunk.last().filter(|_| left > 0);
        let next = last.map(|(insert_seq, _)| EntriesFrom::After(*insert_seq));
        Ok(EntriesPage { entries: self.store_fetched(entries), changed: Vec::new(), left, next })
    }

    fn page_of_changes(
        &self,
        export: &mut Export,
        after: u64,
        limit: usize,
    ) -> Result<EntriesPage, NodeError> {
        if after >= export.last_changes.0 {
            let mut core = self.write();
            let (mut contents, mut bytes): (Vec<ContentHash>, usize) = (Vec::new(), 0);
            for id in &export.partitions {
                let local = core.tables.local(*id).ok_or(NodeError::NoPartition(*id))?;
                let changed = core.tables.partitions[local.index()].changed.iter().flatten();
                let chunk: Vec<ContentHash> = changed.take(limit - contents.len()).copied().collect();
                for content in chunk {
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
            // Sorted, so that the same sequence of orders produces the same index.
            contents.sort_unstable();
            export.last_changes = (after + 1, contents);
        }
        let (number, contents) = &export.last_changes;
        let entries = with_fetched(&*self.source, |fetched| {
            let core = self.read();
            let existing = contents.iter().filter_map(|content| core.tables.find(*content));
            self.read_entries(&core, existing, fetched)
        })?;
        let left = {
            let core = self.read();
            let changed = core.tables.partitions.iter().filter_map(|partition| partition.changed.as_ref());
            changed.map(HashSet::len).sum::<usize>() as u64
        };
        Ok(EntriesPage {
            entries: self.store_fetched(entries),
            changed: contents.clone(),
            left,
            next: Some(EntriesFrom::Changes(*number)),
        })
    }

    /// How many of the first entries one call may carry. At least one.
    fn fitting(&self, entries: &[(InsertSeq, EntryRef)]) -> usize {
        let core = self.read();
        let size = |(insert_seq, entry): &(InsertSeq, EntryRef)| {
            if core.tables.is_alive(*entry, *insert_seq) { core.bytes_of(*entry) } else { 0 }
        };
        fitting_count(entries.iter().map(size))
    }

    /// Reads entries as they are now.
    fn read_entries(
        &self,
        core: &Core,
        entries: impl Iterator<Item = EntryRef>,
        fetched: &FetchedSignatures,
    ) -> Result<Vec<ExportedEntry>, Vec<MissingSignature>> {
        let (mut exported, mut missing, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            let partition = core.tables.partition(entry);
            let columns = &partition.columns;
            let read = match core.read(entry, fetched, &mut buffer) {
                Ok(Some(read)) => read,
                Ok(None) => {
                    tracing::debug!(
                        content = %columns.content(entry.slot),
                        "no page has this content any more; skipping it"
                    );
                    continue;
                }
                Err(more) => {
                    missing.push(more);
                    continue;
                }
            };
            // The second center only saves comparisons, so it does not move.
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
            exported.push(ExportedEntry { entry, moved, was_fetched: read.fetched });
        }
        if missing.is_empty() { Ok(exported) } else { Err(missing) }
    }

    /// Stores the fetched signatures, and returns the entries.
    fn store_fetched(&self, entries: Vec<ExportedEntry>) -> Vec<MovedEntry> {
        for ExportedEntry { entry, moved, .. } in entries.iter().filter(|exported| exported.was_fetched) {
            self.write().rewrite(*entry, &moved.signature);
        }
        entries.into_iter().map(|exported| exported.moved).collect()
    }
}
