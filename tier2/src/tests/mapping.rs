//! Tests with several nodes: the plan follows the load, nodes are drained and join, and the answers stay
//! complete.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_contract::RebalanceRequest;
use doppel_model::pairwise::Policy;
use doppel_model::{ClientId, NodeId, PartitionId};
use doppel_protocol::IndexOrders as _;
use doppel_protocol::{IndexCommand, MappingApi, RebalanceError, Search, SearchResult, Tier2Api};
use tempfile::TempDir;

use super::model::{Components, Pages, World, open_parts, page, signature_of, text};
use super::service::{TIMEOUT, open, wait_until_idle};
use super::source::{Source, orders};
use crate::router::stored_requests::{self, StoredRequest};
use crate::state_files::StateFiles;
use crate::{Config, Tier2};

/// Stores pairs of near-duplicates of about `words` words. Returns their orders.
pub(super) fn add(pages: &Pages, from: usize, count: usize, words: usize) -> Vec<IndexCommand> {
    let mut puts = Vec::new();
    for number in from..from + count {
        let (pair, copy) = (number as u32 / 2, number as u32 % 2);
        let length = words as u32 + pair % 97;
        let mut text: Vec<u32> = (0..length).map(|word| pair * 1_000 + word).collect();
        text[10] += copy * 500;
        let signature = signature_of(&text);
        pages.lock().unwrap().insert(page(number), Arc::clone(&signature));
        puts.push(IndexCommand::Put {
            page: page(number),
            signature,
            search: Some(Search { ticket: 1, client: ClientId::NONE }),
        });
    }
    puts
}

pub(super) fn by_node(tier2: &Tier2, nodes: usize) -> Vec<u64> {
    let mut contents = vec![0; nodes];
    for partition in tier2.load().unwrap().partitions {
        contents[partition.node.index()] += partition.contents;
    }
    contents
}

fn imbalance(contents: &[u64]) -> f64 {
    *contents.iter().max().unwrap() as f64 * contents.len() as f64 / contents.iter().sum::<u64>() as f64
}

#[test]
fn a_single_node_has_one_partition_unless_configured_otherwise() {
    let partitions = |nodes: u32, partitions: Option<u32>| {
        let (dir, pages) = (TempDir::new().unwrap(), Pages::default());
        let config = Config { nodes, partitions, ..Config::new(dir.path(), Policy::default()) };
        let (tier2, answers) = open(config, &pages);
        tier2.submit(orders(0, add(&pages, 0, 600, 60))).unwrap();
        tier2.flush_batch().unwrap();
        let answered = std::iter::from_fn(|| answers.recv_timeout(TIMEOUT).ok());
        assert!(
            answered
                .scan(0, |sum, some| Some({
                    *sum += some.len();
                    *sum
                }))
                .any(|sum| sum == 600)
        );
        wait_until_idle(&tier2);
        let report = tier2.load().unwrap();
        (report.partitions.len(), report.plan_version)
    };
    assert_eq!(partitions(1, None), (1, 0), "a single node learned a map");
    assert_eq!(partitions(1, Some(16)).0, 16);
    assert_eq!(partitions(2, None).0, 16);
    assert_eq!(partitions(20, None).0, 20, "each node has one partition");
}

