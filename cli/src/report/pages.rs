//! All live pages of a collection at rest, which are read as often as needed.

use std::collections::HashMap;

use doppel_engine::market::MarketWinners;
use doppel_model::{ContentHash, PageId, PageUrl};
use doppel_protocol::{BATCH_MAX, Line, PageScan, SCAN_LINES_MAX, Tier1Api, Tier1Error};
use doppel_tier1::bulk::{Grouped, NamedRecords, PageWithContent};

// A piece of the scan and the pages that its lines name are asked for in one call.
const _: () = assert!(2 * SCAN_LINES_MAX <= BATCH_MAX);

/// Live pages with their contents.
pub(crate) trait Pages {
    /// Hands over every live page, in a fixed order.
    ///
    /// # Errors
    /// When a record cannot be read, or what `each` fails with.
    fn each(&mut self, each: &mut dyn FnMut(PageWithContent) -> anyhow::Result<()>) -> anyhow::Result<()>;
}

impl Pages for &Grouped {
    fn each(&mut self, each: &mut dyn FnMut(PageWithContent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.pages_with_contents().try_for_each(each)
    }
}

/// Pages on record, as they are for a market if there is one.
pub(crate) struct Recorded<'t, 'm> {
    pub(crate) tier1: &'t dyn Tier1Api,
    pub(crate) market: Option<&'t mut MarketWinners<'m>>,
}

impl Recorded<'_, '_> {
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

impl Pages for Recorded<'_, '_> {
    fn each(&mut self, each: &mut dyn FnMut(PageWithContent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut scan = PageScan::new(self.tier1);
        loop {
            let read = scan.by_ref().take(SCAN_LINES_MAX).collect::<Result<Vec<_>, _>>()?;
            if read.is_empty() {
                return Ok(());
            }
            let lines = self.lines(read)?;
            // Only pages that are in groups have anything in common with another.
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
