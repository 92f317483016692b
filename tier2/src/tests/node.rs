//! A node behind its trait: what it refuses, and what it does once.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_model::pairwise::Policy;
use doppel_model::{Epoch, Incarnation, NodeId, PageId, PartitionId, PlanVersion, RangeId};
use doppel_partitioning::PartitionMap;
use doppel_protocol::index_node::{
    CallContext, EntriesFrom, EntriesPage, EntriesRequest, Home, HostedPartition, Hosting, IndexNode,
    IngestBatch, Ingested, NodeError, NodeOrder, NodeSearch, OrderBatch, SearchBatch, SearchOutcome,
};
use doppel_protocol::{PageRange, SignatureSource};
use tempfile::TempDir;

use super::model::{Pages, page, signature_of};
use super::source::Source;
use crate::node::{LocalNode, NodeConfig};

const RANGE: RangeId = RangeId(0);

struct Alone {
    node: LocalNode,
    map: PartitionMap,
    dir: TempDir,
    call: CallContext,
    ranges: Vec<PageRange>,
    source: Arc<Source>,
}

fn open(dir: &TempDir, life: u64, source: &Arc<Source>) -> LocalNode {
    let config = NodeConfig {
        id: NodeId(0),
        dir: dir.path().join("node"),
        policy: Policy::default(),
        incarnation: Incarnation(life),
        pool: None,
        stored: None,
    };
    LocalNode::open(config, Arc::clone(source) as Arc<dyn SignatureSource>).unwrap()
}

impl Alone {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let map = PartitionMap::one(3, Policy::default().metric()).unwrap();
        let call = CallContext { plan: PlanVersion(4), incarnation: Incarnation(7) };
        let ranges =
            vec![PageRange { range: RANGE, epoch: Epoch(1), ordered: 0, first: PageId::from_bytes([0; 16]) }];
        let source = Source::new(&Pages::default(), drop);
        let this = Self { node: open(&dir, 7, &source), map, dir, call, ranges, source };
        assert_eq!(this.node.host(this.hosting(4)), Ok(Incarnation(7)));
        this
    }

    /// The same with its file and nothing else, in its next life.
    fn again(self, plan: u64) -> Self {
        let Self { node, map, dir, call, ranges, source } = self;
        node.flush();
        drop(node);
        let life = call.incarnation.0 + 1;
        let call = CallContext { plan: PlanVersion(plan), incarnation: Incarnation(life) };
        let this = Self { node: open(&dir, life, &source), map, dir, call, ranges, source };
        this.node.host(this.hosting(plan)).unwrap();
        this
    }

    /// The first signatures of the file cannot be read any more.
    fn garble(&self, bytes: usize) {
        let path = self.dir.path().join("node/signatures.dat");
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&vec![0x5a; bytes], 16).unwrap();
    }

    fn hosting(&self, version: u64) -> Hosting {
        Hosting {
            session: 1,
            renews: false,
            version: PlanVersion(version),
            lexicon: Arc::new(self.map.lexicon().clone()),
            serving: vec![HostedPartition { id: PartitionId(5), bounds: self.map.bounds()[0] }],
            incoming_dimensions: 3,
            incoming: Vec::new(),
            ranges: self.ranges.clone(),
        }
    }

    fn feed(&self, index: u64) {
        self.give(IngestBatch::Fed { range: RANGE, epoch: Epoch(1), index }).unwrap();
    }

    fn give(&self, batch: IngestBatch) -> Result<Ingested, NodeError> {
        self.node.ingest(self.call, batch)
    }

    fn batch(&self, after: u64, orders: Vec<NodeOrder>) -> OrderBatch {
        let through = after + orders.len() as u64;
        let orders = (after + 1..).zip(orders).collect();
        OrderBatch { range: RANGE, epoch: Epoch(1), after, through, orders }
    }

    fn put(&self, number: usize, words: u32) -> NodeOrder {
        let signature = signature_of(&(0..words).collect::<Vec<_>>());
        let lengths = self.map.lexicon().lengths(&signature);
        NodeOrder::Put {
            page: page(number),
            signature,
            home: Home { partition: PartitionId(5), lengths },
            owes_search: false,
        }
    }

    fn remove(number: usize, words: u32) -> NodeOrder {
        let content = signature_of(&(0..words).collect::<Vec<_>>()).content();
        NodeOrder::Remove { page: page(number), content }
    }

    fn entries(&self, from: EntriesFrom) -> EntriesPage {
        let request = EntriesRequest { partitions: vec![PartitionId(5)], from, limit: 2 };
        self.node.entries(self.call, request).unwrap()
    }

    /// Stores a page of entries in the partition that comes.
    fn place(&self, page: EntriesPage) {
        let home = |lengths| Home { partition: PartitionId(6), lengths };
        let entries = page.entries.into_iter().map(|entry| {
            let lengths = self.map.lexicon().lengths(&entry.signature);
            (entry, home(lengths))
        });
        let batch = IngestBatch::Entries { replaced: page.changed, entries: entries.collect() };
        self.node.ingest(self.call, batch).unwrap();
    }

    fn contents(&self) -> u64 {
        self.node.applied(RANGE).unwrap().contents
    }

    fn search(&self) -> Result<Vec<SearchOutcome>, NodeError> {
        let signature = signature_of(&(0..61).collect::<Vec<_>>());
        let lengths = self.map.lexicon().lengths(&signature);
        let searches = vec![NodeSearch::Foreign { signature, lengths }];
        self.node.search(self.call, SearchBatch { pass: None, searches })
    }
}

