//! Tests of a node behind its trait: which calls it refuses, and what it does only once.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_model::pairwise::Policy;
use doppel_model::{Epoch, Incarnation, NodeId, PageId, PartitionId, PlanVersion, RangeId};
use doppel_partitioning::PartitionMap;
use doppel_protocol::index_node::{
    CallContext, EntriesFrom, EntriesPage, EntriesRequest, HomePartition, HostedPartition, HostingPlan,
    IndexNode, IngestAnswer, IngestBatch, NodeError, NodeOrder, NodeSearch, OrderBatch, SearchBatch,
    SearchOutcome,
};
use doppel_protocol::{PageRange, SignatureSource};
use tempfile::TempDir;

use super::model::{Pages, page, signature_of};
use super::source::Source;
use crate::node::partition::buckets::CrowdingLimits;
use crate::node::{LocalNode, NodeConfig};

const RANGE: RangeId = RangeId(0);

struct SingleNode {
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
        crowding: CrowdingLimits::DEFAULT,
        incarnation: Incarnation(life),
        pool: None,
        stored: None,
    };
    LocalNode::open(config, Arc::clone(source) as Arc<dyn SignatureSource>).unwrap()
}

impl SingleNode {
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

    /// Restarts the node from its signature file alone, in its next incarnation.
    fn restart(self, plan: u64) -> Self {
        let Self { node, map, dir, call, ranges, source } = self;
        node.flush();
        drop(node);
        let life = call.incarnation.0 + 1;
        let call = CallContext { plan: PlanVersion(plan), incarnation: Incarnation(life) };
        let this = Self { node: open(&dir, life, &source), map, dir, call, ranges, source };
        this.node.host(this.hosting(plan)).unwrap();
        this
    }

