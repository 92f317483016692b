//! `doppel-eval incremental`: compares the cost of deciding a batch with the cost of comparing the whole
//! collection again.
//!
//! Both ways must find the same number of groups; otherwise the measurement fails.

mod report;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use doppel_baseline::ContentId;
use doppel_contract::SubmissionOutcome;
use doppel_model::signature::{Builder, Signature};
use doppel_model::{PageUrl, Random, Tau, Timestamp, stable_hash64};
use doppel_protocol::{Body, Submission, Tier2Api};
use doppel_terminal::output::share;
use doppel_terminal::progress;
use doppel_tier1::Rules;
use serde::Serialize;

use crate::generator::{Generator, Hashes};
use crate::papers::clustering::collection::Version;
use crate::papers::clustering::driver::Driver;
use crate::papers::clustering::from_scratch::from_scratch;
use crate::papers::clustering::replay::{Replay, ReplayArgs, batches};
use doppel_inputs::processor;

/// Number of partitions of the engine, as in a new data directory.
const PARTITIONS: u32 = 16;
/// Number of pages submitted at a time while the collection grows to the next size.
const GROW_PAGES: usize = 5_000;
/// Number of updates among ten pages of a batch; the other pages are new. A real re-crawl has about this mix
/// of fetches with a changed content.
const UPDATES_OF_TEN: usize = 6;
/// Number of comparisons of the whole collection at each size. The fastest one counts.
const FROM_SCRATCH: usize = 3;
/// Number of pages in a batch of the replay, as in `accuracy`.
const REPLAY_BATCH: usize = 1_000;

/// Measure what incremental work saves as the collection grows.
///
/// The collection begins with the pages of the inputs and continues with pages that are made from them
/// (recombined stretches of real pages, in families of constant size; see
/// docs/evaluation/paper-clustering.md). At each size the engine decides a batch of new and updated pages,
/// down to the last background work. Then the whole collection is compared from scratch: tier 2's pass over
/// all signatures, then components in memory. Both times are divided by the pages of the batch. Last, the
/// inputs are replayed unchanged, for the share of updated pages that the representative of their group
/// confirms.
#[derive(Debug, Args)]
pub(crate) struct Incremental {
    #[command(flatten)]
    replay: ReplayArgs,
    /// Thresholds; the growth is measured for the first one.
    #[arg(long, value_name = "TAU,...", value_delimiter = ',', default_value = "0.8,0.9")]
    tau: Vec<Tau>,
    /// Sizes of the collection at which it is measured, in pages, ascending.
    #[arg(long, value_name = "PAGES,...", value_delimiter = ',',
        default_value = "1000,3000,10000,30000,100000,200000,300000,400000",
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    sizes: Vec<u32>,
    /// Number of pages of a batch.
    #[arg(long, value_name = "PAGES", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    batch: u32,
    /// Number of batches decided at each size; the quickest counts.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batches: u32,
    /// Seed of the generated pages.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

/// Figures of the growth and of the replay.
#[derive(Debug, Serialize)]
pub(crate) struct IncrementalResult {
    tau: Tau,
    batch: u32,
    real_pages: usize,
    sizes: Vec<Size>,
    rounds: Vec<Round>,
}

/// Figures at one size of the collection.
#[derive(Debug, Serialize)]
struct Size {
    pages: usize,
    /// Milliseconds to compare everything again, divided by the pages of the batch.
    non_incremental: f64,
    /// Milliseconds per page of the batch until the batch is decided.
    incremental: f64,
    /// Milliseconds per page of the batch until the batch is answered.
    answered: f64,
    /// Ratio of `non_incremental` to `incremental`.
    ratio: f64,
    /// Like `non_incremental`, but in processor time, as the mean of all runs. Other work on the machine
    /// affects processor time less.
    non_incremental_processor: f64,
    /// Like `incremental`, but in processor time, as the mean of all batches.
    incremental_processor: f64,
    /// Ratio of `non_incremental_processor` to `incremental_processor`.
    ratio_processor: f64,
    /// Number of groups of two pages or more, which both ways agree on.
    groups: u64,
    /// Share of the updates that the representative confirmed.
    confirmed: f64,
}

/// Figures of one round of the replay.
#[derive(Debug, Serialize)]
struct Round {
    round: String,
    tau: Tau,
    updates: u64,
    confirmed: f64,
}

impl Incremental {
    pub(crate) fn run(mut self) -> anyhow::Result<IncrementalResult> {
        self.sizes.sort_unstable();
        self.sizes.dedup();
        let replay = Replay::read(&self.replay)?;
        replay.tally.verdict(self.replay.inputs.strict, 0)?;
        let tau = *self.tau.first().context("--tau names no threshold")?;
        let rounds = self.tau.iter().map(|tau| rounds(&replay, *tau)).collect::<anyhow::Result<Vec<_>>>()?;
        let real = real_pages(&replay)?;
        drop(replay);
        let real_pages = real.len();
        let sizes = self.grow(real, tau)?;
        Ok(IncrementalResult {
            tau,
            batch: self.batch,
            real_pages,
            sizes,
            rounds: rounds.into_iter().flatten().collect(),
        })
    }

