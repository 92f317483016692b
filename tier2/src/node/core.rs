//! The data of a node: its tables in memory, and access to its signatures.

mod learning;
pub(super) mod load;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::LengthVector;

use super::partition::candidates::EntryKeys;
use super::partition::columns::{OWED, SignatureRecord};
use super::partition::local_index::LocalIndex;
use super::signatures::NodeSignatures;
use super::signatures::fetch::{FetchedSignatures, MissingSignature, PAGES_MAX};
use super::tables::{EntryRef, IndexTables};

/// The tables and signatures of a node.
pub(crate) struct Core {
    pub(crate) tables: IndexTables,
    pub(crate) signatures: NodeSignatures,
    /// Number of signatures that could not be read so far.
    unreadable: AtomicU64,
}

/// A signature that was read.
pub(crate) struct LoadedSignature {
    pub(crate) signature: Arc<Signature>,
    /// Whether the signature was fetched from tier 1, and should be stored again.
    pub(crate) fetched: bool,
}

impl Core {
    pub(crate) fn new(tables: IndexTables, signatures: NodeSignatures) -> Self {
        Self { tables, signatures, unreadable: AtomicU64::new(0) }
    }

    /// Stores that `page` has this content, whose home is a partition of this node. If `owes_search`, a
    /// search for the page follows.
    pub(crate) fn put(
        &mut self,
        page: PageId,
        signature: &Signature,
        home: (LocalIndex, LengthVector),
        owes_search: bool,
    ) {
        match self.tables.find(signature.content()) {
            Some(entry) => self.tables.partition_mut(entry).add_page(entry.slot, page),
            None => {
                let record = self.signatures.keep(page, signature);
                let entry = self.tables.insert(home, page, signature, record);
                if owes_search {
                    self.tables.partition_mut(entry).columns.set_query_order(entry.slot, OWED);
                }
            }
        }
    }

    /// The keys that [`remove`](Self::remove) needs. The list is empty if the entry is in no candidate
    /// table, or stays there unchanged. `None` if no page has the signature any more.
    pub(crate) fn keys_to_remove(
        &self,
        page: PageId,
        content: ContentHash,
        fetched: &FetchedSignatures,
    ) -> Result<Option<EntryKeys>, MissingSignature> {
        let Some(entry) = self.tables.find(content) else { return Ok(Some(EntryKeys::new())) };
        let columns = &self.tables.partition(entry).columns;
        if columns.page(entry.slot) != page {
            return Ok(Some(EntryKeys::new()));
        }
        self.keys_of(entry, fetched)
    }

    /// The keys of an entry. `None` if no page has its signature any more.
    pub(crate) fn keys_of(
        &self,
        entry: EntryRef,
        fetched: &FetchedSignatures,
    ) -> Result<Option<EntryKeys>, MissingSignature> {
        if !self.tables.partition(entry).columns.is_comparable(entry.slot) {
            return Ok(Some(EntryKeys::new()));
        }
        let read = self.read(entry, fetched, &mut Vec::new())?;
        Ok(read.map(|read| self.tables.entry_keys(entry.partition, &read.signature)))
    }

    /// Removes the content from `page`. If it was the last page, the entry is removed too. Returns the new
    /// first page if the first page has changed.
    pub(crate) fn remove(
        &mut self,
        page: PageId,
        content: ContentHash,
        keys: Option<EntryKeys>,
    ) -> Option<PageId> {
        let entry = self.tables.find(content)?;
        let partition = self.tables.partition_mut(entry);
        if partition.columns.page(entry.slot) != page {
            partition.remove_page(entry.slot, page);
            return None;
        }
        let next = partition.pages.pop(entry.slot);
        match (keys, next) {
            (Some(keys), Some(next)) => {
                self.tables.renew(entry, &keys, next);
                if let Some(record) = self.signatures.record_for_page(next) {
                    self.tables.partition_mut(entry).columns.set_record(entry.slot, record);
                }
                return Some(next);
            }
            (keys, _) => self.drop_entry(entry, keys),
        }
        None
    }

    /// Removes an entry with all its pages.
    pub(crate) fn drop_entry(&mut self, entry: EntryRef, keys: Option<EntryKeys>) {
        self.release(entry);
        self.tables.partition_mut(entry).pages.clear(entry.slot);
        match keys {
            Some(keys) => self.tables.remove(entry, &keys),
            None => self.tables.abandon(entry),
        }
    }

    /// Reads the signature of an entry, from its store or from the fetched signatures. `None` if no page has
    /// the content any more.
    pub(crate) fn read(
        &self,
        entry: EntryRef,
        fetched: &FetchedSignatures,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<LoadedSignature>, MissingSignature> {
        let partition = self.tables.partition(entry);
        let content = partition.columns.content(entry.slot);
        let error = match self.signatures.read(self.record(entry), buffer) {
            Ok(signature) if signature.content() == content => {
                return Ok(Some(LoadedSignature { signature: Arc::new(signature), fetched: false }));
            }
            Ok(_) => None,
            Err(error) => Some(error),
        };
        if let Some(known) = fetched.get(&content) {
            return Ok(known.clone().map(|signature| LoadedSignature { signature, fetched: true }));
        }
        // The text is made only for the log. After a purge, this code runs often.
        let error = || error.as_ref().map_or("it belongs to another content".to_owned(), ToString::to_string);
        let times = 1 + self.unreadable.fetch_add(1, Ordering::Relaxed);
        if self.signatures.own().is_none() {
            // The page may have got another content in tier 1.
            tracing::debug!(
                %content,
                error = error(),
                "a signature is not where tier 1 stored it; fetching it"
            );
        } else if times.is_power_of_two() {
            // Logged with growing intervals. A dead disk would fill the log.
            tracing::warn!(%content, error = error(), times, "cannot read a signature; fetching it");
        }
        Err(MissingSignature { content, pages: partition.pages_of(entry.slot).take(PAGES_MAX).collect() })
    }

    pub(crate) fn release(&mut self, entry: EntryRef) {
        self.signatures.release(self.record(entry));
    }

    /// Size of an entry with its pages when it moves to another partition, in bytes.
    pub(crate) fn bytes_of(&self, entry: EntryRef) -> usize {
        let pages = self.tables.partition(entry).pages_of(entry.slot).count();
        self.record(entry).bytes as usize + pages * size_of::<PageId>()
    }

    pub(crate) fn record(&self, entry: EntryRef) -> SignatureRecord {
        self.tables.partition(entry).columns.record(entry.slot)
    }
}
