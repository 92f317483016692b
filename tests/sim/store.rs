//! The stores of the ranges: in memory and atomic. What was not flushed is gone after a crash.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use doppel_model::PageId;
use doppel_tier1::simulation::{Intercept, Intercepted, page_of_row};
use doppel_tier1::{Joined, Memory, RangeMap, Store, StoreError, Write};

/// The store of one range.
pub(crate) type RangeStore = Intercepted<Flushes>;

/// Flushes at every commit, unless it is lazy.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    /// What each commit since the last flush has overwritten.
    unflushed: Mutex<Vec<Vec<Write>>>,
    /// Commits to one flush.
    lazy: Option<usize>,
    /// The log of the range.
    log: Mutex<Changes>,
}

/// The number of all commits, and what the last of them wrote.
type Changes = (u64, VecDeque<Vec<Write>>);

/// Commits that the log reaches back.
const KEPT: usize = 60;

impl Flushes {
    pub(crate) fn new(lazy: Option<usize>) -> Self {
        Self { lazy, ..Self::default() }
    }

    /// Commits so far.
    pub(crate) fn commits(&self) -> u64 {
        self.log.lock().unwrap().0
    }

    /// What was written after so many commits, if the log reaches back to them.
    pub(crate) fn written_since(&self, commits: u64) -> Option<Vec<Write>> {
        let log = self.log.lock().unwrap();
        let since = usize::try_from(log.0.checked_sub(commits)?).ok()?;
        let first = log.1.len().checked_sub(since)?;
        Some(log.1.range(first..).flatten().cloned().collect())
    }

    /// The pages that were changed after so many commits, if the log reaches back to them.
    pub(crate) fn changed_since(&self, commits: u64) -> Option<Vec<PageId>> {
        let written = self.written_since(commits)?;
        let mut pages: Vec<PageId> = written.iter().filter_map(|(key, _)| page_of_row(key)).collect();
        pages.sort_unstable();
        pages.dedup();
        Some(pages)
    }

    /// The range dies: commits that were not flushed are gone.
    pub(crate) fn crash(&self, rows: &Memory) {
        for overwritten in self.unflushed.lock().unwrap().drain(..).rev() {
            rows.commit(overwritten).unwrap();
        }
    }
}

impl Intercept for Flushes {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        {
            let mut log = self.log.lock().unwrap();
            log.0 += 1;
            log.1.push_back(writes.clone());
            if log.1.len() > KEPT {
                log.1.pop_front();
            }
        }
        if let Some(every) = self.lazy {
            let before = writes.iter().map(|(key, _)| Ok((key.clone(), rows.get(key)?)));
            let mut unflushed = self.unflushed.lock().unwrap();
            unflushed.push(before.collect::<Result<_, StoreError>>()?);
            if unflushed.len() >= every {
                unflushed.clear();
            }
        }
        rows.commit(writes)
    }
}

/// The stores of all ranges.
pub(crate) struct AllStores {
    pub(crate) map: RangeMap,
    pub(crate) stores: Vec<Arc<RangeStore>>,
}

impl AllStores {
    /// As one, to read.
    pub(crate) fn joined(&self) -> Joined<'_> {
        Joined::new(self.map, self.stores.iter().map(|store| &**store))
    }
}
