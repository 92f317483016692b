//! A pass of 5,000 new pages, stored and searched for, against 10,000 to 300,000 stored ones, and the memory
//! that a stored page takes.
//!
//! `cargo bench -p doppel-tier2` for all; `-- 100000` for one size. One thread compares. Divan's figure
//! is for a pass: divide by 5,000 for a page.
//!
//! # The collection
//! First all distinct pages of the corpora `mid` and `trace` (without the corpora: made-up texts of
//! Zipf-distributed words), then families made from them (see `families`), all shuffled; the last 5,000 are the new
//! ones.
//!
//! - *steady*: families have the same sizes whatever the size of the collection, as when a crawl reaches more sites.
//!   The cost of a page should hardly grow.
//! - *growing*: families are so many times larger as the collection is larger than 10,000 pages, so there are
//!   as many as there, as when the same sites are crawled in ever more versions. The number of pages to
//!   search grows as much; the cost of a page should not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use doppel_model::pairwise::Policy;
use doppel_model::signature::{Builder, Signature};
use doppel_model::{ClientId, ContentHash, Epoch, PageId, Random, RangeId, stable_hash64};
use doppel_protocol::{
    ContentSource, ContentsPage, IndexCommand, IndexOrders as _, Orders, PageRange, Repeat, Search,
    SearchResult, SignatureSource, SourceError, Tier2Api,
};
use doppel_tier2::{Config, Tier2};
use tempfile::TempDir;

#[path = "../../common/text/tests/crawl/mod.rs"]
mod crawl;
#[path = "../../eval/src/families.rs"]
mod families;

/// Pages of a pass.
const PASS: usize = 5_000;

const SIZES: [usize; 4] = [10_000, 30_000, 100_000, 300_000];

fn main() {
    divan::main();
    // Its files go with it, and nobody drops a static.
    drop(LAST.lock().map(|mut last| last.take()));
}

/// The words of distinct real pages, as hashes.
fn real_pages() -> &'static [Vec<u64>] {
    static PAGES: OnceLock<Vec<Vec<u64>>> = OnceLock::new();
    PAGES.get_or_init(|| {
        let mut files: Vec<String> = (0..2).map(|i| format!("mid/mid-{i:02}")).collect();
        files.extend((0..10).map(|i| format!("trace/round-{i:02}")));
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let mut pages = match crawl::html(&files) {
            Some(pages) => pages.iter().map(|page| words(&page.bytes)).collect(),
            None => made_up_pages(),
        };
        pages.retain(|words: &Vec<u64>| words.len() >= 20);
        pages.sort_unstable();
        pages.dedup();
        println!("{} base pages", pages.len());
        pages
    })
}

/// The words between the tags of a page; near enough to the tokens of the service.
fn words(html: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(html);
    let mut words = Vec::new();
    for between in text.split('<').map(|part| part.split_once('>').map_or("", |(_, text)| text)) {
        let tokens = between.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.extend(tokens.map(|word| stable_hash64(word.to_lowercase().as_bytes())));
    }
    words
}

fn made_up_pages() -> Vec<Vec<u64>> {
    let mut random = Random::new(1);
    let word = |random: &mut Random| stable_hash64(&((1.0 / (random.unit() + 1e-5)) as u64).to_le_bytes());
    (0..10_000).map(|_| (0..50 + random.index(700)).map(|_| word(&mut random)).collect()).collect()
}

/// How many pages a family has.
#[derive(Clone, Copy)]
enum Families {
    Steady,
    Growing,
}

/// A page that is not real: which family's, and which of it.
type Member = (u64, u64);

/// A collection and the new pages, made page by page when they are asked for.
struct Collection {
    /// Real pages below their number, members of families beyond.
    order: Vec<Result<usize, Member>>,
}

impl Collection {
    fn new(stored: usize, families: Families) -> Self {
        let mut random = Random::new(7);
        let wanted = stored + PASS;
        let real = real_pages().len().min(wanted / 2);
        let mut order: Vec<Result<usize, Member>> = (0..real).map(Ok).collect();
        let factor = match families {
            Families::Steady => 1,
            Families::Growing => stored.div_ceil(SIZES[0]),
        };
        for family in 0.. {
            let size = families::size(&mut random) * factor;
            order.extend((0..size as u64).map(|member| Err((family, member))));
            if order.len() >= wanted {
                break;
            }
        }
        order.truncate(wanted);
        random.shuffle(&mut order);
        Self { order }
    }

