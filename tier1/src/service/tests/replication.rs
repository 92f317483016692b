//! Nodes whose ranges are replicated through logs in memory.

mod contradiction;
mod full_disk;
mod kept_log;
mod later_owner;
mod unsettled;

use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use doppel_protocol::beats::{Beat, ClusterMembership, RangeClaim};
use doppel_protocol::range_owner::{RangeDirectory, RangeOwner};
use doppel_protocol::{
    AGE_MAX, INDEX_STATE_BYTES_MAX, IndexState, IndexStateError, IndexStateItem, Question, RangeMap,
    Settlement, SignatureSource,
};
use doppel_shared_log::memory::MemoryLog;
use doppel_shared_log::{Sequence, SharedLog};
use tempfile::TempDir;

use super::*;
use crate::check::check;
use crate::service::replication::{Keeper, ReplicatedRange, ReplicationConfig};
use crate::storage::database::{Database, LogConsumer};
use crate::storage::store::JoinedStore;

const RANGES: u16 = 3;

/// What the nodes of a cluster share.
struct Cluster {
    logs: Vec<MemoryLog>,
    membership: Arc<ClusterMembership>,
    nodes: Arc<Mutex<BTreeMap<String, Arc<Tier1>>>>,
    log_window: Duration,
    settlement: Settlement,
    home: TempDir,
}

struct Node {
    name: String,
    tier1: Arc<Tier1>,
    keeper: Keeper,
}

/// A directory of owners, as the nodes claim their ranges.
struct ClaimedOwners {
    own: String,
    membership: Arc<ClusterMembership>,
    nodes: Arc<Mutex<BTreeMap<String, Arc<Tier1>>>>,
}

impl RangeDirectory for ClaimedOwners {
    fn owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>> {
        let (_, owner) = self.membership.owner(range).filter(|(_, owner)| *owner != self.own)?;
        let node = self.nodes.lock().unwrap().get(&owner).map(Arc::clone)?;
        Some(node as Arc<dyn RangeOwner>)
    }

    fn present_owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>> {
        self.membership.present_owner(range, Some(&self.own))?;
        self.owner(range)
    }

    fn replicas(&self, range: RangeId) -> Vec<Arc<dyn RangeOwner>> {
        let names = self.membership.answering(range, Some(&self.own));
        let nodes = self.nodes.lock().unwrap();
        let others = names.iter().filter(|name| **name != self.own).filter_map(|name| nodes.get(name));
        others.map(|node| Arc::clone(node) as Arc<dyn RangeOwner>).collect()
    }

    fn epoch(&self, range: RangeId) -> Option<Epoch> {
        self.membership.epoch(range)
    }

    fn has_others(&self) -> bool {
        true
    }

    fn may_change(&self) -> bool {
        true
    }
}

impl Cluster {
    fn new() -> Self {
        let logs = (0..RANGES).map(|_| MemoryLog::default()).collect();
        let (home, log_window) = (TempDir::new().unwrap(), Duration::from_secs(3_600));
        let settlement = Settlement::Log;
        Self { logs, membership: Arc::default(), nodes: Arc::default(), log_window, settlement, home }
    }

    /// Starts a node that has a replica of every range.
    fn start(&self, number: u64) -> Node {
        let name = format!("node-{number}");
        let dir = self.home.path().join(&name);
        let config = Config { dir, pending_max: 100_000, ..config(Retention::DEFAULT, RANGES) };
        let (membership, nodes) = (Arc::clone(&self.membership), Arc::clone(&self.nodes));
        let directory = ClaimedOwners { own: name.clone(), membership, nodes };
        let tier1 = Tier1::open_none(&config, Arc::new(directory)).unwrap();
        let tier2 = Arc::new(LinkingIndex::naming(0));
        assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
        tier1.start(tier2 as Arc<dyn IndexOrders>).unwrap();
        self.nodes.lock().unwrap().insert(name.clone(), Arc::clone(&tier1));
        let range = |(range, log): (u16, &MemoryLog)| {
            let log = log.clone();
            let replicas = (0..3).map(|turn| format!("node-{}", (turn + u64::from(range)) % 3)).collect();
            let log = Box::new(move || Ok(Arc::new(log.clone()) as Arc<dyn SharedLog>));
            ReplicatedRange { range: RangeId(range), replicas, log }
        };
        let membership = Arc::clone(&self.membership);
        let replication = ReplicationConfig {
            settlement: self.settlement,
            cluster: "cluster".to_owned(),
            node: name.clone(),
            ranges: (0..).zip(&self.logs).map(range).collect(),
            membership: Arc::clone(&membership),
            log_window: self.log_window,
            tell: Box::new(move |beat| membership.take(beat.clone(), Instant::now())),
            owned: Box::new(|_, _| {}),
        };
        let keeper = Keeper::start(&tier1, &config, replication).unwrap();
        Node { name, tier1, keeper }
    }