#[test]
fn nothing_is_answered_before_every_range_has_fed_the_node() {
    let alone = Alone::new();
    assert_eq!(alone.search(), Err(NodeError::NotFed(RANGE)));
    let orders = alone.batch(0, vec![alone.put(1, 60)]);
    assert_eq!(alone.node.apply(alone.call, orders), Err(NodeError::NotFed(RANGE)));
    alone.feed(0);
    assert!(
        matches!(&alone.search().unwrap()[..], [SearchOutcome::Compared { pairs, .. }] if pairs.is_empty())
    );
}

#[test]
fn an_order_is_applied_once_and_none_is_missing() {
    let alone = Alone::new();
    alone.feed(10);
    let both = alone.batch(10, vec![alone.put(1, 60), alone.put(2, 60)]);
    let applied = alone.node.apply(alone.call, both.clone()).unwrap();
    assert_eq!((applied.position, applied.contents), (Some((Epoch(1), 12)), 1));
    let gone = alone.batch(12, vec![Alone::remove(1, 60), Alone::remove(2, 60)]);
    assert_eq!(alone.node.apply(alone.call, gone).unwrap().contents, 0);
    // What comes again after its answer was lost puts nothing back.
    assert_eq!(alone.node.apply(alone.call, both).unwrap().position, Some((Epoch(1), 14)));
    assert_eq!(alone.contents(), 0);
    let early = alone.batch(15, vec![alone.put(3, 60)]);
    assert_eq!(alone.node.apply(alone.call, early), Err(NodeError::Gap { applied: 14 }));
    let old = OrderBatch { epoch: Epoch(0), ..alone.batch(14, vec![alone.put(3, 60)]) };
    assert_eq!(alone.node.apply(alone.call, old), Err(NodeError::StaleEpoch { present: Epoch(1) }));
    let next = OrderBatch { epoch: Epoch(2), ..alone.batch(14, vec![alone.put(3, 60)]) };
    assert_eq!(alone.node.apply(alone.call, next).unwrap().position, Some((Epoch(2), 15)));
}

