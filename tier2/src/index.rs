//! The index of one node: its tables in memory, its signatures on disk, and tier 1 behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::{LengthVector, Plan};

use hashbrown::HashSet;

use crate::bands::{Tag, Tags};
use crate::columns::{Center, Record};
use crate::file::SignatureFile;
use crate::nibbles;
use crate::search::Found;
use crate::seed::Seeded;
use crate::tables::{Place, Tables};

/// Where a page's current signature can be had when it cannot be read here. It must not call tier 2.
pub type Fetch = Arc<dyn Fn(PageId) -> Option<Arc<Signature>> + Send + Sync>;

/// Pages of a content that are asked for its signature. They agree, unless tier 1 is ahead of us.
const FETCHES_MAX: usize = 16;

/// Tables, signatures, and where to get a signature again.
pub(crate) struct Index {
    pub(crate) tables: Tables,
    pub(crate) file: SignatureFile,
    pub(crate) fetch: Fetch,
    /// Fewer agreeing nibbles reject a candidate.
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
        let least_agreeing = nibbles::least_agreeing(policy.tau);
        let (tables, unreadable) = (Tables::new(policy, plan, node), AtomicU64::new(0));
        Self { tables, file, fetch, least_agreeing, unreadable }
    }

    /// `page` has this content, whose home is a partition of this node.
    pub(crate) fn put(&mut self, page: PageId, signature: &Signature, home: (u32, LengthVector)) {
        match self.tables.find(signature.content()) {
            Some(place) => self.tables.partition_mut(place).add_page(place.slot, page),
            None => {
                let record = self.file.append(signature);
                self.tables.insert(home, page, signature, record);
            }
        }
    }

    /// The tags that [`remove`](Self::remove) needs: none of them where the entry is not in the bands or
    /// stays as it is, no list where nobody has the signature any more.
    pub(crate) fn tags_to_remove(&self, page: PageId, content: ContentHash) -> Option<Tags> {
        let Some(place) = self.tables.find(content) else { return Some(Tags::new()) };
        let columns = &self.tables.partition(place).columns;
        if columns.page(place.slot) != page || !columns.comparable(place.slot) {
            return Some(Tags::new());
        }
        let read = self.read(place, &mut Vec::new())?;
        Some(self.tables.tags(&read.signature))
    }

    /// `page` no longer has this content. The entry goes with its last page. Returns the page that is the first
    /// one now, where that has changed.
    pub(crate) fn remove(
        &mut self,
        page: PageId,
        content: ContentHash,
        tags: Option<Tags>,
    ) -> Option<PageId> {
        let place = self.tables.find(content)?;
        let partition = self.tables.partition_mut(place);
        if partition.columns.page(place.slot) != page {
            partition.remove_page(place.slot, page);
            return None;
        }
        let next = partition.pages.pop(place.slot);
        match (tags, next) {
            (Some(tags), Some(next)) => {
                self.tables.renew(place, &tags, next);
                return Some(next);
            }
            (Some(tags), None) => {
                self.release(place);
                self.tables.remove(place, &tags);
            }
            (None, _) => {
                self.release(place);
                self.tables.abandon(place);
            }
        }
        None
    }

    /// The signature of an entry, from the file or else from tier 1, by way of one of its pages. None when
    /// no page has that content any more. Called with the lock of a reader at most.
    pub(crate) fn read(&self, place: Place, buffer: &mut Vec<u8>) -> Option<Read> {
        let partition = self.tables.partition(place);
        let content = partition.columns.content(place.slot);
        let error = match self.file.read(self.record(place), buffer) {
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
        let pages = partition.pages_of(place.slot).take(FETCHES_MAX);
        let signature = pages.filter_map(|page| (self.fetch)(page)).find(|s| s.content() == content)?;
        Some(Read { signature, fetched: true })
    }

    /// Stores a signature again that could not be read.
    pub(crate) fn heal(&mut self, place: Place, signature: &Signature) {
        self.release(place);
        let record = self.file.append(signature);
        let partition = self.tables.partition_mut(place);
        partition.columns.set_record(place.slot, record);
        partition.note(place.slot);
    }

    /// Takes in what a look found out.
    pub(crate) fn learn(&mut self, found: &Found) {
        let tables = &mut self.tables;
        for (contact, comparisons) in &found.contacts {
            let partition = &mut tables.partitions[*contact as usize];
            partition.received += 1;
            partition.comparisons += u64::from(*comparisons);
        }
        if let Some((place, tags)) = &found.hub {
            tables.set_hub(*place, tags);
        }
        if let Some((place, center)) = found.center {
            tables.set_center(place, center, &found.tags);
        }
        // A whole cluster may get another center at once, so its runs are made anew once.
        let mut runs: HashSet<(u32, Tag), Seeded> = HashSet::default();
        for (place, center, tags) in &found.adopted {
            let present = tables.partition(*place).columns.center(place.slot);
            // It may have looked itself in the meantime.
            if present == Center::UNKNOWN || tables.has_left(present) {
                let partition = tables.partition_mut(*place);
                partition.columns.set_center(place.slot, *center);
                partition.note(place.slot);
                runs.extend(tags.iter().map(|tag| (place.partition, *tag)));
            }
        }
        for (partition, tag) in runs {
            let partition = &mut tables.partitions[partition as usize];
            partition.bands.recut(tag, &partition.columns);
        }
        for passed in &found.passed {
            let partition = &mut tables.partitions[passed.partition as usize];
            partition.bands.passed(passed.tag, passed.steps, &partition.columns);
        }
        for (place, signature) in &found.fetched {
            self.heal(*place, signature);
        }
    }

    pub(crate) fn release(&mut self, place: Place) {
        self.file.release(self.record(place));
    }

    fn record(&self, place: Place) -> Record {
        self.tables.partition(place).columns.record(place.slot)
    }
}
