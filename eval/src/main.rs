//! `doppel-eval`: runs measurements of the engine on real crawls, and compares its results with an exact
//! baseline.
//!
//! | module | responsibility |
//! |---|---|
//! | `papers` | reproductions of the papers behind the policies and the index |
//! | `policies` | every policy on pairs of known truth, and what each policy costs |
//! | `copies` | whether policies call a pair a copy when people do |
//! | `ground_truth` | pairs of pages whose truth is known, and scores on them |
//! | `pages` | files of pages to measure with: real text, or made-up words |
//! | `generator`, `families` | a collection of any size, made from real pages or made-up words |
//! | `report` | tables and plots |
//!
//! The product's own code assembles the tiers and reads the crawls. Measurements run in this process and in
//! temporary directories, and never change a data directory.
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
use report::{ReportFormat, print_report};

/// The product uses this allocator too, so measured times are comparable.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure the engine on crawls: how right its groups are, what incremental work saves, whether every answer
/// holds, how evenly contents lie on nodes.
///
/// Each measure replays the crawls through the engine in this process. It compares the results with separate,
/// exact code. Temporary directories are removed at the end.
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

/// Measurements, and the file of pages to measure with.
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
            (true, _) => ReportFormat::Json,
            (_, true) => ReportFormat::Markdown,
            _ => ReportFormat::Text,
        };
        if self.plot.is_some() && matches!(self.measure, Measure::Pages(_)) {
            return Err(Failure::Usage("`pages` draws no figures; run it without --plot".to_owned()).into());
        }
        let plot = self.plot.as_deref().map(Destination::open).transpose()?;
        match self.measure {
            Measure::Accuracy(accuracy) => print_report(&accuracy.run()?, form, plot.as_ref()),
            Measure::Incremental(incremental) => print_report(&incremental.run()?, form, plot.as_ref()),
            Measure::Mapping(mapping) => print_report(&mapping.run()?, form, plot.as_ref()),
            Measure::Served(served) => print_report(&served.run()?, form, plot.as_ref()),
            Measure::Policies(policies) => print_report(&policies.run()?, form, plot.as_ref()),
            Measure::Henzinger(henzinger) => print_report(&henzinger.run()?, form, plot.as_ref()),
            Measure::Manku(manku) => print_report(&manku.run()?, form, plot.as_ref()),
            Measure::MultiSimhash(multi_simhash) => print_report(&multi_simhash.run()?, form, plot.as_ref()),
            Measure::Overlap(overlap) => print_report(&overlap.run()?, form, plot.as_ref()),
            Measure::Popular(popular) => print_report(&popular.run()?, form, plot.as_ref()),
            Measure::Copies(copies) => print_report(&copies.run()?, form, plot.as_ref()),
            Measure::Pages(pages) => pages.run(form),
        }
    }
}

fn main() -> ExitCode {
    exit::code(Eval::parse().run(), |_| false)
}
