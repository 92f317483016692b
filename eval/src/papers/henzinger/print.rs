//! Tables and figures of the reproduction, with the numbers of the tables and figures in the paper.

use doppel_terminal::output::known;
use doppel_terminal::svg::{Panel, PlotSeries};

use super::figures::{Cutoff, ReasonCounts, Row};
use super::found_pairs::{self, LargeDifferences};
use super::measures::{Algorithm, BITS};
use super::{AlgorithmGraph, HenzingerResult, TruthScores};
use crate::ground_truth::labelled::Truth;
use crate::report::{Report, Table, percent};

impl Report for HenzingerResult {
    fn tables(&self) -> Vec<Table> {
        let mut finds = Table::new(
            &format!("what is found among {} contents (the source: sections 3.2, 3.3, 3.5)", self.contents),
            [
                "algorithm",
                "pairs",
                "contents in them",
                "mean degree",
                "degree 100 or more, %",
                "on one site, %",
                "terms differing: mean",
                "median",
                "above 200",
            ],
        );
        for AlgorithmGraph { algorithm, graph, terms, .. } in &self.algorithms {
            finds.row([
                algorithm.name().to_owned(),
                graph.pairs.to_string(),
                graph.contents.to_string(),
                format!("{:.1}", graph.mean_degree),
                percent(graph.degree_100),
                percent(graph.one_site),
                format!("{:.1}", terms.mean),
                terms.median.to_string(),
                terms.above_200.to_string(),
            ]);
        }
        let mut tables = vec![
            finds,
            self.degrees(),
            by_similarity("B-similarity (tables 1 and 9)", "mean C-similarity", &self.by_b),
            by_similarity("C-similarity (table 10)", "mean B-similarity", &self.by_c),
        ];
        for TruthScores { name, found, .. } in &self.truths {
            let title =
                format!("{name}: what is found, with the pairs in brackets (tables 2 and 5; R: table 12)");
            tables.push(found_pairs::table(&title, found));
        }
        tables.push(self.reasons());
        let large: Vec<(&str, &[LargeDifferences])> =
            self.truths.iter().map(|of| (of.name, &of.large[..])).collect();
        tables.push(found_pairs::large_table(&large));
        tables.extend(self.truths.iter().flat_map(|of| of.halves.tables(of.name)));
        tables
    }

    fn notes(&self) -> Vec<String> {
        let correlation = known(self.correlation, |r| format!("{r:.3}"));
        vec![
            format!("correlation of the two measures over the B-similar pairs: {correlation}"),
            "terms in which pairs differ are words of the product, whatever is compared".to_owned(),
            "pairs with a page that is absent or has no word are left out".to_owned(),
            "one site: the same host without its first label, where two labels stay".to_owned(),
            "recall is in relation to the pairs that have a label, not to all that there are".to_owned(),
            format!("{:.0} s", self.seconds),
        ]
    }

    fn panels(&self) -> Vec<Panel> {
        let line = |name: &str, dashed, points| PlotSeries { name: name.to_owned(), dashed, points };
        let degrees = self.algorithms.iter().map(|AlgorithmGraph { algorithm, graph, .. }| {
            let points = graph.degrees.iter().map(|(degree, n)| (f64::from(*degree), *n as f64));
            line(algorithm.name(), false, points.collect())
        });
        let degrees = Panel {
            title: "Degrees of the graph of near-duplicates".to_owned(),
            x: "degree".to_owned(),
            y: "contents".to_owned(),
            logarithmic_x: true,
            logarithmic_y: true,
            series: degrees.collect(),
            ..Panel::default()
        };
        let shares = |title: &str, x: &str, rows: &[Row]| Panel {
            title: title.to_owned(),
            x: x.to_owned(),
            y: "%".to_owned(),
            series: vec![
                line("share of the pairs", false, points(rows, |row| Some(row.share))),
                line("precision, judged pairs", true, points(rows, |row| row.judged.precision())),
            ],
            ..Panel::default()
        };
        let curve = |cutoffs: &[Cutoff]| {
            let point = |cutoff: &Cutoff| Some((100.0 * cutoff.recall?, 100.0 * cutoff.precision?));
            cutoffs.iter().filter_map(point).collect()
        };
        let by_cutoff = |cutoffs: &[Cutoff]| {
            let point = |cutoff: &Cutoff| Some((f64::from(cutoff.bits), 100.0 * cutoff.precision?));
            cutoffs.iter().filter_map(point).collect()
        };
        let by_truth = |points: &dyn Fn(&TruthScores) -> Vec<(f64, f64)>| -> Vec<PlotSeries> {
            let series = self.truths.iter().enumerate();
            series.map(|(at, of)| line(of.name, at > 0, points(of))).collect()
        };
        let counts = |counts: &[(u32, u64)]| {
            counts.iter().map(|(value, pairs)| (f64::from(*value), *pairs as f64)).collect()
        };
        let differences = self.algorithms.iter().map(|AlgorithmGraph { algorithm, terms, .. }| {
            line(algorithm.name(), false, counts(&terms.to_200))
        });
        let differences = Panel {
            title: "Pairs by the terms in which they differ, up to 200".to_owned(),
            x: "terms".to_owned(),
            y: "pairs".to_owned(),
            logarithmic_y: true,
            series: differences.collect(),
            ..Panel::default()
        };
        let by_b = (2_u32..).zip(&self.c_by_b);
        let by_b = Panel {
            title: "C-similarity of the pairs of each B-similarity".to_owned(),
            x: "agreeing bits".to_owned(),
            y: "pairs".to_owned(),
            series: by_b.map(|(b, pairs)| line(&format!("B-similarity {b}"), false, counts(pairs))).collect(),
            ..Panel::default()
        };
        vec![
            degrees,
            differences,
            by_b,
            shares("Pairs by B-similarity", "equal supershingles", &self.by_b),
            shares("Pairs by C-similarity", "agreeing bits, least of the band", &self.by_c),
            Panel {
                title: format!("B with a cutoff of C, 0 to {BITS}: precision against recall"),
                x: "R, % of what B finds, training half".to_owned(),
                y: "precision, %".to_owned(),
                series: by_truth(&|of| curve(&of.halves.training)),
                ..Panel::default()
            },
            Panel {
                title: "The same by the cutoff".to_owned(),
                x: "least agreeing bits".to_owned(),
                y: "precision, %".to_owned(),
                series: by_truth(&|of| by_cutoff(&of.halves.training)),
                ..Panel::default()
            },
        ]
    }
}