    fn end(&self, node: Node) {
        self.end_in(node, || {});
    }

    /// Ends a node. `then` runs after its threads have ended, and waits for callers of the node.
    fn end_in(&self, node: Node, then: impl FnOnce()) {
        let Node { name, tier1, keeper } = node;
        keeper.stop();
        then();
        drop(keeper);
        self.nodes.lock().unwrap().remove(&name);
        wait_for("the database to be closed", || Arc::strong_count(&tier1) == 1);
    }

    /// The owner of each range.
    fn owners(&self) -> Vec<Option<String>> {
        (0..RANGES).map(|range| self.membership.owner(RangeId(range)).map(|(_, owner)| owner)).collect()
    }
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The first page from `from` on that belongs to the first range.
fn of_first_range(from: u64) -> u64 {
    let map = RangeMap::new(config(Retention::DEFAULT, RANGES).shards, RANGES).unwrap();
    (from..).find(|page| map.of_shard(url(*page).id().shard(map.shards())) == RangeId(0)).unwrap()
}

/// Submits a page until it is accepted.
fn submit(tier1: &Tier1, page: u64) {
    wait_for("a page to be taken", || match Tier1Api::submit(tier1, vec![submission(page)]) {
        Ok(_) => true,
        Err(Tier1Error::Unavailable(_)) => false,
        Err(error) => panic!("{error}"),
    });
}

/// Asserts that all pages are decided, each in a group of its own.
fn assert_at_rest(tier1: &Tier1, pages: u64) {
    wait_for("everything to be decided", || tier1.flush(Duration::from_secs(5)).unwrap_or(false));
    let ids: Vec<PageId> = (0..pages).map(|page| url(page).id()).collect();
    let views = tier1.pages(&ids).unwrap();
    assert!(views.into_iter().all(|view| view.unwrap().line.status == Status::Unique));
}

#[test]
fn other_nodes_take_over_the_ranges_of_an_ended_node_with_all_pages() {
    let cluster = Cluster::new();
    let mut nodes: Vec<Option<Node>> = (0..3).map(|number| Some(cluster.start(number))).collect();
    let first = ["node-0", "node-1", "node-2"].map(|name| Some(name.to_owned()));
    wait_for("each node to own the range whose first node it is", || cluster.owners() == first);
    let mut pages = 0;
    for (ends, stays) in [(1, 0), (0, 2), (2, 1)] {
        let front = Arc::clone(&nodes[stays].as_ref().unwrap().tier1);
        (pages..pages + 20).for_each(|page| submit(&front, page));
        cluster.end(nodes[ends].take().unwrap());
        (pages + 20..pages + 40).for_each(|page| submit(&front, page));
        pages += 40;
        assert_at_rest(&front, pages);
        let ended = format!("node-{ends}");
        assert!(cluster.owners().iter().flatten().all(|owner| *owner != ended), "{:?}", cluster.owners());
        nodes[ends] = Some(cluster.start(ends as u64));
        assert_at_rest(&front, pages);
    }
    for node in nodes.into_iter().flatten() {
        cluster.end(node);
    }
}

/// Asks a node about pages, all of which must be known. Returns the age of the answer.
fn ask(tier1: &Tier1, pages: std::ops::Range<u64>) -> Result<Option<Duration>, Tier1Error> {
    let question = Question::default();
    let ids: Vec<PageId> = pages.map(|page| url(page).id()).collect();
    let asked = tier1.for_question(&question).unwrap();
    let views = asked.pages(&ids)?;
    for (view, id) in views.into_iter().zip(&ids) {
        let content = view.expect("a page that was acknowledged").content.expect("its content");
        assert_eq!(asked.signature(*id)?.expect("its signature").content(), content);
    }
    Ok(question.dated_answer(())?.age)
}

#[test]
fn replicas_answer_questions_with_their_age_while_a_range_has_no_owner() {
    let cluster = Cluster::new();
    let mut nodes: Vec<Node> = (0..3).map(|number| cluster.start(number)).collect();
    let first = ["node-0", "node-1", "node-2"].map(|name| Some(name.to_owned()));
    wait_for("each node to own the range whose first node it is", || cluster.owners() == first);
    (0..60).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[0].tier1, 60);
    nodes.iter().for_each(|node| assert_eq!(ask(&node.tier1, 0..60), Ok(None)));
    // Beats and looks at the log go on, so every standby has reached the end of its log a moment ago.
    cluster.end(nodes.remove(1));
    let began = Instant::now();
    let (mut old, mut refused) = (0, 0);
    loop {
        let ids: Vec<PageId> = (0..60).map(|page| url(page).id()).collect();
        for node in &nodes {
            let age = ask(&node.tier1, 0..60).expect("an answer of the owner or of a replica");
            assert!(age.is_none_or(|age| age < Duration::from_secs(2)), "{age:?}");
            old += u32::from(age.is_some());
            // Neither the service itself nor the index reads from replicas.
            refused += u32::from(node.tier1.pages(&ids).is_err());
            let read = SignatureSource::signatures(&*node.tier1, &ids);
            assert!(read.is_ok() || age.is_some() || cluster.owners() != first);
        }
        if cluster.owners().iter().all(|owner| owner.as_deref().is_some_and(|owner| owner != "node-1"))
            && nodes.iter().all(|node| ask(&node.tier1, 0..60) == Ok(None))
        {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "the range has no owner");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(old > 20 && refused > 20, "{old} answers of replicas, {refused} refusals");
    nodes.drain(..).for_each(|node| cluster.end(node));
}

#[test]
fn without_logs_answers_grow_old_and_end_after_five_seconds() {
    let cluster = Cluster::new();
    let nodes: Vec<Node> = (0..2).map(|number| cluster.start(number)).collect();
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    (0..30).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[1].tier1, 30);
    let front = &nodes[1].tier1;
    cluster.logs.iter().for_each(|log| log.set_missing(true));
    let (began, mut last, mut steps) = (Instant::now(), Duration::ZERO, 0);
    let refused = loop {
        match ask(front, 0..30) {
            // An owner answers for one second.
            Ok(None) => assert!(last.is_zero() && began.elapsed() < Duration::from_secs(2)),
            Ok(Some(age)) => {
                // Another replica answers once the first one is too old.
                assert!(age + Duration::from_millis(300) >= last && age <= AGE_MAX, "{age:?} after {last:?}");
                assert!(
                    began.elapsed() < age + Duration::from_secs(1),
                    "{age:?} after {:?}",
                    began.elapsed()
                );
                (last, steps) = (age, steps + 1);
            }
            Err(refused) => break refused,
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert!(matches!(refused, Tier1Error::Unavailable(_)), "{refused}");
    assert!(steps > 20 && last > Duration::from_secs(4), "{steps} answers, the last {last:?} old");
    assert!(began.elapsed() > Duration::from_secs(4) && began.elapsed() < Duration::from_secs(7));
    thread::sleep(Duration::from_millis(500));
    assert!(ask(front, 0..30).is_err());
    cluster.logs.iter().for_each(|log| log.set_missing(false));
    wait_for("owners that answer", || ask(front, 0..30) == Ok(None));
    nodes.into_iter().for_each(|node| cluster.end(node));
}

#[test]
fn an_operators_request_moves_a_range_to_the_asked_node() {
    let cluster = Cluster::new();
    let nodes: Vec<Node> = (0..2).map(|number| cluster.start(number)).collect();
    let owner = || cluster.membership.owner(RangeId(0)).map(|(_, owner)| owner);
    wait_for("the first owner", || cluster.owners().iter().all(Option::is_some));
    (0..20).for_each(|page| submit(&nodes[1].tier1, page));
    assert_eq!(owner().as_deref(), Some("node-0"));
    nodes[1].keeper.take_over(RangeId(0)).unwrap();
    wait_for("the other owner", || owner().as_deref() == Some("node-1"));
    (20..40).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[0].tier1, 40);
    assert!(nodes[0].keeper.take_over(RangeId(9)).is_err());
    // A node waits for a live replica that has reported more records, and does not forget the request.
    let claim = RangeClaim {
        range: RangeId(0),
        epoch: Epoch(1),
        owns: false,
        index: 1_000_000,
        known: true,
        sequence: 0,
        needs: 0,
        trouble: None,
    };
    let beat = Beat { node: "node-2".to_owned(), incarnation: 1, ranges: vec![claim] };
    cluster.membership.take(beat, Instant::now());
    nodes[0].keeper.take_over(RangeId(0)).unwrap();
    wait_for("the first owner again", || owner().as_deref() == Some("node-0"));
    for node in nodes {
        cluster.end(node);
    }
}

/// The index and the trouble that a node has last reported of the first range.
fn last_report(cluster: &Cluster, node: &str) -> (u64, String) {
    let replicas = cluster.membership.replicas(RangeId(0), Instant::now());
    let told = replicas.into_iter().find(|replica| replica.node == node);
    told.map_or((0, String::new()), |told| (told.claim.index, told.claim.trouble.unwrap_or_default()))
}

#[test]
fn a_node_takes_over_only_ranges_that_it_is_to_have() {
    let cluster = Cluster::new();
    let mut nodes: Vec<Node> = (0..3).map(|number| cluster.start(number)).collect();
    let owner = || cluster.membership.owner(RangeId(0)).map(|(_, owner)| owner);
    wait_for("the first owner", || owner().as_deref() == Some("node-0"));
    (0..20).for_each(|page| submit(&nodes[1].tier1, page));
    // This node is the next in the order of the replicas.
    nodes[1].keeper.keep_to(&[RangeId(1), RangeId(2)]);
    assert!(nodes[1].keeper.take_over(RangeId(0)).is_err());
    cluster.end(nodes.remove(0));
    wait_for("the node behind it to own the range", || owner().as_deref() == Some("node-2"));
    assert_at_rest(&nodes[0].tier1, 20);
    nodes[0].keeper.keep_to(&[RangeId(0), RangeId(1), RangeId(2)]);
    nodes[0].keeper.take_over(RangeId(0)).unwrap();
    wait_for("the node that may own the range again", || owner().as_deref() == Some("node-1"));
    for node in nodes {
        cluster.end(node);
    }
}

#[test]
fn a_range_whose_log_lost_its_end_waits_for_a_node_that_puts_it_back() {
    let cluster = Cluster::new();
    let mut nodes: Vec<Node> = (0..2).map(|number| cluster.start(number)).collect();
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    (0..20).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[0].tier1, 20);
    // Each record is one entry here. The last reports may be older than the pages.
    let records = || cluster.logs[0].end().unwrap().0;
    wait_for("all records to be reported", || {
        ["node-0", "node-1"].map(|node| last_report(&cluster, node).0) == [records(); 2]
    });
    cluster.end(nodes.remove(0));
    cluster.end(nodes.remove(0));
    // The nodes may have reported less than they have. The log keeps less than what one of them has reported.
    let end = ["node-0", "node-1"].map(|node| last_report(&cluster, node).0).into_iter().max().unwrap();
    cluster.logs[0].lose_tail(Sequence(end - 2));
    // The log announces none of these entries.
    (end - 1..=end + 9).for_each(|place| cluster.logs[0].lose_news(Sequence(place)));
    // A new node has fewer records than the others have reported.
    let third = cluster.start(2);
    wait_for("the loss to be noticed", || last_report(&cluster, "node-2").1.contains("has lost"));
    let (_, before) = cluster.membership.owner(RangeId(0)).unwrap();
    assert!(before != "node-2" && records() == end - 2, "{before}");
    // This node has the missing entries and puts them back.
    let second = cluster.start(1);
    assert_at_rest(&third.tier1, 20);
    assert!(records() > end);
    (20..30).for_each(|page| submit(&third.tier1, page));
    assert_at_rest(&second.tier1, 30);
    cluster.end(second);
    cluster.end(third);
}

