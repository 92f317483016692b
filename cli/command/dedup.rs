//! `doppel dedup`: the engine in this process; crawls go in, groups come out.

mod at_once;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use doppel_coordinator::export::write_export;
use doppel_coordinator::market::MarketWinners;
use doppel_model::{PageUrl, Timestamp};
use doppel_protocol::{
    Body, Line, Market, Markets, Outcome, Scan, Submission, Tier1Api, Tier1Error, Tier2Api,
};

use crate::args::{EngineArgs, InputArgs};
use crate::bad_records::BadFile;
use crate::destination::Destination;
use crate::directory;
use crate::extracted::{self, BATCH_PAGES};
use crate::interrupt;
use crate::manifest::{self, Manifest};
use crate::new_directory::NewDirectory;
use crate::output::{self, Output, say};
use crate::policy_tables;
use crate::progress;
use crate::results::{Decisions, ResultArgs, Results, Verdicts};
use crate::scratch::Scratch;
use crate::spool::Spool;
use crate::summary::{Fed, Found, LearntTables, Outcomes, Summary};
use crate::weights::Weights;
use crate::wire::{self, Asked, DEFAULTS, Engine};

/// Pause while as much is pending as may be.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// How long one wait for the last decisions may take before it is begun again.
const FLUSH_STEP: Duration = Duration::from_secs(60);

/// Find the duplicates of crawls on disk, without a server.
///
/// Several inputs are successive crawls: a page of a later one is the page's new version. Without --data nothing is kept.
/// With --data the collection stays, and `doppel serve` or another `doppel dedup` goes on with it. All pages are grouped at
/// once where nothing is kept, or the directory is empty or none yet: two runs of the same command give the same output, ids
/// of groups included. (Ids are names: with --data the same groups have others than without.) When it is interrupted, nothing
/// is kept, and the same command begins anew. A directory that is made so has no snapshots, so the first `doppel serve` makes
/// the index of all signatures: status is answered at once, new pages are decided later. A collection that is there goes on
/// page by page. A policy that reads tables (docs/POLICIES.md) learns them from the inputs, which are read twice then, unless
/// they are given or the collection has them; the summary names them. With --data they are kept and never change. The options for shards, ranges and languages have an effect with --data or --incremental; those for
/// partitions, dimensions, nodes, pending pages, cohesion and retention where pages are recorded one by one. A page of a
/// directory whose file has gone since then stays live, unless --prune is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel dedup ~/site
  doppel dedup --kept kept --removed removed 'data/**/*.parquet'
  doppel dedup --tau 0.9 --out groups.jsonl crawl-1.warc.gz crawl-2.warc.gz
  doppel dedup --data collection --out - pages.jsonl | grep '\"duplicate\"'")]
pub(crate) struct Dedup {
    #[command(flatten)]
    inputs: InputArgs,
    /// Keep the collection in this directory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Record page by page, as a server does, also where nothing is on record yet: in a temporary directory without --data.
    /// The groups are the same but for their ids; it mostly takes several times as long. With --data an interrupted command
    /// goes on where it was.
    #[arg(long)]
    incremental: bool,
    /// Write one line of JSON for every live page, sorted by URL, to this file; `-` is standard output.
    /// A file that is there is replaced at the end, and may be an input.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Prefer winners of this market in the output and the summary, by its name in the file of --winners or as a host suffix
    /// such as `de` (docs/WINNERS.md). What is kept with --data is the same.
    #[arg(long, value_name = "MARKET")]
    market: Option<String>,
    /// Record pages as dead whose file below a directory that is an INPUT has gone.
    #[arg(long, requires = "data")]
    prune: bool,
    /// Largest groups that the summary lists.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// What came of a run.
struct Done {
    summary: Summary,
    /// What is decided of each record, where results are wanted.
    decisions: Option<Decisions>,
    /// Whether the output was written. That comes last: a collection that is kept is complete by then.
    written: anyhow::Result<()>,
}

/// What a run is to do.
struct Plan {
    out: Option<Destination>,
    market: Option<Market>,
    /// Whether it makes a data directory as a whole.
    makes: bool,
    results: Option<Results>,
}

impl Dedup {
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        let mut asked = wire::asked(&self.engine)?;
        let plan = self.plan(&asked)?;
        // Where tables are learnt or results written, the inputs are read twice.
        let is_read_twice = self.learns(&asked) || plan.results.is_some();
        let spool = if is_read_twice { Spool::of(&mut self.inputs.inputs)? } else { None };
        let learnt = self.learn(&mut asked)?;
        let done = self.dedup(asked, &plan, learnt);
        drop(spool);
        done
    }