impl HenzingerResult {
    /// Table of the reasons why pairs differ, and of the pairs that are found.
    fn reasons(&self) -> Table {
        let title = "pairs made to differ for one reason: how many are found, same site + different sites (tables 3 and 6: same; 4 and 7: undecided)";
        let names = Algorithm::ALL.map(Algorithm::name);
        let head = ["reason", "truth", "pairs"].into_iter().chain(names);
        let mut table = Table::new(title, head.chain(["mean B-similarity", "mean C-similarity"]));
        for ReasonCounts { reason, pairs, found, mean_b, mean_c } in &self.reasons {
            let truth = match reason.truth() {
                Truth::Same => "same",
                Truth::Other => "other",
                Truth::Undecided => "undecided",
            };
            let by_site = |[one, two]: &[u64; 2]| format!("{one} + {two}");
            let mut row = vec![reason.name().to_owned(), truth.to_owned(), by_site(pairs)];
            row.extend(found.iter().map(by_site));
            row.extend([format!("{mean_b:.2}"), format!("{mean_c:.1}")]);
            table.row(row);
        }
        table
    }

    /// Table of the exponents of the degrees.
    fn degrees(&self) -> Table {
        let title = "degrees: contents by degree, a line by least squares through the logarithms (figures 1 and 3; the source: -1.3, -1.4)";
        let mut table =
            Table::new(title, ["algorithm", "distinct degrees", "greatest", "exponent", "R squared"]);
        for AlgorithmGraph { algorithm, graph, .. } in &self.algorithms {
            let greatest = graph.degrees.last().map_or(0, |(degree, _)| *degree);
            let fit = graph.power_law.map_or([NONE, NONE].map(str::to_owned), |fit| {
                [format!("{:.2}", fit.exponent), format!("{:.2}", fit.r_squared)]
            });
            let counts = [graph.degrees.len().to_string(), greatest.to_string()];
            table.row([algorithm.name().to_owned()].into_iter().chain(counts).chain(fit));
        }
        table
    }
}

/// Cell of a figure that does not exist.
const NONE: &str = "-";

fn points(rows: &[Row], of: impl Fn(&Row) -> Option<f64>) -> Vec<(f64, f64)> {
    rows.iter().filter_map(|row| Some((f64::from(row.least), 100.0 * of(row)?))).collect()
}

fn by_similarity(title: &str, other: &str, rows: &[Row]) -> Table {
    let head =
        ["similarity", "pairs", "% of all", other, "judged pairs: precision, %", "transplants: precision, %"];
    let mut table = Table::new(&format!("pairs by {title}"), head);
    for row in rows {
        let range =
            if row.least == row.most { row.least.to_string() } else { format!("{}-{}", row.least, row.most) };
        let [judged, ..] = row.judged.cells();
        let [transplants, ..] = row.transplants.cells();
        table.row([
            range,
            row.pairs.to_string(),
            percent(row.share),
            format!("{:.2}", row.other_mean),
            judged,
            transplants,
        ]);
    }
    table
}