#[test]
fn a_range_survives_the_loss_of_the_end_of_its_log() {
    for settlement in [Settlement::Log, Settlement::Standby] {
        let cluster = Cluster { settlement, ..Cluster::new() };
        let nodes: Vec<Node> = (0..3).map(|number| cluster.start(number)).collect();
        wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
        for turn in 0..3 {
            let first = turn * 10;
            (first..first + 10).for_each(|page| submit(&nodes[0].tier1, page));
            for log in &cluster.logs {
                let end = log.end().unwrap().0;
                log.lose_tail(Sequence(end.saturating_sub(5)));
            }
        }
        assert_at_rest(&nodes[1].tier1, 30);
        for node in nodes {
            cluster.end(node);
        }
    }
}

#[test]
fn without_a_standby_no_page_is_accepted_and_reads_continue() {
    let cluster = Cluster { settlement: Settlement::Standby, ..Cluster::new() };
    let mut nodes: Vec<Node> = (0..3).map(|number| cluster.start(number)).collect();
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    (0..10).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[0].tier1, 10);
    let (known, new) = (of_first_range(0), of_first_range(10));
    cluster.end(nodes.pop().unwrap());
    cluster.end(nodes.pop().unwrap());
    let front = Arc::clone(&nodes[0].tier1);
    let submits = thread::spawn(move || submit(&front, new));
    wait_for("the owner to say why it waits", || last_report(&cluster, "node-0").1.contains("no standby"));
    let status = nodes[0].tier1.pages(&[url(known).id()]).unwrap().pop().unwrap().unwrap().line.status;
    assert_eq!(status, Status::Unique);
    assert!(!submits.is_finished());
    nodes.push(cluster.start(1));
    submits.join().unwrap();
    for node in nodes {
        cluster.end(node);
    }
}

