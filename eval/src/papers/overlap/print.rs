//! Tables and figures, each beside that of the paper.

use doppel_overlap::Band;
use doppel_terminal::bounded;
use doppel_terminal::output::{bytes, count, interval, known, share};
use doppel_terminal::svg::{Panel, PlotSeries, Rectangle};

use super::{ChunkingMeasures, OverlapResult, PairingCost};
use crate::report::{Report, Table, percent};

/// Number of pages that the paper's authors counted.
const SOURCE_PAGES: f64 = 24e6;
/// Shares of pages without a replica in figure 1 of the paper, as far as its text states them: of whole
/// pages, of four lines, and of two lines.
const SOURCE_ALONE: [Option<f64>; 3] = [Some(0.64), None, Some(0.52)];
/// Shares of whole pages by their number of replicas in figure 1 of the paper: from, to, and share.
const SOURCE_BANDS: [(u64, u64, f64); 3] = [(1, 1, 0.64), (2, 2, 0.18), (10, 100, 0.05)];
/// Shares of pages that need not be visited, in the paper: for copies of whole pages, for chunks of four
/// lines, and for chunks of two lines.
const SOURCE_SAVED: [f64; 3] = [0.22, 0.29, 0.33];
/// Savings of bytes in the paper, of 150 GB: "about 33 GB" and "almost 50 GB".
const SOURCE_SAVED_BYTES: [Option<f64>; 3] = [Some(33e9 / 150e9), None, Some(50e9 / 150e9)];
/// Sizes of fingerprints in table 1 of the paper. The constants below are from that table too.
const SOURCE_FINGERPRINTS: [&str; 3] = ["800 MB", "2.4 GB", "4.6 GB"];
const SOURCE_FINGERPRINT_BYTES: [f64; 3] = [0.8e9, 2.4e9, 4.6e9];
const SOURCE_SORTING: [&str; 3] = ["52 min", "163 min", "7:14 h"];
const SOURCE_PAIRS: [&str; 3] = ["45 min", "85 min", "2:42 h"];
const SOURCE_READING: &str = "44 h";
const SOURCE_MAPS: [&str; 2] = ["1.5 GB", "750 MB"];

fn name(measured: &ChunkingMeasures) -> String {
    match measured.lines {
        None => "whole pages".to_owned(),
        Some(lines) => format!("{} of {lines} lines", measured.shared),
    }
}

/// End of a band on an axis of numbers, and its label. The last band has no end, and is drawn up to ten times
/// its start.
fn band(Band { from, to, .. }: &Band) -> (f64, String) {
    let end = to.map_or(*from as f64 * 10.0, |to| to as f64 + 1.0);
    (end, interval(*from, *to))
}

fn stated(share: Option<f64>) -> String {
    known(share, |share| format!("{:.0}", 100.0 * share))
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.2} s")
}

impl OverlapResult {
    fn savings(&self) -> Table {
        let title = "what need not be visited, because a page that is visited has as much in common, %";
        let head = ["in common", "pages", "of pages", "source", "of bytes", "source", "replicated", "source"];
        let mut table = Table::new(title, head);
        for (at, measured) in self.measures.iter().enumerate() {
            let all = &measured.replication;
            table.row([
                name(measured),
                count(all.pages),
                percent(measured.saved_pages_share),
                stated(SOURCE_SAVED.get(at).copied()),
                percent(measured.saved_bytes_share),
                stated(SOURCE_SAVED_BYTES[at]),
                percent(share(all.replicated, all.pages)),
                stated(SOURCE_ALONE[at].map(|alone| 1.0 - alone)),
            ]);
        }
        table
    }

    fn histogram(&self) -> Table {
        let mut head = vec!["replicas".to_owned()];
        for (measured, alone) in self.measures.iter().zip(SOURCE_ALONE) {
            head.push(name(measured));
            head.extend(alone.map(|_| "source".to_owned()));
        }
        let mut table =
            Table::new("pages by the number of replicas, themselves included (figure 1), %", head);
        let Some(first) = self.measures.first() else { return table };
        for (number, one) in first.replication.replicas.iter().enumerate() {
            let mut row = vec![band(one).1];
            for (at, measured) in self.measures.iter().enumerate() {
                let all = &measured.replication;
                row.push(percent(share(all.replicas[number].pages, all.pages)));
                let source = match SOURCE_ALONE[at] {
                    None => continue,
                    Some(alone) if number == 0 => Some(alone),
                    Some(_) if at == 0 => {
                        SOURCE_BANDS.iter().find(|(from, ..)| *from == one.from).map(|(.., share)| *share)
                    }
                    Some(_) => None,
                };
                row.push(stated(source));
            }
            table.row(row);
        }
        table
    }

