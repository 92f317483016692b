//! Compression, online queries and batches, measured; and what eight billion fingerprints would need, computed.

use std::hint::black_box;
use std::ops::ControlFlow;

use doppel_hamming::{
    CompressedFingerprints, Design, FingerprintIndex, IndexOptions, QueryBatch, expected_ratio,
};
use doppel_terminal::output::{bytes, count, known};
use serde::Serialize;

use super::fingerprints::{queries, uniform};
use crate::report::Table;
use doppel_inputs::processor;

/// Bits of a fingerprint, and how many of them may differ.
const WIDTH: u32 = 64;
const DISTANCE: u32 = 3;
/// The paper's collection.
const EIGHT_BILLION: u64 = 8 << 30;
/// The designs of the paper with 4, 10, 16 and 20 tables.
const DESIGNS: [&[u32]; 4] = [&[4], &[5], &[4, 4], &[6]];
/// The seed of uniform fingerprints.
const UNIFORM_SEED: u64 = 3;
/// Online queries of one round, and rounds.
const QUERIES: usize = 20_000;
const ROUNDS: usize = 5;

/// How well fingerprints compress.
#[derive(Debug, Serialize)]
pub(crate) struct Storing {
    what: String,
    fingerprints: u64,
    /// What is written of each fingerprint, where it is computed.
    code: Option<f64>,
    /// With blocks and what is kept beside them.
    ratio: f64,
}

/// Online queries with a design.
#[derive(Debug, Serialize)]
pub(crate) struct OnlineRun {
    tables: usize,
    leading_bits: u32,
    table_bytes: usize,
    /// Of processor time for a query, in the best round.
    pub(crate) microseconds: f64,
}

/// A scan against a batch of queries.
#[derive(Debug, Serialize)]
pub(crate) struct BatchRun {
    queries: usize,
    tables: usize,
    compressed: bool,
    /// Stored fingerprints in a second of processor time, in the best round.
    pub(crate) millions_per_second: f64,
    pairs: usize,
}

pub(super) fn storing(real: &[u64], clustered: &[u64]) -> anyhow::Result<Vec<Storing>> {
    let mut all = Vec::new();
    let uniform = uniform(clustered.len(), UNIFORM_SEED);
    let measured = [
        ("the crawl, measured", real),
        ("clustered, made up, measured", clustered),
        ("uniform, made up, measured", &uniform),
    ];
    for (what, sorted) in measured {
        if !sorted.is_empty() {
            let ratio = CompressedFingerprints::new(WIDTH, sorted)?.ratio();
            all.push(Storing { what: what.to_owned(), fingerprints: sorted.len() as u64, code: None, ratio });
        }
    }
    for fingerprints in [10_000_000, EIGHT_BILLION, 1 << 34] {
        let expected = expected_ratio(WIDTH, fingerprints)?;
        let (code, ratio) = (Some(expected.code), expected.memory);
        all.push(Storing { what: "uniform, computed".to_owned(), fingerprints, code, ratio });
    }
    Ok(all)
}

pub(super) fn storing_table(storing: &[Storing]) -> Table {
    let title = "size of compressed fingerprints, as a share of the plain size";
    let mut table = Table::new(title, ["fingerprints", "number", "code", "with blocks and their keys"]);
    for Storing { what, fingerprints, code, ratio } in storing {
        let code = known(*code, |code| format!("{code:.3}"));
        table.row([what.clone(), count(*fingerprints), code, format!("{ratio:.3}")]);
    }
    table
}

pub(super) fn online(stored: &[u64], seed: u64) -> anyhow::Result<Vec<OnlineRun>> {
    DESIGNS.iter().map(|splits| online_with(splits, stored, seed)).collect()
}

fn online_with(splits: &[u32], stored: &[u64], seed: u64) -> anyhow::Result<OnlineRun> {
    let design = Design::new(WIDTH, DISTANCE, splits)?;
    let leading_bits = design.layouts().iter().map(doppel_hamming::TableLayout::leading).min().unwrap_or(0);
    let index = FingerprintIndex::build(design, IndexOptions::default(), stored.iter().copied().zip(0..))?;
    let mut best = f64::INFINITY;
    // The first round warms up; each has other queries.
    for round in 0..=ROUNDS {
        let queries = queries(stored, QUERIES, seed + 1 + round as u64);
        let begin = processor::seconds();
        let mut found = 0_u64;
        for query in &queries {
            let _: ControlFlow<()> = index.search(*query, DISTANCE, |_| {
                found += 1;
                ControlFlow::Continue(())
            })?;
        }
        black_box(found);
        if round > 0 {
            best = best.min((processor::seconds() - begin) * 1e6 / QUERIES as f64);
        }
    }
    let tables = index.design().layouts().len();
    Ok(OnlineRun { tables, leading_bits, table_bytes: index.size().table_bytes, microseconds: best })
}