#[test]
fn a_range_that_feeds_a_node_again_takes_back_what_it_does_not_name() {
    let mut alone = Alone::new();
    alone.ranges = vec![
        PageRange { range: RANGE, epoch: Epoch(1), ordered: 0, first: PageId::from_bytes([0; 16]) },
        PageRange { range: RangeId(1), epoch: Epoch(1), ordered: 0, first: PageId::from_bytes([128; 16]) },
    ];
    alone.node.host(alone.hosting(4)).unwrap();
    let low = (0..).filter(|number| page(*number) < PageId::from_bytes([128; 16]));
    let low: Vec<usize> = low.take(3).collect();
    let high = (0..).find(|number| page(*number) >= PageId::from_bytes([128; 16])).unwrap();
    for range in [RANGE, RangeId(1)] {
        alone.give(IngestBatch::Fed { range, epoch: Epoch(1), index: 0 }).unwrap();
    }
    // Three pages of the range, one of them a copy of another range's page.
    let puts = [(low[0], 60), (low[1], 70), (low[2], 80), (high, 80)];
    let puts = puts.map(|(number, words)| alone.put(number, words)).to_vec();
    alone.node.apply(alone.call, alone.batch(0, puts)).unwrap();

    let begin = |epoch| IngestBatch::Begin { range: RANGE, epoch, changes: false };
    let fed = |epoch, index| IngestBatch::Fed { range: RANGE, epoch, index };
    alone.give(begin(Epoch(2))).unwrap();
    assert_eq!(alone.search(), Err(NodeError::NotFed(RANGE)));
    let stale = Err(NodeError::StaleEpoch { present: Epoch(2) });
    assert_eq!((alone.give(begin(Epoch(1))), alone.give(fed(Epoch(1), 9))), (stale.clone(), stale.clone()));
    let content = |words: u32| signature_of(&(0..words).collect::<Vec<_>>()).content();
    alone.give(IngestBatch::Claims(vec![(page(low[1]), content(70))])).unwrap();
    alone.give(fed(Epoch(2), 20)).unwrap();
    assert_eq!((alone.give(begin(Epoch(1))), alone.give(fed(Epoch(1), 9))), (stale.clone(), stale));
    assert_eq!(alone.node.applied(RANGE).unwrap().position, Some((Epoch(2), 20)));
    let core = alone.node.read();
    let pages = |words: u32| {
        let entry = core.tables.find(content(words))?;
        Some(core.tables.partition(entry).pages_of(entry.slot).collect::<Vec<_>>())
    };
    assert_eq!([60, 70, 80].map(pages), [None, Some(vec![page(low[1])]), Some(vec![page(high)])]);
    drop(core);
    // The copy was named by nobody else, so it is searched for again.
    let repeats = alone.node.repeats(alone.call, RangeId(1), 0).unwrap();
    assert_eq!(repeats.iter().map(|one| one.page).collect::<Vec<_>>(), [page(high)]);
    // Whatever the range that is asked about.
    assert!(alone.node.applied(RANGE).unwrap().has_repeats);
    alone.node.acknowledge_repeats(alone.call, RangeId(1), repeats[0].number).unwrap();
    assert!(!alone.node.applied(RANGE).unwrap().has_repeats);
}

#[test]
fn another_plan_and_another_life_are_refused_with_the_present_one() {
    let alone = Alone::new();
    alone.feed(0);
    let stale = NodeError::StalePlan { present: PlanVersion(4) };
    let old = CallContext { plan: PlanVersion(3), ..alone.call };
    assert_eq!(alone.node.load(old).unwrap_err(), stale);
    assert_eq!(alone.node.host(alone.hosting(3)), Err(stale));
    assert_eq!(alone.node.host(alone.hosting(5)), Ok(Incarnation(7)));
    assert_eq!(alone.search(), Err(NodeError::StalePlan { present: PlanVersion(5) }));

    // It comes back with its file, and has forgotten what that was for.
    let call = CallContext { plan: PlanVersion(5), ..alone.call };
    let one = alone.batch(0, vec![alone.put(1, 60), alone.put(2, 70)]);
    alone.node.apply(call, one).unwrap();
    let alone = alone.again(5);
    let call = alone.call;
    let dead = CallContext { incarnation: Incarnation(7), ..call };
    assert_eq!(alone.node.load(dead).unwrap_err(), NodeError::WrongIncarnation { present: Incarnation(8) });
    assert_eq!(alone.node.applied(RANGE).unwrap().position, None);
    // What is claimed stays, the rest goes.
    let content = |words: u32| signature_of(&(0..words).collect::<Vec<_>>()).content();
    let claims = IngestBatch::Claims(vec![(page(9), content(60)), (page(8), content(80))]);
    assert_eq!(alone.node.ingest(call, claims).unwrap().missing, [1]);
    alone.feed(20);
    assert_eq!(alone.contents(), 1);
    let found = alone.search().unwrap();
    assert!(
        matches!(&found[..], [SearchOutcome::Compared { pairs, .. }] if pairs[0].page == page(9)),
        "{found:?}"
    );
}

