//! A small tier 1: it has the present signature of every page, and receives results.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::{
    ContentSource, ContentsPage, IndexCommand, LogPosition, Moment, Orders, PageRange, Repeat, SearchResult,
    SignatureSource, SourceError,
};

/// The present signature of every page.
pub(super) type Pages = Arc<Mutex<BTreeMap<PageId, Arc<Signature>>>>;

/// Receives results.
type ResultHandler = Box<dyn Fn(Vec<SearchResult>) + Send + Sync>;

pub(super) struct Source {
    pub(super) pages: Pages,
    pub(super) handle_results: ResultHandler,
    pub(super) repeats: Mutex<Vec<Repeat>>,
    pub(super) ranges: Mutex<Vec<PageRange>>,
    /// Whether requests for signatures fail.
    pub(super) is_away: AtomicBool,
    /// Whether the ranges are not listed, as if one of them had no owner.
    pub(super) hides_ranges: AtomicBool,
    /// Whether the next results are received, but answered with an error.
    pub(super) refuses_next: AtomicBool,
    /// The page of each change so far, in order. `None` if tier 1 keeps no log.
    pub(super) log: Mutex<Option<Vec<PageId>>>,
    /// Number of times that all contents were requested, counted at the first page of contents.
    pub(super) full_reads: AtomicUsize,
    /// Number of orders that were handed over, and number of changes that they include.
    pub(super) ordered: Mutex<(u64, usize)>,
}

impl Source {
    pub(super) fn new(
        pages: &Pages,
        handle_results: impl Fn(Vec<SearchResult>) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let only =
            PageRange { range: RangeId(0), epoch: Epoch(1), ordered: 0, first: PageId::from_bytes([0; 16]) };
        Arc::new(Self {
            pages: Arc::clone(pages),
            handle_results: Box::new(handle_results),
            repeats: Mutex::default(),
            ranges: Mutex::new(vec![only]),
            is_away: AtomicBool::new(false),
            hides_ranges: AtomicBool::new(false),
            refuses_next: AtomicBool::new(false),
            log: Mutex::default(),
            full_reads: AtomicUsize::new(0),
            ordered: Mutex::default(),
        })
    }

    /// A tier 1 without contents, which ignores all results.
    pub(super) fn empty() -> Arc<dyn ContentSource> {
        Self::new(&Pages::default(), drop)
    }
}

/// Orders of the only range, after the first `after` orders.
pub(super) fn orders(after: u64, commands: Vec<IndexCommand>) -> Orders {
    Orders { range: RangeId(0), epoch: Epoch(1), first: after + 1, commands }
}

impl SignatureSource for Source {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(SourceError::Unavailable("tier 1 is away".to_owned()));
        }
        let known = self.pages.lock().unwrap();
        Ok(pages.iter().map(|page| known.get(page).cloned()).collect())
    }
}

impl ContentSource for Source {
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError> {
        if self.hides_ranges.load(Ordering::Relaxed) {
            return Err(SourceError::Unavailable("a range has no owner".to_owned()));
        }
        Ok(self.ranges.lock().unwrap().clone())
    }

    fn contents(
        &self,
        range: RangeId,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<ContentsPage, SourceError> {
        self.full_reads.fetch_add(usize::from(after.is_none()), Ordering::Relaxed);
        let (pages, ranges) = (self.pages.lock().unwrap(), self.ranges()?);
        let own = pages.iter().filter(|(page, _)| PageRange::of(&ranges, **page) == Some(range));
        let later = own.filter(|(page, _)| after.is_none_or(|after| **page > after));
        // Small pages, so that a range has several.
        let limit = limit.min(100);
        let contents: Vec<(PageId, ContentHash)> =
            later.map(|(page, signature)| (*page, signature.content())).take(limit).collect();
        let next = contents.last().map(|(page, _)| *page).filter(|_| contents.len() == limit);
        Ok(ContentsPage { contents, next })
    }

    fn moment(&self, _: RangeId) -> Result<Option<Moment>, SourceError> {
        let (order, changes) = *self.ordered.lock().unwrap();
        let log = LogPosition { log: 1, epoch: 1, index: changes as u64, hash: changes as u128 };
        Ok(self.log.lock().unwrap().as_ref().map(|_| Moment { log, order }))
    }

    fn changed_since(&self, _: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, SourceError> {
        let log = self.log.lock().unwrap();
        let changes = log.as_ref().and_then(|changes| changes.get(since.index as usize..));
        Ok(changes.map(<[_]>::to_vec))
    }

    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError> {
        (self.handle_results)(results);
        if self.refuses_next.swap(false, Ordering::Relaxed) {
            return Err(SourceError::Unavailable("tier 1 is away".to_owned()));
        }
        Ok(())
    }

    fn repeat(&self, _: RangeId, repeats: Vec<Repeat>) -> Result<(), SourceError> {
        self.repeats.lock().unwrap().extend(repeats);
        Ok(())
    }
}