    /// What is to be done. All that may be wrong is found before the inputs are read, which may take hours.
    fn plan(&self, asked: &Asked) -> anyhow::Result<Plan> {
        let data = self.data.as_deref();
        let market = self.market(&asked.markets)?;
        // The output may lie in the directory that is to be made. It is there first, so that the path can be tried before
        // the work.
        if let Some(dir) = data.filter(|dir| self.out.as_deref().and_then(Path::parent) == Some(dir)) {
            manifest::require_directory(dir)?;
            fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        let out = self.out.as_deref().map(Destination::open).transpose()?;
        let is_possible = data.map_or(Ok(false), NewDirectory::is_possible)?;
        match data {
            Some(dir) if !is_possible => Manifest::try_for(dir, asked.wanted, DEFAULTS)?,
            _ => {
                Manifest::map_of(asked.wanted, DEFAULTS)?;
            }
        }
        let others =
            [("--out", self.out.as_deref()), ("--bad", self.inputs.records.bad.as_ref().map(BadFile::path))];
        let others: Vec<_> = others.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
        let results = Results::check(&self.results, &self.inputs, &others, data)?;
        results.iter().for_each(Results::say_memory);
        Ok(Plan { out, market, makes: is_possible && !self.incremental, results })
    }

    /// Whether the tables of the policy are to be learnt from the inputs: they are not given, and the collection does not have them.
    fn learns(&self, asked: &Asked) -> bool {
        let policy = asked.wanted.policy.unwrap_or_default();
        let is_there = self.data.as_deref().is_some_and(|dir| dir.join(manifest::NAME).exists());
        policy.reads_tables() && asked.tables.is_none() && !is_there
    }

    /// Learns the tables of the policy from the inputs where that is to be done.
    fn learn(&self, asked: &mut Asked) -> anyhow::Result<Option<LearntTables>> {
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

    fn dedup(&self, asked: Asked, plan: &Plan, learnt: Option<LearntTables>) -> anyhow::Result<()> {
        let data = self.data.as_deref();
        let new = data.filter(|_| plan.makes);
        let Done { mut summary, decisions, mut written } = match new {
            Some(dir) => self.make_directory(dir, asked, plan)?,
            None if data.is_none() && !self.incremental => self.at_once(asked, plan)?,
            None => self.page_by_page(asked, plan)?,
        };
        let kept = data.map(|dir| dir.join(policy_tables::NAME)).filter(|path| path.exists());
        summary.tables = learnt.map(|learnt| LearntTables { kept, ..learnt });
        if let (Ok(()), Some(results), Some(decisions)) = (&written, &plan.results, decisions) {
            let input = &summary.fed.input;
            let first = (input.now.unwrap_or_else(Timestamp::now), input.pages);
            match results.write(&self.inputs, first, decisions) {
                Ok(copied) => summary.results = Some(copied),
                Err(error) => written = Err(error),
            }
        }
        if matches!(plan.out, Some(Destination::Standard)) {
            summary.print(&mut output::stderr())?;
        } else {
            Output { json: self.json }.print(&summary, |out| summary.print(out))?;
        }
        let input = &summary.fed.input;
        input.left_out("doppel dedup").inspect(|left_out| say!("doppel: {left_out}"));
        match data {
            Some(dir) => written.with_context(|| is_complete(dir))?,
            None => written?,
        }
        let verdict = input.verdict(self.inputs.strict, 0);
        match new.filter(|_| input.records == 0) {
            Some(dir) => verdict.with_context(|| nothing_is_kept(dir)),
            None => Ok(verdict?),
        }
    }

    /// Records every page in a collection as a server does.
    fn page_by_page(&self, asked: Asked, plan: &Plan) -> anyhow::Result<Done> {
        if let Some(dir) = &self.data {
            NewDirectory::forget_interrupted(dir)?;
        }
        let scratch = if self.data.is_none() { Some(Scratch::new()?) } else { None };
        let dir = self.data.as_deref().or(scratch.as_ref().map(Scratch::path));
        let dir = dir.context("there is neither a data directory nor a temporary one")?;
        let engine = Engine::open_asked(dir, asked, &self.engine, self.data.is_some())?;
        if self.data.is_some() {
            interrupt::announce("interrupted; the same command goes on")?;
        }
        let begin = Instant::now();
        let mut weights = Weights::default();
        let mut verdicts = self.verdicts();
        let mut fed = self.feed(&engine, &mut weights, verdicts.as_mut())?;
        if self.data.is_some() {
            self.look_for_gone(&engine, &mut fed)?;
        }
        decide(&engine)?;
        let elapsed = begin.elapsed();
        let tier1: &dyn Tier1Api = &*engine.tier1;
        let mut winners = plan
            .market
            .as_ref()
            .map(|market| MarketWinners::new(tier1, engine.policy, engine.winners, market).unlimited());
        let export = |out: &mut dyn Write| Ok(write_export(tier1, winners.as_mut(), out).map(drop)?);
        let written = plan.out.as_ref().map_or(Ok(()), |out| out.write(export));
        let mut found = Found::in_tier1(tier1, self.top)?;
        let balance = weights
            .balance(live(tier1, &mut winners).map(|line| line.map(|line| (line.url.id(), line.status))))?;
        let annotate = self.results.annotate;
        let decisions =
            verdicts.map(|verdicts| verdicts.decide(live(tier1, &mut winners), annotate)).transpose()?;
        if let Some(winners) = &mut winners {
            found.prefer(|group, usual| Ok(winners.winner(group, usual)?.url))?;
        }
        drop(winners);
        let policy = engine.policy;
        engine.stop();
        Ok(Done { summary: Summary::new(policy, fed, elapsed, found, balance), decisions, written })
    }

    /// Takes note of records where results are wanted.
    fn verdicts(&self) -> Option<Verdicts> {
        self.results.is_wanted().then(Verdicts::default)
    }

    fn market(&self, markets: &Markets) -> anyhow::Result<Option<Market>> {
        let named = |market: &String| markets.find(market).with_context(|| format!("--market {market}"));
        self.market.as_ref().map(named).transpose()
    }

    /// Finds the pages on record whose file has gone, and records that with `--prune`.
    fn look_for_gone(&self, engine: &Engine, fed: &mut Fed) -> anyhow::Result<()> {
        let live = Scan::new(&*engine.tier1).map(|line| Ok(line?.url));
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

    fn directories(&self) -> impl Iterator<Item = &Path> {
        self.inputs.inputs.iter().map(PathBuf::as_path).filter(|path| path.is_dir())
    }

    /// Counts the pages whose file has gone. Whether they are to be recorded as dead.
    fn count_gone(&self, fed: &mut Fed, gone: &[PageUrl]) -> bool {
        fed.gone = gone.len() as u64;
        // A directory that was read in part, or is empty, may be one that is not mounted.
        fed.pruned = self.prune && fed.input.records > 0 && fed.input.incomplete.is_empty();
        fed.pruned
    }

    /// Records all pages, in the order of the inputs.
    fn feed(
        &self,
        engine: &Engine,
        weights: &mut Weights,
        mut verdicts: Option<&mut Verdicts>,
    ) -> anyhow::Result<Fed> {
        let mut outcomes = Outcomes::default();
        // Nobody can ask a temporary collection for the language of a page.
        let detect_language = self.data.is_some() && self.engine.detect_language;
        let input = extracted::pages(&self.inputs, (engine.signer.clone(), detect_language), |pages| {
            let (pages, read): (Vec<_>, Vec<_>) =
                pages.into_iter().map(|page| (page.submission, (page.record, page.bytes))).unzip();
            let taken = submit(engine, &pages)?;
            for ((page, (record, bytes)), outcome) in pages.iter().zip(read).zip(&taken) {
                weights.note(page.url.id(), bytes, *outcome);
                if let Some(verdicts) = &mut verdicts {
                    verdicts.note(record, page.url.id(), *outcome);
                }
            }
            outcomes.add(&taken);
            Ok(())
        })?;
        Ok(Fed { input, outcomes, ..Fed::default() })
    }
}

/// Every live page, as it is for a market if there is one.
fn live<'t>(
    tier1: &'t dyn Tier1Api,
    winners: &'t mut Option<MarketWinners<'_>>,
) -> impl Iterator<Item = Result<Line, Tier1Error>> + 't {
    Scan::new(tier1).map(|line| match winners.as_mut() {
        Some(winners) => winners.apply(line?),
        None => line,
    })
}

fn nothing_is_kept(dir: &Path) -> String {
    format!("nothing is kept in {}", dir.display())
}

/// What to say where all pages are kept, and the output is not written.
fn is_complete(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "the collection in {dir} is complete, and `doppel serve --data {dir}` with `doppel export` gives the output"
    )
}

/// A version that says that a page is gone.
fn dead(url: PageUrl, fetched_at: Timestamp) -> Submission {
    Submission { url, fetched_at, popularity: None, language: None, canonical: None, body: Body::Dead }
}

/// Submits until there is room, and until all ranges answer.
fn submit(engine: &Engine, submissions: &[Submission]) -> anyhow::Result<Vec<Outcome>> {
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
fn decide(engine: &Engine) -> anyhow::Result<()> {
    let spinner = progress::waiting("deciding");
    while !engine.tier1.flush(FLUSH_STEP)? {}
    spinner.finish_and_clear();
    Ok(())
}