#[test]
fn the_plan_follows_the_load_and_the_operator() {
    let dir = TempDir::new().unwrap();
    let pages = Pages::default();
    let config = Config { nodes: 4, partitions: Some(16), ..Config::new(dir.path(), Policy::default()) };
    let (tier2, answers) = open(config.clone(), &pages);
    let mut answered: Vec<SearchResult> = Vec::new();
    let mut feed = |commands: Vec<IndexCommand>| {
        let (before, due) = (answered.len(), answered.len() + commands.len());
        tier2.submit(orders(before as u64, commands)).unwrap();
        tier2.flush_batch().unwrap();
        while answered.len() < due {
            answered.extend(answers.recv_timeout(TIMEOUT).unwrap());
        }
        wait_until_idle(&tier2);
    };
    feed(add(&pages, 0, 4_200, 60));
    let first = by_node(&tier2, 4);
    assert!(imbalance(&first) < 1.2, "{first:?}");
    // Now only long contents arrive. Most boxes stay as they are.
    let plan_version = tier2.plan().unwrap().map().version();
    for step in 0..10 {
        feed(add(&pages, 4_200 + step * 400, 400, 300));
    }
    let grown = by_node(&tier2, 4);
    assert!(imbalance(&grown) <= 1.35 && tier2.plan().unwrap().map().version() > plan_version, "{grown:?}");
    assert_eq!(grown.iter().sum::<u64>(), 8_200);

    // A dry run changes nothing.
    let dry = tier2.rebalance(RebalanceRequest::Drain { node: NodeId(2) }, true).unwrap();
    assert!(!dry.started && dry.contents_moved > 0 && tier2.plan().unwrap().drained().is_empty());
    assert!(dry.nothing_to_do.is_none() && !dir.path().join("rebalance.json").exists());
    let started = tier2.rebalance(RebalanceRequest::Drain { node: NodeId(2) }, false).unwrap();
    assert!(started.started);
    wait_until_idle(&tier2);
    let drained = by_node(&tier2, 4);
    assert_eq!((drained[2], drained.iter().sum::<u64>()), (0, 8_200), "{drained:?}");
    assert!(!dir.path().join("rebalance.json").exists());
    let again = tier2.rebalance(RebalanceRequest::Drain { node: NodeId(2) }, false).unwrap();
    assert!(!again.started && again.nothing_to_do.unwrap().contains("node 2 is drained already"));
    let joined = tier2.rebalance(RebalanceRequest::Join { node: NodeId(2) }, false).unwrap();
    assert!(joined.started);
    wait_until_idle(&tier2);
    let joined = by_node(&tier2, 4);
    assert!(imbalance(&joined) <= 1.35, "{joined:?}");

    // Learn a map of the present contents.
    let plan_version = tier2.plan().unwrap().map().version();
    let dry = tier2.rebalance(RebalanceRequest::Learn, true).unwrap();
    assert!(!dry.started && dry.contents_moved < 8_200 && dry.imbalance_after < 1.1, "{dry:?}");
    assert!(tier2.rebalance(RebalanceRequest::Learn, false).unwrap().started);
    wait_until_idle(&tier2);
    let anew = by_node(&tier2, 4);
    assert!(imbalance(&anew) <= 1.15 && tier2.plan().unwrap().map().version() > plan_version, "{anew:?}");
    assert_eq!(anew.iter().sum::<u64>(), 8_200);

    // Move one partition by hand.
    let assignment = tier2.plan().unwrap().assignments()[0];
    let to = NodeId((assignment.node.0 + 1) % 4);
    let moved = tier2.rebalance(RebalanceRequest::Move { partition: assignment.id, node: to }, true).unwrap();
    assert_eq!((moved.moves.len(), moved.moves[0].from, moved.moves[0].to), (1, assignment.node, to));
    for request in [
        RebalanceRequest::Move { partition: PartitionId(9_999_999), node: NodeId(0) },
        RebalanceRequest::Move { partition: assignment.id, node: NodeId(4) },
        RebalanceRequest::Drain { node: NodeId(4) },
        RebalanceRequest::Join { node: NodeId(u32::MAX) },
    ] {
        assert!(matches!(tier2.rebalance(request, true), Err(RebalanceError::Mapping(_))), "{request:?}");
    }

    // The answers so far link both contents of every pair.
    let mut components = Components::default();
    components.take(&answered);
    let all = pages.lock().unwrap();
    for number in (0..8_200).step_by(2) {
        let content = |number: usize| all[&page(number)].content();
        let pair = [content(number), content(number + 1)];
        assert_eq!(components.find(pair[0]), components.find(pair[1]), "{number}");
    }
    drop(all);

    // The next start uses the stored plan, even with another number of nodes.
    let plan = tier2.plan().unwrap();
    tier2.stop();
    drop(tier2);
    let (tier2, _answers) = open(config.clone(), &pages);
    assert_eq!(tier2.plan().unwrap().map(), plan.map());
    assert_eq!(by_node(&tier2, 4), anew);
    tier2.stop();
    drop(tier2);
    let (tier2, _answers) = open(Config { nodes: 2, ..config.clone() }, &pages);
    wait_until_idle(&tier2);
    let two = by_node(&tier2, 2);
    assert!(two.iter().sum::<u64>() == 8_200 && imbalance(&two) <= 1.1, "{two:?}");
    assert!(!dir.path().join("node-2").exists());
    let plan_version = tier2.plan().unwrap().map().version();
    tier2.stop();
    drop(tier2);
    // New nodes get a part of the contents.
    let (tier2, _answers) = open(config, &pages);
    wait_until_idle(&tier2);
    let four = by_node(&tier2, 4);
    assert!(four.iter().sum::<u64>() == 8_200 && imbalance(&four) <= 1.15, "{four:?}");
    assert!(tier2.plan().unwrap().map().version() > plan_version);
}

