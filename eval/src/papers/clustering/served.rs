//! `doppel-eval served`: checks that every page that is reported as a duplicate is one at that moment.
//!
//! One thread feeds the crawls to the engine while another thread queries the public HTTP interface. The
//! measurement fails if a single reported duplicate is wrong.

mod history;
mod public_server;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use clap::Args;
use doppel_contract::Status;
use doppel_contract::client::builder_without_tls;
use doppel_model::{PageUrl, Random, Tau};
use doppel_protocol::Tier1Api;
use doppel_terminal::output::{count, share};
use doppel_terminal::progress;
use doppel_terminal::svg::{Panel, PlotSeries};
use doppel_tier1::Rules;
use reqwest::blocking::Client;
use serde::Serialize;

use crate::papers::clustering::driver::Driver;
use crate::papers::clustering::replay::{Fetch, Replay, ReplayArgs, batches};
use crate::report::{Report, Table, percent};
use history::{History, Span, Verdict};
use public_server::{PageAnswer, PublicServer};

/// Number of partitions of the engine.
const PARTITIONS: u32 = 16;
/// Number of pages in one query.
const PAGES_PER_QUERY: usize = 100;
/// Maximum number of wrong answers that are kept as examples.
const EXAMPLES: usize = 10;
/// Number of slices into which the fetches are divided. Each slice is a point of the plot.
const SLICES: usize = 20;
/// Maximum duration of a query.
const PATIENCE: Duration = Duration::from_secs(60);

/// Check every answer `duplicate` while updates stream in.
///
/// The crawls are fed to the engine without waiting for decisions. Meanwhile the public interface is queried
/// over HTTP about pages of the batch on its way, and about random others. Every reported pair of a duplicate
/// and its winner is checked with exact F of separate code, on the contents of that moment. If a page changed
/// between question and answer, all contents that it can have had are checked. In the end, with no work left,
/// every page is queried.
#[derive(Debug, Args)]
pub(crate) struct Served {
    #[command(flatten)]
    replay: ReplayArgs,
    /// Threshold.
    #[arg(long, default_value = "0.8")]
    tau: Tau,
    /// Number of pages in a batch.
    #[arg(long, value_name = "PAGES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Pause after each batch, so that more queries fit between two batches.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pause: u64,
    /// Seed of the choice of pages to query.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

/// Results of all checks.
#[derive(Debug, Serialize)]
pub(crate) struct ServedResult {
    tau: Tau,
    fetches: usize,
    streaming: Answers,
    quiescent: Answers,
    /// Number of comparisons of members with their winner in the engine.
    engine_verified: u64,
    /// Number of comparisons of members with their winner in the engine whose similarity was not above tau.
    engine_rejected: u64,
    /// Streaming answers, in slices of the fetches.
    slices: Vec<Slice>,
    /// Examples of wrong answers.
    examples: Vec<String>,
}

/// Numbers of answers, by status and by the result of the check.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Answers {
    answers: u64,
    duplicates: u64,
    /// Number of duplicates for which F holds between the only possible contents.
    hold: u64,
    /// Number of duplicates for which F holds between some of several possible contents.
    may_hold: u64,
    /// Number of duplicates for which F holds between none of the possible contents.
    wrong: u64,
    /// Number of `secondary` answers: the page is in a group, but it is dissimilar to the winner or not yet
    /// verified.
    secondaries: u64,
    /// Number of `secondary` answers for which F holds with the winner nevertheless.
    understated: u64,
    /// Number of members of groups other than winners, if the contents of member and winner were certain.
    members: u64,
    /// Number of `members` for which F does not hold with the winner: what the paper's winner check rejects.
    unlike_winner: u64,
}

/// Numbers of streaming answers while the server receives one slice of the fetches.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Slice {
    /// Share of all fetches that the server has acknowledged by the end of the slice, in percent.
    percent: f64,
    duplicates: u64,
    secondaries: u64,
    members: u64,
    unlike_winner: u64,
}

/// State that the feeding thread and the querying thread share.
struct SharedState<'r> {
    served: &'r Served,
    replay: &'r Replay,
    server: &'r PublicServer,
    history: RwLock<History>,
    /// Number of acknowledged fetches. The latest acknowledged batch ends at this index.
    fed: AtomicUsize,
    ended: AtomicBool,
    found: Mutex<Findings>,
}

/// Results of the checks so far.
#[derive(Default)]
struct Findings {
    streaming: Answers,
    slices: [Slice; SLICES],
    examples: Vec<String>,
}

