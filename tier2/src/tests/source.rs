//! Tier 1 in small: the present signature of every page, and what it is told.

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

/// Takes results.
type Take = Box<dyn Fn(Vec<SearchResult>) + Send + Sync>;

pub(super) struct Source {
    pub(super) pages: Pages,
    pub(super) take: Take,
    pub(super) repeats: Mutex<Vec<Repeat>>,
    pub(super) ranges: Mutex<Vec<PageRange>>,
    /// It tells no signatures.
    pub(super) away: AtomicBool,
    /// It does not tell its ranges, as while one of them has no owner.
    pub(super) hides_ranges: AtomicBool,
    /// It does not take the next results, and says so after it was given them.
    pub(super) refuses_next: AtomicBool,
    /// The pages of each change so far, in order; none where no log is kept.
    pub(super) log: Mutex<Option<Vec<PageId>>>,
    /// How often contents were asked for from the first one on.
    pub(super) gone_through: AtomicUsize,
    /// Orders handed over, and the changes that they are of.
    pub(super) ordered: Mutex<(u64, usize)>,
}

impl Source {
    pub(super) fn new(pages: &Pages, take: impl Fn(Vec<SearchResult>) + Send + Sync + 'static) -> Arc<Self> {
        let only =
            PageRange { range: RangeId(0), epoch: Epoch(1), ordered: 0, first: PageId::from_bytes([0; 16]) };
        Arc::new(Self {
            pages: Arc::clone(pages),
            take: Box::new(take),
            repeats: Mutex::default(),
            ranges: Mutex::new(vec![only]),
            away: AtomicBool::new(false),
            hides_ranges: AtomicBool::new(false),
            refuses_next: AtomicBool::new(false),
            log: Mutex::default(),
            gone_through: AtomicUsize::new(0),
            ordered: Mutex::default(),
        })
    }

    /// Nothing is there, and nobody listens.
    pub(super) fn empty() -> Arc<dyn ContentSource> {
        Self::new(&Pages::default(), drop)
    }
}

/// Orders of the one range, after so many.
pub(super) fn orders(after: u64, commands: Vec<IndexCommand>) -> Orders {
    Orders { range: RangeId(0), epoch: Epoch(1), first: after + 1, commands }
}

impl SignatureSource for Source {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        if self.away.load(Ordering::Relaxed) {
            return Err(SourceError::Unavailable("it is away".to_owned()));
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
        self.gone_through.fetch_add(usize::from(after.is_none()), Ordering::Relaxed);
        let (pages, ranges) = (self.pages.lock().unwrap(), self.ranges()?);
        let own = pages.iter().filter(|(page, _)| PageRange::of(&ranges, **page) == Some(range));
        let later = own.filter(|(page, _)| after.is_none_or(|after| **page > after));
        // In small pieces, so that there are several.
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
        (self.take)(results);
        if self.refuses_next.swap(false, Ordering::Relaxed) {
            return Err(SourceError::Unavailable("it is away".to_owned()));
        }
        Ok(())
    }

    fn repeat(&self, _: RangeId, repeats: Vec<Repeat>) -> Result<(), SourceError> {
        self.repeats.lock().unwrap().extend(repeats);
        Ok(())
    }
}