#[test]
fn the_answered_plan_is_carried_out_unless_it_is_cancelled() {
    let dir = TempDir::new().unwrap();
    let pages = Pages::default();
    let config = Config { nodes: 2, partitions: Some(8), ..Config::new(dir.path(), Policy::default()) };
    let path = dir.path().join("rebalance.json");
    let (tier2, answers) = open(config.clone(), &pages);
    tier2.submit(orders(0, add(&pages, 0, 2_000, 60))).unwrap();
    tier2.flush_batch().unwrap();
    let mut answered = 0;
    while answered < 2_000 {
        answered += answers.recv_timeout(TIMEOUT).unwrap().len();
    }
    wait_until_idle(&tier2);
    assert!(matches!(tier2.cancel(), Err(RebalanceError::NothingToCancel)));
    let before = tier2.plan().unwrap();
    drop(tier2);

    // Without its thread, the index begins no change. The stored plan is the one that was answered.
    let source = Source::new(&pages, drop);
    let parts = open_parts(&config, &source);
    let answer = parts.router.rebalance(RebalanceRequest::Drain { node: NodeId(1) }, false).unwrap();
    let stored = stored_requests::load(&StateFiles::new(dir.path())).unwrap().pop_front().unwrap();
    let (plan, _) = stored.planned.unwrap();
    assert_eq!(
        (stored.request, plan.drained()),
        (RebalanceRequest::Drain { node: NodeId(1) }, &[NodeId(1)][..])
    );
    let moved: Vec<PartitionId> = answer.moves.iter().map(|one| one.partition).collect();
    let changed = plan
        .assignments()
        .iter()
        .filter(|assignment| !before.assignments().contains(assignment))
        .map(|assignment| assignment.id);
    assert_eq!(changed.collect::<Vec<_>>(), moved);
    drop(parts);
    let (tier2, _answers) = open(config.clone(), &pages);
    wait_until_idle(&tier2);
    assert_eq!((tier2.plan().unwrap(), path.exists()), (plan.clone(), false));
    assert_eq!(tier2.outcome().unwrap().unwrap().failed, None);
    drop(tier2);

    // A cancelled request is also removed from the disk.
    let parts = open_parts(&config, &source);
    parts.router.rebalance(RebalanceRequest::Join { node: NodeId(1) }, false).unwrap();
    assert!(path.exists() && parts.router.progress().is_some());
    let outcome = parts.router.cancel().unwrap();
    assert_eq!(
        (outcome.request, outcome.cancelled, outcome.copied),
        (RebalanceRequest::Join { node: NodeId(1) }, true, 0)
    );
    assert_eq!(
        (parts.router.outcome(), parts.router.requested(), path.exists()),
        (Some(outcome), None, false)
    );
    assert!(matches!(parts.router.cancel(), Err(RebalanceError::NothingToCancel)));
    drop(parts);
    let (tier2, _answers) = open(config, &pages);
    // The load alone would give the other node nothing, because it is drained.
    wait_until_idle(&tier2);
    assert_eq!((tier2.plan().unwrap(), by_node(&tier2, 2)), (plan, vec![2_000, 0]));
}

