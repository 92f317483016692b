//! `doppel overlap`: counts how much all pages of crawls share, pair by pair and host by host.

mod report;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::reading::hashed_lines;
use doppel_overlap::{
    Chunking, CollectionBuilder, DocumentCollection, ExactCopy, OverlappingPair, PairingMethod, PairingResult,
};
use doppel_terminal::bounded::{self, BoundsArgs};
use doppel_terminal::destination::Destination;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, say};
use doppel_terminal::progress;
use serde::Serialize;

use report::{Chunks, Report, Whole};

/// Count how much all pages of crawls have in common, in bounded memory and without a server.
///
/// Cuts every page into chunks of four lines, and into chunks of two. It finds all pairs of pages that share
/// at least 15 chunks of four lines, or 25 chunks of two, as in "Finding near-replicas of documents on the
/// Web" (docs/reference/policies.md, policy overlap). Prints how many replicas pages have, the hosts that
/// mirror each other, and the pages that are on most hosts. It also prints what a crawler saves that skips
/// exact copies, and pages that share that much with a page that it has visited.
///
/// Lines are the lines that a browser shows; plain text has its own lines. Exact copies are pages of equal
/// text; only the first copy is paired with other pages. A later version of a page replaces an earlier one,
/// unless --every-version is given. Redirects and dead pages are left out. Data that does not fit into
/// --memory is sorted in temporary files. These files have no name, so they vanish when the program ends,
/// however it ends.
///
/// Coarse counting counts pairs by hash, and then counts exactly only pairs whose counters are full; it needs
/// little disk space. Sorting writes every pair once for each shared chunk; it is simple, but slow if a chunk
/// is on many pages. Both give the same pairs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel overlap crawl.warc.gz
  doppel overlap --memory 2GB --pairs pairs.jsonl crawl-1.warc.gz crawl-2.warc.gz
  doppel overlap --by both --json crawl.warc.gz        compare time and memory of both ways
  doppel overlap --chunks 8:10 ~/site                  chunks of eight lines, at least 10 of them

A line of --pairs is, of an exact copy, {\"lines\":null,\"a\":URL,\"b\":URL}, and of any other pair
{\"lines\":4,\"a\":URL,\"b\":URL,\"shared\":17,\"of_a\":20,\"of_b\":31}: distinct chunks of both, and of each.")]
pub(crate) struct Overlap {
    #[command(flatten)]
    inputs: InputArgs,
    /// Lines in a chunk, 1 to 64, and how many of these chunks two pages must share, 1 to 255. May be given
    /// up to four times [default: 4:15 and 2:25].
    #[arg(long, value_name = "LINES:SHARED", value_parser = chunking)]
    chunks: Vec<Chunking>,
    #[command(flatten)]
    bounds: BoundsArgs,
    /// How pairs are counted; `both` counts in both ways and compares their results and costs.
    #[arg(long, value_enum, default_value_t = By::Coarse)]
    by: By,
    /// Write every pair as a line of JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// Treat every version of a page as a page of its own.
    #[arg(long)]
    every_version: bool,
    /// Number of pairs of hosts and of replicated pages to list.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print the report as one line of JSON on standard output, or on standard error if standard output
    /// receives data.
    #[arg(long)]
    json: bool,
}

/// Ways to count pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Sort,
    Coarse,
    Both,
}

impl By {
    fn ways(self) -> &'static [(&'static str, PairingMethod)] {
        const ALL: [(&str, PairingMethod); 2] =
            [("sort", PairingMethod::Sort), ("coarse", PairingMethod::Coarse(None))];
        match self {
            Self::Sort => &ALL[..1],
            Self::Coarse => &ALL[1..],
            Self::Both => &ALL,
        }
    }
}

fn chunking(text: &str) -> Result<Chunking, String> {
    let parse = || {
        let (lines, shared) = text.split_once(':')?;
        // `parse` alone would also accept a sign.
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(lines) || !is_number(shared) {
            return None;
        }
        let lines = lines.parse().ok().filter(|lines| (1..=64).contains(lines))?;
        Some(Chunking { lines, shared: shared.parse().ok().filter(|shared| *shared > 0)? })
    };
    parse().ok_or_else(|| "1 to 64 lines and 1 to 255 shared chunks are possible, such as 4:15".to_owned())
}

/// A line of the file of `--pairs`.
#[derive(Serialize)]
struct Line<'l> {
    lines: Option<u32>,
    a: &'l str,
    b: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_a: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_b: Option<u32>,
}

