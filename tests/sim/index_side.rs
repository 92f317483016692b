//! Tier 2 in a run: the real index. The run makes its passes by hand, kills single nodes, and keeps, loses or
//! cuts files.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::{Arc, Mutex};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::index_node::SearchLimits;
use doppel_protocol::{
    ContentSource, ContentsPage, IndexCommand, IndexError, LogPosition, Moment, Orders, PageRange, Repeat,
    SearchResult, SignatureSource, SourceError,
};
use doppel_tier1::simulation::{DecodedRow, rows};
use doppel_tier2::Config;
use doppel_tier2::simulation::{CallFaults, SimulatedIndex, WaitingRepeat, files, node_files};
use tempfile::TempDir;

use super::action::Files;
use super::contents::Contents;
use super::order_log::OrderLog;
use super::store::{AllStores, RangeStore};
use super::violation::{Checked, failed, holds};

/// Number of index nodes.
const NODES: u32 = 3;

/// An order on its way to tier 2.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    range: RangeId,
    epoch: Epoch,
    /// Number of the order in the log of its range.
    index: u64,
    command: IndexCommand,
    /// Whether the order removes a content that its page has replaced. The page must not be missing from the
    /// index then.
    exchanged: bool,
}

/// Tier 1 as tier 2 sees it: the stores of all its ranges, and a collector for search results.
pub(crate) struct Source {
    pub(crate) all: Arc<AllStores>,
    pub(crate) shards: u16,
    pub(crate) contents: &'static Contents,
    pub(crate) results: Mutex<Vec<SearchResult>>,
    /// Last order of each range, and the epoch if ranges are replicated.
    pub(crate) ordered: Mutex<BTreeMap<RangeId, (Option<Epoch>, u64)>>,
    /// A planted mistake: a moment is named before its orders are carried out.
    pub(crate) hasty: bool,
}

impl Source {
    fn store(&self, range: RangeId) -> &RangeStore {
        &self.all.stores[usize::from(range.0)]
    }

    /// An error if the range has no owner, because then nothing is known of it.
    fn check(&self, range: RangeId) -> Result<(), SourceError> {
        let nobody = || SourceError::Unavailable(format!("nobody owns range {range}"));
        self.store(range).is_owned().then_some(()).ok_or_else(nobody)
    }
}

impl SignatureSource for Source {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        pages.iter().try_for_each(|page| self.check(self.all.map.of_page(*page)))?;
        Ok(pages
            .iter()
            .map(|page| doppel_tier1::simulation::signature(&self.all.joined(), self.shards, *page))
            .collect())
    }
}

impl ContentSource for Source {
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError> {
        let first = |range| {
            // The smallest page id in the first shard of the range.
            let shard = u64::from(self.all.map.run(range).start.0);
            let top = (shard << 32).div_ceil(self.shards.into()) as u32;
            let mut page = [0; 16];
            page[..4].copy_from_slice(&top.to_be_bytes());
            PageId::from_bytes(page)
        };
        let ordered = self.ordered.lock().unwrap();
        let range = |range| {
            self.check(range)?;
            let (epoch, ordered) = match ordered.get(&range) {
                Some((Some(epoch), ordered)) => (*epoch, *ordered),
                _ => (OrderLog::default().epoch(), 0),
            };
            Ok(PageRange { range, epoch, ordered, first: first(range) })
        };
        self.all.map.ranges().map(range).collect()
    }

