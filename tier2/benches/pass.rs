//! A pass of 5,000 new pages, stored and searched for, against 10,000 to 300,000 stored pages. Also prints
//! the memory per stored page.
//!
//! `cargo bench -p doppel-tier2` runs all sizes; `-- 100000` runs one. One thread compares. Divan's figure is
//! for a pass: divide it by 5,000 for the cost of a page.
//!
//! # The collection
//!
//! All distinct pages of the corpora `mid` and `trace` come first. Without the corpora, generated texts of
//! Zipf-distributed words replace them. Families made from these pages follow (see `families`). All are
//! shuffled, and the last 5,000 are the new pages.
//!
//! - *steady*: families have the same sizes whatever the size of the collection, as when a crawl reaches more
//!   sites. The cost of a page should hardly grow.
//! - *growing*: families grow in proportion to the collection, and their number stays the same, as when the
//!   same sites are crawled in ever more versions. The number of pages to search grows as much. The cost of a
//!   page should not grow.

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

/// Number of new pages in a pass.
const PASS: usize = 5_000;

const SIZES: [usize; 4] = [10_000, 30_000, 100_000, 300_000];

fn main() {
    divan::main();
    // Nobody drops a static, and dropping the index deletes its files.
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

/// The words between the tags of a page. They are close enough to the tokens of the service.
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

/// How the size of families depends on the size of the collection.
#[derive(Clone, Copy)]
enum Families {
    Steady,
    Growing,
}

/// A generated page: the number of its family, and its number in the family.
type Member = (u64, u64);

/// A collection and the new pages. Each page is made when it is requested.
struct Collection {
    /// The index of a real page, or a member of a family.
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

/// The part of tier 1 that the index uses.
struct Source {
    contents: Vec<(PageId, ContentHash)>,
    answers: Option<Mutex<Sender<Vec<SearchResult>>>>,
}

impl SignatureSource for Source {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        panic!("the file lacks the signatures of {pages:?}")
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
        let answers = self.answers.as_ref().map(|answers| answers.lock().expect("the lock is not poisoned"));
        answers.map_or(Ok(()), |answers| {
            answers.send(results).map_err(|error| SourceError::Unavailable(error.to_string()))
        })
    }

    fn repeat(&self, _: RangeId, _: Vec<Repeat>) -> Result<(), SourceError> {
        Ok(())
    }
}

/// An index that stores a collection.
struct FilledIndex {
    tier2: Arc<Tier2>,
    answers: Mutex<Receiver<Vec<SearchResult>>>,
    /// Number of orders that were handed over.
    orders_sent: AtomicU64,
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

impl FilledIndex {
    fn config(&self) -> Config {
        config(&self.dir, self.partitions)
    }

    fn new(stored: usize, families: Families, partitions: u32) -> Self {
        let dir = TempDir::new().expect("a temporary directory can be created");
        let config = config(&dir, partitions);
        let (sender, answers) = channel();
        let tier2 =
            Tier2::open(config, Arc::new(Source { contents: Vec::new(), answers: Some(Mutex::new(sender)) }));
        let collection = Collection::new(stored, families);
        let filled = Self {
            tier2: tier2.expect("the index opens"),
            answers: Mutex::new(answers),
            orders_sent: AtomicU64::new(0),
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
        let first = 1 + self.orders_sent.fetch_add(commands.len() as u64, Ordering::Relaxed);
        let orders = Orders { range: RangeId(0), epoch: Epoch(1), first, commands };
        self.tier2.submit(orders).expect("the index accepts the orders");
        self.tier2.flush_batch().expect("the index is running");
        self.answers.lock().expect("the lock is not poisoned").recv().expect("the index answers")
    }

    fn describe(&self, families: Families) {
        let answers = self.pass(self.orders());
        let pairs: usize = answers.iter().map(|answer| answer.pairs.len()).sum();
        let duplicates = answers.iter().filter(|answer| !answer.pairs.is_empty()).count();
        // After a pass, the index may learn a map and reset the counts.
        self.forget();
        let before = self.tier2.load().expect("the index reports its load");
        self.pass(self.orders());
        let after = self.tier2.load().expect("the index reports its load");
        let comparisons = |load: &doppel_contract::LoadReport| -> u64 {
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

    /// Removes the new pages again.
    fn forget(&self) {
        let mut removes: Vec<IndexCommand> = self
            .new
            .iter()
            .map(|(page, s)| IndexCommand::Remove { page: *page, content: s.content() })
            .collect();
        // The removals contain a search, so that there is an answer to wait for.
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

type Cases = HashMap<(usize, bool, u32), Arc<FilledIndex>>;

/// The index of the last case.
static LAST: Mutex<Option<Cases>> = Mutex::new(None);

/// Runs a case. Its index is made once. Only the last index is kept.
fn with_index(bencher: Bencher, stored: usize, families: Families, partitions: u32) {
    let key = (stored, matches!(families, Families::Growing), partitions);
    let filled = {
        let mut last = LAST.lock().expect("the lock is not poisoned");
        match last.take().and_then(|mut map| map.remove(&key)) {
            Some(filled) => filled,
            None => Arc::new(FilledIndex::new(stored, families, partitions)),
        }
    };
    bencher
        .counter(ItemsCount::new(PASS))
        .with_inputs(|| {
            filled.forget();
            filled.orders()
        })
        .bench_local_values(|orders| filled.pass(orders));
    *LAST.lock().expect("the lock is not poisoned") = Some(HashMap::from([(key, filled)]));
}

/// Measures reopening an index whose files are complete.
#[divan::bench(args = [100_000], sample_count = 3, sample_size = 1)]
fn restart(bencher: Bencher, stored: usize) {
    let filled = FilledIndex::new(stored, Families::Steady, 16);
    let mut builder = Builder::new();
    let contents = (0..stored).map(|n| (page(n), filled.collection.signature(n, &mut builder).content()));
    let mut contents: Vec<_> = contents.collect();
    contents.sort_unstable();
    let config = filled.config();
    let FilledIndex { dir, tier2, .. } = filled;
    // Only the last owner unlocks the directory.
    drop(tier2);
    bencher.counter(ItemsCount::new(stored)).bench_local(|| {
        let source = Source { contents: contents.clone(), answers: None };
        let tier2 = Tier2::open(config.clone(), Arc::new(source));
        tier2.expect("the index opens").stop();
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
