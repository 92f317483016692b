//! The index without its thread, for the simulation (feature `simulation`): passes, changes of the plan and
//! reopening happen when they are asked for.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::{IndexCommand, LookResult, Pair, Rebalance};
use hashbrown::HashSet;

use crate::open::node_dir;
use crate::service::Shared;
use crate::{Config, Error, Fetch, any_plan, open, pass, rebuild};

/// An open index.
pub struct Index {
    shared: Shared,
    answers: Arc<Mutex<Vec<LookResult>>>,
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
        let answers = Arc::<Mutex<Vec<LookResult>>>::default();
        let taken = Arc::clone(&answers);
        let answer = move |results: Vec<LookResult>| {
            taken.lock().unwrap_or_else(PoisonError::into_inner).extend(results);
        };
        Ok(Self { shared: Shared::open(config, contents, fetch, Box::new(answer))?, answers })
    }

    /// One pass over a batch of orders, and what is due after it.
    #[must_use]
    pub fn pass(&self, orders: Vec<IndexCommand>) -> Vec<LookResult> {
        pass::run(&self.shared, orders);
        rebuild::maintain(&self.shared, 0);
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Compares a signature that is not stored.
    #[must_use]
    pub fn probe(&self, signature: &Signature) -> Vec<Pair> {
        pass::probe(&self.shared.read(), signature)
    }

    /// Begins a change of the plan, whichever, or wishes for one; false while there is another one.
    ///
    /// # Errors
    /// When there cannot be such a plan, or a wish cannot be stored.
    pub fn change(&self, dice: u64) -> Result<bool, Error> {
        let node = (dice >> 8) as u32 % self.shared.config.nodes;
        match dice % 16 {
            7 => self.shared.wish(Rebalance::Drain { node }),
            11 => self.shared.wish(Rebalance::Learn),
            15 => self.shared.wish(Rebalance::Join { node }),
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

    /// The epoch of the present map.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.shared.read().plan.map().epoch()
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
            for place in tables.places() {
                let partition = tables.partition(place);
                let content = partition.columns.content(place.slot);
                pages.extend(partition.pages_of(place.slot).map(|page| (page, content)));
            }
        }
        pages.sort_unstable();
        pages
    }
}

/// The files of an index: the signatures of each node, the plan, the wish.
#[must_use]
pub fn files(config: &Config) -> Vec<PathBuf> {
    let signatures = (0..config.nodes).map(|node| config.dir.join(node_dir(node)).join(open::SIGNATURES));
    signatures.chain([open::MAP, open::WISH].map(|name| config.dir.join(name))).collect()
}