    fn grow(&self, real: Vec<Vec<u64>>, tau: Tau) -> anyhow::Result<Vec<Size>> {
        let largest = self.sizes.last().map_or(0, |size| *size as usize);
        let new_pages = self.batch as usize * self.batches as usize;
        let generator = Generator::new(Hashes(real), largest + new_pages * self.sizes.len(), self.seed);
        let driver = Driver::new(tau, PARTITIONS, Rules::EXACT)?;
        let mut growth = Growth {
            driver,
            generator,
            builder: Builder::new(),
            pages: Vec::new(),
            random: Random::new(self.seed),
            clock: 0,
        };
        let bar = progress::pages(largest as u64, "growing");
        let mut sizes = Vec::new();
        for size in &self.sizes {
            while growth.pages.len() < *size as usize {
                growth.add((*size as usize - growth.pages.len()).min(GROW_PAGES))?;
                bar.set_position(growth.pages.len() as u64);
            }
            growth.driver.wait_until_quiescent()?;
            sizes.push(growth.measure(tau, self.batch as usize, self.batches)?);
        }
        bar.finish_and_clear();
        growth.driver.stop();
        Ok(sizes)
    }
}

/// The growing collection and the engine that stores it.
struct Growth {
    driver: Driver,
    generator: Generator<Hashes>,
    builder: Builder,
    /// Present version of each page.
    pages: Vec<(PageUrl, Arc<Signature>)>,
    random: Random,
    /// Fetch time of the pages that are made, in milliseconds. The time never decreases.
    clock: i64,
}

/// Costs of a batch in seconds, and the numbers of its updates.
struct BatchTimes {
    /// Seconds until no page was pending.
    answered: f64,
    /// Seconds until no work was left.
    decided: f64,
    /// Seconds of processor time until no work was left.
    processor: f64,
    updates: u64,
    /// Number of updates that the representative confirmed.
    confirmed: u64,
}

impl Growth {
    fn add(&mut self, pages: usize) -> anyhow::Result<()> {
        let batch = (0..pages).map(|_| self.new_page()).collect::<anyhow::Result<_>>()?;
        self.clock += 1;
        self.driver.submit(batch)?;
        self.driver.wait_until_answered()
    }

    fn new_page(&mut self) -> anyhow::Result<Submission> {
        let number = self.pages.len();
        ensure!(number < self.generator.len(), "the generator has only {number} pages, which are all used");
        let url = PageUrl::parse(&format!("https://example.org/{number}"))?;
        let signature = self.generator.signature(&mut self.builder, number);
        self.pages.push((url, signature));
        Ok(self.submission(number))
    }

    fn submission(&self, number: usize) -> Submission {
        let (url, signature) = &self.pages[number];
        Submission {
            url: url.clone(),
            fetched_at: Timestamp::from_millis(self.clock),
            popularity: None,
            language: None,
            canonical: None,
            body: Body::Content(Arc::clone(signature)),
        }
    }

    fn measure(&mut self, tau: Tau, batch: usize, batches: u32) -> anyhow::Result<Size> {
        let took = (0..batches).map(|_| self.decide(batch)).collect::<anyhow::Result<Vec<BatchTimes>>>()?;
        let (updates, confirmed) = took.iter().fold((0, 0), |(u, c), t| (u + t.updates, c + t.confirmed));
        let a_page = 1_000.0 / batch as f64;
        // Other work on the machine only lengthens a time, so the shortest of several times counts.
        let least = |of: fn(&BatchTimes) -> f64| took.iter().map(of).fold(f64::INFINITY, f64::min) * a_page;
        let (incremental, answered) = (least(|took| took.decided), least(|took| took.answered));
        // On a busy machine the minimum of many short times is lower than that of a few long ones, which
        // would favour the batches. Both sides therefore use the mean for processor time.
        let incremental_processor =
            took.iter().map(|took| took.processor).sum::<f64>() / took.len() as f64 * a_page;
        let mut scratch = from_scratch(&self.pages, tau)?;
        for _ in 1..FROM_SCRATCH {
            let again = from_scratch(&self.pages, tau)?;
            scratch.seconds = scratch.seconds.min(again.seconds);
            scratch.processor += again.processor;
        }
        scratch.processor /= FROM_SCRATCH as f64;
        let non_incremental = scratch.seconds * a_page;
        let non_incremental_processor = scratch.processor * a_page;
        let groups = scratch.groups;
        let engine_groups = self.engine_groups()?;
        ensure!(
            groups == engine_groups,
            "the comparison from scratch finds {groups} groups, but the engine has {engine_groups}"
        );
        Ok(Size {
            pages: self.pages.len(),
            non_incremental,
            incremental,
            answered,
            ratio: non_incremental / incremental,
            non_incremental_processor,
            incremental_processor,
            ratio_processor: non_incremental_processor / incremental_processor,
            groups,
            confirmed: share(confirmed, updates),
        })
    }

