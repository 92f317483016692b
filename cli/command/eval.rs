//! `doppel eval`: how right and how quick the engine is, on crawls of one's own.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::destination::Destination;
use crate::eval::accuracy::Accuracy;
use crate::eval::incremental::Incremental;
use crate::eval::mapping::Mapping;
use crate::eval::served::Served;
use crate::eval::{Form, give};

/// Measure the engine on crawls: how right its groups are, what incremental work saves, whether every
/// answer holds, how evenly contents lie on nodes.
///
/// Each measure replays the crawls through the engine in this process, in temporary directories that are
/// removed, and holds it against separate, exact code.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel eval accuracy crawl/round-*.warc.gz
  doppel eval accuracy --plot accuracy.svg --tau 0.8 --partitions 24 crawl/round-*.warc.gz")]
pub(crate) struct Eval {
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

/// What is measured.
#[derive(Debug, Subcommand)]
enum Measure {
    Accuracy(Accuracy),
    Incremental(Incremental),
    Mapping(Mapping),
    Served(Served),
}

impl Eval {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let form = match (self.json, self.markdown) {
            (true, _) => Form::Json,
            (_, true) => Form::Markdown,
            _ => Form::Text,
        };
        let plot = self.plot.as_deref().map(Destination::open).transpose()?;
        match self.measure {
            Measure::Accuracy(accuracy) => give(&accuracy.run()?, form, plot.as_ref()),
            Measure::Incremental(incremental) => give(&incremental.run()?, form, plot.as_ref()),
            Measure::Mapping(mapping) => give(&mapping.run()?, form, plot.as_ref()),
            Measure::Served(served) => give(&served.run()?, form, plot.as_ref()),
        }
    }
}
