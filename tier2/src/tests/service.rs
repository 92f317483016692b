//! The service from outside.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use doppel_model::PageId;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_protocol::{IndexCommand, MappingApi, Search, SearchResult, Tier2Api};
use tempfile::TempDir;

use super::model::{Components, Pages, check_pair, page, signature_of, text};
use crate::reference::{Exhaustive, Rule};
use crate::{Config, Error, Tier2};

pub(super) const LONG: Duration = Duration::from_secs(60);

/// Waits until the mapping changes no more: plans that the load asks for are made unseen, so it waits for a while.
pub(super) fn come_to_rest(tier2: &Tier2) {
    let begin = Instant::now();
    let mut quiet = 0;
    while quiet < 120 {
        assert!(begin.elapsed() < LONG, "the mapping goes on changing");
        std::thread::sleep(Duration::from_millis(5));
        quiet = if tier2.progress().is_some() { 0 } else { quiet + 1 };
    }
}

pub(super) fn open(config: Config, pages: &Pages) -> (Arc<Tier2>, mpsc::Receiver<Vec<SearchResult>>) {
    let contents: Vec<_> = pages.lock().unwrap().iter().map(|(p, s)| (*p, s.content())).collect();
    let tier1 = Arc::clone(pages);
    let (sender, receiver) = mpsc::channel();
    let tier2 = Tier2::open(
        config,
        &mut contents.into_iter(),
        Arc::new(move |page| tier1.lock().unwrap().get(&page).cloned()),
        Box::new(move |results| drop(sender.send(results))),
    );
    (tier2.unwrap(), receiver)
}

/// Puts of a collection of families, each with a search.
pub(super) fn puts(count: usize) -> (Pages, Vec<IndexCommand>) {
    let mut pages = BTreeMap::new();
    let mut commands = Vec::new();
    for number in 0..count {
        let signature = signature_of(&text(number as u32 % 40, number as u32 / 40));
        pages.insert(page(number), Arc::clone(&signature));
        let search = Some(Search { ticket: number as u32 });
        commands.push(IndexCommand::Put { page: page(number), signature, search });
    }
    (Arc::new(Mutex::new(pages)), commands)
}

#[test]
fn passes_start_by_count_by_age_and_on_a_flush() {
    let dir = TempDir::new().unwrap();
    let config = Config { batch_max: 10, batch_age: LONG, ..Config::new(dir.path(), Policy::default()) };
    let (pages, commands) = puts(25);
    let (tier2, answers) = open(config, &pages);
    let start = Instant::now();
    tier2.submit(commands);
    let mut answered = 0;
    while answered < 25 {
        // The last 5 come with the first two tens: all are waiting when the pass is due.
        answered += answers.recv_timeout(LONG).unwrap().len();
    }
    tier2.submit(vec![IndexCommand::Search {
        page: page(0),
        content: pages.lock().unwrap()[&page(0)].content(),
        search: Search { ticket: 99 },
    }]);
    tier2.flush_batch();
    assert_eq!(answers.recv_timeout(LONG).unwrap()[0].ticket, 99);
    assert!(start.elapsed() < LONG);
    tier2.stop();
    tier2.submit(Vec::new());
    tier2.flush_batch();
    drop(tier2);

    let config = Config { batch_age: Duration::from_millis(1), ..Config::new(dir.path(), Policy::default()) };
    let (tier2, answers) = open(config, &pages);
    let content = pages.lock().unwrap()[&page(1)].content();
    tier2.submit(vec![IndexCommand::Search { page: page(1), content, search: Search { ticket: 5 } }]);
    assert_eq!(answers.recv_timeout(LONG).unwrap()[0].ticket, 5);
}

#[test]
fn answers_agree_with_the_reference_and_probes_with_answers() {
    let dir = TempDir::new().unwrap();
    let policy = Policy::default();
    let (pages, commands) = puts(1_000);
    let (tier2, answers) = open(Config { partitions: 12, ..Config::new(dir.path(), policy) }, &pages);
    let all = Arc::<Mutex<Vec<SearchResult>>>::default();
    let taken = Arc::clone(&all);
    let reference =
        Exhaustive::new(policy, Rule::Linked, Box::new(move |results| taken.lock().unwrap().extend(results)));
    reference.submit(commands.clone());
    tier2.submit(commands);
    tier2.flush_batch();
    let mut fast = Vec::new();
    while fast.len() < 1_000 {
        fast.extend(answers.recv_timeout(LONG).unwrap());
    }
    let (mut ours, mut theirs) = (Components::default(), Components::default());
    ours.take(&fast);
    theirs.take(&all.lock().unwrap());
    assert_eq!(ours.roots(), theirs.roots());

    let pages = pages.lock().unwrap();
    for member in 0..60 {
        let unseen = signature_of(&text(member % 40, 1_000 + member));
        let pairs = tier2.probe(&unseen);
        assert_eq!(pairs.is_empty(), reference.probe(&unseen).is_empty());
        for pair in &pairs {
            check_pair(policy, &unseen, pair, &pages);
        }
        let lookup = tier2.locate(&unseen);
        assert!(lookup.probed_partitions.contains(&lookup.home));
        assert_eq!(lookup.lengths[0], unseen.shingles());
    }

    // The map comes after the pass; its figures are of the searches under it.
    come_to_rest(&tier2);
    let search = |(page, signature): (&PageId, &Arc<Signature>)| {
        let (page, content, search) = (*page, signature.content(), Search { ticket: 1 });
        IndexCommand::Search { page, content, search }
    };
    tier2.submit(pages.iter().map(search).collect());
    drop(pages);
    tier2.flush_batch();
    let mut answered = 0;
    while answered < 1_000 {
        answered += answers.recv_timeout(LONG).unwrap().len();
    }
    let load = tier2.load();
    assert_eq!(load.plan_version, 1);
    assert_eq!(load.partitions.len(), 12);
    assert_eq!(load.partitions.iter().map(|p| p.pages).sum::<u64>(), 1_000);
    assert!(load.imbalance >= 1.0 && load.imbalance_floor >= 1.0 && load.file_bytes > 0);
    assert!((0.0..1.0).contains(&load.fan_out_saved.unwrap()));
    assert!(0 < load.searches && load.searches < load.fan_out);
    assert_eq!(load.fan_out, load.partitions.iter().map(|p| p.received).sum::<u64>());
}

#[test]
fn settings_are_checked() {
    let dir = TempDir::new().unwrap();
    let open = |config: Config| {
        Tier2::open(config, &mut std::iter::empty(), Arc::new(|_| None), Box::new(drop))
            .map(|_| ())
            .unwrap_err()
    };
    let config = || Config::new(dir.path(), Policy::default());
    assert!(matches!(open(Config { threads: 0, ..config() }), Error::Zero("threads")));
    assert!(matches!(open(Config { batch_max: 0, ..config() }), Error::Zero("batch_max")));
    assert!(matches!(open(Config { partitions: 0, ..config() }), Error::Zero("partitions")));
    assert!(matches!(open(Config { partitions: 5_000, ..config() }), Error::Mapping(_)));
    assert!(matches!(open(Config { dimensions: 9, ..config() }), Error::Mapping(_)));
    assert!(matches!(open(Config { dir: "/dev/null/x".into(), ..config() }), Error::Io { .. }));
}
