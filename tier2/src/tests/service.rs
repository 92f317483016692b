//! Tests of the service through its public interface.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ClientId, PageId};
use doppel_protocol::IndexOrders as _;
use doppel_protocol::{ContentSource, IndexCommand, IndexError, MappingApi, Search, SearchResult, Tier2Api};
use tempfile::TempDir;

use super::model::{Components, Pages, check_pair, page, signature_of, text};
use super::reference::Exhaustive;
use super::source::{Source, orders};
use crate::{Config, Error, Tier2};

pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until the plan changes no more and no change is waiting.
pub(super) fn wait_until_idle(tier2: &Tier2) {
    let begin = Instant::now();
    let mut quiet = 0;
    while quiet < 4 {
        assert!(begin.elapsed() < TIMEOUT, "the plan keeps changing");
        std::thread::sleep(Duration::from_millis(5));
        let rests = tier2.is_resting() && tier2.progress().unwrap().is_none();
        quiet = if rests { quiet + 1 } else { 0 };
    }
}

pub(super) fn open(config: Config, pages: &Pages) -> (Arc<Tier2>, mpsc::Receiver<Vec<SearchResult>>) {
    let (sender, receiver) = mpsc::channel();
    let source = Source::new(pages, move |results| drop(sender.send(results)));
    let tier2 = Tier2::open(config, source).unwrap();
    let begin = Instant::now();
    while tier2.load().is_err() {
        assert!(begin.elapsed() < TIMEOUT, "the index was not fed in time");
        std::thread::sleep(Duration::from_millis(1));
    }
    (tier2, receiver)
}

/// Puts for a collection of families, each with a search.
pub(super) fn puts(count: usize) -> (Pages, Vec<IndexCommand>) {
    let mut pages = BTreeMap::new();
    let mut commands = Vec::new();
    for number in 0..count {
        let signature = signature_of(&text(number as u32 % 40, number as u32 / 40));
        pages.insert(page(number), Arc::clone(&signature));
        let search = Some(Search { ticket: number as u32, client: ClientId::NONE });
        commands.push(IndexCommand::Put { page: page(number), signature, search });
    }
    (Arc::new(Mutex::new(pages)), commands)
}

#[test]
fn a_stop_writes_a_snapshot_of_everything_carried_out() {
    let dir = TempDir::new().unwrap();
    let config = Config { batch_age: Duration::from_millis(1), ..Config::new(dir.path(), Policy::default()) };
    let (pages, commands) = puts(120);
    let source = Source::new(&pages, drop);
    *source.log.lock().unwrap() = Some(Vec::new());
    let tier2 = Tier2::open(config.clone(), Arc::clone(&source) as Arc<dyn ContentSource>).unwrap();
    let begin = Instant::now();
    let wait = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(begin.elapsed() < TIMEOUT, "the index did not finish in time");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    wait(&|| tier2.load().is_ok());
    assert_eq!(source.full_reads.load(Ordering::Relaxed), 1);
    let count = commands.len();
    *source.log.lock().unwrap() = Some(pages.lock().unwrap().keys().copied().collect());
    *source.ordered.lock().unwrap() = (count as u64, count);
    tier2.submit(orders(0, commands)).unwrap();
    wait(&|| tier2.waiting().unwrap() == 0);
    drop(tier2);
    *source.ordered.lock().unwrap() = (0, count);
    let tier2 = Tier2::open(config, Arc::clone(&source) as Arc<dyn ContentSource>).unwrap();
    wait(&|| tier2.load().is_ok());
    assert_eq!(source.full_reads.load(Ordering::Relaxed), 1, "the start read all contents again");
    let stored: u64 = tier2.load().unwrap().partitions.iter().map(|one| one.contents).sum();
    assert_eq!(stored, pages_with_contents(&pages));
}

/// Number of distinct contents of these pages.
fn pages_with_contents(pages: &Pages) -> u64 {
    let contents: BTreeSet<_> = pages.lock().unwrap().values().map(|one| one.content()).collect();
    contents.len() as u64
}

#[test]
fn passes_start_by_count_by_age_and_on_a_flush() {
    let dir = TempDir::new().unwrap();
    let config = Config { batch_max: 10, batch_age: TIMEOUT, ..Config::new(dir.path(), Policy::default()) };
    let (pages, commands) = puts(25);
    let (tier2, answers) = open(config, &pages);
    let start = Instant::now();
    tier2.submit(orders(0, commands)).unwrap();
    let mut answered = 0;
    while answered < 25 {
        // The last 5 come together with the first 20, since all of them wait when the pass is due.
        answered += answers.recv_timeout(TIMEOUT).unwrap().len();
    }
    let search = IndexCommand::Search {
        page: page(0),
        content: pages.lock().unwrap()[&page(0)].content(),
        search: Search { ticket: 99, client: ClientId::NONE },
    };
    tier2.submit(orders(25, vec![search.clone()])).unwrap();
    // Orders that were handed over before are skipped, and a gap is refused.
    tier2.submit(orders(25, vec![search.clone()])).unwrap();
    let refused = tier2.submit(orders(27, vec![search])).unwrap_err();
    assert_eq!((refused.error, refused.orders.commands.len()), (IndexError::Gap { expected: 27 }, 1));
    tier2.flush_batch().unwrap();
    assert_eq!(answers.recv_timeout(TIMEOUT).unwrap()[0].ticket, 99);
    assert!(start.elapsed() < TIMEOUT);
    assert!(answers.try_recv().is_err());
    tier2.stop();
    assert_eq!(tier2.submit(orders(26, Vec::new())).unwrap_err().error, IndexError::Stopping);
    assert_eq!(tier2.flush_batch(), Err(IndexError::Stopping));
    drop(tier2);

    let config = Config { batch_age: Duration::from_millis(1), ..Config::new(dir.path(), Policy::default()) };
    let (tier2, answers) = open(config, &pages);
    let content = pages.lock().unwrap()[&page(1)].content();
    tier2
        .submit(orders(
            0,
            vec![IndexCommand::Search {
                page: page(1),
                content,
                search: Search { ticket: 5, client: ClientId::NONE },
            }],
        ))
        .unwrap();
    assert_eq!(answers.recv_timeout(TIMEOUT).unwrap()[0].ticket, 5);
}