    fn contents(
        &self,
        range: RangeId,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<ContentsPage, SourceError> {
        self.check(range)?;
        let rows =
            rows(&self.all.joined(), self.shards).map_err(|error| SourceError::Damaged(error.to_string()))?;
        let has_tokens = |content: &ContentHash| {
            self.contents.signatures.iter().any(|one| one.content() == *content && one.tokens() > 0)
        };
        let mut contents: Vec<(PageId, ContentHash)> = rows
            .iter()
            .filter_map(|row| match row {
                DecodedRow::Page(row) => Some((row.page, row.content.filter(has_tokens)?)),
                _ => None,
            })
            .filter(|(page, _)| self.all.map.of_page(*page) == range)
            .filter(|(page, _)| after.is_none_or(|after| *page > after))
            .collect();
        contents.sort_unstable();
        // Return short pieces, so that pages change between two of them.
        let limit = limit.min(7);
        let next = (contents.len() > limit).then(|| contents[limit - 1].0);
        contents.truncate(limit);
        Ok(ContentsPage { contents, next })
    }

    fn moment(&self, range: RangeId) -> Result<Option<Moment>, SourceError> {
        self.check(range)?;
        let order = self.ordered.lock().unwrap().get(&range).map_or(0, |(_, order)| *order);
        let log = self.store(range).position();
        Ok(Some(Moment { log, order: if self.hasty { 0 } else { order } }))
    }

    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, SourceError> {
        self.check(range)?;
        Ok(self.store(range).changed_since(since))
    }

    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError> {
        self.results.lock().unwrap().extend(results);
        Ok(())
    }

    fn repeat(&self, _: RangeId, _: Vec<Repeat>) -> Result<(), SourceError> {
        unreachable!("the run takes them itself")
    }
}

pub(crate) struct IndexSide {
    index: Option<SimulatedIndex>,
    source: Arc<Source>,
    /// Orders that tier 2 has accepted and not yet begun.
    orders: VecDeque<Order>,
    /// The orders of every range.
    logs: Vec<OrderLog>,
    /// Pages of the present pass, and whether they must be in the index at its end.
    exchanged: BTreeMap<PageId, bool>,
    config: Config,
    /// Whether a node has died. What it is fed after its return may be newer than the waiting orders.
    killed: bool,
    faults: CallFaults,
    _dir: TempDir,
}

impl IndexSide {
    pub(crate) fn new(source: Source, mistakes: CallFaults, search_limits: SearchLimits) -> Checked<Self> {
        let dir = match fs::metadata("/dev/shm") {
            Ok(_) => TempDir::new_in("/dev/shm"),
            Err(_) => TempDir::new(),
        };
        let dir = dir.map_err(|e| failed("temporary directory")(e.into()))?;
        let config = Config {
            threads: 1,
            nodes: NODES,
            partitions: Some(6),
            step: 3,
            search_limits,
            ..Config::new(dir.path(), source.contents.policy)
        };
        let logs = source.all.map.ranges().map(|_| OrderLog::default()).collect();
        let mut this = Self {
            index: None,
            source: Arc::new(source),
            orders: VecDeque::new(),
            logs,
            exchanged: BTreeMap::new(),
            config,
            killed: false,
            faults: mistakes,
            _dir: dir,
        };
        this.open()?;
        Ok(this)
    }

    fn index(&self) -> &SimulatedIndex {
        self.index.as_ref().expect("the index is open")
    }

    fn open(&mut self) -> Checked {
        let index =
            SimulatedIndex::open(self.config.clone(), Arc::clone(&self.source) as Arc<dyn ContentSource>);
        let index = index.map_err(|e| failed("opening the index")(e.into()))?;
        index.set_faults(self.faults, 0);
        self.index = Some(index);
        Ok(())
    }

    /// From now on, one in `one_in` calls of a node fails; 0 for none.
    pub(crate) fn fail(&mut self, one_in: u64, seed: u64) {
        self.faults.one_in = one_in;
        self.index().set_faults(self.faults, seed);
    }

    /// Hands over an order of a range to tier 2.
    pub(crate) fn order(&mut self, at: usize, command: IndexCommand, exchanged: bool) -> Checked {
        let index = self.logs[at].push(command.clone());
        self.note_ordered(at);
        self.hand_over(at, (self.logs[at].epoch(), index), command, exchanged)
    }

    fn note_ordered(&self, at: usize) {
        let (range, log) = (self.ranges()[at], &self.logs[at]);
        let epoch = self.source.store(range).present().map(|_| log.epoch());
        self.source.ordered.lock().unwrap().insert(range, (epoch, log.last()));
    }

    /// Number of the last order of a range.
    pub(crate) fn ordered(&self, at: usize) -> u64 {
        self.logs[at].last()
    }

    /// Starts the orders of a new owner of a range, which belong to another epoch.
    pub(crate) fn begin(&mut self, at: usize, epoch: Epoch) -> Checked {
        self.logs[at].begin(epoch);
        self.note_ordered(at);
        self.announce(at)
    }

    /// Announces the number of an owner's next order to the index.
    fn announce(&mut self, at: usize) -> Checked {
        // Contents that the index is fed after that may be newer than the waiting orders. Orders of an
        // earlier owner may be dropped.
        self.killed = true;
        self.exchanged.clear();
        let (epoch, first) = (self.logs[at].epoch(), self.logs[at].last() + 1);
        let orders = Orders { range: self.ranges()[at], epoch, first, commands: Vec::new() };
        let announced = self.index().accept(orders);
        announced.map(drop).map_err(|e| failed("an announcement to the index")(e.into()))
    }

