//! What a node knows: its tables in memory and its signatures on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::LengthVector;

use super::bands::BandKeys;
use super::columns::{OWED, Record};
use super::fetched::{Fetched, PAGES_MAX, Wanted};
use super::local_index::LocalIndex;
use super::signatures::Signatures;
use super::tables::{EntryRef, Tables};

/// Tables and signatures.
pub(crate) struct Core {
    pub(crate) tables: Tables,
    pub(crate) signatures: Signatures,
    /// Signatures that could not be read from the file, so far.
    unreadable: AtomicU64,
}

/// A signature that was read.
pub(crate) struct Read {
    pub(crate) signature: Arc<Signature>,
    /// It came from tier 1 and should be stored again.
    pub(crate) fetched: bool,
}

impl Core {
    pub(crate) fn new(tables: Tables, signatures: Signatures) -> Self {
        Self { tables, signatures, unreadable: AtomicU64::new(0) }
    }

    /// `page` has this content, whose home is a partition of this node. With `owes_search`, a search for the page follows.
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

    /// The band keys that [`remove`](Self::remove) needs. The list is empty if the entry is not in the bands or stays
    /// as it is; there is none if no page has the signature any more.
    pub(crate) fn band_keys_to_remove(
        &self,
        page: PageId,
        content: ContentHash,
        fetched: &Fetched,
    ) -> Result<Option<BandKeys>, Wanted> {
        let Some(entry) = self.tables.find(content) else { return Ok(Some(BandKeys::new())) };
        let columns = &self.tables.partition(entry).columns;
        if columns.page(entry.slot) != page {
            return Ok(Some(BandKeys::new()));
        }
        self.band_keys_of(entry, fetched)
    }

    /// The band keys of an entry; none if no page has its signature any more.
    pub(crate) fn band_keys_of(
        &self,
        entry: EntryRef,
        fetched: &Fetched,
    ) -> Result<Option<BandKeys>, Wanted> {
        if !self.tables.partition(entry).columns.comparable(entry.slot) {
            return Ok(Some(BandKeys::new()));
        }
        let read = self.read(entry, fetched, &mut Vec::new())?;
        Ok(read.map(|read| self.tables.band_keys(&read.signature)))
    }

    /// `page` no longer has this content. The entry goes with its last page. Returns the page that is the first
    /// one now, where that has changed.
    pub(crate) fn remove(
        &mut self,
        page: PageId,
        content: ContentHash,
        band_keys: Option<BandKeys>,
    ) -> Option<PageId> {
        let entry = self.tables.find(content)?;
        let partition = self.tables.partition_mut(entry);
        if partition.columns.page(entry.slot) != page {
            partition.remove_page(entry.slot, page);
            return None;
        }
        let next = partition.pages.pop(entry.slot);
        match (band_keys, next) {
            (Some(band_keys), Some(next)) => {
                self.tables.renew(entry, &band_keys, next);
                if let Some(record) = self.signatures.handed_on(next) {
                    self.tables.partition_mut(entry).columns.set_record(entry.slot, record);
                }
                return Some(next);
            }
            (band_keys, _) => self.drop_entry(entry, band_keys),
        }
        None
    }

    /// An entry goes with all its pages.
    pub(crate) fn drop_entry(&mut self, entry: EntryRef, band_keys: Option<BandKeys>) {
        self.release(entry);
        self.tables.partition_mut(entry).pages.clear(entry.slot);
        match band_keys {
            Some(band_keys) => self.tables.remove(entry, &band_keys),
            None => self.tables.abandon(entry),
        }
    }

    /// The signature of an entry, from the file or among those that were fetched. None when no page has that content any
    /// more.
    pub(crate) fn read(
        &self,
        entry: EntryRef,
        fetched: &Fetched,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Read>, Wanted> {
        let partition = self.tables.partition(entry);
        let content = partition.columns.content(entry.slot);
        let error = match self.signatures.read(self.record(entry), buffer) {
            Ok(signature) if signature.content() == content => {
                return Ok(Some(Read { signature: Arc::new(signature), fetched: false }));
            }
            Ok(_) => None,
            Err(error) => Some(error),
        };
        if let Some(known) = fetched.get(&content) {
            return Ok(known.clone().map(|signature| Read { signature, fetched: true }));
        }
        // The text is made for the log alone: after a purge this happens often.
        let error = || error.as_ref().map_or("it is another content's".to_owned(), ToString::to_string);
        let times = 1 + self.unreadable.fetch_add(1, Ordering::Relaxed);
        if self.signatures.own().is_none() {
            // The page may have had another content before this one was looked for.
            tracing::debug!(%content, error = error(), "a signature is not where tier 1 keeps it; fetching it");
        } else if times.is_power_of_two() {
            // A dead disk would fill the log.
            tracing::warn!(%content, error = error(), times, "cannot read a signature; fetching it");
        }
        Err(Wanted { content, pages: partition.pages_of(entry.slot).take(PAGES_MAX).collect() })
    }

    pub(crate) fn release(&mut self, entry: EntryRef) {
        self.signatures.release(self.record(entry));
    }

    /// The size of an entry with its pages, when it is handed over.
    pub(crate) fn bytes_of(&self, entry: EntryRef) -> usize {
        let pages = self.tables.partition(entry).pages_of(entry.slot).count();
        self.record(entry).bytes as usize + pages * size_of::<PageId>()
    }

    pub(crate) fn record(&self, entry: EntryRef) -> Record {
        self.tables.partition(entry).columns.record(entry.slot)
    }
}