#[test]
fn what_is_removed_before_an_export_begins_again_is_among_the_changes() {
    let alone = Alone::new();
    let comes = HostedPartition { id: PartitionId(6), bounds: alone.map.bounds()[0] };
    alone.node.host(Hosting { incoming: vec![comes], ..alone.hosting(4) }).unwrap();
    alone.feed(0);
    let puts = (1..=4).map(|number| alone.put(number, 60 + number as u32)).collect();
    alone.node.apply(alone.call, alone.batch(0, puts)).unwrap();

    // The first entries are stored, but for the router the step has failed: it makes it again after the next pass.
    alone.place(alone.entries(EntriesFrom::Start));
    alone.node.apply(alone.call, alone.batch(4, vec![Alone::remove(1, 61)])).unwrap();
    let mut next = Some(EntriesFrom::Start);
    while let Some(from) = next {
        let page = alone.entries(from);
        next = page.next;
        alone.place(page);
    }
    // What is removed after that was noted all along.
    alone.node.apply(alone.call, alone.batch(5, vec![Alone::remove(3, 63)])).unwrap();
    let changes = alone.entries(EntriesFrom::Changes(0));
    let content = |words: u32| signature_of(&(0..words).collect::<Vec<_>>()).content();
    let mut gone = vec![content(61), content(63)];
    gone.sort_unstable();
    assert_eq!((&changes.changed, changes.entries.len(), changes.left), (&gone, 0, 0));
    alone.place(changes);

    alone.node.host(Hosting { serving: vec![comes], ..alone.hosting(5) }).unwrap();
    let core = alone.node.read();
    let there = |words: u32| core.tables.find(content(words)).is_some();
    assert_eq!([61, 62, 63, 64].map(there), [false, true, false, true]);
}

#[test]
fn a_node_is_not_fed_before_it_has_dropped_what_nobody_claims() {
    let alone = Alone::new();
    alone.feed(0);
    let puts = vec![alone.put(1, 200), alone.put(2, 60)];
    alone.node.apply(alone.call, alone.batch(0, puts)).unwrap();
    let alone = alone.again(4);
    // To drop the first one its signature is needed, which is neither here nor to be had.
    alone.garble(64);
    alone.source.away.store(true, Ordering::Relaxed);
    let fed = IngestBatch::Fed { range: RANGE, epoch: Epoch(1), index: 5 };
    assert!(matches!(alone.give(fed.clone()), Err(NodeError::Unavailable(_))));
    assert_eq!(alone.node.applied(RANGE).unwrap().position, None);
    assert_eq!(alone.search(), Err(NodeError::NotFed(RANGE)));
    alone.source.away.store(false, Ordering::Relaxed);
    alone.give(fed).unwrap();
    assert_eq!(alone.node.read().tables.entries().count(), 0);
    assert_eq!(alone.node.applied(RANGE).unwrap().position, Some((Epoch(1), 5)));
}

#[test]
fn what_had_to_be_fetched_for_its_copy_is_not_copied_again() {
    let alone = Alone::new();
    alone.feed(0);
    alone.node.apply(alone.call, alone.batch(0, vec![alone.put(1, 60)])).unwrap();
    let signature = signature_of(&(0..60).collect::<Vec<_>>());
    alone.source.pages.lock().unwrap().insert(page(1), signature);
    alone.node.flush();
    alone.garble(64);
    assert_eq!(alone.entries(EntriesFrom::Start).entries.len(), 1);
    let changes = alone.entries(EntriesFrom::Changes(0));
    assert_eq!((changes.changed, changes.left), (vec![], 0));
}
