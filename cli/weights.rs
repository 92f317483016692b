//! How many bytes the pages have that are kept, and those that can be removed.

use std::collections::HashMap;

use doppel_model::PageId;
use doppel_protocol::{Outcome, Status};
use serde::Serialize;

/// The bytes of the newest version of every page that was read. It takes about 20 bytes a page.
#[derive(Debug, Default)]
pub(crate) struct Weights(HashMap<u64, u32>);

/// Pages and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Weight {
    pub(crate) pages: u64,
    /// Of their text or HTML as it was read; null where pages are on record that were not read now.
    pub(crate) bytes: Option<u64>,
}

/// What is to be kept of a collection, and what can be removed: the duplicates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Balance {
    pub(crate) kept: Weight,
    pub(crate) removed: Weight,
}

impl Weights {
    /// A version was read.
    pub(crate) fn note(&mut self, page: PageId, bytes: u64, outcome: Outcome) {
        if outcome != Outcome::Stale {
            self.0.insert(number(page), u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// The bytes of a page that was read.
    pub(crate) fn of(&self, page: PageId) -> Option<u64> {
        self.0.get(&number(page)).map(|bytes| u64::from(*bytes))
    }

    /// The balance of all live pages.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn balance<E>(
        &self,
        live: impl Iterator<Item = Result<(PageId, Status), E>>,
    ) -> Result<Balance, E> {
        let empty = Weight { pages: 0, bytes: Some(0) };
        let mut balance = Balance { kept: empty, removed: empty };
        for page in live {
            let (page, status) = page?;
            let Balance { kept, removed } = &mut balance;
            let side = if status == Status::Duplicate { removed } else { kept };
            side.pages += 1;
            let bytes = self.of(page);
            side.bytes = side.bytes.zip(bytes).map(|(sum, bytes)| sum + bytes);
        }
        Ok(balance)
    }
}

impl Balance {
    /// The share of pages that can be removed, in percent.
    pub(crate) fn removed_percent(&self) -> f64 {
        let pages = (self.kept.pages + self.removed.pages).max(1);
        self.removed.pages as f64 * 100.0 / pages as f64
    }
}

/// Half of an id, which is a hash.
fn number(page: PageId) -> u64 {
    page.bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use doppel_model::PageUrl;

    use super::*;

    #[test]
    fn bytes_are_those_of_the_newest_versions() {
        let page = |name: &str| PageUrl::parse(&format!("http://h/{name}")).unwrap().id();
        let mut weights = Weights::default();
        weights.note(page("a"), 10, Outcome::Pending);
        weights.note(page("a"), 30, Outcome::Confirmed);
        weights.note(page("a"), 20, Outcome::Stale);
        weights.note(page("b"), 5, Outcome::Pending);
        let live = |pages: &[(&str, Status)]| {
            let live = pages.iter().map(|(name, status)| Ok::<_, ()>((page(name), *status)));
            weights.balance(live).unwrap()
        };
        let balance = live(&[("a", Status::Winner), ("b", Status::Duplicate)]);
        assert_eq!(balance.kept, Weight { pages: 1, bytes: Some(30) });
        assert_eq!(balance.removed, Weight { pages: 1, bytes: Some(5) });
        assert!((balance.removed_percent() - 50.0).abs() < 1e-9);
        let balance = live(&[("a", Status::Winner), ("other", Status::Unique), ("b", Status::Duplicate)]);
        assert_eq!((balance.kept.bytes, balance.removed.bytes), (None, Some(5)));
    }
}
