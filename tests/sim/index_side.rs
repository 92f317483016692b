//! Tier 2 in a run: the real index, passes by hand, files that are kept, lost or cut.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, OpenOptions};

use doppel_model::{ContentHash, PageId};
use doppel_protocol::{IndexCommand, SearchResult};
use doppel_tier2::simulation::{Index, files};
use doppel_tier2::{Config, Fetch};
use tempfile::TempDir;

use super::action::Files;
use super::contents::Contents;
use super::violation::{Checked, failed, holds};

/// An order on its way to tier 2.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) command: IndexCommand,
    /// It removes a content that its page has exchanged for another: the page must not be missing.
    pub(crate) exchanged: bool,
}

pub(crate) struct IndexSide {
    index: Option<Index>,
    pub(crate) orders: VecDeque<Order>,
    config: Config,
    _dir: TempDir,
}

impl IndexSide {
    pub(crate) fn new(contents: &'static Contents, fetch: Fetch) -> Checked<Self> {
        let dir = match fs::metadata("/dev/shm") {
            Ok(_) => TempDir::new_in("/dev/shm"),
            Err(_) => TempDir::new(),
        };
        let dir = dir.map_err(|e| failed("temporary directory")(e.into()))?;
        let config = Config {
            threads: 1,
            nodes: 3,
            partitions: 6,
            step: 3,
            ..Config::new(dir.path(), contents.policy)
        };
        let mut this = Self { index: None, orders: VecDeque::new(), config, _dir: dir };
        this.open(Vec::new(), fetch)?;
        Ok(this)
    }

    fn index(&self) -> &Index {
        self.index.as_ref().expect("the index is open")
    }

    fn open(&mut self, contents: Vec<(PageId, ContentHash)>, fetch: Fetch) -> Checked {
        let index = Index::open(self.config.clone(), &mut contents.into_iter(), fetch);
        self.index = Some(index.map_err(|e| failed("opening the index")(e.into()))?);
        Ok(())
    }

    /// Tier 2 is killed and started with these contents; orders that waited are gone.
    pub(crate) fn restart(
        &mut self,
        left: Files,
        contents: Vec<(PageId, ContentHash)>,
        fetch: Fetch,
    ) -> Checked {
        self.orders.clear();
        if left == Files::Flushed {
            self.index().flush();
        }
        self.index = None;
        for path in files(&self.config) {
            let Ok(file) = fs::metadata(&path) else { continue };
            let damaged = match left {
                Files::Flushed | Files::AsTheyAre => Ok(()),
                Files::Lost => fs::remove_file(&path),
                Files::Cut(share) => {
                    let length = file.len() * u64::from(share) / 256;
                    OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(length))
                }
            };
            damaged.map_err(|e| failed("cutting a file")(e.into()))?;
        }
        self.open(contents, fetch)
    }

    /// Makes a pass over the first orders.
    pub(crate) fn pass(&mut self, orders: usize) -> Checked<Vec<SearchResult>> {
        let orders: Vec<Order> = self.orders.drain(..orders.min(self.orders.len())).collect();
        // Of several orders about a page the last says whether it has to be there.
        let mut exchanged = BTreeMap::new();
        for order in &orders {
            match &order.command {
                IndexCommand::Remove { page, .. } => drop(exchanged.insert(*page, order.exchanged)),
                IndexCommand::Put { page, .. } => drop(exchanged.insert(*page, true)),
                IndexCommand::Search { .. } => {}
            }
        }
        let answers = self.index().pass(orders.into_iter().map(|order| order.command).collect());
        for (page, _) in exchanged.into_iter().filter(|(_, there)| *there) {
            holds!(
                "no pair is missed by a race",
                self.index().has(page),
                "the old content of {page:?} was removed before the new one was stored"
            );
        }
        Ok(answers)
    }

    /// Answers as a pass would, without storing what the orders bring: for a planted mistake.
    pub(crate) fn compare_unstored(&self, orders: usize) -> Vec<SearchResult> {
        let answer = |order: &Order| match &order.command {
            IndexCommand::Put { page, signature, search: Some(search) } => Some(SearchResult {
                page: *page,
                content: signature.content(),
                ticket: search.ticket,
                pairs: self.index().probe(signature).into_iter().filter(|pair| pair.page != *page).collect(),
            }),
            _ => None,
        };
        self.orders.iter().take(orders).filter_map(answer).collect()
    }

    /// Begins a change of the mapping, unless there is one.
    pub(crate) fn change(&mut self, dice: u32) -> Checked {
        self.index().change(dice.into()).map(drop).map_err(|e| failed("a plan")(e.into()))
    }

    /// What was changed of the contents that were copied already is forgotten: a planted mistake.
    pub(crate) fn forget_changes(&self) {
        self.index().forget_changes();
    }

    /// Steps of the change, or of the cleaning up after it.
    pub(crate) fn work(&mut self, steps: u32) {
        for _ in 0..steps {
            self.index().work();
        }
    }

    pub(crate) fn pages(&self) -> Vec<(PageId, ContentHash)> {
        self.index().pages()
    }
}