pub(super) fn online_table(stored: usize, runs: &[OnlineRun]) -> Table {
    let title = format!(
        "an online query among {} clustered fingerprints, k = 3, half of the queries near one: processor time",
        count(stored as u64)
    );
    let mut table = Table::new(&title, ["tables", "leading bits, at least", "tables take", "us a query"]);
    for run in runs {
        table.row([
            run.tables.to_string(),
            run.leading_bits.to_string(),
            bytes(run.table_bytes as u64),
            format!("{:.2}", run.microseconds),
        ]);
    }
    table
}

pub(super) fn batches(sorted: &[u64], sizes: &[u32], seed: u64) -> anyhow::Result<Vec<BatchRun>> {
    let compressed = CompressedFingerprints::new(WIDTH, sorted)?;
    let mut runs = Vec::new();
    for size in sizes {
        let batch = QueryBatch::new(WIDTH, DISTANCE, &queries(sorted, *size as usize, seed))?;
        for is_compressed in [false, true] {
            let scan = || match is_compressed {
                false => batch.scan(sorted, usize::MAX),
                true => batch.scan_compressed(&compressed, usize::MAX),
            };
            let (mut best, mut pairs) = (f64::INFINITY, 0);
            for round in 0..=ROUNDS {
                let begin = processor::seconds();
                pairs = black_box(scan()?).len();
                if round > 0 {
                    best = best.min(processor::seconds() - begin);
                }
            }
            runs.push(BatchRun {
                queries: *size as usize,
                tables: batch.design().layouts().len(),
                compressed: is_compressed,
                millions_per_second: sorted.len() as f64 / best / 1e6,
                pairs,
            });
        }
    }
    Ok(runs)
}

pub(super) fn batch_table(stored: usize, runs: &[BatchRun]) -> Table {
    let title =
        format!("one scan of {} clustered fingerprints in memory for a batch, k = 3", count(stored as u64));
    let head = ["queries", "tables", "stored", "million a second and core", "pairs found"];
    let mut table = Table::new(&title, head);
    for run in runs {
        table.row([
            count(run.queries as u64),
            run.tables.to_string(),
            if run.compressed { "compressed" } else { "plain" }.to_owned(),
            format!("{:.0}", run.millions_per_second),
            count(run.pairs as u64),
        ]);
    }
    table
}

/// What the paper's collection would need, by what was measured here.
pub(super) fn eight_billion(runs: &[BatchRun]) -> Option<Table> {
    let ratio = expected_ratio(WIDTH, EIGHT_BILLION).ok()?.memory;
    let plain = EIGHT_BILLION * u64::from(WIDTH / 8);
    let title = format!("{} uniform fingerprints, computed", count(EIGHT_BILLION));
    let mut table = Table::new(&title, ["what", "plain", "compressed"]);
    let size = |tables: u64| {
        let all = plain * tables;
        [bytes(all), bytes((all as f64 * ratio) as u64)]
    };
    table.row(std::iter::once("one sorted file".to_owned()).chain(size(1)));
    for tables in [4, 10, 16, 20] {
        table.row(std::iter::once(format!("online, {tables} tables")).chain(size(tables)));
    }
    let mut sizes: Vec<usize> = runs.iter().map(|run| run.queries).collect();
    sizes.dedup();
    for queries in sizes {
        let seconds = |compressed| {
            let run = runs.iter().find(|run| run.queries == queries && run.compressed == compressed);
            run.map_or_else(String::new, |run| {
                format!("{:.0} core-seconds", EIGHT_BILLION as f64 / run.millions_per_second / 1e6)
            })
        };
        let what = format!("a batch of {} queries, at the pace measured here", count(queries as u64));
        table.row([what, seconds(false), seconds(true)]);
    }
    Some(table)
}