#[test]
fn a_change_that_is_cancelled_half_way_has_no_effect() {
    let policy = Policy::default();
    let mut world = World::on_nodes(policy, 3, 6, 1);
    let put = |world: &mut World, number: usize| {
        world.put(page(number), signature_of(&text(number as u32 / 6, number as u32 % 6)), true);
    };
    (0..400).for_each(|number| put(&mut world, number));
    world.pass();
    world.work(200);
    let router = &world.parts.router;
    let plan = router.plan();
    router.request(StoredRequest { request: RebalanceRequest::Learn, planned: None }).unwrap();
    // Copy a part, and change some of it.
    while router.progress().is_some_and(|progress| progress.copied < 100) {
        router.run_step();
    }
    (380..420).for_each(|number| put(&mut world, number));
    world.pass();
    let outcome = world.parts.router.cancel().unwrap();
    assert!(outcome.cancelled && outcome.copied >= 100, "{outcome:?}");
    assert_eq!((world.parts.router.plan(), world.parts.router.progress()), (plan, None));
    world.work(200);
    world.search_all();
    world.pass();
    for node in &world.parts.nodes {
        assert!(!node.read().tables.is_changing(), "a node still has incoming or outgoing partitions");
    }
}

/// Meanwhile, nodes cannot be told of the plan. The router tells them later.
#[test]
fn a_plan_change_ends_while_tier_1_is_away() {
    let mut world = World::on_nodes(Policy::default(), 3, 6, 1);
    let put = |world: &mut World, number: usize| {
        world.put(page(number), signature_of(&text(number as u32 / 6, number as u32 % 6)), true);
    };
    (0..400).for_each(|number| put(&mut world, number));
    world.pass();
    world.work(200);
    for is_cancelled in [false, true] {
        let router = &world.parts.router;
        let before = router.plan();
        router.request(StoredRequest { request: RebalanceRequest::Learn, planned: None }).unwrap();
        while router.progress().is_some_and(|progress| progress.copied < 100) {
            router.run_step();
        }
        world.source.hides_ranges.store(true, Ordering::Relaxed);
        if is_cancelled {
            router.cancel().unwrap();
        } else {
            for _ in 0..200 {
                router.run_step();
            }
        }
        world.source.hides_ranges.store(false, Ordering::Relaxed);
        assert_eq!(router.plan() == before, is_cancelled);
        world.work(200);
        (400..410).for_each(|number| put(&mut world, number));
        world.pass();
        world.search_all();
        world.pass();
    }
}

/// While the thread plans a request, the request is cancelled and another one takes its place.
#[test]
fn cancelling_a_request_while_it_is_planned_does_not_affect_the_next_one() {
    let mut world = World::on_nodes(Policy::default(), 2, 4, 1);
    for number in 0..400 {
        world.put(page(number), signature_of(&text(number as u32 / 6, number as u32 % 6)), true);
    }
    world.pass();
    world.work(200);
    let router = &world.parts.router;
    let drain = RebalanceRequest::Drain { node: NodeId(1) };
    let impossible = RebalanceRequest::Move { partition: PartitionId(9_999_999), node: NodeId(0) };
    for cancelled in [impossible, drain] {
        router.request(StoredRequest { request: cancelled, planned: None }).unwrap();
        let planned = router.requested().unwrap();
        let outcome = router.cancel().unwrap();
        router.rebalance(drain, false).unwrap();
        let next = router.requested();
        router.carry_out(&planned).unwrap();
        assert!(router.requested() == next, "{cancelled:?} ended another request");
        assert_eq!(router.outcome(), Some(outcome));
        assert_eq!(router.progress().unwrap().contents, 0, "the change for {cancelled:?} has begun");
        router.cancel().unwrap();
    }
}

