//! `doppel dedup`: the engine in this process; crawls go in, groups come out.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use doppel_coordinator::export::write_export;
use doppel_model::Tau;
use doppel_model::pairwise::Policy;
use doppel_protocol::answer::ExportLine;
use doppel_protocol::{Body, Outcome, Submission, Tier1Api, Tier1Error, Tier2Api};
use doppel_tier1::bulk::{Bulk, BulkConfig};

use crate::args::{EngineArgs, InputArgs};
use crate::crawl;
use crate::destination::Destination;
use crate::directory;
use crate::extracted::{self, BATCH_PAGES};
use crate::interrupt;
use crate::output::Output;
use crate::progress;
use crate::scratch::Scratch;
use crate::summary::{Fed, Found, Outcomes, Summary};
use crate::winners::Winners;
use crate::wire::Engine;

/// Pause while as much is pending as may be.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// Bytes of signatures that are in memory while a collection is grouped at once; the others are in a temporary file.
const SIGNATURES_MAX: usize = 128 << 20;
/// How long one wait for the last decisions may take before it is begun again.
const FLUSH_STEP: Duration = Duration::from_secs(60);

/// Find the duplicates of crawls on disk, without a server.
///
/// Several inputs are successive crawls: a page of a later one is the page's new version. Without
/// --data nothing is kept, and all pages are grouped at once: the same command gives the same output. With --data
/// the collection stays, and `doppel serve` or another `doppel dedup` goes on with it; only there, and with --incremental,
/// do the options for shards, ranges, partitions, dimensions, nodes, pending pages, cohesion, language and retention have
/// an effect. A page of a directory whose file has gone since then stays live, unless --prune is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel dedup ~/site
  doppel dedup --tau 0.9 --out groups.jsonl crawl-1.warc.gz crawl-2.warc.gz
  doppel dedup --data collection --out - pages.jsonl | grep '\"duplicate\"'")]
pub(crate) struct Dedup {
    #[command(flatten)]
    inputs: InputArgs,
    /// Keep the collection in this directory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Without --data, too, record page by page, as a server does, in a temporary directory. The groups are the same but
    /// for their ids; it mostly takes several times as long.
    #[arg(long)]
    incremental: bool,
    /// Write one line of JSON for every live page, sorted by URL, to this file; `-` is standard output.
    /// A file that is there is replaced at the end, and may be an input.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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
    engine: EngineArgs,
}

impl Dedup {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let out = self.out.as_deref().map(Destination::open).transpose()?;
        let summary = if self.data.is_none() && !self.incremental {
            self.at_once(out.as_ref())?
        } else {
            self.page_by_page(out.as_ref())?
        };
        if matches!(out, Some(Destination::Standard)) {
            summary.print(&mut io::stderr().lock())?;
        } else {
            Output { json: self.json }.print(&summary, |out| summary.print(out))?;
        }
        let input = &summary.fed.input;
        input.left_out("doppel dedup").inspect(|left_out| eprintln!("doppel: {left_out}"));
        Ok(input.verdict(self.inputs.strict, 0)?)
    }

    /// Groups a collection of which nothing is kept.
    fn at_once(&self, out: Option<&Destination>) -> anyhow::Result<Summary> {
        let scratch = Scratch::new()?;
        let winners = self.engine.winners.as_deref().map(Winners::read).transpose()?.unwrap_or_default();
        let mut bulk = Bulk::new(&BulkConfig {
            policy: Policy { tau: self.engine.tau.unwrap_or(Tau::DEFAULT) },
            winners: winners.order.unwrap_or_default(),
            group_members_max: self.engine.group_members_max,
            memory_max: SIGNATURES_MAX,
            temp_dir: scratch.path(),
        });
        let begin = Instant::now();
        let mut outcomes = Outcomes::default();
        // Nobody can ask for the language of a page.
        let input = extracted::pages(&self.inputs, false, |pages| {
            for page in pages {
                outcomes.add(&[bulk.submit(page)?]);
            }
            Ok(())
        })?;
        let spinner = progress::waiting("grouping");
        let grouped = bulk.finish()?;
        spinner.finish_and_clear();
        let elapsed = begin.elapsed();
        if let Some(out) = out {
            out.write(|out| {
                for line in grouped.lines() {
                    serde_json::to_writer(&mut *out, &ExportLine::from(&line))?;
                    out.write_all(b"\n")?;
                }
                out.flush().map_err(Into::into)
            })?;
        }
        let fed = Fed { input, outcomes, ..Fed::default() };
        Ok(Summary::new(fed, elapsed, Found::in_bulk(&grouped, self.top)))
    }

    /// Records every page in a collection as a server does.
    fn page_by_page(&self, out: Option<&Destination>) -> anyhow::Result<Summary> {
        let scratch = if self.data.is_none() { Some(Scratch::new()?) } else { None };
        let dir = self.data.as_deref().or(scratch.as_ref().map(Scratch::path));
        let dir = dir.context("there is neither a data directory nor a temporary one")?;
        let engine = Engine::open(dir, &self.engine, self.data.is_some())?;
        if self.data.is_some() {
            interrupt::announce("interrupted; the same command goes on")?;
        }
        let begin = Instant::now();
        let mut fed = self.feed(&engine)?;
        if self.data.is_some() {
            self.look_for_gone(&engine, &mut fed)?;
        }
        decide(&engine)?;
        let elapsed = begin.elapsed();
        if let Some(out) = out {
            out.write(|out| {
                write_export(&*engine.tier1, out)?;
                Ok(())
            })?;
        }
        let found = Found::in_tier1(&*engine.tier1, self.top)?;
        engine.stop();
        Ok(Summary::new(fed, elapsed, found))
    }

    /// Finds the pages on record whose file has gone, and records that with `--prune`.
    fn look_for_gone(&self, engine: &Engine, fed: &mut Fed) -> anyhow::Result<()> {
        let dirs = self.inputs.inputs.iter().map(PathBuf::as_path).filter(|path| path.is_dir());
        let gone = directory::gone(&*engine.tier1, dirs)?;
        fed.gone = gone.len() as u64;
        // A directory that was read in part, or is empty, may be one that is not mounted.
        fed.pruned = self.prune && fed.input.records > 0 && fed.input.incomplete.is_empty();
        if fed.pruned {
            let fetched_at = crawl::now();
            let dead = |url| Submission {
                url,
                fetched_at,
                popularity: None,
                language: None,
                canonical: None,
                body: Body::Dead,
            };
            let submissions: Vec<_> = gone.into_iter().map(dead).collect();
            for batch in submissions.chunks(BATCH_PAGES) {
                submit(engine, batch)?;
            }
        }
        Ok(())
    }

    /// Records all pages, in the order of the inputs.
    fn feed(&self, engine: &Engine) -> anyhow::Result<Fed> {
        let mut outcomes = Outcomes::default();
        // Nobody can ask a temporary collection for the language of a page.
        let detect_language = self.data.is_some() && self.engine.detect_language;
        let input = extracted::pages(&self.inputs, detect_language, |pages| {
            outcomes.add(&submit(engine, &pages)?);
            Ok(())
        })?;
        Ok(Fed { input, outcomes, ..Fed::default() })
    }
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
