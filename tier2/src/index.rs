//! The index of one node: its tables in memory, its signatures on disk, and tier 1 behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::{LengthVector, Plan};

use hashbrown::HashSet;

use crate::bands::{BandKey, BandKeys};
use crate::columns::{Center, Record};
use crate::file::SignatureFile;
use crate::search::Found;
use crate::seed::Seeded;
use crate::tables::{EntryRef, Tables};
use crate::truncated_minhash;

/// Where a page's current signature can be had when it cannot be read here. It must not call tier 2.
pub type Fetch = Arc<dyn Fn(PageId) -> Option<Arc<Signature>> + Send + Sync>;

/// Pages of a content that are asked for its signature. They agree, unless tier 1 is ahead of us.
const FETCHES_MAX: usize = 16;

/// Tables, signatures, and where to get a signature again.
pub(crate) struct Index {
    pub(crate) tables: Tables,
    pub(crate) file: SignatureFile,
    pub(crate) fetch: Fetch,
    /// Fewer agreeing minima reject a candidate.
    pub(crate) least_agreeing: u32,
    /// Signatures that could not be read from the file, so far.
    unreadable: AtomicU64,
}

/// A signature that was read.
pub(crate) struct Read {
    pub(crate) signature: Arc<Signature>,
    /// It came from tier 1 and should be stored again.
    pub(crate) fetched: bool,
}

impl Index {
    /// An empty index of the plan's node of that number.
    pub(crate) fn new(policy: Policy, plan: Arc<Plan>, node: u32, file: SignatureFile, fetch: Fetch) -> Self {
        let least_agreeing = truncated_minhash::least_agreeing(policy.tau);
        let (tables, unreadable) = (Tables::new(policy, plan, node), AtomicU64::new(0));
        Self { tables, file, fetch, least_agreeing, unreadable }
    }

    /// `page` has this content, whose home is a partition of this node.
    pub(crate) fn put(&mut self, page: PageId, signature: &Signature, home: (u32, LengthVector)) {
        match self.tables.find(signature.content()) {
            Some(entry) => self.tables.partition_mut(entry).add_page(entry.slot, page),
            None => {
                let record = self.file.append(signature);
                self.tables.insert(home, page, signature, record);
            }
        }
    }

    /// The band keys that [`remove`](Self::remove) needs: none of them where the entry is not in the bands or
    /// stays as it is, no list where nobody has the signature any more.
    pub(crate) fn band_keys_to_remove(&self, page: PageId, content: ContentHash) -> Option<BandKeys> {
        let Some(entry) = self.tables.find(content) else { return Some(BandKeys::new()) };
        let columns = &self.tables.partition(entry).columns;
        if columns.page(entry.slot) != page || !columns.comparable(entry.slot) {
            return Some(BandKeys::new());
        }
        let read = self.read(entry, &mut Vec::new())?;
        Some(self.tables.band_keys(&read.signature))
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
                return Some(next);
            }
            (Some(band_keys), None) => {
                self.release(entry);
                self.tables.remove(entry, &band_keys);
            }
            (None, _) => {
                self.release(entry);
                self.tables.abandon(entry);
            }
        }
        None
    }

    /// The signature of an entry, from the file or else from tier 1, by way of one of its pages. None when
    /// no page has that content any more. Called with the lock of a reader at most.
    pub(crate) fn read(&self, entry: EntryRef, buffer: &mut Vec<u8>) -> Option<Read> {
        let partition = self.tables.partition(entry);
        let content = partition.columns.content(entry.slot);
        let error = match self.file.read(self.record(entry), buffer) {
            Ok(signature) if signature.content() == content => {
                return Some(Read { signature: Arc::new(signature), fetched: false });
            }
            Ok(_) => "it is another content's".to_owned(),
            Err(error) => error.to_string(),
        };
        let times = 1 + self.unreadable.fetch_add(1, Ordering::Relaxed);
        // A dead disk would fill the log.
        if times.is_power_of_two() {
            tracing::warn!(%content, error, times, "cannot read a signature; fetching it");
        }
        let pages = partition.pages_of(entry.slot).take(FETCHES_MAX);
        let signature = pages.filter_map(|page| (self.fetch)(page)).find(|s| s.content() == content)?;
        Some(Read { signature, fetched: true })
    }

    /// Stores a signature again that could not be read.
    pub(crate) fn heal(&mut self, entry: EntryRef, signature: &Signature) {
        self.release(entry);
        let record = self.file.append(signature);
        let partition = self.tables.partition_mut(entry);
        partition.columns.set_record(entry.slot, record);
        partition.note(entry.slot);
    }

    /// Takes in what a search found out.
    pub(crate) fn learn(&mut self, found: &Found) {
        let tables = &mut self.tables;
        for (probe, comparisons) in &found.probed_partitions {
            let partition = &mut tables.partitions[*probe as usize];
            partition.received += 1;
            partition.comparisons += u64::from(*comparisons);
        }
        if let Some((entry, band_keys)) = &found.new_center {
            tables.set_is_center(*entry, band_keys);
        }
        if let Some((entry, center)) = found.center {
            tables.set_center(entry, center, &found.band_keys);
        }
        // A whole cluster may get another center at once, so its runs are made anew once.
        let mut runs: HashSet<(u32, BandKey), Seeded> = HashSet::default();
        for (entry, center, band_keys) in &found.adopted {
            let present = tables.partition(*entry).columns.center(entry.slot);
            // It may have searched itself in the meantime.
            if present == Center::UNKNOWN || tables.has_left(present) {
                let partition = tables.partition_mut(*entry);
                partition.columns.set_center(entry.slot, *center);
                partition.note(entry.slot);
                runs.extend(band_keys.iter().map(|band_key| (entry.partition, *band_key)));
            }
        }
        for (partition, band_key) in runs {
            let partition = &mut tables.partitions[partition as usize];
            partition.bands.recut(band_key, &partition.columns);
        }
        for passed in &found.passed {
            let partition = &mut tables.partitions[passed.partition as usize];
            partition.bands.passed(passed.band_key, passed.steps, &partition.columns);
        }
        for (entry, signature) in &found.fetched {
            self.heal(*entry, signature);
        }
    }

    pub(crate) fn release(&mut self, entry: EntryRef) {
        self.file.release(self.record(entry));
    }

    fn record(&self, entry: EntryRef) -> Record {
        self.tables.partition(entry).columns.record(entry.slot)
    }
}
