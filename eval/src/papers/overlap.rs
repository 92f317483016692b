//! `doppel-eval overlap`: what pages share, and what it takes to find it, beside the figures of the source.
//!
//! N. Shivakumar and H. Garcia-Molina, *Finding near-replicas of documents on the Web*, WebDB 1998: its figure 1, its savings, and its
//! tables. All of it is counted by the code of `doppel overlap`, by both ways, which must find the same.

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

/// The chunks of the source, and how many must be shared.
const CHUNKINGS: [Chunking; 2] = [Chunking { lines: 4, shared: 15 }, Chunking { lines: 2, shared: 25 }];

/// Measure how much all pages share, and what both ways of counting it take.
///
/// Pages are cut into chunks of four lines, of which two must share 15, and of two lines, of which two must share 25. Prints how many
/// replicas pages have, what need not be visited, and the space and time that it takes by sorting and by coarse counting, each beside the
/// figures of the source, which counted 24 million pages of 1998. Of several versions of a page the last counts. The command fails if the two ways find
/// different pairs.
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
    /// Pages and pairs of hosts that are listed.
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct OverlapResult {
    /// By exact copies, by four lines and by two.
    measures: Vec<Measured>,
    maps: TableSizes,
    read_seconds: f64,
    /// Seconds to find exact copies once their file is sorted.
    copies_seconds: f64,
    /// What was allowed, and the most that the process had, where the system says it.
    memory_bytes: u64,
    process_memory_bytes: Option<u64>,
    /// The pages whose exact copies are on most hosts.
    most_replicated: Vec<ReplicatedPage>,
    /// The pairs of hosts that share most chunks of four lines.
    mirrors: Vec<MirrorPair>,
}

/// Pages by what they share of one kind.
#[derive(Debug, Serialize)]
struct Measured {
    /// Lines of a chunk; none where all of a page is one.
    lines: Option<u32>,
    /// Chunks that two must share.
    shared: u8,
    replication: ReplicaStatistics,
    saved_pages_share: f64,
    saved_bytes_share: f64,
    space: FingerprintFile,
    /// None of exact copies, which are found by sorting alone.
    ways: Option<Ways>,
}

/// Both ways, which found the same.
#[derive(Debug, Serialize)]
struct Ways {
    sort: Counted,
    coarse: Counted,
}

/// What a way took.
#[derive(Debug, Serialize)]
struct Counted {
    #[serde(flatten)]
    work: PairingStatistics,
    /// Of processor time, which other programs do not change.
    processor_seconds: f64,
}

impl Measured {
    fn new(
        chunking: Option<Chunking>,
        replication: ReplicaStatistics,
        space: &FingerprintFile,
        ways: Option<Ways>,
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
        ensure!(found[0] == found[1], "the two ways found different pairs of chunks of {lines} lines");
        let counted = |work, processor_seconds| Counted { work, processor_seconds };
        let ways =
            Ways { sort: counted(sort.work, sort_seconds), coarse: counted(coarse.work, coarse_seconds) };
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
        // The file of whole pages is the first.
        let space = collection.fingerprint_files();
        let mut measures = vec![Measured::new(None, collection.exact_replication(), &space[0], None)];
        for (number, space) in space[1..].iter().enumerate() {
            measures.push(Measured::counted(&collection, number, space)?);
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
