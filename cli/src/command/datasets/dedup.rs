//! `doppel dedup`: the engine in this process; crawls go in, groups come out.

mod at_once;
mod page_by_page;
mod reported;
mod unused;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use doppel_contract::{Market, Markets};
use doppel_dataset::results::{RecordDecisions, ResultArgs, Results, Verdicts};
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

use crate::given::GivenOptions;
use crate::slow_policy;
use crate::summary::{Fed, LearntTables, Summary};
use reported::ReportPlan;

/// Find the duplicates of crawls on disk, without a server.
///
/// Each record is judged on its own, also where several records share a URL: a record is a capture in a WARC, a row, or a file of a
/// directory of pages. Every record that is removed is a near-duplicate of a record that is kept, which is named. Of equal records the first in the
/// inputs is kept, unless dates or other rules decide (docs/reference/winner-rules.md). With --latest only the newest version of each URL is judged. Without --data
/// nothing is kept. With --data the collection stays, of each URL the newest version, and `doppel serve` or another `doppel dedup` goes on with it. All pages are grouped at
/// once where nothing is kept, or the directory is empty or none yet: two runs of the same command give the same output, ids
/// of groups included. (Ids are names: with --data the same groups have others than without.) When it is interrupted, the same command goes on behind the last
/// file that was read to its end, or begins anew (docs/reference/records.md). A directory that is made so has no snapshots, so the first `doppel serve` makes
/// the index of all signatures: status is answered at once, new pages are decided later. A collection that is there goes on
/// page by page. A policy that reads tables (docs/reference/policies.md) learns them from the inputs, which are read twice then, unless
/// they are given or the collection has them; the summary names them. With --data they are kept and never change. A file that the collection has taken to its end, and that is as
/// it was, is not read again, unless --kept, --removed or --report needs its records. The options for shards, ranges and languages have an effect with --data or --incremental; those for
/// partitions, dimensions, nodes, snapshots, pending pages, cohesion and retention where pages are recorded one by one. A line names
/// those that were given and have none. A page of a
/// directory whose file has gone since then stays live, unless --prune is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel dedup ~/site
  doppel dedup --kept kept --removed removed 'data/**/*.parquet'
  doppel dedup --tau 0.9 --out groups.jsonl crawl-1.warc.gz crawl-2.warc.gz
  doppel dedup --data collection --out - pages.jsonl | grep '\"duplicate\"'
  doppel dedup --report report.html 'crawl/*.warc.gz'")]
pub(crate) struct Dedup {
    #[command(flatten)]
    inputs: InputArgs,
    /// Keep the collection in this directory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Judge pages instead of records: the newest version of each URL stands for it, also over several inputs, which are successive crawls
    /// then. Older versions are counted as superseded, redirects to kept pages and pages that are gone are removed. With --data this is
    /// always so.
    #[arg(long)]
    latest: bool,
    /// Record page by page, as a server does, also where nothing is on record yet: in a temporary directory with --latest.
    /// The groups are the same but for their ids; it mostly takes several times as long. With --data an interrupted command
    /// goes on where it was.
    #[arg(long)]
    incremental: bool,
    /// Read all files, those too that the collection has taken before and that are as they were (docs/reference/records.md).
    #[arg(long, requires = "data")]
    read_again: bool,
    /// Write one line of JSON for every record, in the order of the inputs, to this file; with --latest or --data for every live page, sorted
    /// by URL. `-` is standard output.
    /// A file that is there is replaced at the end, and may be an input.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a report to this file, one page of HTML to be looked at in a browser: what can be removed, sizes of groups, similarities, the
    /// largest groups with examples side by side, and hosts that mirror each other; `-` is standard output. The inputs are read once more,
    /// until the examples are found; standard input and pipes are copied to a temporary file for that.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Prefer winners of this market in the output and the summary, by its name in the file of --winners or as a host suffix
    /// such as `de` (docs/reference/winner-rules.md). What is kept with --data is the same.
    #[arg(long, value_name = "MARKET")]
    market: Option<String>,
    /// Record pages as dead whose file below a directory that is an INPUT has gone.
    #[arg(long, requires = "data")]
    prune: bool,
    /// Largest groups that the summary lists.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print the summary as JSON: a line on standard output, or on standard error where data goes to standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Which options the user gave.
    #[arg(skip)]
    pub(crate) given: GivenOptions,
}

