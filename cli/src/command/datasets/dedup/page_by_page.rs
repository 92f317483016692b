//! Page by page: every page is recorded in a collection as a server does.

use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use doppel_contract::SubmissionOutcome;
use doppel_dataset::accounts::Accounts;
use doppel_dataset::extracted::{self, BATCH_PAGES, ExtractedPage};
use doppel_dataset::results::Verdicts;
use doppel_dataset::weights::Weights;
use doppel_engine::export::write_export;
use doppel_engine::market::MarketWinners;
use doppel_inputs::ingested::{IngestedList, ReadingPlan};
use doppel_inputs::reading::directory;
use doppel_model::Timestamp;
use doppel_node::directory::named_by;
use doppel_node::directory::new_directory::NewDirectory;
use doppel_node::engine::{CollectionRequest, LocalEngine};
use doppel_protocol::{Body, Line, PageScan, Submission, Tier1Api, Tier1Error, Tier2Api};
use doppel_terminal::scratch::Scratch;
use doppel_terminal::{interrupt, progress};
use doppel_tier1::bulk::Unit;

use super::reported::Reported;
use super::{Dedup, DedupOutcome, Plan, dead};
use crate::found::CollectionGroups;
use crate::report::Recorded;
use crate::summary::{Fed, Summary};

/// Pause while as much is pending as may be.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// How long one wait for the last decisions may take before it is begun again.
const FLUSH_STEP: Duration = Duration::from_secs(60);

impl Dedup {
    /// Records every page in a collection as a server does.
    pub(super) fn page_by_page(&self, asked: CollectionRequest, plan: &Plan) -> anyhow::Result<DedupOutcome> {
        if let Some(dir) = &self.data {
            NewDirectory::forget_interrupted(dir)?;
        }
        let scratch = if self.data.is_none() { Some(Scratch::new()?) } else { None };
        let dir = self.data.as_deref().or(scratch.as_ref().map(Scratch::path));
        let dir = dir.context("there is neither a data directory nor a temporary one")?;
        let engine = LocalEngine::open_asked(dir, asked, &self.engine, self.data.is_some())?;
        if let Some(dir) = &self.data {
            interrupt::set_message("interrupted; the same command goes on")?;
            named_by::keep_in(dir, &self.inputs.records.fields.ids)?;
        }
        let begin = Instant::now();
        let mut weights = Weights::by_page();
        let mut verdicts = self.verdicts();
        // The directory is this process's now, and what is listed is on record in it.
        let list = self.data.as_deref().map(IngestedList::open).transpose()?;
        let (list, listed) = list.unzip();
        let reading = plan.reading.as_ref().map(|reading| reading.with_list(listed.unwrap_or_default()));
        let recorded = self.record(&engine, (reading.as_ref(), list), &mut weights, verdicts.as_mut());
        let fed = recorded.map_err(|error| match &self.data {
            Some(dir) => with_next_step(dir, error),
            None => error,
        })?;
        let elapsed = begin.elapsed();
        let tier1: &dyn Tier1Api = &*engine.tier1;
        let mut winners = plan
            .market
            .as_ref()
            .map(|market| MarketWinners::new(tier1, engine.policy, engine.winners, market).unlimited());
        let mut found = CollectionGroups::in_tier1(tier1, plan.largest(self.top))?;
        let statuses = live(tier1, &mut winners).map(|line| line.map(|line| (line.url.id(), line.status)));
        let (balance, decided) = weights.decided(statuses)?;
        let annotate = self.results.annotate;
        let decisions =
            verdicts.map(|verdicts| verdicts.decide(live(tier1, &mut winners), annotate)).transpose()?;
        let mut accounts = Accounts::new(&fed.input, fed.input.records, 0, Unit::Page, decided);
        if let Some(decisions) = &decisions {
            accounts.keep_originals(decisions.originals());
        }
        if let Some(winners) = &mut winners {
            found.prefer(|group, usual| Ok(winners.winner(group, usual)?.url))?;
        }
        let pages = &mut Recorded { tier1, market: winners.as_mut() };
        // The report reads the inputs again, and `out` may replace one.
        let of = Reported { accounts: &accounts, unit: Unit::Page, names: None, fed: &fed, found: &found };
        let reported = self.report(plan, (pages, &weights), &of, &engine.signer);
        let export = |out: &mut dyn Write| Ok(write_export(tier1, winners.as_mut(), out).map(drop)?);
        let written = plan.out.as_ref().map_or(Ok(()), |out| out.write(export)).and(reported);
        found.keep(self.top);
        drop(winners);
        let policy = engine.policy;
        engine.stop();
        Ok(DedupOutcome {
            summary: Summary::new(policy, (accounts, fed), elapsed, found, balance),
            decisions,
            written,
        })
    }

