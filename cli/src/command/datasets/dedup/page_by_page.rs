//! Records every page in a collection, one by one, as a server does.

use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use doppel_contract::SubmissionOutcome;
use doppel_dataset::accounts::Accounts;
use doppel_dataset::collection_groups::CollectionGroups;
use doppel_dataset::extracted::{self, BATCH_PAGES, ExtractedPage};
use doppel_dataset::report::RecordedPages;
use doppel_dataset::results::Verdicts;
use doppel_dataset::summary::{IngestSummary, Summary};
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

use super::report_plan::ReportData;
use super::{Dedup, DedupOutcome, Plan, deletion};

/// Pause while the collection accepts no more pending pages.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// Longest single wait for the last decisions, before the wait is repeated.
const FLUSH_STEP: Duration = Duration::from_secs(60);

impl Dedup {
    /// Records every page in a collection and returns the results.
    pub(super) fn page_by_page(
        &self,
        request: CollectionRequest,
        plan: &Plan,
    ) -> anyhow::Result<DedupOutcome> {
        if let Some(dir) = &self.data {
            NewDirectory::forget_interrupted(dir)?;
        }
        let scratch = if self.data.is_none() { Some(Scratch::new()?) } else { None };
        let dir = self.data.as_deref().or(scratch.as_ref().map(Scratch::path));
        let dir = dir.context("there is neither a data directory nor a temporary one")?;
        let engine = LocalEngine::open_requested(dir, request, &self.engine, self.data.is_some())?;
        if let Some(dir) = &self.data {
            interrupt::set_message("interrupted; the same command goes on")?;
            named_by::keep_in(dir, &self.inputs.records.fields.ids)?;
        }
        let begin = Instant::now();
        let mut weights = Weights::by_page();
        let mut verdicts = self.verdicts();
        // This process now holds the directory, so every file of the list is on record in it.
        let list = self.data.as_deref().map(IngestedList::open).transpose()?;
        let (list, listed) = list.unzip();
        let reading = plan.reading.as_ref().map(|reading| reading.with_list(listed.unwrap_or_default()));
        let recorded = self.record(&engine, (reading.as_ref(), list), &mut weights, verdicts.as_mut());
        let ingest = recorded.map_err(|error| match &self.data {
            Some(dir) => with_next_step(dir, error),
            None => error,
        })?;
        let elapsed = begin.elapsed();
        let tier1: &dyn Tier1Api = &*engine.tier1;
        let mut winners = plan
            .market
            .as_ref()
            .map(|market| MarketWinners::new(tier1, engine.policy, engine.winners, market).unlimited());
        let mut groups = CollectionGroups::in_tier1(tier1, plan.largest(self.top))?;
        let statuses = live(tier1, &mut winners).map(|line| line.map(|line| (line.url.id(), line.status)));
        let (balance, decided) = weights.decided(statuses)?;
        let annotate = self.results.annotate;
        let decisions =
            verdicts.map(|verdicts| verdicts.decide(live(tier1, &mut winners), annotate)).transpose()?;
        let mut accounts = Accounts::new(&ingest.input, ingest.input.records, 0, Unit::Page, decided);
        if let Some(decisions) = &decisions {
            accounts.keep_originals(decisions.originals());
        }
        if let Some(winners) = &mut winners {
            groups.prefer(|group, usual| Ok(winners.winner(group, usual)?.url))?;
        }
        let pages = &mut RecordedPages { tier1, market: winners.as_mut() };
        // The report reads the inputs again, and `out` may replace an input, so the report is written first.
        let of = ReportData {
            accounts: &accounts,
            unit: Unit::Page,
            names: None,
            ingest: &ingest,
            groups: &groups,
        };
        let reported = self.report(plan, (pages, &weights), &of, &engine.signer);
        let export = |out: &mut dyn Write| Ok(write_export(tier1, winners.as_mut(), out).map(drop)?);
        let written = plan.out.as_ref().map_or(Ok(()), |out| out.write(export)).and(reported);
        groups.keep(self.top);
        drop(winners);
        let policy = engine.policy;
        engine.stop();
        Ok(DedupOutcome {
            summary: Summary::new(policy, (accounts, ingest), elapsed, groups, balance),
            decisions,
            written,
        })
    }

    /// Records all pages, looks for pages whose files are gone, and waits until all pages are decided.
    fn record(
        &self,
        engine: &LocalEngine,
        known: (Option<&ReadingPlan>, Option<IngestedList>),
        weights: &mut Weights,
        verdicts: Option<&mut Verdicts>,
    ) -> anyhow::Result<IngestSummary> {
        let mut ingest = self.feed(engine, known, weights, verdicts)?;
        if self.data.is_some() {
            self.look_for_gone(engine, &mut ingest)?;
        }
        wait_until_decided(engine)?;
        Ok(ingest)
    }

    /// Finds the pages on record whose file is gone. Records them as dead if `--prune` is given.
    fn look_for_gone(&self, engine: &LocalEngine, ingest: &mut IngestSummary) -> anyhow::Result<()> {
        let live = PageScan::new(&*engine.tier1).map(|line| Ok(line?.url));
        let gone = directory::gone(live, self.directories())?;
        if self.count_gone(ingest, &gone) {
            let now = Timestamp::now();
            let submissions: Vec<_> = gone.into_iter().map(|url| deletion(url, now)).collect();
            for batch in submissions.chunks(BATCH_PAGES) {
                submit(engine, batch)?;
            }
        }
        Ok(())
    }

    /// Records all pages in the order of the inputs.
    fn feed(
        &self,
        engine: &LocalEngine,
        (reading, mut list): (Option<&ReadingPlan>, Option<IngestedList>),
        weights: &mut Weights,
        mut verdicts: Option<&mut Verdicts>,
    ) -> anyhow::Result<IngestSummary> {
        let mut ingest = IngestSummary::default();
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
                ingest.note_date(page.fetched_at);
                if let Some(verdicts) = &mut verdicts {
                    verdicts.note((record, original), (page.url.id(), is_redirect), *outcome);
                }
            }
            ingest.outcomes.add(&taken);
            // The submitted pages are on disk, so their files may be listed.
            list.as_mut().map_or(Ok(()), |list| list.add(extracted.ended.iter().map(|end| &end.ingested)))
        })?;
        Ok(IngestSummary { input, ..ingest })
    }
}

/// Adds to an error what the user can do if the disk is full.
fn with_next_step(dir: &Path, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Tier1Error>() {
        Some(Tier1Error::DiskFull(_)) => {
            let dir = dir.display();
            error.context(format!(
                "{dir} has no more space; free space on its disk, and the same command continues"
            ))
        }
        _ => error,
    }
}

/// Iterates over all live pages, with the winners of the market if there is one.
fn live<'t>(
    tier1: &'t dyn Tier1Api,
    winners: &'t mut Option<MarketWinners<'_>>,
) -> impl Iterator<Item = Result<Line, Tier1Error>> + 't {
    PageScan::new(tier1).map(|line| match winners.as_mut() {
        Some(winners) => winners.apply(line?),
        None => line,
    })
}

/// Submits pages. Waits and retries while the queue of pending pages is full or a range does not answer.
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

/// Waits until every page is decided.
fn wait_until_decided(engine: &LocalEngine) -> anyhow::Result<()> {
    let spinner = progress::waiting("deciding");
    while !engine.tier1.flush(FLUSH_STEP)? {}
    spinner.finish_and_clear();
    Ok(())
}