/// What came of a run.
struct DedupOutcome {
    summary: Summary,
    /// What is decided of each record, where results are wanted.
    decisions: Option<RecordDecisions>,
    /// Whether the output was written. That comes last: a collection that is kept is complete by then.
    written: anyhow::Result<()>,
}

/// What a run is to do.
struct Plan {
    out: Option<Destination>,
    report: Option<ReportPlan>,
    market: Option<Market>,
    /// Whether it makes a data directory as a whole.
    makes: bool,
    results: Option<Results>,
    /// How files are read, and which are left out, where a collection is kept.
    reading: Option<ReadingPlan>,
}

impl Dedup {
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        self.check_unit()?;
        self.inputs.records.fields.judges_records = self.unit() == Unit::Record;
        // A collection has the same records of a file whether or not a run copies them.
        self.inputs.records.fields.copies_records = self.results.is_wanted() || self.data.is_some();
        let mut asked = engine::asked(&self.engine)?;
        asked.wanted.policy.and_then(slow_policy::warning).inspect(|warning| say!("doppel: {warning}"));
        let mut plan = self.plan(&asked)?;
        self.unused(plan.makes).inspect(|unused| say!("doppel: {unused}"));
        // Where tables are learnt, a report is made or results are written, the inputs are read twice.
        let is_read_twice = self.learns(&asked) || plan.report.is_some() || plan.results.is_some();
        let spool = if is_read_twice { self.inputs.spool()? } else { None };
        if let Some(report) = &mut plan.report {
            // A copy has the date on which it was made.
            report.is_dated = spool.is_none();
        }
        let learnt = self.learn(&mut asked)?;
        let done = self.dedup(asked, &plan, learnt);
        drop(spool);
        done
    }

    /// Refuses options that need pages where records are judged.
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

    /// What is to be done. All that may be wrong is found before the inputs are read, which may take hours.
    fn plan(&self, asked: &CollectionRequest) -> anyhow::Result<Plan> {
        let data = self.data.as_deref();
        let market = self.market(&asked.markets)?;
        // The output may lie in the directory that is to be made. It is there first, so that the path can be tried before
        // the work.
        let is_parent = |of: &Option<PathBuf>| of.as_deref().and_then(Path::parent) == data;
        if let Some(dir) = data.filter(|_| is_parent(&self.out) || is_parent(&self.report)) {
            manifest::require_directory(dir)?;
            create_directories(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        let out = self.out.as_deref().map(Destination::open).transpose()?;
        let report = self.report_plan(out.as_ref())?;
        let is_possible = data.map_or(Ok(false), NewDirectory::is_possible)?;
        match data {
            Some(dir) if !is_possible => Manifest::try_for(dir, asked.wanted, DEFAULTS)?,
            _ => {
                Manifest::map_of(asked.wanted, DEFAULTS)?;
            }
        }
        let bad = self.inputs.records.bad.as_ref().map(BadFile::path);
        let others = [("--out", self.out.as_deref()), ("--report", self.report.as_deref()), ("--bad", bad)];
        let others: Vec<_> = others.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
        if let Some(out) = self.out.as_deref().filter(|_| self.results.is_wanted()) {
            // The results are the last that is written, and read the inputs again.
            self.inputs.refuse_output("--out", out)?;
        }
        let results = Results::check(&self.results, &self.inputs, &others, data)?;
        if let Some(results) = &results {
            results.say_memory(self.inputs.sources()?.all.iter().map(|source| source.bytes).sum());
        }
        // Here, so that inputs that are not there are told before anything is made.
        self.inputs.sources()?;
        let reading = data.map(|_| self.reading(report.is_some() || results.is_some()));
        Ok(Plan { out, report, market, makes: is_possible && !self.incremental, results, reading })
    }

    /// How files are read for a collection. Where their records `are_copied`, or are looked at for a report, the files that it lists are read, too: the
    /// list does not say what became of each record.
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

    /// Whether the tables of the policy are to be learnt from the inputs: they are not given, and the collection does not have them.
    fn learns(&self, asked: &CollectionRequest) -> bool {
        let policy = asked.wanted.policy.unwrap_or_default();
        let is_there = self.data.as_deref().is_some_and(|dir| dir.join(manifest::NAME).exists());
        policy.reads_tables() && asked.tables.is_none() && !is_there
    }

    /// Learns the tables of the policy from the inputs where that is to be done.
    fn learn(&self, asked: &mut CollectionRequest) -> anyhow::Result<Option<LearntTables>> {
        if self.learns(asked) {
            let policy = asked.wanted.policy.unwrap_or_default();
            let (tables, read) = policy_tables::learn(&self.inputs, policy, false)?;
            let learnt = LearntTables {
                hash: tables.hash(),
                pages: read.records,
                contents: tables.contents(),
                words: tables.terms() as u64,
                kept: None,
            };
            asked.wanted.tables = Some(tables.hash());
            asked.tables = Some(Arc::new(tables));
            return Ok(Some(learnt));
        }
        Ok(None)
    }

    fn dedup(
        &self,
        asked: CollectionRequest,
        plan: &Plan,
        learnt: Option<LearntTables>,
    ) -> anyhow::Result<()> {
        let data = self.data.as_deref();
        let new = data.filter(|_| plan.makes);
        let DedupOutcome { mut summary, decisions, written } = match new {
            Some(dir) => self.make_directory(dir, asked, plan)?,
            None if data.is_none() && !self.incremental => self.at_once(asked, plan)?,
            None => self.page_by_page(asked, plan)?,
        };
        let whole = data.filter(|dir| dir.join(manifest::NAME).exists());
        let mut written = match whole {
            Some(dir) => written.with_context(|| is_complete(dir)),
            None => written,
        };
        let kept = data.map(|dir| dir.join(policy_tables::NAME)).filter(|path| path.exists());
        summary.warn(data);
        summary.tables = learnt.map(|learnt| LearntTables { kept, ..learnt });
        if let (Ok(()), Some(results), Some(decisions)) = (&written, &plan.results, decisions) {
            let input = &summary.fed.input;
            let first = (input.now.unwrap_or_else(Timestamp::now), &*input.source_counts);
            match results.write(&self.inputs, first, decisions) {
                Ok(copied) => summary.results = Some(copied),
                Err(error) => {
                    written = Err(match whole {
                        Some(dir) => error.context(has_no_results(dir)),
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
        let input = &summary.fed.input;
        input.left_out("doppel dedup").inspect(|left_out| say!("doppel: {left_out}"));
        written?;
        let verdict = input.verdict_of_run(self.inputs.strict, 0);
        match new.filter(|_| whole.is_none()) {
            Some(dir) => verdict.with_context(|| nothing_is_kept(dir, false)),
            None => Ok(verdict?),
        }
    }

    /// Takes note of records where results are wanted.
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

    /// Counts the pages whose file has gone. Whether they are to be recorded as dead.
    fn count_gone(&self, fed: &mut Fed, gone: &[PageUrl]) -> bool {
        fed.gone = gone.len() as u64;
        // A directory that was read in part, or is empty, may be one that is not mounted.
        fed.prunes = self.prune;
        fed.pruned = self.prune
            && fed.input.records + fed.input.read_before.records > 0
            && fed.input.incomplete.is_empty();
        fed.pruned
    }
}

fn nothing_is_kept(dir: &Path, goes_on: bool) -> String {
    let but = if goes_on { " but what was read so far, from which the same command goes on" } else { "" };
    format!("nothing is kept in {}{but}", dir.display())
}

/// What to say where all pages are kept, and the output is not written.
fn is_complete(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "the collection in {dir} is complete, and `doppel serve --data {dir}` with `doppel export` gives the output"
    )
}

/// The same where the records are not.
fn has_no_results(dir: &Path) -> String {
    format!("the collection in {} is complete, and the same command writes the records anew", dir.display())
}

/// A version that says that a page is gone.
fn dead(url: PageUrl, fetched_at: Timestamp) -> Submission {
    Submission { url, fetched_at, popularity: None, language: None, canonical: None, body: Body::Dead }
}
