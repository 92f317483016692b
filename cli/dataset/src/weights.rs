//! Sizes of the kept pages and of the removable pages, in bytes.

use std::collections::HashMap;

use doppel_contract::{Status, SubmissionOutcome};
use doppel_crawls::copy::Removal;
use doppel_model::PageId;
use doppel_tier1::bulk::{GroupedCollection, PageDecision, PageWithContent, Unit};
use serde::Serialize;

use crate::accounts::{self, DecisionCounts};

/// The sizes of the pages or records that were read.
#[derive(Debug)]
pub enum Weights {
    /// Size of the newest version of every page. Takes about 20 bytes of memory for each page.
    ByPage(HashMap<u64, PageWeight>),
    /// Size of every record, by its number in the order of the inputs. Takes 4 bytes of memory for each
    /// record.
    ByRecord(Vec<u32>),
}

/// Size of the newest version of a page that this run has read, and whether the version is a redirect.
#[derive(Debug, Clone, Copy)]
pub struct PageWeight {
    bytes: u32,
    is_redirect: bool,
}

/// A number of pages and their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Weight {
    /// Number of pages that were counted.
    pub pages: u64,
    /// Size of their text or HTML as it was read. `None` if the collection has pages that this run has not
    /// read.
    pub bytes: Option<u64>,
}

/// The pages of a collection that are kept, and the duplicates that can be removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Pages that are kept.
    pub kept: Weight,
    /// Pages that are removed.
    pub removed: Weight,
}

impl Default for Weight {
    /// No pages, with a size of 0 bytes.
    fn default() -> Self {
        Self { pages: 0, bytes: Some(0) }
    }
}

impl Weight {
    /// Counts one more page with its size.
    pub fn add(&mut self, bytes: Option<u64>) {
        self.pages += 1;
        self.bytes = self.bytes.zip(bytes).map(|(sum, bytes)| sum + bytes);
    }
}

impl Weights {
    /// Creates an empty table of sizes by page, for a run that submits pages one by one.
    pub fn by_page() -> Self {
        Self::ByPage(HashMap::new())
    }

    /// Creates an empty table of sizes by record, for a run that groups all records at once.
    pub fn by_record() -> Self {
        Self::ByRecord(Vec::new())
    }

    /// Notes the size of a record that was read.
    pub fn note(
        &mut self,
        (record, page): (u64, PageId),
        bytes: u64,
        (is_redirect, outcome): (bool, SubmissionOutcome),
    ) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        match self {
            Self::ByPage(pages) if outcome != SubmissionOutcome::Stale => {
                pages.insert(number(page), PageWeight { bytes, is_redirect });
            }
            Self::ByPage(_) => {}
            Self::ByRecord(records) => {
                records.resize(record as usize, 0);
                records.push(bytes);
            }
        }
    }

    /// The size of a page that was read, in bytes.
    pub fn of(&self, page: &PageWithContent) -> Option<u64> {
        match self {
            Self::ByPage(pages) => pages.get(&number(page.line.url.id())).map(|page| u64::from(page.bytes)),
            Self::ByRecord(_) => self.of_record(page.records.own),
        }
    }

    /// The size of a record in bytes, if sizes are known by record.
    fn of_record(&self, record: Option<u64>) -> Option<u64> {
        let Self::ByRecord(records) = self else { return None };
        records.get(usize::try_from(record?).ok()?).map(|bytes| u64::from(*bytes))
    }

    /// The kept and removed pages of a collection that was grouped at once, with sizes if they are known by
    /// record.
    pub fn balance_of(&self, grouped: &GroupedCollection, unit: Unit) -> Balance {
        let mut balance = Balance::default();
        for PageDecision { status, content, records } in grouped.judged() {
            let Balance { kept, removed } = &mut balance;
            let side = if accounts::removal((status, content), unit).is_some() { removed } else { kept };
            side.add(self.of_record(records.own));
        }
        balance
    }

    /// The kept and removed pages among all live pages of a collection, and the numbers of decisions on the
    /// pages that this run has read. Each live page comes once. Both are empty if sizes are known by record.
    ///
    /// # Errors
    /// The first error of `live`.
    pub fn decided<E>(
        &self,
        live: impl Iterator<Item = Result<(PageId, Status), E>>,
    ) -> Result<(Balance, DecisionCounts), E> {
        let (mut balance, mut decided) = (Balance::default(), DecisionCounts::default());
        let Self::ByPage(pages) = self else { return Ok((balance, decided)) };
        let mut gone = pages.len() as u64;
        for page in live {
            let (page, status) = page?;
            let Balance { kept, removed } = &mut balance;
            let side = if status == Status::Duplicate { removed } else { kept };
            let read = pages.get(&number(page));
            side.add(read.map(|read| u64::from(read.bytes)));
            if let Some(read) = read {
                gone = gone.saturating_sub(1);
                let reason = if read.is_redirect { Removal::Redirect } else { Removal::Duplicate };
                decided.count((status == Status::Duplicate).then_some(reason));
            }
        }
        // The remaining pages were read and are not live.
        (0..gone).for_each(|_| decided.count(Some(Removal::Dead)));
        Ok((balance, decided))
    }
}

impl Balance {
    /// Share of pages that can be removed, in percent.
    pub fn removed_percent(&self) -> f64 {
        let pages = (self.kept.pages + self.removed.pages).max(1);
        self.removed.pages as f64 * 100.0 / pages as f64
    }
}

/// The first half of a page id. The id is a hash, so half of it identifies the page well enough.
fn number(page: PageId) -> u64 {
    page.bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use doppel_model::PageUrl;

    use super::*;

    #[test]
    fn only_the_newest_version_of_a_page_is_weighed() {
        let page = |name: &str| PageUrl::parse(&format!("http://h/{name}")).unwrap().id();
        let weights = || {
            let mut weights = Weights::by_page();
            weights.note((0, page("a")), 10, (true, SubmissionOutcome::Pending));
            weights.note((1, page("a")), 30, (false, SubmissionOutcome::Confirmed));
            weights.note((2, page("a")), 20, (false, SubmissionOutcome::Stale));
            weights.note((3, page("b")), 5, (false, SubmissionOutcome::Pending));
            weights.note((4, page("from")), 7, (true, SubmissionOutcome::Pending));
            weights.note((5, page("gone")), 0, (false, SubmissionOutcome::Confirmed));
            weights
        };
        let decided = |pages: &[(&str, Status)]| {
            let live = pages.iter().map(|(name, status)| Ok::<_, ()>((page(name), *status)));
            weights().decided(live).unwrap()
        };
        let live = [("a", Status::Winner), ("b", Status::Duplicate), ("from", Status::Duplicate)];
        let (balance, of_run) = decided(&live);
        assert_eq!(balance.kept, Weight { pages: 1, bytes: Some(30) });
        assert_eq!(balance.removed, Weight { pages: 2, bytes: Some(12) });
        assert!((balance.removed_percent() - 200.0 / 3.0).abs() < 1e-9);
        let removed = [(Removal::Duplicate, 1), (Removal::Redirect, 1), (Removal::Dead, 1)].into();
        assert_eq!(of_run, DecisionCounts { kept: 1, removed });
        let (balance, of_run) = decided(&[("a", Status::Winner), ("other", Status::Unique)]);
        assert_eq!((balance.kept.bytes, balance.removed.bytes), (None, Some(0)));
        assert_eq!(of_run, DecisionCounts { kept: 1, removed: [(Removal::Dead, 3)].into() });
    }
}