impl Served {
    pub(crate) fn run(&self) -> anyhow::Result<ServedResult> {
        let replay = Replay::read(&self.replay)?;
        replay.tally.verdict(self.replay.inputs.strict, 0)?;
        let driver = Driver::new(self.tau, PARTITIONS, Rules::EXACT)?;
        let server = PublicServer::open(&driver)?;
        let state = SharedState {
            served: self,
            replay: &replay,
            server: &server,
            history: RwLock::default(),
            fed: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            found: Mutex::default(),
        };
        thread::scope(|scope| {
            let querier = scope.spawn(|| state.query_while_streaming());
            let fed = state.feed(&driver);
            state.ended.store(true, Ordering::Release);
            let asked = querier.join().map_err(|_| anyhow!("the querying thread panicked"))?;
            fed.and(asked)
        })?;
        driver.wait_until_quiescent()?;
        let quiescent = state.query_all()?;
        let counters = driver.engine.tier1.totals()?.counters;
        let Findings { streaming, mut slices, examples } =
            state.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (slice, number) in slices.iter_mut().zip(1..) {
            slice.percent = f64::from(number) * 100.0 / SLICES as f64;
        }
        drop(server);
        driver.stop();
        Ok(ServedResult {
            tau: self.tau,
            fetches: replay.fetches.len(),
            streaming,
            quiescent,
            engine_verified: counters.verified,
            engine_rejected: counters.rejected,
            slices: slices.to_vec(),
            examples,
        })
    }
}

impl SharedState<'_> {
    /// Submits the fetches one batch after the other, without waiting for decisions.
    fn feed(&self, driver: &Driver) -> anyhow::Result<()> {
        let bar = progress::pages(self.replay.fetches.len() as u64, "streaming");
        for batch in batches(&self.replay.fetches, self.served.batch as usize) {
            self.history.write().unwrap_or_else(PoisonError::into_inner).send(batch);
            driver.submit(batch.iter().map(|fetch| fetch.submission.clone()).collect())?;
            self.history.write().unwrap_or_else(PoisonError::into_inner).acknowledge(batch);
            self.fed.fetch_add(batch.len(), Ordering::Release);
            bar.inc(batch.len() as u64);
            thread::sleep(Duration::from_millis(self.served.pause));
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Queries until the feeding thread has ended, in turn about pages of the latest batch and about random
    /// pages.
    fn query_while_streaming(&self) -> anyhow::Result<()> {
        let http = client()?;
        let mut random = Random::new(self.served.seed);
        let mut turn = 0_usize;
        while !self.ended.load(Ordering::Acquire) {
            let fed = self.fed.load(Ordering::Acquire);
            let fetches = &self.replay.fetches;
            let batch = self.served.batch as usize;
            let near = fed.saturating_sub(batch)..(fed + batch).min(fetches.len());
            turn += 1;
            let range = if turn.is_multiple_of(2) { 0..fed.max(1) } else { near };
            let pick = |_| fetches[range.start + random.index(range.len())].submission.url.clone();
            let urls: Vec<PageUrl> = (0..PAGES_PER_QUERY).map(pick).collect();
            let (answers, span) = self.query(&http, &urls)?;
            let slice = (fed * SLICES / fetches.len()).min(SLICES - 1);
            let mut found = self.found();
            let Findings { streaming, slices, examples } = &mut *found;
            let slice = &mut slices[slice];
            for answer in &answers {
                let before = *streaming;
                self.count(answer, span, streaming, examples);
                slice.members += streaming.members - before.members;
                slice.unlike_winner += streaming.unlike_winner - before.unlike_winner;
                // A redirect has no similarity, and is never secondary.
                slice.duplicates += u64::from(answer.similarity.is_some());
                slice.secondaries += u64::from(answer.status == Status::Secondary);
            }
        }
        Ok(())
    }

    /// Queries every page once.
    fn query_all(&self) -> anyhow::Result<Answers> {
        let http = client()?;
        let mut urls: Vec<PageUrl> =
            self.replay.fetches.iter().map(|Fetch { submission, .. }| submission.url.clone()).collect();
        urls.sort_unstable();
        urls.dedup();
        let mut all = Answers::default();
        for urls in urls.chunks(PAGES_PER_QUERY) {
            let (answers, span) = self.query(&http, urls)?;
            let examples = &mut self.found().examples;
            answers.iter().for_each(|answer| self.count(answer, span, &mut all, examples));
        }
        ensure!(
            all.may_hold == 0,
            "an answer at quiescence fits several contents, but no page changes any more"
        );
        Ok(all)
    }

    fn query(&self, http: &Client, urls: &[PageUrl]) -> anyhow::Result<(Vec<PageAnswer>, Span)> {
        let from = Instant::now();
        let answers = self.server.query(http, urls)?;
        Ok((answers, Span { from, to: Instant::now() }))
    }

    fn count(&self, answer: &PageAnswer, span: Span, counts: &mut Answers, examples: &mut Vec<String>) {
        let history = self.history();
        let (contents, tau) = (&self.replay.contents, self.served.tau);
        counts.answers += 1;
        counts.duplicates += u64::from(answer.status == Status::Duplicate);
        counts.secondaries += u64::from(answer.status == Status::Secondary);
        counts.understated += u64::from(history.is_understated(contents, tau, answer, span));
        if let Some(fits) = history.fits_winner(contents, tau, answer, span) {
            counts.members += 1;
            counts.unlike_winner += u64::from(!fits);
        }
        match history.check(contents, tau, answer, span) {
            None => {}
            Some(Verdict::Holds) => counts.hold += 1,
            Some(Verdict::MayHold) => counts.may_hold += 1,
            Some(Verdict::Wrong) => {
                counts.wrong += 1;
                if examples.len() < EXAMPLES {
                    examples.push(format!("{} is not a duplicate of {:?}", answer.url, answer.duplicate_of));
                }
            }
        }
    }

    fn history(&self) -> RwLockReadGuard<'_, History> {
        self.history.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self) -> MutexGuard<'_, Findings> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn client() -> anyhow::Result<Client> {
    Ok(builder_without_tls().timeout(PATIENCE).build()?)
}

