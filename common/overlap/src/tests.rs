//! Checks both pairing methods against a comparison of every pair, in memory and on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use doppel_model::{Random, pairwise};
use proptest::prelude::*;

use super::*;

/// A version of a page. `lines` is `None` for the removal of the page.
#[derive(Debug, Clone)]
struct Page {
    url: String,
    host: String,
    lines: Option<Vec<u64>>,
}

impl Page {
    fn text(&self) -> Option<u64> {
        let lines = self.lines.as_ref().filter(|lines| !lines.is_empty())?;
        Some(
            lines.iter().fold(7, |hash, line| hash.rotate_left(9) ^ line.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        )
    }

    fn bytes(&self) -> u64 {
        10 * self.lines.as_ref().map_or(0, Vec::len) as u64
    }
}

/// Generates families of pages that drift apart, with copies, new versions, removals, and a menu that pages
/// of a host share.
fn pages(seed: u64, count: usize) -> Vec<Page> {
    let mut random = Random::new(seed);
    let mut families: Vec<Vec<u64>> =
        (0..5).map(|_| (0..5 + random.below(70)).map(|_| random.below(1 << 30)).collect()).collect();
    (0..count)
        .map(|at| {
            let family = random.index(families.len());
            let lines = &mut families[family];
            if random.below(3) > 0 {
                let change = random.index(lines.len());
                lines[change] = random.below(1 << 30);
            }
            let host = random.below(4);
            let page = if random.below(5) == 0 { random.below(1 + at as u64) } else { at as u64 };
            let menu = (0..8).map(|line| host << 40 | line);
            let lines = match random.below(12) {
                0 => None,
                1 => Some(Vec::new()),
                2..5 => Some(menu.chain(lines.iter().copied()).collect()),
                _ => Some(lines.clone()),
            };
            Page { url: format!("http://{host}.example/{page}"), host: format!("{host}.example"), lines }
        })
        .collect()
}

fn collection(budget: &Budget, chunkings: &[Chunking], pages: &[Page], every: bool) -> DocumentCollection {
    let mut builder = CollectionBuilder::new(budget, chunkings, every).unwrap();
    for page in pages {
        match &page.lines {
            Some(lines) => {
                let (url, host) = (&*page.url, &*page.host);
                builder.push(&Document { url, host, bytes: page.bytes(), text: page.text(), lines }).unwrap();
            }
            None => builder.push_removal(&page.url).unwrap(),
        }
    }
    builder.finish().unwrap()
}

/// A reference implementation that compares the sets of every pair.
struct Slow<'p> {
    live: Vec<(u32, &'p Page)>,
    central: BTreeMap<u32, u32>,
}

type Chunks = BTreeSet<u32>;

fn chunks(lines: &[u64], each: u32) -> Chunks {
    let mut all = Chunks::new();
    for chunk in lines.chunks(each as usize) {
        pairwise::chunks(chunk, u32::MAX, |fingerprint| {
            all.insert(fingerprint);
        });
    }
    all
}

impl<'p> Slow<'p> {
    fn new(pages: &'p [Page], every: bool) -> Self {
        let is_last = |at: usize| pages[at + 1..].iter().all(|later| later.url != pages[at].url);
        let live: Vec<(u32, &Page)> = (0..pages.len())
            .filter(|at| pages[*at].lines.is_some() && (every || is_last(*at)))
            .map(|at| (at as u32, &pages[at]))
            .collect();
        let first = |page: &Page| live.iter().find(|(_, other)| other.lines == page.lines).map(|(at, _)| *at);
        let has_text = |page: &Page| page.lines.as_ref().is_some_and(|lines| !lines.is_empty());
        let central = live
            .iter()
            .map(|(at, page)| (*at, first(page).filter(|_| has_text(page)).unwrap_or(*at)))
            .collect();
        Self { live, central }
    }

    fn pairs(&self, chunking: Chunking) -> Vec<OverlappingPair> {
        let sets: Vec<(u32, Chunks)> = self
            .live
            .iter()
            .filter(|(at, _)| self.central[at] == *at)
            .map(|(at, page)| (*at, chunks(page.lines.as_deref().unwrap_or_default(), chunking.lines)))
            .collect();
        let mut pairs = Vec::new();
        for (number, (a, x)) in sets.iter().enumerate() {
            for (b, y) in &sets[number + 1..] {
                let shared = x.intersection(y).count() as u32;
                if shared >= u32::from(chunking.shared) {
                    pairs.push(OverlappingPair {
                        a: *a,
                        b: *b,
                        shared,
                        of_a: x.len() as u32,
                        of_b: y.len() as u32,
                    });
                }
            }
        }
        pairs
    }

