//! `doppel dedup`: runs the engine in this process, reads crawls, and writes groups.

mod at_once;
mod page_by_page;
mod reference_only;
mod references;
mod report_plan;
mod unused_options;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use doppel_contract::{Market, Markets};
use doppel_dataset::learnt_tables::LearntTables;
use doppel_dataset::results::{RecordDecisions, ResultArgs, Results, Verdicts};
use doppel_dataset::summary::{IngestSummary, Summary};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::ingested::ReadingPlan;
use doppel_inputs::records::bad_records::BadFile;
use doppel_model::{PageUrl, Timestamp};
use doppel_node::args::EngineArgs;
use doppel_node::directory::manifest::{self, Manifest};
use doppel_node::directory::new_directory::{NewDirectory, WHOLE};
use doppel_node::directory::policy_tables;
use doppel_node::engine::{self, CollectionRequest, DEFAULTS};
use doppel_protocol::{Body, Submission};
use doppel_snapshot::create_directories;
use doppel_terminal::destination::Destination;
use doppel_terminal::exit::Failure;
use doppel_terminal::interrupt;
use doppel_terminal::output::{Output, say};
use doppel_tier1::bulk::Unit;

use crate::given_options::GivenOptions;
use crate::slow_policy;
use references::{ReferenceArgs, ReferencePlan};
use report_plan::ReportPlan;

/// Find the duplicates of crawls on disk, without a server.
///
/// Each record is judged on its own, even if several records share a URL. A record is a capture in a WARC
/// file, a row, or a file of a directory of pages. Every removed record is a near-duplicate of a kept record,
/// which the output names. Of equal records the first one in the inputs is kept, unless dates or other rules
/// decide (docs/reference/winner-rules.md). With --latest only the newest version of each URL is judged.
///
/// Without --data the command stores no collection. With --data it stores the newest version of each URL, and
/// `doppel serve` or another `doppel dedup` continues with the collection. If no collection is stored, or the
/// directory is empty or missing, all pages are grouped at once. Two runs of the same command then give the
/// same output, including the ids of groups. With --data, groups have other ids than without it. If a
/// run is interrupted, the same command continues after the last file that was read to its end, or starts
/// again (docs/reference/records.md). A new directory also gets snapshots of the index and of the status table,
/// so the first `doppel serve` need not read all signatures and rows. A server with another number of
/// --dimensions or with several --index-nodes builds the index again.
///
/// An existing collection is continued page by page. A file that the collection has read to its end is not
/// read again while the file is unchanged, unless --kept, --removed or --report needs its records. If a file
/// below an input directory is deleted, its page stays live, unless --prune is given.
///
/// If the policy needs tables (docs/reference/policies.md) that are neither given nor part of the collection,
/// the command learns them from the inputs, which it then reads twice. The summary names the tables. With
/// --data they are stored and never change.
///
/// The options for shards, ranges, dimensions and languages have an effect only with --data or --incremental. The
/// options for partitions, nodes, snapshots, pending pages, cohesion and retention have an effect only if
/// pages are recorded one by one. The command names given options that have no effect.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel dedup ~/site
  doppel dedup --kept kept --removed removed 'data/**/*.parquet'
  doppel dedup --tau 0.9 --out groups.jsonl crawl-1.warc.gz crawl-2.warc.gz
  doppel dedup --data collection --out - pages.jsonl | grep '\"duplicate\"'
  doppel dedup --report report.html 'crawl/*.warc.gz'
  doppel dedup --reference eval.parquet --reference-only --kept clean 'train/*.parquet'")]