#[test]
fn with_too_few_replicas_only_an_operator_decides_to_take_over() {
    let cluster = Cluster { settlement: Settlement::Standby, ..Cluster::new() };
    let nodes: Vec<Node> = (0..3).map(|number| cluster.start(number)).collect();
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    (0..10).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[0].tier1, 10);
    for node in nodes {
        cluster.end(node);
    }
    let alone = cluster.start(2);
    wait_for("the node to say why no node owns the range", || {
        last_report(&cluster, "node-2").1.contains("1 of its 3")
    });
    assert_ne!(cluster.owners()[0].as_deref(), Some("node-2"));
    alone.keeper.take_over(RangeId(0)).unwrap();
    wait_for("the owner that an operator asked for", || cluster.owners()[0].as_deref() == Some("node-2"));
    let second = cluster.start(0);
    assert_at_rest(&alone.tier1, 10);
    cluster.end(second);
    cluster.end(alone);
}

/// Records that only a dead owner has, and that the log has lost, were never acknowledged. They do not keep
/// that node away.
#[test]
fn records_that_never_settled_make_way_for_the_log() {
    let cluster = Cluster { settlement: Settlement::Standby, ..Cluster::new() };
    let mut nodes: Vec<Node> = (0..3).map(|number| cluster.start(number)).collect();
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    (0..10).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[0].tier1, 10);
    let ends: Vec<u64> = cluster.logs.iter().map(|log| log.end().unwrap().0).collect();
    let owner = nodes.remove(0);
    // The others stop and the owner goes on alone. What it writes is lost with its node and with the end of
    // the log.
    nodes.drain(..).for_each(|node| cluster.end(node));
    owner.keeper.take_over(RangeId(0)).unwrap();
    let front = Arc::clone(&owner.tier1);
    // Nobody accepts the page.
    let submits = thread::spawn(move || {
        assert!(Tier1Api::submit(&*front, vec![submission(of_first_range(10))]).is_err());
    });
    wait_for("commits that no standby has", || last_report(&cluster, "node-0").1.contains("no standby"));
    cluster.end_in(owner, || submits.join().unwrap());
    for (log, end) in cluster.logs.iter().zip(ends) {
        log.lose_tail(Sequence(end));
    }
    let nodes: Vec<Node> = [1, 2].map(|number| cluster.start(number)).into();
    thread::sleep(Duration::from_secs(2));
    for node in &nodes {
        // The first node has reported records that were never settled, so an operator asks for the take-over.
        for range in 0..RANGES {
            node.keeper.take_over(RangeId(range)).unwrap();
        }
        thread::sleep(Duration::from_secs(2));
    }
    (14..20).for_each(|page| submit(&nodes[0].tier1, page));
    let first = cluster.start(0);
    wait_for("the node to follow the log", || {
        let (index, trouble) = last_report(&cluster, "node-0");
        trouble.is_empty() && index >= cluster.logs[0].end().unwrap().0
    });
    nodes.into_iter().for_each(|node| cluster.end(node));
    cluster.end(first);
}

