//! Benchmark of updates that tier 1 confirms without a search, because the new content is a near-duplicate of
//! the page's representative.
//!
//! `cargo bench -p doppel-tier1 --bench confirm`
//!
//! The collection has 8,192 pages of 300 tokens, each alone or in groups of four. Every round changes one
//! token of every page, so F with the representative holds (J is about 0.97). A submission takes the whole
//! path of a confirmed page: reading the record and the representative, the exact comparison, the machine,
//! and the commit. `memory` uses a store in memory, and `sled_durable` uses sled with every commit synced.
//! One thread submits batches of 512 pages, as the coordinator does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use divan::Bencher;
use divan::counter::ItemsCount;
use doppel_contract::{LoadReport, SubmissionOutcome};
use doppel_model::pairwise::{Policy, Similarity};
use doppel_model::signature::{Builder, Signature};
use doppel_model::{ContentHash, PageId, PageUrl, PartitionId, Random, Timestamp};
use doppel_protocol::{
    Body, ContentSource, IndexCommand, IndexError, IndexOrders, Orders, PartitionLookup, RefusedOrders,
    SearchResult, Submission, Tier1Api, Tier2Api, VerifiedPartner, WinnerOrder,
};
use doppel_tier1::{Config, Database, Memory, Retention, Rules, Store, Tier1};

const PAGES: u64 = 8_192;
const TOKENS: u64 = 300;
const BATCH: usize = 512;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 10, sample_size = 1, args = [1, 4])]
fn memory(bencher: Bencher, family: u64) {
    run(bencher, Arc::new(Memory::default()), family);
}

#[divan::bench(sample_count = 10, sample_size = 1, args = [1, 4])]
fn sled_durable(bencher: Bencher, family: u64) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    run(bencher, Arc::new(Database::open(dir.path(), true).expect("a new database")), family);
}

fn run(bencher: Bencher, store: Arc<dyn Store>, family: u64) {
    let config = Config {
        dir: std::path::PathBuf::new(),
        shards: 16,
        ranges: 1,
        policy: Policy::default(),
        winners: WinnerOrder::DEFAULT,
        pending_max: u64::MAX,
        group_members_max: 1_000,
        low_cohesion_percent: 0,
        rules: Rules::EXACT,
        retention: Retention::DEFAULT,
        status_table: false,
        snapshot_pause: std::time::Duration::ZERO,
        durable: true,
        collection: 1,
        manifest: String::new(),
    };
    let tier1 = Tier1::open_over_stores(vec![store], &config).expect("an empty collection");
    let index = Arc::new(Families { source: OnceLock::new(), first: Mutex::new(HashMap::new()) });
    assert!(index.source.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
    tier1.start(Arc::clone(&index) as Arc<dyn IndexOrders>).expect("threads");
    let mut builder = Builder::new();
    for batch in versions(&mut builder, family, 0) {
        tier1.submit(batch).expect("recorded");
    }
    let limit = std::time::Duration::from_secs(60);
    assert!(tier1.flush(limit).expect("flushed"), "the groups did not come to rest within 60 seconds");
    let round = Mutex::new(0);
    bencher
        .counter(ItemsCount::new(PAGES))
        .with_inputs(|| {
            // Finish the background work of the last round first.
            tier1.flush(limit).expect("flushed");
            let mut round = round.lock().expect("one thread");
            *round += 1;
            versions(&mut builder, family, *round)
        })
        .bench_local_values(|batches| {
            for batch in batches {
                let outcomes = tier1.submit(batch).expect("recorded");
                assert!(outcomes.iter().all(|outcome| *outcome == SubmissionOutcome::Confirmed));
            }
        });
    tier1.stop();
}

/// Versions of all pages in a round, in batches. A page has the tokens of its family, except for one own
/// token.
fn versions(builder: &mut Builder, family: u64, round: u64) -> Vec<Vec<Submission>> {
    let submissions: Vec<Submission> = (0..PAGES)
        .map(|page| {
            let family = page / family;
            let mut tokens: Vec<u64> = (0..TOKENS).map(|at| mix(family * TOKENS + at)).collect();
            tokens[150] = mix(u64::MAX - round * PAGES - page);
            Submission {
                url: url(page),
                fetched_at: Timestamp::from_millis(i64::try_from(round).unwrap_or(i64::MAX)),
                popularity: None,
                language: None,
                canonical: None,
                body: Body::Content(Arc::new(builder.build(&tokens))),
            }
        })
        .collect();
    submissions.chunks(BATCH).map(<[Submission]>::to_vec).collect()
}

fn url(page: u64) -> PageUrl {
    PageUrl::parse(&format!("https://site{}.example/docs/page-{page}.html", page % 7)).expect("a URL")
}

/// A hash of a number.
fn mix(number: u64) -> u64 {
    Random::new(number).number()
}

/// A stand-in for tier 2. The partner of a page is the first page of its family.
struct Families {
    source: OnceLock<Arc<dyn ContentSource>>,
    /// First page of each family with its content, by the smallest shingle hash, which all members share.
    first: Mutex<HashMap<u64, (PageId, ContentHash)>>,
}

impl IndexOrders for Families {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        let mut first = self.first.lock().expect("no panic");
        let mut results = Vec::new();
        for command in orders.commands {
            match command {
                IndexCommand::Put { page, signature, search } => {
                    let family = signature.set().next().unwrap_or(0);
                    let known = first.get(&family).copied();
                    if known.is_none_or(|(of, _)| of == page) {
                        first.insert(family, (page, signature.content()));
                    }
                    if let Some(search) = search {
                        let pairs = known.into_iter().map(|(page, content)| pair(page, content, &signature));
                        results.push(SearchResult {
                            page,
                            content: signature.content(),
                            ticket: search.ticket,
                            pairs: pairs.collect(),
                        });
                    }
                }
                IndexCommand::Search { page, content, search } => {
                    results.push(SearchResult { page, content, ticket: search.ticket, pairs: Vec::new() });
                }
                IndexCommand::Remove { .. } => {}
            }
        }
        self.source.get().expect("tier 1").deliver(results).expect("a writer that takes results");
        Ok(())
    }
}

impl Tier2Api for Families {
    fn waiting(&self) -> Result<usize, IndexError> {
        Ok(0)
    }

    fn probe(&self, _: &Signature) -> Result<Vec<VerifiedPartner>, IndexError> {
        Ok(Vec::new())
    }

    fn locate(&self, _: &Signature) -> Result<PartitionLookup, IndexError> {
        Ok(PartitionLookup { lengths: Vec::new(), home: PartitionId(0), probed_partitions: Vec::new() })
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        unreachable!("tier 1 does not ask for the load")
    }

    fn flush_batch(&self) -> Result<(), IndexError> {
        Ok(())
    }
}

fn pair(page: PageId, content: ContentHash, signature: &Signature) -> VerifiedPartner {
    let (size, shared) = (signature.size(), signature.size() - 5);
    VerifiedPartner { page, content, similarity: Similarity { shared, of: size + 5 } }
}