    /// Hands over orders of a deposed owner. If the index already knows the next owner, it must refuse them.
    pub(crate) fn order_late(
        &mut self,
        at: usize,
        (epoch, first): (Epoch, u64),
        commands: Vec<IndexCommand>,
        is_known: bool,
    ) -> Checked {
        if !is_known {
            let numbered = (first..).zip(commands);
            return numbered
                .into_iter()
                .try_for_each(|(index, command)| self.hand_over(at, (epoch, index), command, false));
        }
        let orders = Orders { range: self.ranges()[at], epoch, first, commands };
        let refused = self.index().accept(orders).err().map(|refused| refused.error);
        let is_stale = matches!(refused, Some(IndexError::StaleEpoch { .. }));
        holds!("orders of a deposed owner are refused", is_stale, "{refused:?}");
        Ok(())
    }

    /// Hands over the last orders of a range again after the range died alone, because it does not know which
    /// of them arrived.
    pub(crate) fn order_again(&mut self, at: usize, mistaken: bool) -> Checked {
        for (index, command) in self.logs[at].again(mistaken) {
            self.hand_over(at, (self.logs[at].epoch(), index), command, false)?;
        }
        Ok(())
    }

    fn hand_over(
        &mut self,
        at: usize,
        (epoch, first): (Epoch, u64),
        command: IndexCommand,
        exchanged: bool,
    ) -> Checked {
        let range = self.ranges()[at];
        let orders = Orders { range, epoch, first, commands: vec![command] };
        let taken = self.index().accept(orders).map_err(|e| failed("an order to the index")(e.into()))?;
        for (index, command) in taken.into_iter().flat_map(|taken| (taken.first..).zip(taken.commands)) {
            self.orders.push_back(Order { range, epoch, index, command, exchanged });
        }
        Ok(())
    }

    fn ranges(&self) -> Vec<RangeId> {
        self.source.all.map.ranges().collect()
    }

    /// Kills and restarts tier 2. Waiting orders are lost, and ranges start new numbers or announce the next
    /// number.
    pub(crate) fn restart(&mut self, left: Files) -> Checked {
        self.orders.clear();
        self.exchanged.clear();
        self.source.results.lock().unwrap().clear();
        self.source.ordered.lock().unwrap().retain(|_, (epoch, _)| epoch.is_some());
        if left == Files::Flushed {
            self.index().flush();
        }
        self.index = None;
        for path in files(&self.config) {
            damage(&path, left)?;
        }
        self.open()?;
        for at in 0..self.logs.len() {
            if self.logs[at].begin_again() {
                self.announce(at)?;
            }
        }
        Ok(())
    }

    /// Kills a node of tier 2 alone, and restarts it with the remains of its file.
    pub(crate) fn kill_node(&mut self, node: u32, left: Files) -> Checked {
        let node = (node % NODES) as usize;
        self.killed = true;
        self.index().kill(node, left == Files::Flushed);
        for path in node_files(&self.config, node) {
            damage(&path, left)?;
        }
        self.index().start(node).map_err(|e| failed("starting a node of the index")(e.into()))
    }

    /// Lets nodes write snapshots, unless a pass waits for a node.
    pub(crate) fn save(&self) {
        if !self.index().has_pass() {
            self.index().save();
        }
    }

    /// Whether tier 2 has a pass to begin or to resume.
    pub(crate) fn is_busy(&self) -> bool {
        self.index().has_pass() || self.index().has_searches() || !self.orders.is_empty()
    }

    /// Makes a pass over the first orders, or resumes the pass that waits for a node.
    pub(crate) fn pass(&mut self, orders: usize) -> Checked<Vec<SearchResult>> {
        let waits = self.index().has_pass();
        let orders = if waits { Vec::new() } else { self.take(orders) };
        // Of several orders about a page, the last one decides whether the page must be in the index.
        let present = |order: &&Order| self.logs[usize::from(order.range.0)].epoch() == order.epoch;
        for order in orders.iter().filter(present) {
            match &order.command {
                IndexCommand::Remove { page, .. } => drop(self.exchanged.insert(*page, order.exchanged)),
                IndexCommand::Put { page, .. } => drop(self.exchanged.insert(*page, true)),
                IndexCommand::Search { .. } => {}
            }
        }
        let batch = orders.first().map(|first| (first.range, first.epoch, first.index)).map(
            |(range, epoch, first)| {
                let commands = orders.into_iter().map(|order| order.command).collect();
                Orders { range, epoch, first, commands }
            },
        );
        if !self.index().pass(batch) {
            return Ok(Vec::new());
        }
        let exchanged = std::mem::take(&mut self.exchanged);
        let all_there = self.index().tend();
        if all_there && std::mem::take(&mut self.killed) {
            self.orders.iter_mut().for_each(|order| order.exchanged = false);
        } else if all_there && self.faults.one_in == 0 {
            for (page, _) in exchanged.into_iter().filter(|(_, there)| *there) {
                holds!(
                    "no pair is missed by a race",
                    self.index().has(page),
                    "the old content of {page:?} was removed before the new one was stored"
                );
            }
        }
        Ok(std::mem::take(&mut *self.source.results.lock().unwrap()))
    }