    fn signature(&self, number: usize, builder: &mut Builder) -> Arc<Signature> {
        Arc::new(match self.order[number] {
            Ok(real) => builder.build(&real_pages()[real]),
            Err(member) => builder.build(&text(member)),
        })
    }
}

/// The words of a member of a family.
fn text((family, member): Member) -> Vec<u64> {
    let mut words = families::recombined(real_pages(), &mut Random::new(family << 32));
    let mut random = Random::new((family << 32) | (member + 1));
    families::replace(&mut words, families::RATE, &mut random, Random::number);
    words
}

/// Tier 1 as the index sees it.
struct Source {
    contents: Vec<(PageId, ContentHash)>,
    answers: Option<Mutex<Sender<Vec<SearchResult>>>>,
}

impl SignatureSource for Source {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        panic!("everything is in the file, not {pages:?}")
    }
}

impl ContentSource for Source {
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError> {
        Ok(vec![PageRange {
            range: RangeId(0),
            epoch: Epoch(1),
            ordered: 0,
            first: PageId::from_bytes([0; 16]),
        }])
    }

    fn contents(&self, _: RangeId, after: Option<PageId>, limit: usize) -> Result<ContentsPage, SourceError> {
        let first = after.map_or(0, |page| self.contents.partition_point(|(other, _)| *other <= page));
        let end = self.contents.len().min(first + limit);
        let contents = self.contents[first..end].to_vec();
        let next = contents.last().map(|(page, _)| *page).filter(|_| end < self.contents.len());
        Ok(ContentsPage { contents, next })
    }

    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError> {
        let answers = self.answers.as_ref().map(|answers| answers.lock().expect("no panic before"));
        answers.map_or(Ok(()), |answers| {
            answers.send(results).map_err(|error| SourceError::Unavailable(error.to_string()))
        })
    }

    fn repeat(&self, _: RangeId, _: Vec<Repeat>) -> Result<(), SourceError> {
        Ok(())
    }
}

/// An index that holds a collection.
struct Filled {
    tier2: Arc<Tier2>,
    answers: Mutex<Receiver<Vec<SearchResult>>>,
    /// Orders handed over.
    handed: AtomicU64,
    collection: Collection,
    new: Vec<(PageId, Arc<Signature>)>,
    stored: usize,
    partitions: u32,
    dir: TempDir,
}

fn page(number: usize) -> PageId {
    PageId::of(&format!("https://example.org/{number}"))
}

fn config(dir: &TempDir, partitions: u32) -> Config {
    Config {
        partitions: Some(partitions),
        threads: 1,
        batch_age: Duration::from_secs(600),
        batch_max: 2 * PASS,
        ..Config::new(dir.path(), Policy::default())
    }
}

impl Filled {
    fn config(&self) -> Config {
        config(&self.dir, self.partitions)
    }