#[test]
fn a_rebalance_request_survives_a_restart() {
    let dir = TempDir::new().unwrap();
    let pages = Pages::default();
    let config = Config { nodes: 2, partitions: Some(8), ..Config::new(dir.path(), Policy::default()) };
    let (tier2, answers) = open(config.clone(), &pages);
    let nothing = tier2.rebalance(RebalanceRequest::Learn, false).unwrap();
    assert!(
        !nothing.started && nothing.nothing_to_do.unwrap().contains("256 contents or more, and there are 0")
    );
    tier2.submit(orders(0, add(&pages, 0, 2_000, 60))).unwrap();
    tier2.flush_batch().unwrap();
    let mut answered = 0;
    while answered < 2_000 {
        answered += answers.recv_timeout(TIMEOUT).unwrap().len();
    }
    wait_until_idle(&tier2);
    assert!(by_node(&tier2, 2)[1] > 0);
    let partition = tier2
        .plan()
        .unwrap()
        .assignments()
        .iter()
        .find(|assignment| assignment.node == NodeId(0))
        .unwrap()
        .id;
    tier2.stop();
    drop(tier2);
    // Stored like this by a process that crashed.
    let path = dir.path().join("rebalance.json");
    let start = |requests: &[RebalanceRequest], config: &Config| {
        let requests =
            requests.iter().map(|request| StoredRequest { request: *request, planned: None }).collect();
        stored_requests::store(&StateFiles::new(dir.path()), &requests).unwrap();
        let (tier2, _answers) = open(config.clone(), &pages);
        wait_until_idle(&tier2);
        assert!(!path.exists(), "{requests:?}");
        let (plan, outcome) = (tier2.plan().unwrap(), tier2.outcome().unwrap());
        assert_eq!(tier2.request().unwrap(), None);
        let stored = by_node(&tier2, config.nodes as usize);
        assert_eq!(stored.iter().sum::<u64>(), 2_000);
        tier2.stop();
        (plan, stored, outcome)
    };
    let (plan, stored, outcome) = start(&[RebalanceRequest::Drain { node: NodeId(1) }], &config);
    assert_eq!((plan.drained(), stored), (&[NodeId(1)][..], vec![2_000, 0]));
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.request, outcome.failed, outcome.plan_version),
        (RebalanceRequest::Drain { node: NodeId(1) }, None, plan.map().version())
    );
    assert!(outcome.copied > 0);
    // A request that is not possible any more ends.
    let (plan, _, outcome) = start(&[RebalanceRequest::Join { node: NodeId(7) }], &config);
    assert_eq!(plan.drained(), [NodeId(1)]);
    assert!(outcome.unwrap().failed.unwrap().contains("no node 7"));
    // A start with another number of nodes adds a request.
    let more = Config { nodes: 4, ..config.clone() };
    let (four, stored, _) = start(&[RebalanceRequest::Move { partition, node: NodeId(0) }], &more);
    assert_eq!((four.drained(), stored[1]), (&[NodeId(1)][..], 0));
    assert!(
        stored.iter().all(|contents| *contents < 800) && four.map().version() > plan.map().version(),
        "{stored:?}"
    );
    // Drained nodes stay drained when the map is learned anew.
    let (other, stored, _) = start(&[], &Config { dimensions: 2, ..more.clone() });
    assert_eq!((other.drained(), stored[1]), (&[NodeId(1)][..], 0));
    assert!(other.map().version() > four.map().version());
    // With more nodes than partitions, one map is learned for them, and everything is copied once.
    let (many, stored, outcome) = start(&[], &Config { dimensions: 2, nodes: 20, ..more });
    assert!(stored.iter().all(|contents| *contents < 200), "{stored:?}");
    assert_eq!(
        (outcome.unwrap().request, many.map().version()),
        (RebalanceRequest::Balance, other.map().version() + 2)
    );
}