    /// Makes the first signatures of the file unreadable.
    fn garble(&self, bytes: usize) {
        let path = self.dir.path().join("node/signatures.dat");
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&vec![0x5a; bytes], 16).unwrap();
    }

    fn hosting(&self, version: u64) -> HostingPlan {
        HostingPlan {
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
        self.ingest(IngestBatch::Fed { range: RANGE, epoch: Epoch(1), index }).unwrap();
    }

    fn ingest(&self, batch: IngestBatch) -> Result<IngestAnswer, NodeError> {
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
            home: HomePartition { partition: PartitionId(5), lengths },
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

    /// Stores a page of entries in the incoming partition.
    fn store_entries(&self, page: EntriesPage) {
        let home = |lengths| HomePartition { partition: PartitionId(6), lengths };
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
    let single = SingleNode::new();
    assert_eq!(single.search(), Err(NodeError::NotFed(RANGE)));
    let orders = single.batch(0, vec![single.put(1, 60)]);
    assert_eq!(single.node.apply(single.call, orders), Err(NodeError::NotFed(RANGE)));
    single.feed(0);
    assert!(
        matches!(&single.search().unwrap()[..], [SearchOutcome::Compared { pairs, .. }] if pairs.is_empty())
    );
}

#[test]
fn orders_are_applied_once_and_without_gaps() {
    let single = SingleNode::new();
    single.feed(10);
    let both = single.batch(10, vec![single.put(1, 60), single.put(2, 60)]);
    let applied = single.node.apply(single.call, both.clone()).unwrap();
    assert_eq!((applied.position, applied.contents), (Some((Epoch(1), 12)), 1));
    let gone = single.batch(12, vec![SingleNode::remove(1, 60), SingleNode::remove(2, 60)]);
    assert_eq!(single.node.apply(single.call, gone).unwrap().contents, 0);
    // An order that comes again, because its answer was lost, changes nothing.
    assert_eq!(single.node.apply(single.call, both).unwrap().position, Some((Epoch(1), 14)));
    assert_eq!(single.contents(), 0);
    let early = single.batch(15, vec![single.put(3, 60)]);
    assert_eq!(single.node.apply(single.call, early), Err(NodeError::Gap { applied: 14 }));
    let old = OrderBatch { epoch: Epoch(0), ..single.batch(14, vec![single.put(3, 60)]) };
    assert_eq!(single.node.apply(single.call, old), Err(NodeError::StaleEpoch { present: Epoch(1) }));
    let next = OrderBatch { epoch: Epoch(2), ..single.batch(14, vec![single.put(3, 60)]) };
    assert_eq!(single.node.apply(single.call, next).unwrap().position, Some((Epoch(2), 15)));
}

#[test]
fn feeding_removes_pages_that_the_range_does_not_name() {
    let mut single = SingleNode::new();
    single.ranges = vec![
        PageRange { range: RANGE, epoch: Epoch(1), ordered: 0, first: PageId::from_bytes([0; 16]) },
        PageRange { range: RangeId(1), epoch: Epoch(1), ordered: 0, first: PageId::from_bytes([128; 16]) },
    ];
    single.node.host(single.hosting(4)).unwrap();
    let low = (0..).filter(|number| page(*number) < PageId::from_bytes([128; 16]));
    let low: Vec<usize> = low.take(3).collect();
    let high = (0..).find(|number| page(*number) >= PageId::from_bytes([128; 16])).unwrap();
    for range in [RANGE, RangeId(1)] {
        single.ingest(IngestBatch::Fed { range, epoch: Epoch(1), index: 0 }).unwrap();
    }
    // Three pages of the range. One of them has the same content as a page of another range.
    let puts = [(low[0], 60), (low[1], 70), (low[2], 80), (high, 80)];
    let puts = puts.map(|(number, words)| single.put(number, words)).to_vec();
    single.node.apply(single.call, single.batch(0, puts)).unwrap();

    let begin = |epoch| IngestBatch::Begin { range: RANGE, epoch, changes: false };
    let fed = |epoch, index| IngestBatch::Fed { range: RANGE, epoch, index };
    single.ingest(begin(Epoch(2))).unwrap();
    assert_eq!(single.search(), Err(NodeError::NotFed(RANGE)));
    let stale = Err(NodeError::StaleEpoch { present: Epoch(2) });
    assert_eq!(
        (single.ingest(begin(Epoch(1))), single.ingest(fed(Epoch(1), 9))),
        (stale.clone(), stale.clone())
    );
    let content = |words: u32| signature_of(&(0..words).collect::<Vec<_>>()).content();
    single.ingest(IngestBatch::Claims(vec![(page(low[1]), content(70))])).unwrap();
    single.ingest(fed(Epoch(2), 20)).unwrap();
    assert_eq!((single.ingest(begin(Epoch(1))), single.ingest(fed(Epoch(1), 9))), (stale.clone(), stale));
    assert_eq!(single.node.applied(RANGE).unwrap().position, Some((Epoch(2), 20)));
    let core = single.node.read();
    let pages = |words: u32| {
        let entry = core.tables.find(content(words))?;
        Some(core.tables.partition(entry).pages_of(entry.slot).collect::<Vec<_>>())
    };
    assert_eq!([60, 70, 80].map(pages), [None, Some(vec![page(low[1])]), Some(vec![page(high)])]);
    drop(core);
    // No answer named the copy, so it has to be searched for again.
    let repeats = single.node.repeats(single.call, RangeId(1), 0).unwrap();
    assert_eq!(repeats.iter().map(|one| one.page).collect::<Vec<_>>(), [page(high)]);
    // `has_repeats` covers all ranges, whichever the call asks about.
    assert!(single.node.applied(RANGE).unwrap().has_repeats);
    single.node.acknowledge_repeats(single.call, RangeId(1), repeats[0].number).unwrap();
    assert!(!single.node.applied(RANGE).unwrap().has_repeats);
}

#[test]
fn calls_for_another_plan_or_incarnation_are_refused_with_the_present_one() {
    let single = SingleNode::new();
    single.feed(0);
    let stale = NodeError::StalePlan { present: PlanVersion(4) };
    let old = CallContext { plan: PlanVersion(3), ..single.call };
    assert_eq!(single.node.load(old).unwrap_err(), stale);
    assert_eq!(single.node.host(single.hosting(3)), Err(stale));
    assert_eq!(single.node.host(single.hosting(5)), Ok(Incarnation(7)));
    assert_eq!(single.search(), Err(NodeError::StalePlan { present: PlanVersion(5) }));

    // The node comes back with its file, but without its pages.
    let call = CallContext { plan: PlanVersion(5), ..single.call };
    let one = single.batch(0, vec![single.put(1, 60), single.put(2, 70)]);
    single.node.apply(call, one).unwrap();
    let single = single.restart(5);
    let call = single.call;
    let dead = CallContext { incarnation: Incarnation(7), ..call };
    assert_eq!(single.node.load(dead).unwrap_err(), NodeError::WrongIncarnation { present: Incarnation(8) });
    assert_eq!(single.node.applied(RANGE).unwrap().position, None);
    // Claimed contents stay, the others are removed.
    let content = |words: u32| signature_of(&(0..words).collect::<Vec<_>>()).content();
    let claims = IngestBatch::Claims(vec![(page(9), content(60)), (page(8), content(80))]);
    assert_eq!(single.node.ingest(call, claims).unwrap().missing, [1]);
    single.feed(20);
    assert_eq!(single.contents(), 1);
    let found = single.search().unwrap();
    assert!(
        matches!(&found[..], [SearchOutcome::Compared { pairs, .. }] if pairs[0].page == page(9)),
        "{found:?}"
    );
}

#[test]
fn contents_removed_before_an_export_begins_again_are_among_the_changes() {
    let single = SingleNode::new();
    let comes = HostedPartition { id: PartitionId(6), bounds: single.map.bounds()[0] };
    single.node.host(HostingPlan { incoming: vec![comes], ..single.hosting(4) }).unwrap();
    single.feed(0);
    let puts = (1..=4).map(|number| single.put(number, 60 + number as u32)).collect();
    single.node.apply(single.call, single.batch(0, puts)).unwrap();

    // The first entries are stored. But for the router the step has failed, and it repeats the step after the
    // next pass.
    single.store_entries(single.entries(EntriesFrom::Start));
    single.node.apply(single.call, single.batch(4, vec![SingleNode::remove(1, 61)])).unwrap();
    let mut next = Some(EntriesFrom::Start);
    while let Some(from) = next {
        let page = single.entries(from);
        next = page.next;
        single.store_entries(page);
    }
    // A later removal was noted all along.
    single.node.apply(single.call, single.batch(5, vec![SingleNode::remove(3, 63)])).unwrap();
    let changes = single.entries(EntriesFrom::Changes(0));
    let content = |words: u32| signature_of(&(0..words).collect::<Vec<_>>()).content();
    let mut gone = vec![content(61), content(63)];
    gone.sort_unstable();
    assert_eq!((&changes.changed, changes.entries.len(), changes.left), (&gone, 0, 0));
    single.store_entries(changes);

    single.node.host(HostingPlan { serving: vec![comes], ..single.hosting(5) }).unwrap();
    let core = single.node.read();
    let there = |words: u32| core.tables.find(content(words)).is_some();
    assert_eq!([61, 62, 63, 64].map(there), [false, true, false, true]);
}

#[test]
fn a_node_drops_unclaimed_contents_before_it_counts_as_fed() {
    let single = SingleNode::new();
    single.feed(0);
    let puts = vec![single.put(1, 200), single.put(2, 60)];
    single.node.apply(single.call, single.batch(0, puts)).unwrap();
    let single = single.restart(4);
    // Removing the first content needs its signature, which is neither here nor available from tier 1.
    single.garble(64);
    single.source.is_away.store(true, Ordering::Relaxed);
    let fed = IngestBatch::Fed { range: RANGE, epoch: Epoch(1), index: 5 };
    assert!(matches!(single.ingest(fed.clone()), Err(NodeError::Unavailable(_))));
    assert_eq!(single.node.applied(RANGE).unwrap().position, None);
    assert_eq!(single.search(), Err(NodeError::NotFed(RANGE)));
    single.source.is_away.store(false, Ordering::Relaxed);
    single.ingest(fed).unwrap();
    assert_eq!(single.node.read().tables.entries().count(), 0);
    assert_eq!(single.node.applied(RANGE).unwrap().position, Some((Epoch(1), 5)));
}

#[test]
fn an_entry_whose_signature_was_fetched_for_its_copy_is_not_copied_again() {
    let single = SingleNode::new();
    single.feed(0);
    single.node.apply(single.call, single.batch(0, vec![single.put(1, 60)])).unwrap();
    let signature = signature_of(&(0..60).collect::<Vec<_>>());
    single.source.pages.lock().unwrap().insert(page(1), signature);
    single.node.flush();
    single.garble(64);
    assert_eq!(single.entries(EntriesFrom::Start).entries.len(), 1);
    let changes = single.entries(EntriesFrom::Changes(0));
    assert_eq!((changes.changed, changes.left), (vec![], 0));
}