    /// Takes the first orders of the range whose turn it is. They may overtake orders of other ranges.
    fn take(&mut self, limit: usize) -> Vec<Order> {
        let of = |order: &Order| (order.range, order.epoch);
        let Some(first) = self.orders.front().map(of) else { return Vec::new() };
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        for order in self.orders.drain(..) {
            if of(&order) == first && taken.len() < limit {
                taken.push(order);
            } else {
                left.push_back(order);
            }
        }
        self.orders = left;
        taken
    }

    /// Attends to nodes that have died. Returns whether all nodes are back.
    pub(crate) fn tend(&self) -> bool {
        self.index().tend()
    }

    /// Pages that nodes report for a new search.
    pub(crate) fn repeats(&self) -> Vec<WaitingRepeat> {
        self.index().repeats(&self.ranges())
    }

    pub(crate) fn acknowledge(&self, node: usize, range: RangeId, number: u64) {
        self.index().acknowledge(node, range, number);
    }

    /// A planted mistake: answers orders like a pass, but without storing their contents first.
    pub(crate) fn compare_unstored(&self, orders: usize) -> Vec<SearchResult> {
        let answer = |order: &Order| match &order.command {
            IndexCommand::Put { page, signature, search: Some(search) } => {
                let found = self.index().probe(signature)?;
                Some(SearchResult {
                    page: *page,
                    content: signature.content(),
                    ticket: search.ticket,
                    pairs: found.into_iter().filter(|pair| pair.page != *page).collect(),
                })
            }
            _ => None,
        };
        let first = self.orders.front().map(|order| order.range);
        let due = self.orders.iter().filter(|order| Some(order.range) == first);
        due.take(orders).filter_map(answer).collect()
    }

    /// Begins a change of the mapping, unless one is under way.
    pub(crate) fn change(&mut self, dice: u32) -> Checked {
        if self.index().has_pass() {
            return Ok(());
        }
        self.index().change(dice.into()).map_err(|e| failed("a plan")(e.into()))
    }

    /// A planted mistake: forgets the changes to contents that were already copied.
    pub(crate) fn forget_changes(&self) {
        self.index().forget_changes();
    }

    /// A planted mistake: lets entries name centers that no search reported.
    pub(crate) fn name_false_centers(&self) {
        self.index().name_false_centers();
    }

    /// Makes steps of the change, or of the cleanup after it. Makes none while a pass waits.
    pub(crate) fn work(&mut self, steps: u32) {
        for _ in 0..steps {
            if self.index().has_pass() {
                self.index().tend();
            } else {
                self.index().work();
            }
        }
    }

    pub(crate) fn pages(&self) -> Vec<(PageId, ContentHash)> {
        self.index().pages()
    }

    /// Whether every node has acknowledged every order of every range.
    pub(crate) fn is_acknowledged(&self) -> bool {
        let logs = self.ranges().into_iter().zip(&self.logs);
        logs.into_iter().all(|(range, log)| self.index().acknowledged(range) == log.last())
    }
}

/// Damages a file as a crash does.
fn damage(path: &Path, left: Files) -> Checked {
    let Ok(file) = fs::metadata(path) else { return Ok(()) };
    let damaged = match left {
        Files::Flushed | Files::AsTheyAre => Ok(()),
        Files::Lost => fs::remove_file(path),
        // A snapshot may be whole although the signatures beside it are not.
        Files::Cut(share) if share.is_multiple_of(2) && path.ends_with("snapshot.dat") => Ok(()),
        Files::Cut(share) => {
            let length = file.len() * u64::from(share) / 256;
            OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(length))
        }
    };
    damaged.map_err(|e| failed("cutting a file")(e.into()))
}
