//! Grouping of a whole collection without earlier results: one pass of tier 2 over all signatures, then the
//! connected components of the pairs, in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use anyhow::Context;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ClientId, Epoch, PageId, PageUrl, RangeId, Tau, UnionFind};
use doppel_protocol::{
    ContentSource, ContentsPage, IndexCommand, IndexOrders as _, Orders, PageRange, Repeat, Search,
    SearchResult, SignatureSource, SourceError, Tier2Api,
};
use doppel_terminal::scratch::Scratch;
use doppel_tier2::{Config, Tier2};

use doppel_inputs::processor;

/// Result of grouping everything, with its cost.
#[derive(Debug)]
pub(crate) struct FromScratch {
    pub(crate) seconds: f64,
    /// Seconds of processor time.
    pub(crate) processor: f64,
    /// Number of groups of two pages or more.
    pub(crate) groups: u64,
}

/// Groups all `pages`, each in its present version.
///
/// # Errors
/// If the index fails.
pub(crate) fn from_scratch(pages: &[(PageUrl, Arc<Signature>)], tau: Tau) -> anyhow::Result<FromScratch> {
    let scratch = Scratch::new()?;
    // In one process one partition is fastest, because no map is learned.
    let config = Config { partitions: Some(1), ..Config::new(scratch.path(), Policy::jaccard(tau)) };
    let (sender, answers) = channel();
    let index = Tier2::open(config, Arc::new(ResultCollector(sender)))?;
    let orders = pages.iter().map(|(url, signature)| IndexCommand::Put {
        page: url.id(),
        signature: Arc::clone(signature),
        search: Some(Search { ticket: 0, client: ClientId::NONE }),
    });
    let orders: Vec<IndexCommand> = orders.collect();
    let (begin, processor) = (Instant::now(), processor::seconds());
    index.submit(Orders { range: RangeId(0), epoch: Epoch(1), first: 1, commands: orders })?;
    index.flush_batch()?;
    let mut components = Components::default();
    let mut missing = pages.len();
    while missing > 0 {
        let results = answers.recv().context("the index stopped before it answered every search")?;
        missing = missing.saturating_sub(results.len());
        for result in results {
            for pair in result.pairs {
                components.link(result.page, pair.page);
            }
        }
    }
    let groups = components.count();
    let seconds = begin.elapsed().as_secs_f64();
    let processor = processor::seconds() - processor;
    index.stop();
    Ok(FromScratch { seconds, processor, groups })
}

/// Stands in for tier 1: has no contents, and collects the results of searches.
struct ResultCollector(Sender<Vec<SearchResult>>);

impl SignatureSource for ResultCollector {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        Ok(vec![None; pages.len()])
    }
}

impl ContentSource for ResultCollector {
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError> {
        Ok(vec![PageRange {
            range: RangeId(0),
            epoch: Epoch(1),
            ordered: 0,
            first: PageId::from_bytes([0; 16]),
        }])
    }

    fn contents(&self, _: RangeId, _: Option<PageId>, _: usize) -> Result<ContentsPage, SourceError> {
        Ok(ContentsPage::default())
    }

    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError> {
        self.0.send(results).map_err(|error| SourceError::Unavailable(error.to_string()))
    }

    fn repeat(&self, _: RangeId, _: Vec<Repeat>) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Connected components of pages, from their pairs.
#[derive(Default)]
struct Components {
    numbers: HashMap<PageId, usize>,
    sets: UnionFind,
}

impl Components {
    fn link(&mut self, a: PageId, b: PageId) {
        let (a, b) = (self.number(a), self.number(b));
        self.sets.union(a, b);
    }

    fn number(&mut self, page: PageId) -> usize {
        *self.numbers.entry(page).or_insert_with(|| self.sets.add())
    }

    /// Number of components. A page that was never linked does not count.
    fn count(&self) -> u64 {
        self.sets.components() as u64
    }
}

#[cfg(test)]
mod tests {
    use doppel_text::Extractor;

    use super::*;

    #[test]
    fn groups_equal_the_components_of_similar_pages() {
        let mut extractor = Extractor::default();
        // Each text differs from the text before it in its last three of 100 words. The last text is like no
        // other.
        let text = |page: usize| {
            let changed = if page == 5 { 100 } else { 3 * page };
            let words = (0..100).map(|n| if n + changed >= 100 { format!("x{n}") } else { format!("w{n}") });
            words.collect::<Vec<_>>().join(" ")
        };
        let pages: Vec<_> = (0..6)
            .map(|page| {
                let url = PageUrl::parse(&format!("http://a/{page}")).unwrap();
                (url, Arc::new(extractor.text(&text(page)).signature))
            })
            .collect();
        assert_eq!(from_scratch(&pages, Tau::DEFAULT).unwrap().groups, 1);
        assert_eq!(from_scratch(&pages[4..], Tau::DEFAULT).unwrap().groups, 0);
        assert_eq!(from_scratch(&[], Tau::DEFAULT).unwrap().groups, 0);
    }
}
