//! `doppel-eval manku`: measures the structures for fingerprints, after G. S. Manku, A. Jain and A. Das
//! Sarma, *Detecting Near-Duplicates for Web Crawling*, WWW 2007.
//!
//! The paper measured eight billion pages. Here ten million fingerprints, clustered like those of a crawl,
//! are measured, and the figures of eight billion are computed. The distances of near-duplicates come from
//! pairs whose truth is known.

mod distances;
mod fingerprints;
mod leading;
mod structures;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use doppel_inputs::arguments::InputArgs;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_terminal::svg::{Panel, PlotSeries};
use doppel_text::Extractor;
use serde::Serialize;

use crate::ground_truth::labelled::{self, CrawledPages};
use crate::ground_truth::transplants::Transplants;
use crate::report::{Report, Table};
use distances::{AtDistance, DISTANCE_MAX};
use leading::AtPosition;
use structures::{BatchRun, CompressedSize, OnlineRun};

/// Number of buckets of the distribution, one for each value of the seven leading bits.
const BUCKETS: usize = 128;

/// Measure the structures that find near fingerprints.
///
/// The crawls give the distances of pairs that are the same and of pairs that are not: transplants, and
/// judged pairs if they are given. The crawls also give the distribution of the leading bits of the
/// fingerprints. Made-up fingerprints that cluster show how well they compress, how long an online query
/// takes with each design, and how many fingerprints a batch scans in a second. Times are processor time. Ten
/// million fingerprints take about 3 GB of memory.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel-eval manku crawl.warc.gz
  doppel-eval manku --stored 1000000 --judged pairs.jsonl crawl.warc.gz")]
