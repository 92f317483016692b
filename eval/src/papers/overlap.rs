//! `doppel-eval overlap`: measures what pages share and what it costs to find it, beside the figures of the
//! paper.
//!
//! N. Shivakumar and H. Garcia-Molina, *Finding near-replicas of documents on the Web*, WebDB 1998: figure 1,
//! the savings, and the tables. The code of `doppel overlap` counts everything, once by sorting and once by
//! coarse counting. Both ways must find the same pairs.

mod print;

use anyhow::ensure;
use clap::Args;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::reading::hashed_lines;
use doppel_overlap::{
    Chunking, CollectionBuilder, DocumentCollection, FingerprintFile, MirrorPair, PairingMethod,
    PairingStatistics, ReplicaStatistics, ReplicatedPage, TableSizes,
};
use doppel_terminal::bounded::{self, BoundsArgs};
use doppel_terminal::output::share;
use doppel_terminal::progress;
use serde::Serialize;

use doppel_inputs::processor;

/// Kinds of chunks in the paper, and the number that two pages must share.
const CHUNKINGS: [Chunking; 2] = [Chunking { lines: 4, shared: 15 }, Chunking { lines: 2, shared: 25 }];

/// Measure how much all pages share, and what both ways of counting it take.
///
/// Pages are cut into chunks of four lines, of which two pages must share 15, and of two lines, of which they
/// must share 25. Prints how many replicas pages have, what need not be visited, and the space and time of
/// sorting and of coarse counting. Each figure is beside that of the source, which counted 24 million pages
/// of 1998. The last of several versions of a page counts. The command fails if the two ways find different
/// pairs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel-eval overlap crawl.warc.gz
  doppel-eval overlap --memory 2GB --plot overlap.svg crawl-1.warc.gz crawl-2.warc.gz")]
pub(crate) struct Overlap {
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    bounds: BoundsArgs,
    /// Number of pages and of pairs of hosts that are listed.
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
}

/// Figures of all kinds of chunks.
#[derive(Debug, Serialize)]
pub(crate) struct OverlapResult {
    /// Figures of exact copies, of chunks of four lines and of chunks of two lines.
    measures: Vec<ChunkingMeasures>,
    maps: TableSizes,
    read_seconds: f64,
    /// Seconds to find exact copies after their file is sorted.
    copies_seconds: f64,
    /// Memory that the options allow.
    memory_bytes: u64,
    /// Peak memory of the process. `None` if the system does not report it.
    process_memory_bytes: Option<u64>,
    /// Pages whose exact copies are on the most hosts.
    most_replicated: Vec<ReplicatedPage>,
    /// Pairs of hosts that share the most chunks of four lines.
    mirrors: Vec<MirrorPair>,
}

/// Figures of one kind of chunks.
#[derive(Debug, Serialize)]
struct ChunkingMeasures {
    /// Number of lines of a chunk. `None` if a whole page is one chunk.
    lines: Option<u32>,
    /// Number of chunks that two pages must share.
    shared: u8,
    replication: ReplicaStatistics,
    saved_pages_share: f64,
    saved_bytes_share: f64,
    space: FingerprintFile,
    /// Costs of sorting and of coarse counting. `None` for exact copies, which only sorting finds.
    ways: Option<PairingCosts>,
}

/// Costs of finding the pairs of pages that share chunks, by sorting and by coarse counting. Both ways find
/// equal pairs, or the command fails.
#[derive(Debug, Serialize)]
struct PairingCosts {
    sort: PairingCost,
    coarse: PairingCost,
}

/// Cost of finding the pairs of pages that share chunks, by sorting or by coarse counting.
#[derive(Debug, Serialize)]
struct PairingCost {
    #[serde(flatten)]
    work: PairingStatistics,
    /// Seconds of processor time, which other programs do not change.
    processor_seconds: f64,
}

impl ChunkingMeasures {
    fn new(
        chunking: Option<Chunking>,
        replication: ReplicaStatistics,
        space: &FingerprintFile,
        ways: Option<PairingCosts>,
    ) -> Self {
        Self {
            lines: chunking.map(|chunking| chunking.lines),
            shared: chunking.map_or(1, |chunking| chunking.shared),
            saved_pages_share: share(replication.saved_pages, replication.pages),
            saved_bytes_share: share(replication.saved_bytes, replication.bytes),
            replication,
            space: space.clone(),
            ways,
        }
    }

    fn counted(
        collection: &DocumentCollection,
        number: usize,
        space: &FingerprintFile,
    ) -> anyhow::Result<Self> {
        let chunking = CHUNKINGS[number];
        let count = |way| {
            let begin = processor::seconds();
            let outcome = collection.overlap(number, way, |_| Ok(()))?;
            anyhow::Ok((outcome, processor::seconds() - begin))
        };
        let ((sort, sort_seconds), (coarse, coarse_seconds)) =
            (count(PairingMethod::Sort)?, count(PairingMethod::Coarse(None))?);
        let found =
            [&sort, &coarse].map(|outcome| (outcome.digest, outcome.work.pairs, &outcome.replication));
        let lines = chunking.lines;
        ensure!(
            found[0] == found[1],
            "sorting and coarse counting found different pairs for chunks of {lines} lines"
        );
        let counted = |work, processor_seconds| PairingCost { work, processor_seconds };
        let ways = PairingCosts {
            sort: counted(sort.work, sort_seconds),
            coarse: counted(coarse.work, coarse_seconds),
        };
        Ok(Self::new(Some(chunking), coarse.replication, space, Some(ways)))
    }
}

impl Overlap {
    pub(crate) fn run(self) -> anyhow::Result<OverlapResult> {
        let mut builder = CollectionBuilder::new(&self.bounds.budget()?, &CHUNKINGS, false)?;
        let read = hashed_lines::read(&self.inputs, &mut builder)?;
        read.tally.verdict(self.inputs.strict, 0)?;
        let spinner = progress::waiting("counting");
        let collection = builder.finish()?;
        // The first file is that of whole pages.
        let space = collection.fingerprint_files();
        let mut measures = vec![ChunkingMeasures::new(None, collection.exact_replication(), &space[0], None)];
        for (number, space) in space[1..].iter().enumerate() {
            measures.push(ChunkingMeasures::counted(&collection, number, space)?);
        }
        let (mirrors, _) = collection.mirrors(0, PairingMethod::Coarse(None), self.top)?;
        let result = OverlapResult {
            measures,
            maps: collection.table_sizes(),
            read_seconds: read.seconds,
            copies_seconds: collection.copies_seconds(),
            memory_bytes: self.bounds.memory_bytes(),
            process_memory_bytes: bounded::process_memory(),
            most_replicated: collection.most_replicated(self.top)?,
            mirrors,
        };
        spinner.finish_and_clear();
        Ok(result)
    }
}