#[test]
fn a_node_copies_a_range_whose_log_does_not_reach_back() {
    let cluster = Cluster { log_window: Duration::ZERO, ..Cluster::new() };
    let mut nodes: Vec<Node> = (0..2).map(|number| cluster.start(number)).collect();
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    (0..60).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[0].tier1, 60);
    let is_trimmed = |log: &MemoryLog| log.extent().unwrap().trimmed.0 > 1;
    wait_for("the logs to be trimmed", || cluster.logs.iter().all(is_trimmed));
    // The third node begins with nothing, and pages change while it copies.
    let third = cluster.start(2);
    (0..120).for_each(|page| submit(&nodes[1].tier1, page));
    let lags = || {
        (0..RANGES).any(|range| {
            let replicas = cluster.membership.replicas(RangeId(range), Instant::now());
            let index = |node: &str| {
                replicas.iter().find(|replica| replica.node == node).map_or(0, |replica| replica.claim.index)
            };
            index("node-2") == 0 || index("node-2") < index("node-0").max(index("node-1"))
        })
    };
    wait_for("the third node to have everything", || !lags());
    for node in nodes.drain(..) {
        cluster.end(node);
    }
    (120..140).for_each(|page| submit(&third.tier1, page));
    assert_at_rest(&third.tier1, 140);
    cluster.end(third);
    // The copied database is sound by itself.
    let config = config(Retention::DEFAULT, RANGES);
    let map = RangeMap::new(config.shards, RANGES).unwrap();
    let databases = Database::open_ranges(&cluster.home.path().join("node-2"), map).unwrap();
    let report = check(&JoinedStore::new(map, &databases), Some(config.policy), config.winners);
    assert!(report.is_sound() && report.pages == 140, "{report:?}");
}