pub(crate) struct Dedup {
    #[command(flatten)]
    inputs: InputArgs,
    /// Store the collection in this directory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Judge pages instead of records: the newest version of each URL stands for it, across all inputs, which
    /// count as successive crawls. Older versions are counted as superseded. Redirects to kept pages, and
    /// pages that are gone, are removed. Implied by --data.
    #[arg(long)]
    latest: bool,
    /// Record page by page, as a server does, even if no page is on record yet. Needs --data, or --latest,
    /// which records in a temporary directory. The groups are equal except for their ids, but the run usually
    /// takes several times as long. With --data an interrupted command continues where it stopped.
    #[arg(long)]
    incremental: bool,
    /// Read all files, including unchanged files that the collection has read before
    /// (docs/reference/records.md).
    #[arg(long, requires = "data")]
    read_again: bool,
    /// Write JSON lines to this file: one for every record in the order of the inputs, or with --latest or
    /// --data one for every live page, sorted by URL. `-` is standard output. An existing file is replaced at
    /// the end, and may be an input.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a report to this file, as one HTML page for a browser: what can be removed, sizes of groups,
    /// similarities, the largest groups with examples side by side, and hosts that mirror each other. `-` is
    /// standard output. The inputs are read again until the examples are found; standard input and pipes are
    /// copied to a temporary file for this purpose.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Prefer winners of this market in the output and the summary. Give its name in the file of --winners,
    /// or a host suffix such as `de` (docs/reference/winner-rules.md). The collection of --data does not
    /// depend on it.
    #[arg(long, value_name = "MARKET")]
    market: Option<String>,
    /// Record pages as dead if their file below an input directory is gone.
    #[arg(long, requires = "data")]
    prune: bool,
    /// Number of largest groups that the summary lists.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print the summary as one line of JSON on standard output, or on standard error if standard output
    /// receives data.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    references: ReferenceArgs,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Options that the user has given.
    #[arg(skip)]
    pub(crate) given: GivenOptions,
}

/// Results of a run.
struct DedupOutcome {
    summary: Summary,
    /// Decision on each record, if records are to be written.
    decisions: Option<RecordDecisions>,
    /// Whether the output was written. The output comes last, so a stored collection is complete even if
    /// writing fails.
    written: anyhow::Result<()>,
}

/// What a run has to do, checked before it reads the inputs.
struct Plan {
    out: Option<Destination>,
    report: Option<ReportPlan>,
    references: ReferencePlan,
    market: Option<Market>,
    /// Whether the run creates a data directory as a whole.
    makes_directory: bool,
    results: Option<Results>,
    /// How files are read, and which files are skipped. `None` if no collection is stored.
    reading: Option<ReadingPlan>,
}