#[test]
fn answers_agree_with_the_reference_and_probes_with_answers() {
    let dir = TempDir::new().unwrap();
    let policy = Policy::default();
    let (pages, commands) = puts(1_000);
    let (tier2, answers) = open(Config { partitions: Some(12), ..Config::new(dir.path(), policy) }, &pages);
    let all = Arc::<Mutex<Vec<SearchResult>>>::default();
    let taken = Arc::clone(&all);
    let reference = Exhaustive::new(policy, Box::new(move |results| taken.lock().unwrap().extend(results)));
    reference.submit(orders(0, commands.clone())).unwrap();
    tier2.submit(orders(0, commands)).unwrap();
    tier2.flush_batch().unwrap();
    let mut fast = Vec::new();
    while fast.len() < 1_000 {
        fast.extend(answers.recv_timeout(TIMEOUT).unwrap());
    }
    let (mut ours, mut theirs) = (Components::default(), Components::default());
    ours.take(&fast);
    theirs.take(&all.lock().unwrap());
    assert_eq!(ours.roots(), theirs.roots());

    let pages = pages.lock().unwrap();
    for member in 0..60 {
        let unseen = signature_of(&text(member % 40, 1_000 + member));
        let pairs = tier2.probe(&unseen).unwrap();
        assert_eq!(pairs.is_empty(), reference.probe(&unseen).unwrap().is_empty());
        for pair in &pairs {
            check_pair(policy, &unseen, pair, &pages);
        }
        let lookup = tier2.locate(&unseen).unwrap();
        assert!(lookup.probed_partitions.contains(&lookup.home));
        assert_eq!(lookup.lengths[0], unseen.size());
    }

    // The map is learned after the pass. Its figures count the searches made under it.
    wait_until_idle(&tier2);
    let search = |(page, signature): (&PageId, &Arc<Signature>)| {
        let (page, content, search) =
            (*page, signature.content(), Search { ticket: 1, client: ClientId::NONE });
        IndexCommand::Search { page, content, search }
    };
    tier2.submit(orders(1_000, pages.iter().map(search).collect())).unwrap();
    drop(pages);
    tier2.flush_batch().unwrap();
    let mut answered = 0;
    while answered < 1_000 {
        answered += answers.recv_timeout(TIMEOUT).unwrap().len();
    }
    let load = tier2.load().unwrap();
    assert_eq!(load.plan_version, 1);
    assert_eq!(load.partitions.len(), 12);
    assert_eq!(load.partitions.iter().map(|p| p.pages).sum::<u64>(), 1_000);
    assert!(load.imbalance >= 1.0 && load.imbalance_floor >= 1.0 && load.file_bytes > 0);
    assert!((0.0..1.0).contains(&load.fan_out_saved.unwrap()));
    assert!(0 < load.searches && load.searches < load.fan_out);
    assert_eq!(load.fan_out, load.partitions.iter().map(|p| p.received).sum::<u64>());
}

/// A caller that has the answers finds them in the report, once, although they were delivered twice.
#[test]
fn searches_are_counted_once_and_before_their_answers_are_delivered() {
    let dir = TempDir::new().unwrap();
    let (pages, commands) = puts(30);
    let (sender, counts) = mpsc::channel();
    let index = Arc::<OnceLock<Weak<Tier2>>>::default();
    let asked = Arc::clone(&index);
    let source = Source::new(&pages, move |results| {
        let tier2 = asked.get().and_then(Weak::upgrade).unwrap();
        sender.send((results.len(), tier2.load().unwrap().searches)).unwrap();
    });
    source.refuses_next.store(true, Ordering::Relaxed);
    let config = Config { batch_max: 30, batch_age: TIMEOUT, ..Config::new(dir.path(), Policy::default()) };
    let tier2 = Tier2::open(config, source).unwrap();
    index.set(Arc::downgrade(&tier2)).unwrap();
    tier2.submit(orders(0, commands)).unwrap();
    let handed_over: Vec<_> = (0..2).map(|_| counts.recv_timeout(TIMEOUT).unwrap()).collect();
    assert_eq!(handed_over[0].0, 30);
    assert!(handed_over[0].1 > 0);
    assert_eq!(handed_over[0], handed_over[1]);
    tier2.stop();
}

#[test]
fn invalid_settings_are_refused() {
    let dir = TempDir::new().unwrap();
    let open = |config: Config| Tier2::open(config, Source::empty()).map(drop).unwrap_err();
    let config = || Config::new(dir.path(), Policy::default());
    assert!(matches!(open(Config { threads: 0, ..config() }), Error::Zero("threads")));
    assert!(matches!(open(Config { batch_max: 0, ..config() }), Error::Zero("batch_max")));
    assert!(matches!(open(Config { partitions: Some(0), ..config() }), Error::Zero("partitions")));
    assert!(matches!(open(Config { partitions: Some(5_000), ..config() }), Error::Mapping(_)));
    assert!(matches!(open(Config { dimensions: 9, ..config() }), Error::Mapping(_)));
    assert!(matches!(open(Config { dir: "/dev/null/x".into(), ..config() }), Error::Io { .. }));
}
