//! Report of `doppel overlap`, and how it is printed.

use std::io::{self, Write};

use anyhow::Context;
use doppel_inputs::tally::Tally;
use doppel_overlap::{
    Band, FingerprintFile, MirrorPair, PairingResult, PairingStatistics, ReplicaStatistics, ReplicatedPage,
};
use doppel_terminal::bounded;
use doppel_terminal::output::{bytes, count, headed, interval, percent, plural, share, table};
use serde::Serialize;

/// The report with all its figures.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Figures of exact copies.
    pub(super) whole: Whole,
    /// Figures by chunks of lines, exact copies included.
    pub(super) chunks: Vec<Chunks>,
    /// Pages whose exact copies are on most hosts.
    pub(super) most_replicated: Vec<ReplicatedPage>,
    /// Files of fingerprints.
    pub(super) space: Vec<FingerprintFile>,
    /// Memory limit, in bytes.
    pub(super) memory_bytes: u64,
    /// Largest memory use of the process in bytes, if the system reports it.
    pub(super) process_memory_bytes: Option<u64>,
    pub(super) read_seconds: f64,
    pub(super) input: Tally,
}

/// Figures of pages whose whole text has exact copies.
#[derive(Debug, Serialize)]
pub(super) struct Whole {
    #[serde(flatten)]
    replication: ReplicaStatistics,
    saved_share: f64,
}

/// Pairs that were found by chunks of `lines` lines.
#[derive(Debug, Serialize)]
pub(super) struct Chunks {
    lines: u32,
    shared: u8,
    #[serde(flatten)]
    replication: ReplicaStatistics,
    saved_share: f64,
    pairs: u64,
    ways: Vec<NamedWork>,
    mirrors: Vec<MirrorPair>,
}

#[derive(Debug, Serialize)]
struct NamedWork {
    by: &'static str,
    #[serde(flatten)]
    work: PairingStatistics,
}

impl Whole {
    pub(super) fn new(replication: ReplicaStatistics) -> Self {
        let saved_share = share(replication.saved_pages, replication.pages);
        Self { replication, saved_share }
    }
}

impl Chunks {
    /// Builds the figures from the results of all ways of counting, which found the same pairs.
    pub(super) fn new(
        (lines, shared): (u32, u8),
        ways: Vec<(&'static str, PairingResult)>,
        mirrors: Vec<MirrorPair>,
    ) -> anyhow::Result<Self> {
        let replication = ways.first().map(|(_, outcome)| outcome.replication.clone());
        let Whole { replication, saved_share } = Whole::new(replication.context("nothing was counted")?);
        let pairs = ways.first().map_or(0, |(_, outcome)| outcome.work.pairs);
        let ways = ways.into_iter().map(|(by, outcome)| NamedWork { by, work: outcome.work }).collect();
        Ok(Self { lines, shared, replication, saved_share, pairs, ways, mirrors })
    }
}

impl Report {
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let ReplicaStatistics { pages, bytes: all, .. } = self.whole.replication;
        writeln!(out, "{} with {} of HTML and text", plural(pages, "page"), bytes(all))?;
        self.print_savings(out)?;
        self.print_histogram(out)?;
        self.print_costs(out)?;
        for chunks in self.chunks.iter().filter(|chunks| !chunks.mirrors.is_empty()) {
            writeln!(out, "\nhosts that share most chunks of {}", plural(chunks.lines.into(), "line"))?;
            let heading = ["shared", "of the smaller", "host", "chunks", "host", "chunks"];
            let row = |MirrorPair { a, b, shared, of_a, of_b, share }: &MirrorPair| {
                vec![count(*shared), percent(*share), a.clone(), count(*of_a), b.clone(), count(*of_b)]
            };
            headed(out, &heading, chunks.mirrors.iter().map(row))?;
        }
        if !self.most_replicated.is_empty() {
            writeln!(out, "\npages with exact copies on most hosts")?;
            let row = |one: &ReplicatedPage| vec![count(one.hosts), count(one.pages), one.url.clone()];
            headed(out, &["hosts", "copies", "the first of them"], self.most_replicated.iter().map(row))?;
        }
        Ok(())
    }

    /// Iterates over all measures with their names.
    fn measures(&self) -> impl Iterator<Item = (String, &ReplicaStatistics)> {
        let whole = std::iter::once(("whole pages".to_owned(), &self.whole.replication));
        whole.chain(self.chunks.iter().map(|chunks| {
            let name = format!("{} of {}", chunks.shared, plural(chunks.lines.into(), "line"));
            (name, &chunks.replication)
        }))
    }

    fn print_savings(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\nwhat need not be visited, because a page that is visited")?;
        let heading = ["has as much in common", "pages", "", "bytes", "", "pages with replicas", ""];
        let rows = self.measures().map(|(name, all)| {
            vec![
                name,
                count(all.saved_pages),
                percent(share(all.saved_pages, all.pages)),
                bytes(all.saved_bytes),
                percent(share(all.saved_bytes, all.bytes)),
                count(all.replicated),
                percent(share(all.replicated, all.pages)),
            ]
        });
        headed(out, &heading, rows)
    }

    fn print_histogram(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\npages by the number of replicas, themselves included")?;
        let band = |band: &Band| interval(band.from, band.to);
        let mut rows = vec![vec!["replicas".to_owned()]];
        rows.extend(self.whole.replication.replicas.iter().map(|one| vec![band(one)]));
        for (name, all) in self.measures() {
            rows[0].push(name);
            for (row, band) in rows[1..].iter_mut().zip(&all.replicas) {
                row.push(percent(share(band.pages, all.pages)));
            }
        }
        table(out, &rows)
    }

    fn print_costs(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\nreading took {:.1} s; what counting took", self.read_seconds)?;
        let heading = [
            "",
            "fingerprints",
            "bytes",
            "sorting",
            "way",
            "time",
            "memory reserved",
            "disk",
            "pairs",
            "candidates",
            "counted",
            "counters",
        ];
        let mut rows = Vec::new();
        for (space, number) in self.space.iter().zip(0..) {
            let name = space.lines.map_or("whole pages".to_owned(), |lines| plural(lines.into(), "line"));
            let sorting = format!("{:.2} s", space.sort_seconds);
            let mut cells = vec![name, count(space.fingerprints), bytes(space.bytes), sorting];
            let chunks = if number == 0 { None } else { self.chunks.get(number - 1) };
            if chunks.is_none() {
                rows.push(cells.clone());
            }
            for NamedWork { by, work } in chunks.into_iter().flat_map(|chunks| &chunks.ways) {
                cells.truncate(4);
                cells.extend([(*by).to_owned(), format!("{:.2} s", work.seconds), bytes(work.memory_bytes)]);
                let counters = match work.functions {
                    0 => String::new(),
                    functions => format!("{functions} x {}", count(work.counters)),
                };
                let counted = [work.pairs, work.candidates, work.occurrences].map(count);
                cells.push(bytes(work.disk_bytes));
                cells.extend(counted);
                cells.push(counters);
                rows.push(cells.clone());
                cells[..4].fill(String::new());
            }
        }
        headed(out, &heading, rows)?;
        if let Some(most) = self.process_memory_bytes {
            writeln!(out, "{}", bounded::describe_memory(most, self.memory_bytes))?;
        }
        Ok(())
    }
}
