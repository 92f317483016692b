//! The index without its thread, for the simulation (feature `simulation`): passes, changes of the plan and
//! reopening happen when they are asked for.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::{IndexCommand, Pair, RebalanceRequest, SearchResult};
use hashbrown::HashSet;

use crate::open::node_dir;
use crate::service::Shared;
use crate::{Config, Error, Fetch, any_plan, open, pass, rebuild};

/// An open index.
pub struct Index {
    shared: Shared,
    answers: Arc<Mutex<Vec<SearchResult>>>,
}

impl Index {
    /// Opens the index of a directory for exactly these contents, as [`Tier2::open`](crate::Tier2::open) does.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub fn open(
        config: Config,
        contents: &mut dyn Iterator<Item = (PageId, ContentHash)>,
        fetch: Fetch,
    ) -> Result<Self, Error> {
        let answers = Arc::<Mutex<Vec<SearchResult>>>::default();
        let taken = Arc::clone(&answers);
        let answer = move |results: Vec<SearchResult>| {
            taken.lock().unwrap_or_else(PoisonError::into_inner).extend(results);
        };
        Ok(Self { shared: Shared::open(config, contents, fetch, Box::new(answer))?, answers })
    }

    /// One pass over a batch of orders, and what is due after it.
    #[must_use]
    pub fn pass(&self, orders: Vec<IndexCommand>) -> Vec<SearchResult> {
        pass::run(&self.shared, orders);
        rebuild::maintain(&self.shared, 0);
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Compares a signature that is not stored.
    #[must_use]
    pub fn probe(&self, signature: &Signature) -> Vec<Pair> {
        pass::probe(&self.shared.read(), signature)
    }

    /// Begins a change of the plan, whichever, or requests one; false while there is another one.
    ///
    /// # Errors
    /// When there cannot be such a plan, or a request cannot be stored.
    pub fn change(&self, dice: u64) -> Result<bool, Error> {
        let node = (dice >> 8) as u32 % self.shared.config.nodes;
        match dice % 16 {
            7 => self.shared.request(RebalanceRequest::Drain { node }),
            11 => self.shared.request(RebalanceRequest::Learn),
            15 => self.shared.request(RebalanceRequest::Join { node }),
            _ => Ok(any_plan::begin(&self.shared, dice)?),
        }
    }

    /// Forgets what passes changed of the contents that were copied already: a mistake, for the proof that it is seen.
    pub fn forget_changes(&self) {
        for index in &mut self.shared.write().nodes {
            index
                .tables
                .partitions
                .iter_mut()
                .filter_map(|one| one.changed.as_mut())
                .for_each(HashSet::clear);
        }
    }

    /// One step of a change of the plan, or of the cleaning up after it; whether there was anything to do.
    pub fn work(&self) -> bool {
        rebuild::work(&self.shared)
    }

    /// Writes what is in memory alone to the files. Without it, it is lost with the index.
    pub fn flush(&self) {
        self.shared.flush();
    }

    /// The version of the present map.
    #[must_use]
    pub fn plan_version(&self) -> u64 {
        self.shared.read().plan.map().version()
    }

    /// Whether a page is in the index, under any content.
    #[must_use]
    pub fn has(&self, page: PageId) -> bool {
        self.pages().iter().any(|(stored, _)| *stored == page)
    }

    /// Every content and page that is stored.
    #[must_use]
    pub fn pages(&self) -> Vec<(PageId, ContentHash)> {
        let cluster = self.shared.read();
        let mut pages = Vec::new();
        for tables in cluster.nodes.iter().map(|index| &index.tables) {
            for entry in tables.entries() {
                let partition = tables.partition(entry);
                let content = partition.columns.content(entry.slot);
                pages.extend(partition.pages_of(entry.slot).map(|page| (page, content)));
            }
        }
        pages.sort_unstable();
        pages
    }
}

/// The files of an index: the signatures of each node, the plan, the request.
#[must_use]
pub fn files(config: &Config) -> Vec<PathBuf> {
    let signatures = (0..config.nodes).map(|node| config.dir.join(node_dir(node)).join(open::SIGNATURES));
    signatures.chain([open::MAP, open::REBALANCE].map(|name| config.dir.join(name))).collect()
}