    /// The number of replicas of each document, and the documents that a crawler can skip.
    fn replicas(&self, pairs: &[OverlappingPair]) -> (BTreeMap<u32, u64>, BTreeSet<u32>) {
        let near = |a: u32, b: u32| {
            let (a, b) = (self.central[&a], self.central[&b]);
            a == b || pairs.iter().any(|found| (found.a, found.b) == (a.min(b), a.max(b)))
        };
        let (mut replicas, mut visited, mut saved) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        for (at, _) in &self.live {
            replicas.insert(*at, self.live.iter().filter(|(other, _)| near(*at, *other)).count() as u64);
            let is_saved = visited.iter().any(|other| near(*at, *other));
            match is_saved {
                true => assert!(saved.insert(*at)),
                false => visited.push(*at),
            }
        }
        (replicas, saved)
    }

    fn mirrors(&self, chunking: Chunking) -> BTreeMap<(String, String), (u64, u64, u64)> {
        let mut hosts: BTreeMap<&str, Chunks> = BTreeMap::new();
        for (_, page) in &self.live {
            let own = chunks(page.lines.as_deref().unwrap_or_default(), chunking.lines);
            hosts.entry(&page.host).or_default().extend(own);
        }
        let mut found = BTreeMap::new();
        for (a, x) in &hosts {
            for (b, y) in hosts.iter().filter(|(b, _)| a < *b) {
                let shared = x.intersection(y).count();
                if shared >= chunking.shared.into() {
                    let counts = (shared as u64, x.len() as u64, y.len() as u64);
                    found.insert(((*a).to_owned(), (*b).to_owned()), counts);
                }
            }
        }
        found
    }
}

fn check_replication(found: &ReplicaStatistics, slow: &Slow<'_>, pairs: &[OverlappingPair]) {
    let (replicas, saved) = slow.replicas(pairs);
    assert_eq!(found.pages, replicas.len() as u64);
    assert_eq!(found.replicated, replicas.values().filter(|replicas| **replicas > 1).count() as u64);
    for band in &found.replicas {
        let inside = |replicas: &&u64| **replicas >= band.from && band.to.is_none_or(|to| **replicas <= to);
        assert_eq!(band.pages, replicas.values().filter(inside).count() as u64, "{band:?}");
    }
    let bytes = |at: &u32| slow.live.iter().find(|(live, _)| live == at).unwrap().1.bytes();
    assert_eq!(found.saved_pages, saved.len() as u64);
    assert_eq!(found.saved_bytes, saved.iter().map(bytes).sum::<u64>());
    assert_eq!(found.bytes, replicas.keys().map(bytes).sum::<u64>());
}

fn all(
    collection: &DocumentCollection,
    chunking: usize,
    method: PairingMethod,
) -> (Vec<OverlappingPair>, PairingResult) {
    let mut found = Vec::new();
    let result = collection.overlap(chunking, method, |one| {
        found.push(one);
        Ok(())
    });
    (found, result.unwrap())
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

/// A memory budget that holds the documents of a test and little else.
const SMALL: u64 = 96 << 10;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn both_methods_find_the_same_pairs_as_comparing_every_pair(
        seed in any::<u64>(), memory in prop::sample::select(vec![SMALL, 16 << 20]), every in any::<bool>(),
        (lines, shared) in (1..5_u32, 1..9_u8), (counters_log2, functions) in (6..18_u32, 1..5_u32),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let budget = Budget::new(memory, 64 << 20, dir.path());
        let chunkings = [Chunking { lines, shared }, Chunking { lines: 2, shared: 4 }];
        let pages = pages(seed, 120);
        let collection = collection(&budget, &chunkings, &pages, every);
        let slow = Slow::new(&pages, every);
        let copies = slow.central.iter().filter(|(at, central)| at != central);
        let copies: Vec<_> = copies.map(|(at, central)| ExactCopy { central: *central, copy: *at }).collect();
        prop_assert_eq!(collection.copies().collect::<Vec<_>>(), copies);
        check_replication(&collection.exact_replication(), &slow, &[]);
        let parameters = CoarseParameters { counters_log2, functions };
        for (number, chunking) in chunkings.into_iter().enumerate() {
            let expected = slow.pairs(chunking);
            let (sorted, by_sort) = all(&collection, number, PairingMethod::Sort);
            prop_assert_eq!(&sorted, &expected);
            check_replication(&by_sort.replication, &slow, &expected);
            for method in [PairingMethod::Coarse(None), PairingMethod::Coarse(Some(parameters))] {
                let (counted, coarse) = all(&collection, number, method);
                prop_assert_eq!(&counted, &expected, "{:?}", method);
                prop_assert_eq!(coarse.digest, by_sort.digest);
                prop_assert_eq!(&coarse.replication, &by_sort.replication);
                prop_assert_eq!(coarse.work.occurrences, by_sort.work.occurrences);
                prop_assert!(coarse.work.candidates <= by_sort.work.candidates);
                prop_assert!(coarse.work.memory_bytes <= memory);
            }
            for method in [PairingMethod::Sort, PairingMethod::Coarse(Some(parameters))] {
                let (mirrors, _) = collection.mirrors(number, method, 100).unwrap();
                prop_assert!(mirrors.is_sorted_by(|a, b| a.share >= b.share));
                let found: BTreeMap<_, _> = mirrors
                    .into_iter()
                    .map(|one| if one.a < one.b { one } else {
                        MirrorPair { a: one.b, b: one.a, of_a: one.of_b, of_b: one.of_a, ..one }
                    })
                    .map(|one| ((one.a, one.b), (one.shared, one.of_a, one.of_b)))
                    .collect();
                prop_assert_eq!(found, slow.mirrors(chunking));
            }
        }
        prop_assert!(is_empty(dir.path()));
    }
}

const FOUR: [Chunking; 1] = [Chunking { lines: 4, shared: 5 }];

#[test]
fn a_small_memory_budget_is_kept_by_writing_to_disk() {
    let dir = tempfile::tempdir().unwrap();
    // All pages share a long part, so there are many pairs.
    let pages: Vec<Page> = (0..200_u64)
        .map(|at| {
            let lines = (0..160).chain((0..80).map(|line| at << 20 | (line + 1) << 10)).collect();
            Page { url: format!("http://a.example/{at}"), host: "a.example".to_owned(), lines: Some(lines) }
        })
        .collect();
    let mut digests = BTreeSet::new();
    for (memory, is_small) in [(SMALL, true), (64 << 20, false)] {
        let budget = Budget::new(memory, 1 << 30, dir.path());
        let collection = collection(&budget, &FOUR, &pages, false);
        for method in [
            PairingMethod::Sort,
            PairingMethod::Coarse(None),
            PairingMethod::Coarse(Some(CoarseParameters { counters_log2: 6, functions: 1 })),
        ] {
            let (found, PairingResult { work, digest, .. }) = all(&collection, 0, method);
            assert_eq!(found.len(), 200 * 199 / 2);
            assert_eq!(work.occurrences, 40 * found.len() as u64);
            assert!(work.memory_bytes <= memory, "{work:?}");
            assert_eq!(work.disk_bytes > 0, is_small, "{method:?}: {work:?}");
            // Candidates that do not fit into memory together are counted by several scans.
            let is_coarse = method != PairingMethod::Sort;
            assert_eq!(work.scans > 5 + work.functions, is_small && is_coarse, "{method:?}: {work:?}");
            digests.insert(digest);
        }
    }
    assert_eq!(digests.len(), 1);
    assert!(is_empty(dir.path()));
}

#[test]
fn exceeding_a_budget_is_an_error_that_names_it_and_leaves_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let pages = pages(3, 150);
    let budget = Budget::new(SMALL, 40 << 10, dir.path());
    let chunkings = [Chunking { lines: 1, shared: 1 }];
    let small = collection(&budget, &chunkings, &pages, true);
    let refused = small.overlap(0, PairingMethod::Sort, |_| Ok(())).unwrap_err();
    assert!(matches!(refused, OverlapError::Disk { .. }), "{refused}");
    assert!(refused.to_string().contains("raise the limit"), "{refused}");
    drop(small);
    assert!(is_empty(dir.path()));
    let budget = Budget::new(20 << 10, 1 << 20, dir.path());
    let refused = CollectionBuilder::new(&budget, &chunkings, true).and_then(|mut builder| {
        (0..10_000_u64).try_for_each(|at| {
            let (url, host) = (format!("http://a.example/{at}"), "a.example");
            builder.push(&Document { url: &url, host, bytes: 1, text: Some(at), lines: &[at] })
        })
    });
    assert!(matches!(refused, Err(OverlapError::Memory { what: "documents", .. })), "{refused:?}");
    let nowhere = Budget::new(SMALL, 1 << 20, &dir.path().join("none"));
    assert!(matches!(CollectionBuilder::new(&nowhere, &chunkings, true), Err(OverlapError::File { .. })));
    let budget = Budget::new(1 << 20, 1 << 20, dir.path());
    let full = std::io::ErrorKind::StorageFull;
    let refused =
        collection(&budget, &chunkings, &pages, true).overlap(0, PairingMethod::Sort, |_| Err(full.into()));
    assert!(matches!(refused, Err(OverlapError::Output(_))), "{refused:?}");
}

#[test]
fn the_most_replicated_documents_are_ordered_by_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let budget = Budget::new(1 << 20, 1 << 20, dir.path());
    let page = |host: u64, page: u64, text: u64| Page {
        url: format!("http://{host}.example/{page}"),
        host: format!("{host}.example"),
        lines: Some(vec![text]),
    };
    let pages: Vec<Page> = (0..4)
        .map(|host| page(host, 1, 1))
        .chain((0..9).map(|at| page(7, 20 + at, 2)))
        .chain([page(8, 1, 3), page(9, 40, 4), page(10, 40, 4)])
        .collect();
    let collection = collection(&budget, &FOUR, &pages, false);
    let found = collection.most_replicated(5).unwrap();
    let of = |url: &str, pages, hosts| ReplicatedPage { url: url.to_owned(), pages, hosts };
    // Leaves out the nine copies on one host.
    assert_eq!(found, [of("http://0.example/1", 4, 4), of("http://9.example/40", 2, 2)]);
    assert_eq!(collection.most_replicated(1).unwrap().len(), 1);
}