    /// Decides a batch of new pages and updates, down to the last background work.
    fn decide(&mut self, batch: usize) -> anyhow::Result<BatchTimes> {
        self.clock += 1;
        let mut submissions = Vec::with_capacity(batch);
        let (before, mut updated) = (self.pages.len(), HashSet::new());
        for place in 0..batch {
            let known = self.random.index(before);
            // A page occurs only once in a batch.
            if place % 10 < UPDATES_OF_TEN && updated.insert(known) {
                self.pages[known].1 = self.generator.update(&mut self.builder, known);
                submissions.push(self.submission(known));
            } else {
                submissions.push(self.new_page()?);
            }
        }
        let (begin, processor) = (Instant::now(), processor::seconds());
        let outcomes = self.driver.submit(submissions)?;
        // The batch is complete, so waiting for more pages gains nothing.
        self.driver.engine.tier2.flush_batch()?;
        self.driver.wait_until_answered()?;
        let answered = begin.elapsed().as_secs_f64();
        self.driver.wait_until_quiescent()?;
        let decided = begin.elapsed().as_secs_f64();
        let processor = processor::seconds() - processor;
        let confirmed =
            outcomes.iter().filter(|outcome| **outcome == SubmissionOutcome::Confirmed).count() as u64;
        Ok(BatchTimes { answered, decided, processor, updates: updated.len() as u64, confirmed })
    }

    fn engine_groups(&self) -> anyhow::Result<u64> {
        let groups = self.driver.groups()?;
        Ok(groups.values().flatten().collect::<HashSet<_>>().len() as u64)
    }
}

/// Newest contents of the live pages, in order of the first fetch, each as the hashes of its tokens.
///
/// # Errors
/// If the baseline and the engine find different tokens in a page.
fn real_pages(replay: &Replay) -> anyhow::Result<Vec<Vec<u64>>> {
    let mut newest: HashMap<&PageUrl, usize> = HashMap::new();
    let mut order = Vec::new();
    for (number, fetch) in replay.fetches.iter().enumerate() {
        let (url, place) = (&fetch.submission.url, fetch.submission.place());
        let known = newest.get(url).map(|known| replay.fetches[*known].submission.place());
        if known.is_none_or(|known| known <= place) && newest.insert(url, number).is_none() {
            order.push(url);
        }
    }
    let mut words: HashMap<ContentId, Vec<u64>> =
        replay.contents.sequences(|word| stable_hash64(word.as_bytes())).collect();
    words.retain(|_, words| !words.is_empty());
    let mut builder = Builder::new();
    let mut pages = Vec::new();
    for url in order {
        let fetch = &replay.fetches[newest[url]];
        if let (Version::Content(content), Body::Content(signature)) =
            (&fetch.version, &fetch.submission.body)
            && let Some(words) = words.get(content)
        {
            ensure!(
                builder.build(words) == **signature,
                "the baseline and the engine find different tokens in {url}"
            );
            pages.push(words.clone());
        }
    }
    Ok(pages)
}

/// Share of confirmed updates in each round that has updates.
fn rounds(replay: &Replay, tau: Tau) -> anyhow::Result<Vec<Round>> {
    let driver = Driver::new(tau, PARTITIONS, Rules::EXACT)?;
    let bar = progress::pages(replay.fetches.len() as u64, "replaying");
    let mut counts = vec![(0, 0); replay.rounds.len()];
    for batch in batches(&replay.fetches, REPLAY_BATCH) {
        let outcomes = driver.submit(batch.iter().map(|fetch| fetch.submission.clone()).collect())?;
        for (fetch, outcome) in batch.iter().zip(outcomes).filter(|(fetch, _)| fetch.update) {
            let (updates, confirmed) = &mut counts[fetch.round];
            *updates += 1;
            *confirmed += u64::from(outcome == SubmissionOutcome::Confirmed);
        }
        driver.wait_until_answered()?;
        bar.inc(batch.len() as u64);
    }
    bar.finish_and_clear();
    driver.stop();
    let round = |(name, (updates, confirmed)): (&String, (u64, u64))| Round {
        round: name.clone(),
        tau,
        updates,
        confirmed: share(confirmed, updates),
    };
    let rounds = replay.rounds.iter().zip(counts).map(round);
    Ok(rounds.filter(|round| round.updates > 0).collect())
}