impl Report for ServedResult {
    fn tables(&self) -> Vec<Table> {
        let mut table = Table::new(
            "answers about pages, checked with exact F on the contents of that moment",
            [
                "when",
                "answers",
                "duplicate",
                "hold",
                "page changed meanwhile",
                "wrong",
                "secondary",
                "of these F with the winner",
                "members",
                "not F with the winner",
            ],
        );
        for (when, a) in [("while updates stream in", &self.streaming), ("at quiescence", &self.quiescent)] {
            let counts = [a.answers, a.duplicates, a.hold, a.may_hold, a.wrong, a.secondaries, a.understated];
            let counts = counts.into_iter().chain([a.members, a.unlike_winner]);
            table.row([when.to_owned()].into_iter().chain(counts.map(count)));
        }
        vec![table]
    }

    fn notes(&self) -> Vec<String> {
        let kept = |a: &Answers| percent(share(a.secondaries, a.secondaries + a.duplicates));
        let rejected = |a: &Answers| percent(share(a.unlike_winner, a.members));
        let Self { tau, fetches, streaming, quiescent, engine_verified, engine_rejected, .. } = self;
        let mut notes = vec![
            format!("{} fetches, tau {tau}", count(*fetches as u64)),
            format!(
                "winner check: of the members of groups {} % are no near-duplicates of the winner while updates stream in, \
                 {} % at quiescence (the paper: under 8 %)",
                rejected(streaming),
                rejected(quiescent),
            ),
            format!(
                "members that are kept beside the winner, because no kept page is like them either: {} % of the answers while \
                 updates stream in, {} % of the pages at quiescence",
                kept(streaming),
                kept(quiescent),
            ),
            format!(
                "comparisons with a winner that the engine made because no search had answered them: {}, of which {} found no \
                 near-duplicate",
                count(*engine_verified),
                count(*engine_rejected),
            ),
        ];
        notes.extend(self.examples.iter().map(|example| format!("wrong: {example}")));
        notes
    }

    fn panels(&self) -> Vec<Panel> {
        let points = |part: fn(&Slice) -> u64, whole: fn(&Slice) -> u64| -> Vec<(f64, f64)> {
            let asked = self.slices.iter().filter(|slice| whole(slice) > 0);
            asked.map(|slice| (slice.percent, 100.0 * share(part(slice), whole(slice)))).collect()
        };
        let panel = |title: String, series: (&str, Vec<(f64, f64)>), marks: Vec<(f64, String)>| Panel {
            title,
            x: "% of the fetches".to_owned(),
            y: "% of the other members asked about".to_owned(),
            series: vec![PlotSeries { name: series.0.to_owned(), dashed: false, points: series.1 }],
            marks,
            ..Panel::default()
        };
        let check = points(|slice| slice.unlike_winner, |slice| slice.members);
        let kept = points(|slice| slice.secondaries, |slice| slice.secondaries + slice.duplicates);
        vec![
            panel(
                format!("Winner check, tau {}", self.tau),
                ("no near-duplicate of the winner", check),
                vec![(8.0, "the paper: under 8 %".to_owned())],
            ),
            panel(
                format!("Members that are kept beside the winner, tau {}", self.tau),
                ("answer secondary", kept),
                Vec::new(),
            ),
        ]
    }

    fn verdict(&self) -> anyhow::Result<()> {
        let wrong = self.streaming.wrong + self.quiescent.wrong;
        ensure!(wrong == 0, "{} reported duplicates are wrong; the notes list examples", count(wrong));
        Ok(())
    }
}
