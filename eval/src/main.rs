//! `doppel-eval`: real crawls through the real engine, measured and held against the exact baseline.
//!
//! | module | what |
//! |---|---|
//! | `accuracy` | errors of the groups while crawls come in |
//! | `incremental` | what incremental work saves, as the collection grows |
//! | `mapping` | balance, fan-out and work of mappings to nodes, and pairs lost |
//! | `served` | whether every reported duplicate is one, at that moment |
//! | `policies` | every policy on people's grades, judged pairs, transplants and exact Jaccard, and what it costs |
//! | `manku` | the structures for fingerprints: distances, distribution, compression, throughput |
//! | `henzinger` | supershingles, projections and their combination, as their source compares them |
//! | `multi_simhash` | simhashes in several lexicons, as their source measures them |
//! | `overlap` | how much all pages share, as the source of coarse counting measures it |
//! | `popular` | what is removed when only popular pages' groups are, and when all are |
//! | `kind` | the kinds of truth, which are never mixed |
//! | `labelled` | pairs of pages whose truth is known, from files |
//! | `containers`, `transplants`, `variants` | where the main content of pages is; pairs whose truth is known by construction |
//! | `score` | precision, recall and F1 of weighted pairs |
//! | `copies` | whether policies call copies what people call so |
//! | `pages` | files of pages to measure with: real text and pages made from it, or made-up words |
//! | `collection` | the pages of a moment and the groups that they must have, by the exact baseline |
//! | `replay` | crawls read once, for the engine and for the baseline |
//! | `from_scratch` | the whole collection compared anew |
//! | `generator`, `families` | a collection of any size, made from real pages or made-up words |
//! | `drive` | the engine, fed in batches and read at chosen moments |
//! | `compare` | two partitions into groups, compared |
//! | `report` | tables and plots |
//!
//! The roles are put together and crawls are read by the code of `doppel` itself.
#![forbid(unsafe_code)]

mod copies;
mod families;
mod generator;
mod ground_truth;
mod pages;
mod papers;
mod policies;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use doppel_terminal::destination::Destination;
use doppel_terminal::exit::{self, Failure};

use copies::Copies;
use pages::Pages;
use papers::clustering::accuracy::Accuracy;
use papers::clustering::incremental::Incremental;
use papers::clustering::mapping::Mapping;
use papers::clustering::popular::Popular;
use papers::clustering::served::Served;
use papers::henzinger::Henzinger;
use papers::manku::Manku;
use papers::multi_simhash::MultiSimhash;
use papers::overlap::Overlap;
use policies::Policies;
use report::{Form, give};

/// The allocator of the product, so that times are the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure the engine on crawls: how right its groups are, what incremental work saves, whether every
/// answer holds, how evenly contents lie on nodes.
///
/// Each measure replays the crawls through the engine in this process, in temporary directories that are
/// removed, and holds it against separate, exact code.
#[derive(Debug, Parser)]
#[command(
    name = "doppel-eval",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "\
Examples:
  doppel-eval accuracy crawl/round-*.warc.gz
  doppel-eval accuracy --plot accuracy.svg --tau 0.8 --partitions 24 crawl/round-*.warc.gz"
)]
struct Eval {
    /// Print JSON.
    #[arg(long, global = true, conflicts_with = "markdown")]
    json: bool,
    /// Print tables in Markdown.
    #[arg(long, global = true)]
    markdown: bool,
    /// Draw the figures into this file, as SVG; `-` is standard output.
    #[arg(long, global = true, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(subcommand)]
    measure: Measure,
}

/// What is measured, or written to be measured.
#[derive(Debug, Subcommand)]
enum Measure {
    Accuracy(Accuracy),
    Incremental(Incremental),
    Mapping(Mapping),
    Served(Served),
    Policies(Policies),
    Henzinger(Henzinger),
    Manku(Manku),
    MultiSimhash(MultiSimhash),
    Overlap(Overlap),
    Popular(Popular),
    Copies(Copies),
    Pages(Pages),
}

impl Eval {
    fn run(self) -> anyhow::Result<()> {
        let form = match (self.json, self.markdown) {
            (true, _) => Form::Json,
            (_, true) => Form::Markdown,
            _ => Form::Text,
        };
        if self.plot.is_some() && matches!(self.measure, Measure::Pages(_)) {
            return Err(Failure::Usage("`pages` has no figures to draw".to_owned()).into());
        }
        let plot = self.plot.as_deref().map(Destination::open).transpose()?;
        match self.measure {
            Measure::Accuracy(accuracy) => give(&accuracy.run()?, form, plot.as_ref()),
            Measure::Incremental(incremental) => give(&incremental.run()?, form, plot.as_ref()),
            Measure::Mapping(mapping) => give(&mapping.run()?, form, plot.as_ref()),
            Measure::Served(served) => give(&served.run()?, form, plot.as_ref()),
            Measure::Policies(policies) => give(&policies.run()?, form, plot.as_ref()),
            Measure::Henzinger(henzinger) => give(&henzinger.run()?, form, plot.as_ref()),
            Measure::Manku(manku) => give(&manku.run()?, form, plot.as_ref()),
            Measure::MultiSimhash(multi_simhash) => give(&multi_simhash.run()?, form, plot.as_ref()),
            Measure::Overlap(overlap) => give(&overlap.run()?, form, plot.as_ref()),
            Measure::Popular(popular) => give(&popular.run()?, form, plot.as_ref()),
            Measure::Copies(copies) => give(&copies.run()?, form, plot.as_ref()),
            Measure::Pages(pages) => pages.run(form),
        }
    }
}

fn main() -> ExitCode {
    exit::code(Eval::parse().run(), |_| false)
}