impl Dedup {
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        self.check_unit()?;
        self.inputs.records.fields.judges_records = self.unit() == Unit::Record;
        // The collection must have the same records of a file whether or not a run copies the records.
        self.inputs.records.fields.copies_records = self.results.is_wanted() || self.data.is_some();
        let mut request = engine::collection_request(&self.engine)?;
        request.wanted.policy.and_then(slow_policy::warning).inspect(|warning| say!("doppel: {warning}"));
        let mut plan = self.plan(&request)?;
        self.describe_unused_options(plan.makes_directory).inspect(|unused| say!("doppel: {unused}"));
        // The inputs are read twice if the run learns tables, makes a report, or writes records.
        let is_read_twice =
            self.must_learn_tables(&request) || plan.report.is_some() || plan.results.is_some();
        let spool = if is_read_twice { self.inputs.spool()? } else { None };
        if let Some(report) = &mut plan.report {
            // A copy of the input carries the date of copying, not the dates of the pages.
            report.is_dated = spool.is_none();
        }
        let learnt = self.learn(&mut request)?;
        let done = if self.references.reference_only {
            self.compare_with_references(request, &plan, learnt)
        } else {
            self.dedup(request, &plan, learnt)
        };
        drop(spool);
        done
    }

    /// Refuses options that need pages if records are judged.
    fn check_unit(&self) -> Result<(), Failure> {
        if self.unit() == Unit::Page {
            return Ok(());
        }
        if self.incremental {
            return Err(Failure::Usage(
                "--incremental records pages, as a server does: add --latest, which folds the versions of each URL".to_owned(),
            ));
        }
        if self.results.superseded.is_some() {
            return Err(Failure::Usage(
                "--superseded needs --latest or --data: without them each record is judged on its own, and none is superseded".to_owned(),
            ));
        }
        Ok(())
    }

    /// Plans the run. All mistakes are found before the inputs are read, which may take hours.
    fn plan(&self, request: &CollectionRequest) -> anyhow::Result<Plan> {
        let data = self.data.as_deref();
        let market = self.market(&request.markets)?;
        // The output may lie in the directory that the run creates. Creating the directory first lets the
        // output path be tested before the work.
        let is_parent = |of: &Option<PathBuf>| of.as_deref().and_then(Path::parent) == data;
        if let Some(dir) = data.filter(|_| is_parent(&self.out) || is_parent(&self.report)) {
            manifest::require_directory(dir)?;
            create_directories(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        let out = self.out.as_deref().map(Destination::open).transpose()?;
        let report = self.report_plan(out.as_ref())?;
        let is_possible = data.map_or(Ok(false), NewDirectory::is_possible)?;
        match data {
            Some(dir) if !is_possible => Manifest::try_for(dir, request.wanted, DEFAULTS)?,
            _ => {
                Manifest::map_of(request.wanted, DEFAULTS)?;
            }
        }
        let bad = self.inputs.records.bad.as_ref().map(BadFile::path);
        let pairs = self.references.pairs.as_deref();
        let others = [
            ("--out", self.out.as_deref()),
            ("--report", self.report.as_deref()),
            ("--pairs", pairs),
            ("--bad", bad),
        ];
        let others: Vec<_> = others.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
        if let Some(out) = self.out.as_deref().filter(|_| self.results.is_wanted()) {
            // Records are written last and read from the inputs again, so the output must not replace an
            // input.
            self.inputs.refuse_output("--out", out)?;
        }
        let results = Results::check(&self.results, &self.inputs, &others, data)?;
        let references = self.reference_plan(out.as_ref(), results.as_ref())?;
        if let Some(results) = results.as_ref().filter(|_| !self.references.reference_only) {
            results.say_memory(self.inputs.sources()?.all.iter().map(|source| source.bytes).sum());
        }
        // Missing inputs are reported here, before anything is created.
        self.inputs.sources()?;
        let reading = data.map(|_| self.reading(report.is_some() || results.is_some()));
        Ok(Plan {
            out,
            report,
            references,
            market,
            makes_directory: is_possible && !self.incremental,
            results,
            reading,
        })
    }

    /// Returns how files are read for a collection. If records are copied or a report is made, files in the
    /// collection's list are read too, because the list does not say what became of each record.
    fn reading(&self, are_copied: bool) -> ReadingPlan {
        let records = &self.inputs.records;
        let reading = ReadingPlan::new(&records.fields, self.engine.detect_language);
        let asks_for_bad = records.bad.is_some() || records.max_bad.is_some() || self.inputs.strict;
        match (self.read_again, are_copied) {
            (true, _) => reading,
            (false, true) => reading.going_on(asks_for_bad),
            (false, false) => reading.leaving_out(asks_for_bad),
        }
    }

    /// Whether the tables of the policy must be learned from the inputs: no tables are given, and no
    /// collection has them.
    fn must_learn_tables(&self, request: &CollectionRequest) -> bool {
        let policy = request.wanted.policy.unwrap_or_default();
        let is_there = self.data.as_deref().is_some_and(|dir| dir.join(manifest::NAME).exists());
        policy.reads_tables() && request.tables.is_none() && !is_there
    }

    /// Learns the tables of the policy from the inputs, if [`Self::must_learn_tables`] says so.
    fn learn(&self, request: &mut CollectionRequest) -> anyhow::Result<Option<LearntTables>> {
        if self.must_learn_tables(request) {
            let policy = request.wanted.policy.unwrap_or_default();
            let (tables, read) = policy_tables::learn(&self.inputs, policy, false)?;
            let learnt = LearntTables {
                hash: tables.hash(),
                pages: read.records,
                contents: tables.contents(),
                words: tables.terms() as u64,
                kept: None,
            };
            request.wanted.tables = Some(tables.hash());
            request.tables = Some(Arc::new(tables));
            return Ok(Some(learnt));
        }
        Ok(None)
    }

    fn dedup(
        &self,
        request: CollectionRequest,
        plan: &Plan,
        learnt: Option<LearntTables>,
    ) -> anyhow::Result<()> {
        let data = self.data.as_deref();
        let new = data.filter(|_| plan.makes_directory);
        let DedupOutcome { mut summary, decisions, written } = match new {
            Some(dir) => self.make_directory(dir, request, plan)?,
            None if data.is_none() && !self.incremental => self.at_once(request, plan)?,
            None => self.page_by_page(request, plan)?,
        };
        let whole = data.filter(|dir| dir.join(manifest::NAME).exists());
        let mut written = match whole {
            Some(dir) => written.with_context(|| complete_message(dir)),
            None => written,
        };
        let kept = data.map(|dir| dir.join(policy_tables::NAME)).filter(|path| path.exists());
        summary.warn(data);
        summary.tables = learnt.map(|learnt| LearntTables { kept, ..learnt });
        if let (Ok(()), Some(results), Some(decisions)) = (&written, &plan.results, decisions) {
            let input = &summary.ingest.input;
            let first = (input.now.unwrap_or_else(Timestamp::now), &*input.source_counts);
            match results.write(&self.inputs, first, decisions) {
                Ok(copied) => summary.results = Some(copied),
                Err(error) => {
                    written = Err(match whole {
                        Some(dir) => error.context(no_records_message(dir)),
                        None => error,
                    });
                }
            }
        }
        if new.is_some() && whole.is_some() && written.is_ok() {
            interrupt::set_message(WHOLE)?;
        }
        let output = Output { json: self.json };
        if plan.prints() {
            output.print_beside(&summary, |out| summary.print(out))?;
        } else {
            output.print(&summary, |out| summary.print(out))?;
        }
        summary.warnings().iter().for_each(|warning| say!("doppel: WARNING: {warning}"));
        let input = &summary.ingest.input;
        input.left_out("doppel dedup").inspect(|left_out| say!("doppel: {left_out}"));
        written?;
        let verdict = input.verdict_of_run(self.inputs.strict, 0);
        match new.filter(|_| whole.is_none()) {
            Some(dir) => verdict.with_context(|| nothing_kept_message(dir, false)),
            None => Ok(verdict?),
        }
    }

    /// Creates the list of verdicts on records, if records are to be written.
    fn verdicts(&self) -> Option<Verdicts> {
        self.results.is_wanted().then(Verdicts::default)
    }

    fn market(&self, markets: &Markets) -> anyhow::Result<Option<Market>> {
        let named = |market: &String| markets.find(market).with_context(|| format!("--market {market}"));
        self.market.as_ref().map(named).transpose()
    }

    fn directories(&self) -> impl Iterator<Item = &Path> {
        self.inputs.inputs.iter().map(PathBuf::as_path).filter(|path| path.is_dir())
    }

    /// Counts the pages whose file is gone, and returns whether the run records them as dead.
    fn count_gone(&self, ingest: &mut IngestSummary, gone: &[PageUrl]) -> bool {
        ingest.gone = gone.len() as u64;
        // If a directory was read only in part, or is empty, its disk may not be mounted. Nothing is then
        // recorded as dead.
        ingest.prunes = self.prune;
        ingest.pruned = self.prune
            && ingest.input.records + ingest.input.read_before.records > 0
            && ingest.input.incomplete.is_empty();
        ingest.pruned
    }
}

fn nothing_kept_message(dir: &Path, goes_on: bool) -> String {
    let but = if goes_on { " but what was read so far, from which the same command goes on" } else { "" };
    format!("nothing is kept in {}{but}", dir.display())
}

/// Context of an error in writing the output when all pages are stored.
fn complete_message(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "the collection in {dir} is complete, and `doppel serve --data {dir}` with `doppel export` gives the output"
    )
}

/// Context of an error in writing the records when all pages are stored.
fn no_records_message(dir: &Path) -> String {
    format!("the collection in {} is complete, and the same command writes the records anew", dir.display())
}

/// Builds the submission that records a page as gone.
fn deletion(url: PageUrl, fetched_at: Timestamp) -> Submission {
    Submission { url, fetched_at, popularity: None, language: None, canonical: None, body: Body::Dead }
}
