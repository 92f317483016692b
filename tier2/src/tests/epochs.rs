//! Tests of ranges whose owner changes, an index that restarts while ranges go on, and nodes that lose their
//! contents.
//!
//! The model is a log for each range, and the present contents. Whatever is lost on the way, the index stores
//! exactly the present contents once every range has handed something over.

use std::collections::VecDeque;
use std::sync::Arc;

use doppel_model::pairwise::Policy;
use doppel_model::{ClientId, ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::{ContentSource, IndexCommand, IndexError, Orders, PageRange, Search};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use super::model::{Pages, page, signature_of, text};
use super::source::Source;
use crate::Config;
use crate::simulation::{CallFaults, SimulatedIndex};

const NODES: u32 = 3;
const RANGES: usize = 2;

/// The orders of a range, and how far they were handed over.
#[derive(Default)]
struct Log {
    orders: Vec<IndexCommand>,
    sent: usize,
    /// Whether the index has heard of the present owner since it started.
    is_announced: bool,
}

struct World {
    dir: TempDir,
    source: Arc<Source>,
    pages: Pages,
    index: SimulatedIndex,
    logs: [Log; RANGES],
    /// Orders that the index has accepted and not begun to carry out.
    accepted: VecDeque<Orders>,
    tickets: u32,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Put {
        page: usize,
        member: u32,
    },
    Remove {
        page: usize,
    },
    /// A range hands over its new orders.
    Send {
        range: usize,
    },
    /// A range gets another owner. The owner hands over the last `back` orders again, or skips the orders
    /// that were not handed over.
    TakeOver {
        range: usize,
        back: Option<usize>,
    },
    /// An earlier owner hands orders over.
    Stale {
        range: usize,
    },
    Pass,
    Down {
        node: usize,
        flush: bool,
    },
    Up {
        node: usize,
    },
    /// Tier 2 restarts, and loses the orders it had accepted.
    Restart,
    Faults {
        one_in: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let range = || 0..RANGES;
    let node = || 0..NODES as usize;
    prop_oneof![
        8 => (0usize..60, 0u32..12).prop_map(|(page, member)| Step::Put { page, member }),
        3 => (0usize..60).prop_map(|page| Step::Remove { page }),
        6 => range().prop_map(|range| Step::Send { range }),
        2 => (range(), prop::option::of(0usize..6)).prop_map(|(range, back)| Step::TakeOver { range, back }),
        1 => range().prop_map(|range| Step::Stale { range }),
        4 => Just(Step::Pass),
        2 => (node(), any::<bool>()).prop_map(|(node, flush)| Step::Down { node, flush }),
        3 => node().prop_map(|node| Step::Up { node }),
        1 => Just(Step::Restart),
        1 => prop::sample::select(vec![0, 0, 5]).prop_map(|one_in| Step::Faults { one_in }),
    ]
}

impl World {
    fn new() -> Self {
        let (dir, pages) = (TempDir::new().unwrap(), Pages::default());
        let source = Source::new(&pages, drop);
        *source.ranges.lock().unwrap() = [0, 128]
            .into_iter()
            .zip(0..)
            .map(|(first, range)| PageRange {
                range: RangeId(range),
                epoch: Epoch(1),
                ordered: 0,
                first: PageId::from_bytes([first; 16]),
            })
            .collect();
        let index = Self::open(&dir, &source);
        let mut world = Self {
            dir,
            source,
            pages,
            index,
            logs: Default::default(),
            accepted: VecDeque::new(),
            tickets: 0,
        };
        // Spread contents over all nodes.
        (0..60).for_each(|number| world.put(number, number as u32));
        (0..RANGES).for_each(|range| world.send(range));
        world.pass();
        world.index.change(4 | 2 << 8).unwrap();
        (0..200).for_each(|_| world.index.work());
        world
    }

    fn open(dir: &TempDir, source: &Arc<Source>) -> SimulatedIndex {
        let config =
            Config { nodes: NODES, threads: 1, step: 16, ..Config::new(dir.path(), Policy::default()) };
        SimulatedIndex::open(config, Arc::clone(source) as Arc<dyn ContentSource>).unwrap()
    }

    fn range_of(&self, page: PageId) -> usize {
        usize::from(PageRange::of(&self.source.ranges().unwrap(), page).unwrap().0)
    }

    fn epoch(&self, range: usize) -> Epoch {
        self.source.ranges().unwrap()[range].epoch
    }

    fn put(&mut self, number: usize, member: u32) {
        self.remove(number);
        let (page, signature) = (page(number), signature_of(&text(number as u32 % 7, member)));
        self.pages.lock().unwrap().insert(page, Arc::clone(&signature));
        self.tickets += 1;
        let search = Some(Search { ticket: self.tickets, client: ClientId::NONE });
        let range = self.range_of(page);
        self.logs[range].orders.push(IndexCommand::Put { page, signature, search });
    }

    fn remove(&mut self, number: usize) {
        let page = page(number);
        let Some(old) = self.pages.lock().unwrap().remove(&page) else { return };
        let range = self.range_of(page);
        self.logs[range].orders.push(IndexCommand::Remove { page, content: old.content() });
    }

    fn send(&mut self, range: usize) {
        let epoch = self.epoch(range);
        let log = &mut self.logs[range];
        // An empty list announces which order comes next.
        let (first, commands) = (log.sent as u64 + 1, log.orders[log.sent..].to_vec());
        let orders = Orders { range: RangeId(range as u16), epoch, first, commands };
        self.accepted.extend(self.index.accept(orders).unwrap());
        (log.sent, log.is_announced) = (log.orders.len(), true);
    }

    fn take_over(&mut self, range: usize, back: Option<usize>) {
        let mut ranges = self.source.ranges.lock().unwrap();
        ranges[range].epoch = Epoch(ranges[range].epoch.0 + 1);
        let log = &mut self.logs[range];
        log.sent = back.map_or(log.orders.len(), |back| log.sent.saturating_sub(back));
        log.is_announced = false;
    }

    fn stale(&mut self, range: usize) {
        let (present, log) = (self.epoch(range), &self.logs[range]);
        if !log.is_announced || present == Epoch(1) {
            return;
        }
        let commands = log.orders[log.orders.len() - 1..].to_vec();
        let epoch = Epoch(present.0 - 1);
        let orders = Orders { range: RangeId(range as u16), epoch, first: log.orders.len() as u64, commands };
        let refused = self.index.accept(orders).unwrap_err();
        assert_eq!(refused.error, IndexError::StaleEpoch { present });
    }

    /// Makes passes until one waits for a node.
    fn pass(&mut self) {
        while self.index.pass(None) {
            let Some(orders) = self.accepted.pop_front() else { break };
            self.index.pass(Some(orders));
        }
    }

    fn restart(mut self) -> Self {
        self.accepted.clear();
        self.logs.iter_mut().for_each(|log| log.is_announced = false);
        let Self { dir, source, pages, index, logs, accepted, tickets } = self;
        drop(index);
        let index = Self::open(&dir, &source);
        Self { dir, source, pages, index, logs, accepted, tickets }
    }

    /// Starts all nodes, and has every range send an order or an announcement. Then checks that the index
    /// stores exactly the present contents.
    fn settle(mut self) {
        self.index.set_faults(CallFaults::default(), 0);
        (0..NODES as usize).for_each(|node| self.up(node));
        (0..RANGES).for_each(|range| self.send(range));
        for _ in 0..20 {
            self.index.tend();
            self.pass();
        }
        assert!(self.index.tend() && !self.index.has_pass() && self.accepted.is_empty(), "a pass never ends");
        let pages = self.pages.lock().unwrap();
        let expected: Vec<(PageId, ContentHash)> =
            pages.iter().map(|(page, signature)| (*page, signature.content())).collect();
        assert_eq!(self.index.pages(), expected);
    }

    fn up(&mut self, node: usize) {
        if !self.index.is_alive(node) {
            self.index.start(node).unwrap();
        }
    }
}

fn run(steps: &[Step]) {
    let mut world = World::new();
    for step in steps {
        match *step {
            Step::Put { page, member } => world.put(page, member),
            Step::Remove { page } => world.remove(page),
            Step::Send { range } => world.send(range),
            Step::TakeOver { range, back } => world.take_over(range, back),
            Step::Stale { range } => world.stale(range),
            Step::Pass => world.pass(),
            Step::Down { node, flush } => world.index.kill(node, flush),
            Step::Up { node } => world.up(node),
            Step::Restart => world = world.restart(),
            Step::Faults { one_in } => {
                world.index.set_faults(CallFaults { one_in, ..CallFaults::default() }, 1)
            }
        }
    }
    world.settle();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_index_stores_exactly_the_contents_of_the_ranges(steps in vec(step(), 1..60)) {
        run(&steps);
    }
}

/// Tier 2 restarts while a range goes on, so the orders do not begin at 1.
#[test]
fn orders_continue_after_a_restart_of_tier_2() {
    let (put, send) = (Step::Put { page: 3, member: 5 }, Step::Send { range: 0 });
    run(&[put, send, Step::Send { range: 1 }, Step::Restart]);
}

/// A pass with orders of a deposed owner is given up. Feeding supplies what it did not store.
#[test]
fn a_pass_of_an_earlier_owner_is_dropped() {
    let mut steps = vec![Step::Down { node: 1, flush: true }];
    steps.extend((0..60).map(|page| Step::Put { page, member: 3 }));
    let take_over = |range| Step::TakeOver { range, back: None };
    steps.extend([Step::Send { range: 0 }, Step::Send { range: 1 }, Step::Pass, take_over(0), take_over(1)]);
    run(&steps);
}

/// Of the lost orders, removals are the ones that nobody would notice.
#[test]
fn removals_that_are_lost_with_an_owner_are_repaired() {
    let mut steps: Vec<Step> = (0..60).map(|page| Step::Remove { page }).collect();
    steps.extend((0..RANGES).map(|range| Step::TakeOver { range, back: None }));
    run(&steps);
}