    /// Records all pages, and those that have gone, and has all of them decided.
    fn record(
        &self,
        engine: &LocalEngine,
        known: (Option<&ReadingPlan>, Option<IngestedList>),
        weights: &mut Weights,
        verdicts: Option<&mut Verdicts>,
    ) -> anyhow::Result<Fed> {
        let mut fed = self.feed(engine, known, weights, verdicts)?;
        if self.data.is_some() {
            self.look_for_gone(engine, &mut fed)?;
        }
        decide(engine)?;
        Ok(fed)
    }

    /// Finds the pages on record whose file has gone, and records that with `--prune`.
    fn look_for_gone(&self, engine: &LocalEngine, fed: &mut Fed) -> anyhow::Result<()> {
        let live = PageScan::new(&*engine.tier1).map(|line| Ok(line?.url));
        let gone = directory::gone(live, self.directories())?;
        if self.count_gone(fed, &gone) {
            let now = Timestamp::now();
            let submissions: Vec<_> = gone.into_iter().map(|url| dead(url, now)).collect();
            for batch in submissions.chunks(BATCH_PAGES) {
                submit(engine, batch)?;
            }
        }
        Ok(())
    }

    /// Records all pages, in the order of the inputs.
    fn feed(
        &self,
        engine: &LocalEngine,
        (reading, mut list): (Option<&ReadingPlan>, Option<IngestedList>),
        weights: &mut Weights,
        mut verdicts: Option<&mut Verdicts>,
    ) -> anyhow::Result<Fed> {
        let mut fed = Fed::default();
        // Nobody can ask a temporary collection for the language of a page.
        let detect_language = self.data.is_some() && self.engine.detect_language;
        let extractor = (engine.signer.clone(), detect_language);
        let input = extracted::files(&self.inputs, extractor, reading, |extracted| {
            let parts = |page: ExtractedPage| {
                let read = (page.record, page.original(), page.bytes);
                (page.submission, read)
            };
            let (pages, read): (Vec<_>, Vec<_>) = extracted.pages.into_iter().map(parts).unzip();
            let taken = submit(engine, &pages)?;
            for ((page, (record, original, bytes)), outcome) in pages.iter().zip(read).zip(&taken) {
                let is_redirect = matches!(page.body, Body::Redirect(_));
                weights.note((record, page.url.id()), bytes, (is_redirect, *outcome));
                fed.note_date(page.fetched_at);
                if let Some(verdicts) = &mut verdicts {
                    verdicts.note((record, original), (page.url.id(), is_redirect), *outcome);
                }
            }
            fed.outcomes.add(&taken);
            // What was submitted is on disk.
            list.as_mut().map_or(Ok(()), |list| list.add(extracted.ended.iter().map(|end| &end.ingested)))
        })?;
        Ok(Fed { input, ..fed })
    }
}

/// What to do where the disk is full.
fn with_next_step(dir: &Path, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Tier1Error>() {
        Some(Tier1Error::DiskFull(_)) => {
            let dir = dir.display();
            error.context(format!("{dir} has taken what it could; make room, and the same command goes on"))
        }
        _ => error,
    }
}

/// Every live page, as it is for a market if there is one.
fn live<'t>(
    tier1: &'t dyn Tier1Api,
    winners: &'t mut Option<MarketWinners<'_>>,
) -> impl Iterator<Item = Result<Line, Tier1Error>> + 't {
    PageScan::new(tier1).map(|line| match winners.as_mut() {
        Some(winners) => winners.apply(line?),
        None => line,
    })
}

/// Submits until there is room, and until all ranges answer.
fn submit(engine: &LocalEngine, submissions: &[Submission]) -> anyhow::Result<Vec<SubmissionOutcome>> {
    loop {
        match engine.tier1.submit(submissions.to_vec()) {
            Ok(outcomes) => return Ok(outcomes),
            Err(Tier1Error::Full { .. } | Tier1Error::Unavailable(_)) => {
                engine.tier2.flush_batch()?;
                thread::sleep(FULL_PAUSE);
            }
            Err(refused) => return Err(refused.into()),
        }
    }
}

/// Waits until everything is decided.
fn decide(engine: &LocalEngine) -> anyhow::Result<()> {
    let spinner = progress::waiting("deciding");
    while !engine.tier1.flush(FLUSH_STEP)? {}
    spinner.finish_and_clear();
    Ok(())
}