#[test]
fn the_next_owner_gets_the_state_of_the_router_and_a_deposed_router_stores_nothing() {
    let cluster = Cluster::new();
    let mut nodes: Vec<Node> = (0..2).map(|number| cluster.start(number)).collect();
    let owner = || cluster.membership.owner(RangeId(0)).map(|(_, owner)| owner);
    let take_over = |node: &Node| {
        node.keeper.take_over(RangeId(0)).unwrap();
        wait_for("the other owner", || owner().as_ref() == Some(&node.name));
        wait_for("its rows", || node.tier1.index_state().is_ok());
        node.tier1.index_state().unwrap()
    };
    wait_for("the first owner", || owner().is_some());
    assert_eq!(owner().as_deref(), Some("node-0"));
    assert!(matches!(nodes[1].tier1.index_state(), Err(Tier1Error::Unavailable(_))));
    let (plan, requests) = (IndexStateItem::Plan, IndexStateItem::Requests);
    let first = nodes[0].tier1.index_state().unwrap();
    assert_eq!((first.check(), first.load(plan), first.load(requests)), (Ok(()), Ok(None), Ok(None)));
    // More bytes than one message of the log carries.
    let long: Vec<u8> = (0..INDEX_STATE_BYTES_MAX).map(|byte| byte as u8).collect();
    first.store(plan, &long).unwrap();
    first.store(requests, b"drain one").unwrap();
    let too_long = first.store(plan, &[&long[..], b"."].concat());
    assert!(matches!(too_long, Err(IndexStateError::Refused(_))), "{too_long:?}");
    first.remove(requests).unwrap();
    first.store(requests, b"drain another").unwrap();

    let second = take_over(&nodes[1]);
    assert_eq!(second.load(plan), Ok(Some(long)));
    assert_eq!(second.load(requests), Ok(Some(b"drain another".to_vec())));
    let deposed = |state: &dyn IndexState| {
        // A deposed router is refused at once, whether or not its node knows the new owner of the range.
        for refused in [state.store(plan, b"of a deposed router"), state.remove(requests)] {
            assert!(matches!(refused, Err(IndexStateError::Unavailable(_))), "{refused:?}");
        }
        for refused in [state.check().err(), state.load(plan).err()] {
            assert!(matches!(refused, Some(IndexStateError::Unavailable(_))), "{refused:?}");
        }
    };
    deposed(&first);
    second.store(plan, b"the next one").unwrap();
    second.remove(requests).unwrap();

    // The first router does not get its place back with its node.
    let third = take_over(&nodes[0]);
    deposed(&first);
    deposed(&second);
    assert_eq!((third.load(plan), third.load(requests)), (Ok(Some(b"the next one".to_vec())), Ok(None)));

    // The state survives the end of its node.
    drop((first, third));
    cluster.end(nodes.remove(0));
    wait_for("the node that is left", || nodes[0].tier1.index_state().is_ok());
    let fourth = nodes[0].tier1.index_state().unwrap();
    assert_eq!(fourth.load(plan), Ok(Some(b"the next one".to_vec())));
    drop((second, fourth));
    cluster.end(nodes.remove(0));
}