    fn new(stored: usize, families: Families, partitions: u32) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let config = config(&dir, partitions);
        let (sender, answers) = channel();
        let tier2 =
            Tier2::open(config, Arc::new(Source { contents: Vec::new(), answers: Some(Mutex::new(sender)) }));
        let collection = Collection::new(stored, families);
        let filled = Self {
            tier2: tier2.expect("an index"),
            answers: Mutex::new(answers),
            handed: AtomicU64::new(0),
            new: Vec::new(),
            collection,
            stored,
            partitions,
            dir,
        };
        let mut builder = Builder::new();
        for first in (0..stored).step_by(PASS) {
            let pages = first..(first + PASS).min(stored);
            filled.pass(
                pages.map(|n| (page(n), filled.collection.signature(n, &mut builder))).map(put).collect(),
            );
        }
        let new = stored..stored + PASS;
        let new = new.map(|n| (page(n), filled.collection.signature(n, &mut builder))).collect();
        let filled = Self { new, ..filled };
        filled.describe(families);
        filled
    }

    /// Makes a pass and waits for its answers.
    fn pass(&self, commands: Vec<IndexCommand>) -> Vec<SearchResult> {
        let first = 1 + self.handed.fetch_add(commands.len() as u64, Ordering::Relaxed);
        let orders = Orders { range: RangeId(0), epoch: Epoch(1), first, commands };
        self.tier2.submit(orders).expect("an index that takes orders");
        self.tier2.flush_batch().expect("an index that is there");
        self.answers.lock().expect("no panic before").recv().expect("an answer")
    }

    fn describe(&self, families: Families) {
        let answers = self.pass(self.orders());
        let pairs: usize = answers.iter().map(|answer| answer.pairs.len()).sum();
        let duplicates = answers.iter().filter(|answer| !answer.pairs.is_empty()).count();
        // A map may be learned after a pass, and starts the counts anew.
        self.forget();
        let before = self.tier2.load().expect("a load");
        self.pass(self.orders());
        let after = self.tier2.load().expect("a load");
        let comparisons = |load: &doppel_protocol::LoadReport| -> u64 {
            load.partitions.iter().map(|p| p.comparisons).sum()
        };
        let made = comparisons(&after).saturating_sub(comparisons(&before));
        let name = match families {
            Families::Steady => "steady",
            Families::Growing => "growing",
        };
        println!(
            "{name} {}: {} B/page in memory, {} B/page on disk, {} partitions; of {PASS} new pages {duplicates} have \
             partners, {pairs} pairs, {made} exact comparisons, {} partitions a search",
            self.stored,
            self.tier2.memory_bytes() / (self.stored + PASS),
            after.file_bytes as usize / (self.stored + PASS),
            after.partitions.len(),
            after.fan_out as f64 / after.searches.max(1) as f64,
        );
    }

    fn orders(&self) -> Vec<IndexCommand> {
        self.new.iter().cloned().map(put).collect()
    }

    /// Takes the new pages out again.
    fn forget(&self) {
        let mut removes: Vec<IndexCommand> = self
            .new
            .iter()
            .map(|(page, s)| IndexCommand::Remove { page: *page, content: s.content() })
            .collect();
        // A search, so that there is an answer to wait for.
        let mut builder = Builder::new();
        let content = self.collection.signature(0, &mut builder).content();
        removes.push(IndexCommand::Search {
            page: page(0),
            content,
            search: Search { ticket: 1, client: ClientId::NONE },
        });
        self.pass(removes);
    }
}

fn put((page, signature): (PageId, Arc<Signature>)) -> IndexCommand {
    IndexCommand::Put { page, signature, search: Some(Search { ticket: 0, client: ClientId::NONE }) }
}

type Cases = HashMap<(usize, bool, u32), Arc<Filled>>;

/// The index of the last case.
static LAST: Mutex<Option<Cases>> = Mutex::new(None);

/// The index of a case; it is made once, and only the last is kept.
fn with_index(bencher: Bencher, stored: usize, families: Families, partitions: u32) {
    let key = (stored, matches!(families, Families::Growing), partitions);
    let filled = {
        let mut last = LAST.lock().expect("no panic before");
        match last.take().and_then(|mut map| map.remove(&key)) {
            Some(filled) => filled,
            None => Arc::new(Filled::new(stored, families, partitions)),
        }
    };
    bencher
        .counter(ItemsCount::new(PASS))
        .with_inputs(|| {
            filled.forget();
            filled.orders()
        })
        .bench_local_values(|orders| filled.pass(orders));
    *LAST.lock().expect("no panic before") = Some(HashMap::from([(key, filled)]));
}

/// Opening an index again whose files are whole.
#[divan::bench(args = [100_000], sample_count = 3, sample_size = 1)]
fn restart(bencher: Bencher, stored: usize) {
    let filled = Filled::new(stored, Families::Steady, 16);
    let mut builder = Builder::new();
    let contents = (0..stored).map(|n| (page(n), filled.collection.signature(n, &mut builder).content()));
    let mut contents: Vec<_> = contents.collect();
    contents.sort_unstable();
    let config = filled.config();
    let Filled { dir, tier2, .. } = filled;
    // Only the last owner gives the directory up.
    drop(tier2);
    bencher.counter(ItemsCount::new(stored)).bench_local(|| {
        let source = Source { contents: contents.clone(), answers: None };
        let tier2 = Tier2::open(config.clone(), Arc::new(source));
        tier2.expect("an index").stop();
    });
    drop(dir);
}

#[divan::bench(args = SIZES, sample_count = 5, sample_size = 1)]
fn steady(bencher: Bencher, stored: usize) {
    with_index(bencher, stored, Families::Steady, 1);
}

#[divan::bench(args = SIZES, sample_count = 5, sample_size = 1)]
fn steady_16_partitions(bencher: Bencher, stored: usize) {
    with_index(bencher, stored, Families::Steady, 16);
}

#[divan::bench(args = SIZES, sample_count = 5, sample_size = 1)]
fn growing(bencher: Bencher, stored: usize) {
    with_index(bencher, stored, Families::Growing, 1);
}
