//! Iterates over all live pages of a collection that has no work left, as often as needed.

use std::collections::HashMap;

use doppel_engine::market::MarketWinners;
use doppel_model::{ContentHash, PageId, PageUrl};
use doppel_protocol::{BATCH_PAGES_MAX, Line, PageScan, SCAN_LINES_MAX, Tier1Api, Tier1Error};
use doppel_tier1::bulk::{GroupedCollection, NamedRecords, PageWithContent};

// One call asks for all pages of a piece of the scan, and for the pages that these name.
const _: () = assert!(2 * SCAN_LINES_MAX <= BATCH_PAGES_MAX);

/// Live pages with their contents.
pub trait Pages {
    /// Passes every live page to `each`, in a fixed order.
    ///
    /// # Errors
    /// If a record cannot be read, or `each` fails.
    fn each(&mut self, each: &mut dyn FnMut(PageWithContent) -> anyhow::Result<()>) -> anyhow::Result<()>;
}

impl Pages for &GroupedCollection {
    fn each(&mut self, each: &mut dyn FnMut(PageWithContent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.pages_with_contents().try_for_each(each)
    }
}

/// Pages on record, with the winners of a market if there is one.
pub struct RecordedPages<'t, 'm> {
    /// Tier 1 that holds the pages; it must be quiescent.
    pub tier1: &'t dyn Tier1Api,
    /// Winners of the market that the user chose.
    pub market: Option<&'t mut MarketWinners<'m>>,
}

impl RecordedPages<'_, '_> {
    fn lines(&mut self, read: Vec<Line>) -> Result<Vec<Line>, Tier1Error> {
        match &mut self.market {
            Some(market) => read.into_iter().map(|line| market.apply(line)).collect(),
            None => Ok(read),
        }
    }

    fn of_ids(&self, ids: &[PageId]) -> Result<HashMap<PageId, ContentHash>, Tier1Error> {
        let views = self.tier1.pages(ids)?;
        let contents = ids.iter().zip(views).filter_map(|(id, view)| Some((*id, view?.content?)));
        Ok(contents.collect())
    }
}

impl Pages for RecordedPages<'_, '_> {
    fn each(&mut self, each: &mut dyn FnMut(PageWithContent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut scan = PageScan::new(self.tier1);
        loop {
            let read = scan.by_ref().take(SCAN_LINES_MAX).collect::<Result<Vec<_>, _>>()?;
            if read.is_empty() {
                return Ok(());
            }
            let lines = self.lines(read)?;
            // Only pages in groups share contents with others.
            let named = lines.iter().filter(|line| line.group.is_some());
            let named =
                named.flat_map(|line| [Some(line.url.id()), line.duplicate_of.as_ref().map(PageUrl::id)]);
            let contents = self.of_ids(&named.flatten().collect::<Vec<_>>())?;
            for line in lines {
                let content = contents.get(&line.url.id()).copied();
                let kept_content = line.duplicate_of.as_ref().and_then(|of| contents.get(&of.id()).copied());
                each(PageWithContent { line, content, kept_content, records: NamedRecords::default() })?;
            }
        }
    }
}
