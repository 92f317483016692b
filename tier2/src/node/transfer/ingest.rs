//! Ingestion: contents that a range names to the node, and entries that come from other partitions.

use doppel_model::{ContentHash, NodeId, PageId};
use doppel_protocol::index_node::{
    BATCH_ORDERS_MAX, ENTRIES_MAX, EntryCenter, HomePartition, IngestAnswer, IngestBatch, MovedEntry,
    NodeError, PageContent,
};

use super::MovedCenters;
use crate::node::core::Core;
use crate::node::feeding::Feedings;
use crate::node::partition::PartitionState;
use crate::node::partition::columns::Center;
use crate::node::signatures::fetch::with_fetched;
use crate::node::tables::EntryRef;
use crate::node::{ChangeState, LocalNode, check_limit};

/// Number of claims that are handled under one lock.
const CLAIMS_PER_LOCK: usize = 256;

impl LocalNode {
    pub(in crate::node) fn ingest_batch(
        &self,
        change: &mut ChangeState,
        batch: IngestBatch,
    ) -> Result<IngestAnswer, NodeError> {
        let ChangeState { moved_centers, feedings, .. } = change;
        let mut missing = Vec::new();
        match batch {
            IngestBatch::Begin { range, epoch, changes } => {
                self.begin_feeding(feedings, range, epoch, changes)?;
            }
            IngestBatch::Changed { range, pages } => {
                check_limit(pages.len(), BATCH_ORDERS_MAX)?;
                Self::note_changed(feedings, range, pages);
            }
            IngestBatch::Claims(claims) => {
                check_limit(claims.len(), BATCH_ORDERS_MAX)?;
                self.remove_changed(feedings)?;
                missing = self.claim(feedings, &claims);
            }
            IngestBatch::Contents(contents) => {
                check_limit(contents.len(), ENTRIES_MAX)?;
                self.remove_changed(feedings)?;
                let ranges = self.hosted().ranges.clone();
                for PageContent { page, signature, home } in contents {
                    let mut core = self.write();
                    let partition = core.tables.local(home.partition);
                    let partition = partition.ok_or(NodeError::NoPartition(home.partition))?;
                    core.put(page, &signature, (partition, home.lengths), false);
                    feedings.note_named(&ranges, page, signature.content());
                }
            }
            IngestBatch::Fed { range, epoch, index } => {
                self.remove_changed(feedings)?;
                self.end_feeding(feedings, range, (epoch, index))?;
            }
            IngestBatch::Entries { replaced, entries } => {
                check_limit(entries.len().max(replaced.len()), ENTRIES_MAX)?;
                self.replace(&replaced, &entries)?;
                for (entry, home) in &entries {
                    self.write().store_moved(self.config.id, moved_centers, entry, *home)?;
                }
            }
        }
        Ok(IngestAnswer { missing, contents: self.read().tables.len() as u64 })
    }

    /// Takes the claims whose content is stored here. Returns the positions of the others.
    fn claim(&self, feedings: &mut Feedings, claims: &[(PageId, ContentHash)]) -> Vec<u32> {
        let ranges = self.hosted().ranges.clone();
        let mut missing = Vec::new();
        for (first, chunk) in (0_u32..).step_by(CLAIMS_PER_LOCK).zip(claims.chunks(CLAIMS_PER_LOCK)) {
            let mut core = self.write();
            for (at, (page, content)) in (first..).zip(chunk) {
                match core.tables.find(*content) {
                    Some(entry) => {
                        core.tables.partition_mut(entry).add_page(entry.slot, *page);
                        feedings.note_named(&ranges, *page, *content);
                    }
                    None => missing.push(at),
                }
            }
        }
        missing
    }

    /// Removes contents that come from the file and that no page has claimed.
    pub(in crate::node) fn drop_unclaimed(&self) -> Result<(), NodeError> {
        let mut unclaimed: Vec<EntryRef> = {
            let core = self.read();
            let is_unclaimed =
                |entry: &EntryRef| core.tables.partition(*entry).columns.is_unclaimed(entry.slot);
            core.tables.entries().filter(is_unclaimed).collect()
        };
        unclaimed.sort_unstable_by_key(|entry| self.read().record(*entry).offset);
        for entry in unclaimed {
            let keys = with_fetched(&*self.source, |fetched| {
                self.read().keys_of(entry, fetched).map_err(|missing| vec![missing])
            })?;
            self.write().drop_entry(entry, keys);
        }
        Ok(())
    }

    /// Removes earlier copies of these contents from the incoming partitions.
    fn replace(
        &self,
        replaced: &[ContentHash],
        entries: &[(MovedEntry, HomePartition)],
    ) -> Result<(), NodeError> {
        // If an answer was lost, the same entries come again, and replace themselves.
        let again = entries.iter().map(|(entry, _)| entry.signature.content());
        for content in replaced.iter().copied().chain(again) {
            let Some(entry) = self.read().tables.find_in(PartitionState::Incoming, content) else { continue };
            let keys = with_fetched(&*self.source, |fetched| {
                self.read().keys_of(entry, fetched).map_err(|missing| vec![missing])
            })?;
            self.write().drop_entry(entry, keys);
        }
        Ok(())
    }
}

impl Core {
    /// Stores an entry in an incoming partition.
    fn store_moved(
        &mut self,
        node: NodeId,
        moved_centers: &mut MovedCenters,
        entry: &MovedEntry,
        home: HomePartition,
    ) -> Result<(), NodeError> {
        let MovedEntry { origin, signature, pages, center, is_center, searched } = entry;
        let Some((first, further)) = pages.split_first() else { return Ok(()) };
        let partition = self.tables.incoming(home.partition);
        let partition = partition.ok_or(NodeError::NoPartition(home.partition))?;
        // An entry that stays on its node keeps its record.
        let here = self.tables.find(signature.content()).filter(|_| origin.0 == node);
        let record = match here.map(|entry| self.record(entry)) {
            Some(record) => {
                self.signatures.retain(record);
                record
            }
            None => self.signatures.keep(*first, signature),
        };
        let at = self.tables.insert((partition, home.lengths), *first, signature, record);
        let center = match *center {
            EntryCenter::Unknown => Center::UNKNOWN,
            EntryCenter::Nobody => Center::NONE,
            EntryCenter::Entry { seq, distance } => {
                let stays = Center { insert_seq: seq, distance };
                match moved_centers.get(&(origin.0, seq)) {
                    Some(insert_seq) => Center { insert_seq: *insert_seq, distance },
                    None if origin.0 == node && !self.tables.has_left(stays) => stays,
                    None => Center::UNKNOWN,
                }
            }
        };
        let partition = self.tables.partition_mut(at);
        further.iter().for_each(|page| partition.add_page(at.slot, *page));
        partition.columns.set_center(at.slot, center);
        partition.columns.set_query_order(at.slot, (*searched).into());
        if *is_center {
            self.tables.mark_center(at);
            moved_centers.insert(*origin, self.tables.insert_seq(at));
        }
        Ok(())
    }
}