impl Overlap {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.chunks.len() > 4 {
            return Err(Failure::Usage("--chunks may be given at most four times".to_owned()).into());
        }
        let budget = self.bounds.budget()?;
        if let Some(path) = &self.pairs {
            self.inputs.refuse_output("--pairs", path)?;
        }
        let out = self.pairs.as_deref().map(Destination::open).transpose()?;
        let chunkings = match &self.chunks[..] {
            [] => vec![Chunking { lines: 4, shared: 15 }, Chunking { lines: 2, shared: 25 }],
            given => given.to_vec(),
        };
        let mut builder = CollectionBuilder::new(&budget, &chunkings, self.every_version)?;
        let read = hashed_lines::read(&self.inputs, &mut builder)?;
        let spinner = progress::waiting("counting");
        let collection = builder.finish()?;
        let mut report = None;
        let mut count = |out: &mut dyn Write| {
            report = Some(self.count(&collection, out)?);
            Ok(())
        };
        match &out {
            Some(out) => out.write(count)?,
            None => count(&mut io::sink())?,
        }
        let (whole, chunks) = report.context("the report was not made")?;
        let report = Report {
            whole,
            chunks,
            most_replicated: collection.most_replicated(self.top)?,
            space: collection.fingerprint_files().to_vec(),
            memory_bytes: self.bounds.memory_bytes(),
            process_memory_bytes: bounded::process_memory(),
            read_seconds: read.seconds,
            input: read.tally,
        };
        spinner.finish_and_clear();
        let output = Output { json: self.json };
        if matches!(out, Some(Destination::Standard)) {
            output.print_beside(&report, |out| report.print(out))?;
        } else {
            output.print(&report, |out| report.print(out))?;
        }
        report.input.left_out("doppel overlap").inspect(|left_out| say!("doppel: {left_out}"));
        Ok(report.input.verdict(self.inputs.strict, 0)?)
    }

    fn count(
        &self,
        collection: &DocumentCollection,
        out: &mut dyn Write,
    ) -> anyhow::Result<(Whole, Vec<Chunks>)> {
        let is_written = self.pairs.is_some();
        if is_written {
            for ExactCopy { central, copy } in collection.copies() {
                let (a, b) = (&*collection.url(central)?, &*collection.url(copy)?);
                write(out, &Line { lines: None, a, b, shared: None, of_a: None, of_b: None })?;
            }
        }
        let mut all = Vec::new();
        for (number, Chunking { lines, shared }) in collection.chunkings().iter().copied().enumerate() {
            let mut ways: Vec<(&'static str, PairingResult)> = Vec::new();
            for (name, way) in self.by.ways() {
                // Both ways find the same pairs, so pairs are written once.
                let is_first = ways.is_empty();
                let outcome = collection.overlap(number, *way, |found: OverlappingPair| {
                    if !is_written || !is_first {
                        return Ok(());
                    }
                    let url = |document| collection.url(document).map_err(io::Error::other);
                    let (a, b) = (&*url(found.a)?, &*url(found.b)?);
                    let (shared, of_a, of_b) = (Some(found.shared), Some(found.of_a), Some(found.of_b));
                    write(out, &Line { lines: Some(lines), a, b, shared, of_a, of_b })
                });
                ways.push((
                    name,
                    outcome.with_context(|| format!("counting chunks of {lines} lines by {name}"))?,
                ));
            }
            let is_same = ways.windows(2).all(|two| {
                (two[0].1.digest, &two[0].1.replication) == (two[1].1.digest, &two[1].1.replication)
            });
            ensure!(
                is_same,
                "the two ways found different pairs of chunks of {lines} lines, which is a bug of doppel"
            );
            let (_, mirroring) = self.by.ways()[0];
            let (mirrors, _) = collection.mirrors(number, mirroring, self.top)?;
            all.push(Chunks::new((lines, shared), ways, mirrors)?);
        }
        Ok((Whole::new(collection.exact_replication()), all))
    }
}

fn write(out: &mut dyn Write, line: &Line<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_lines_and_how_many() {
        assert_eq!(chunking("8:10"), Ok(Chunking { lines: 8, shared: 10 }));
        for wrong in ["8", "0:3", "65:3", "4:0", "4:256", "4:x", "4:+15", "+4:15", "4:", ":15", "4: 15"] {
            assert!(chunking(wrong).is_err(), "{wrong}");
        }
    }
}