    /// Table of the costs of each kind of chunks, beside the costs that the paper states.
    fn costs(&self) -> Table {
        let names: Vec<String> = self.measures.iter().map(name).collect();
        let source = names.iter().map(|name| format!("source: {name}"));
        let head = std::iter::once(String::new()).chain(names.clone()).chain(source);
        let mut table = Table::new("space and time (table 1)", head);
        let mut row = |what: &str, own: &dyn Fn(&ChunkingMeasures) -> String, source: [String; 3]| {
            let own = self.measures.iter().map(own);
            table.row(std::iter::once(what.to_owned()).chain(own).chain(source));
        };
        let none = || ["-"; 3].map(str::to_owned);
        let texts = |texts: [&str; 3]| texts.map(str::to_owned);
        let each = |total: f64, pages: f64| format!("{:.0} bytes", total / pages.max(1.0));
        row("fingerprints", &|one| count(one.space.fingerprints), none());
        row("they take", &|one| bytes(one.space.bytes), texts(SOURCE_FINGERPRINTS));
        row(
            "of a page",
            &|one| each(one.space.bytes as f64, one.replication.pages as f64),
            SOURCE_FINGERPRINT_BYTES.map(|all| each(all, SOURCE_PAGES)),
        );
        row("URLs", &|_| bytes(self.maps.url_bytes), texts([SOURCE_MAPS[0]; 3]));
        row("hosts", &|_| bytes(self.maps.host_bytes), texts([SOURCE_MAPS[1]; 3]));
        row("reading", &|_| seconds(self.read_seconds), texts([SOURCE_READING; 3]));
        row("sorting fingerprints", &|one| seconds(one.space.sort_seconds), texts(SOURCE_SORTING));
        let coarse = |of: fn(&PairingCost) -> String| {
            move |one: &ChunkingMeasures| known(one.ways.as_ref(), |ways| of(&ways.coarse))
        };
        let sort = |of: fn(&PairingCost) -> String| {
            move |one: &ChunkingMeasures| known(one.ways.as_ref(), |ways| of(&ways.sort))
        };
        let copies = seconds(self.copies_seconds);
        let coarsely = coarse(|one| seconds(one.work.seconds));
        row(
            "pairs, counted coarsely",
            &|one| if one.ways.is_none() { copies.clone() } else { coarsely(one) },
            texts(SOURCE_PAIRS),
        );
        row("pairs, sorted", &sort(|one| seconds(one.work.seconds)), none());
        let spent = |one: &PairingCost| seconds(one.processor_seconds);
        row("processor time, counted coarsely", &coarse(spent), none());
        row("processor time, sorted", &sort(spent), none());
        row("memory, counted coarsely", &coarse(|one| bytes(one.work.memory_bytes)), none());
        row("memory, sorted", &sort(|one| bytes(one.work.memory_bytes)), none());
        row("disk, counted coarsely", &coarse(|one| bytes(one.work.disk_bytes)), none());
        row("disk, sorted", &sort(|one| bytes(one.work.disk_bytes)), none());
        row("occurrences of pairs", &sort(|one| count(one.work.occurrences)), none());
        row("candidates", &coarse(|one| count(one.work.candidates)), none());
        row("pairs", &coarse(|one| count(one.work.pairs)), none());
        table
    }
}

impl Report for OverlapResult {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.savings(), self.histogram(), self.costs()];
        let mut table = Table::new(
            "pages with exact copies on most hosts (table 2)",
            ["hosts", "copies", "the first of them"],
        );
        for one in &self.most_replicated {
            table.row([count(one.hosts), count(one.pages), one.url.clone()]);
        }
        tables.push(table);
        let head = ["host", "chunks", "host", "chunks", "shared", "% of the smaller"];
        let mut table = Table::new("hosts that share most chunks of four lines", head);
        for one in &self.mirrors {
            let shared = [count(one.shared), percent(one.share)];
            let hosts = [one.a.clone(), count(one.of_a), one.b.clone(), count(one.of_b)];
            table.row(hosts.into_iter().chain(shared));
        }
        tables.push(table);
        tables
    }

    fn notes(&self) -> Vec<String> {
        let memory = self.process_memory_bytes.map(|most| bounded::describe_memory(most, self.memory_bytes));
        let both = "both ways found the same pairs".to_owned();
        let source = "the source: 24,000,000 pages of 1998 with 150 GB, 256 MB of memory; \"-\" is what its text does not state";
        [both, source.to_owned()].into_iter().chain(memory).collect()
    }

    fn panels(&self) -> Vec<Panel> {
        let steps = |measured: &ChunkingMeasures| {
            let all = &measured.replication;
            let step = |one: &Band| {
                let height = 100.0 * share(one.pages, all.pages);
                [(one.from as f64, height), (band(one).0, height)]
            };
            all.replicas.iter().flat_map(step).collect()
        };
        let line = |(at, measured): (usize, &ChunkingMeasures)| PlotSeries {
            name: name(measured),
            dashed: at > 0,
            points: steps(measured),
        };
        let source = SOURCE_BANDS.map(|(from, to, share)| Rectangle {
            name: format!("the source, whole pages: {:.0} %", 100.0 * share),
            group: 5,
            least: (from as f64, 0.0),
            greatest: (to as f64 + 1.0, 100.0 * share),
        });
        let saved = |name: &str, dashed, shares: Vec<f64>| PlotSeries {
            name: name.to_owned(),
            dashed,
            points: (1..).zip(shares).map(|(at, share)| (f64::from(at), 100.0 * share)).collect(),
        };
        let own = |of: fn(&ChunkingMeasures) -> f64| self.measures.iter().map(of).collect();
        vec![
            Panel {
                title: "Figure 1: replicas of a page; boxes: the source, whole pages".to_owned(),
                x: "replicas, the page itself included".to_owned(),
                y: "% of the pages".to_owned(),
                logarithmic_x: true,
                series: self.measures.iter().enumerate().map(line).collect(),
                boxes: source.into(),
                ..Panel::default()
            },
            Panel {
                title: "What need not be visited".to_owned(),
                x: "1: exact copies, 2: 15 of four lines, 3: 25 of two".to_owned(),
                y: "%".to_owned(),
                series: vec![
                    saved("pages", false, own(|one| one.saved_pages_share)),
                    saved("bytes", false, own(|one| one.saved_bytes_share)),
                    saved("pages, the source", true, SOURCE_SAVED.into()),
                ],
                ..Panel::default()
            },
        ]
    }
}