pub(crate) struct Manku {
    #[command(flatten)]
    inputs: InputArgs,
    /// Judged pairs, as JSON lines with a, b, label and weight.
    #[arg(long, value_name = "FILE")]
    judged: Vec<PathBuf>,
    /// Sets of four transplanted pairs.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    transplants: usize,
    /// Number of made-up stored fingerprints.
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    stored: u32,
    /// Numbers of queries of the batches.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "10000,1000000")]
    batch: Vec<u32>,
    /// Seed of the transplants, fingerprints and queries.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

/// Figures of all structures.
#[derive(Debug, Serialize)]
pub(crate) struct MankuResult {
    contents: usize,
    transplants: Vec<AtDistance>,
    judged: Vec<AtDistance>,
    /// Number of fingerprints in each bucket of leading bits.
    buckets: Vec<u64>,
    /// Neighbours in sorted order, by the position of the leading bit in which they differ.
    leading: Vec<AtPosition>,
    storing: Vec<CompressedSize>,
    stored: usize,
    online: Vec<OnlineRun>,
    batches: Vec<BatchRun>,
    seconds: f64,
}

impl Manku {
    pub(crate) fn run(self) -> anyhow::Result<MankuResult> {
        let begin = Instant::now();
        let crawled = CrawledPages::read(&self.inputs)?;
        let transplants = Transplants::new(&crawled, self.transplants, self.seed);
        let mut extractor = Extractor::new(Policy::Simhash { differing: 3 });
        let mut fingerprint =
            |page: &_| labelled::sign(&mut extractor, page).as_ref().and_then(fingerprint_of);
        let transplanted = distances::of_pairs(&transplants.pairs, |url| {
            fingerprint(transplants.made.page(url).or_else(|| crawled.page(url))?)
        });
        let mut judged = Vec::new();
        for path in &self.judged {
            judged.extend(labelled::pairs(path)?);
        }
        let judged = distances::of_pairs(&judged, |url| fingerprint(crawled.page(url)?));
        let mut real: Vec<u64> = crawled.pages.iter().filter_map(&mut fingerprint).collect();
        real.sort_unstable();
        real.dedup();
        let mut buckets = vec![0; BUCKETS];
        real.iter().for_each(|fingerprint| buckets[(fingerprint >> (u64::BITS - 7)) as usize] += 1);
        let stored = fingerprints::clustered(self.stored as usize, self.seed);
        let mut sorted = stored.clone();
        sorted.sort_unstable();
        Ok(MankuResult {
            contents: real.len(),
            transplants: transplanted,
            judged,
            buckets,
            leading: leading::positions(&real),
            storing: structures::storing(&real, &sorted)?,
            stored: stored.len(),
            online: structures::online(&stored, self.seed)?,
            batches: structures::batches(&sorted, &self.batch, self.seed)?,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }
}

/// Fingerprint of a page. `None` for a page without words. As in the paper, and unlike the product, there is
/// no minimum number of words.
fn fingerprint_of(signature: &Signature) -> Option<u64> {
    let has_words = signature.tokens() > 0;
    signature.payload().first_chunk().filter(|_| has_words).map(|bytes| u64::from_le_bytes(*bytes))
}

impl Report for MankuResult {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![distances::table("transplants", &self.transplants)];
        if self.judged.iter().any(|at| at.same + at.other > 0) {
            tables.push(distances::table("judged pairs (language model)", &self.judged));
        }
        let mean = self.contents as f64 / BUCKETS as f64;
        let title = format!("leading 7 bits of {} fingerprints of the crawl, in 128 buckets", self.contents);
        let mut table = Table::new(&title, ["mean", "least", "most", "variance / mean", "empty"]);
        let [least, most] = [self.buckets.iter().min(), self.buckets.iter().max()]
            .map(|of| of.copied().unwrap_or(0).to_string());
        let variance: f64 =
            self.buckets.iter().map(|n| (*n as f64 - mean).powi(2)).sum::<f64>() / BUCKETS as f64;
        let empty = self.buckets.iter().filter(|n| **n == 0).count().to_string();
        table.row([format!("{mean:.1}"), least, most, format!("{:.1}", variance / mean.max(1e-9)), empty]);
        tables.push(table);
        tables.push(leading::table(self.contents, &self.leading));
        tables.push(structures::storing_table(&self.storing));
        tables.push(structures::online_table(self.stored, &self.online));
        tables.push(structures::batch_table(self.stored, &self.batches));
        tables.extend(structures::eight_billion(&self.batches));
        tables
    }

    fn notes(&self) -> Vec<String> {
        let best = self.online.iter().map(|run| run.microseconds).fold(f64::INFINITY, f64::min);
        let fastest = self.batches.iter().map(|run| run.millions_per_second).fold(0.0, f64::max);
        vec![
            format!("best design: {best:.2} us a query (wanted: 5 at 10,000,000)"),
            format!("fastest batch: {fastest:.0} million fingerprints a second and core (wanted: 100)"),
            format!("{:.0} s", self.seconds),
        ]
    }

    fn panels(&self) -> Vec<Panel> {
        let mut panels = Vec::new();
        for (name, of) in [("transplants", &self.transplants), ("judged pairs", &self.judged)] {
            let line = |name: &str, dashed, of: Vec<Option<f64>>| PlotSeries {
                name: name.to_owned(),
                dashed,
                points: (1..=DISTANCE_MAX)
                    .zip(of)
                    .filter_map(|(k, share)| Some((f64::from(k), 100.0 * share?)))
                    .collect(),
            };
            let (precision, recall) = distances::curves(of);
            panels.push(Panel {
                title: format!("Simhash, equal samples at each distance: {name}"),
                x: "k, bits that may differ".to_owned(),
                y: "%".to_owned(),
                series: vec![line("precision", false, precision), line("recall", true, recall)],
                ..Panel::default()
            });
        }
        panels.push(leading::panel(&self.leading));
        let points = self.buckets.iter().enumerate();
        let points =
            points.map(|(bucket, n)| (bucket as f64, 100.0 * *n as f64 / self.contents.max(1) as f64));
        panels.push(Panel {
            title: "Distribution of the leading 7 bits".to_owned(),
            x: "bucket".to_owned(),
            y: "% of the fingerprints".to_owned(),
            series: vec![PlotSeries {
                name: "the crawl".to_owned(),
                dashed: false,
                points: points.collect(),
            }],
            marks: vec![(100.0 / BUCKETS as f64, "uniform".to_owned())],
            ..Panel::default()
        });
        panels
    }
}
