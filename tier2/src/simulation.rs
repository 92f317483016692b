//! The index without its thread, for the simulation (feature `simulation`): passes, re-homing and
//! reopening happen when they are asked for.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use doppel_common::api::{IndexCommand, LookResult, Pair};
use doppel_common::mapping::PartitionMap;
use doppel_common::model::{ContentHash, PageId};
use doppel_common::signature::Signature;

use crate::map_file::{self, Learned};
use crate::service::Shared;
use crate::{Config, Error, Fetch, open, pass, rebuild};

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

    /// One pass over a batch of orders.
    #[must_use]
    pub fn pass(&self, orders: Vec<IndexCommand>) -> Vec<LookResult> {
        pass::run(&self.shared, orders);
        rebuild::maintain(&self.shared);
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Compares a signature that is not stored.
    #[must_use]
    pub fn probe(&self, signature: &Signature) -> Vec<Pair> {
        pass::probe(&self.shared.read(), signature)
    }

    /// Makes all partitions anew under another map, and stores the map.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn rehome(&self, map: PartitionMap) -> Result<(), Error> {
        let learned = Learned {
            contents: self.shared.read().tables.contents.len(),
            partitions: self.shared.config.partitions,
        };
        map_file::write(&self.shared.config.dir.join(open::MAP), &map, learned)?;
        rebuild::rehome(&self.shared, map);
        self.shared.write().learned = Some(learned);
        Ok(())
    }

    /// Writes what is in memory alone to the files. Without it, it is lost with the index.
    pub fn flush(&self) {
        self.shared.write().file.flush();
    }

    /// The epoch of the present map.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.shared.read().tables.map.epoch()
    }

    /// Whether a page is in the index, under any content.
    #[must_use]
    pub fn has(&self, page: PageId) -> bool {
        let index = self.shared.read();
        index.tables.contents.iter().any(|place| index.tables.partition(*place).has_page(place.slot, page))
    }

    /// Every content and page that is stored.
    #[must_use]
    pub fn pages(&self) -> Vec<(PageId, ContentHash)> {
        let index = self.shared.read();
        let mut pages = Vec::new();
        for place in &index.tables.contents {
            let partition = index.tables.partition(*place);
            let content = partition.columns.content(place.slot);
            pages.extend(partition.pages_of(place.slot).map(|page| (page, content)));
        }
        pages.sort_unstable();
        pages
    }
}

/// The files of an index: the signatures, the map.
#[must_use]
pub fn files(config: &Config) -> [PathBuf; 2] {
    [config.dir.join(open::SIGNATURES), config.dir.join(open::MAP)]
}
