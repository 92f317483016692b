//! Tables and plots of the methods, of the thresholds, and of the thresholds that cross-validation chooses.

use doppel_terminal::svg::{Panel, PlotSeries};

use super::CopiesResult;
use super::figures::Figures;
use crate::ground_truth::kind::TruthKind;
use crate::report::{Report, Table};

fn share(value: Option<f64>, interval: Option<(f64, f64)>) -> String {
    match (value, interval) {
        (Some(value), Some((low, high))) => format!("{value:.3} [{low:.2}-{high:.2}]"),
        _ => "-".to_owned(),
    }
}

fn cells(figures: &Figures) -> [String; 3] {
    let Figures { precision, precision_interval, recall, recall_interval, accepted: (correct, incorrect) } =
        figures;
    [
        share(*precision, *precision_interval),
        share(*recall, *recall_interval),
        format!("{correct} / {incorrect}"),
    ]
}

const FIGURES: [&str; 3] = ["precision [95 %]", "recall [95 %]", "accepted: correct / incorrect"];

impl Report for CopiesResult {
    fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        for (kind, correct, incorrect) in &self.pairs {
            let title = format!("{}: {correct} correct and {incorrect} incorrect pairs", kind.name());
            let mut methods = Table::new(&title, [&["method"][..], &FIGURES].concat());
            for row in self.rows.iter().filter(|row| row.kind == *kind) {
                methods.row([row.method.clone()].into_iter().chain(cells(&row.figures)));
            }
            tables.push(methods);
            let title = format!("{}: the measure of copies above a threshold", kind.name());
            let mut sweep = Table::new(&title, [&["threshold"][..], &FIGURES].concat());
            for row in self.sweep.iter().filter(|row| row.kind == *kind) {
                sweep.row([format!("{:.2}", row.threshold)].into_iter().chain(cells(&row.figures)));
            }
            tables.push(sweep);
        }
        let mut chosen = Table::new(
            "each measure, its threshold chosen on other families (times of ten)",
            [&["pairs", "measure"][..], &FIGURES, &["thresholds"]].concat(),
        );
        for row in &self.chosen {
            let thresholds = row.chosen.thresholds.iter().map(|(at, times)| format!("0.{at} x {times}"));
            let thresholds = thresholds.collect::<Vec<_>>().join(", ");
            chosen.row(
                [row.kind.name().to_owned(), row.method.clone()]
                    .into_iter()
                    .chain(cells(&row.chosen.figures))
                    .chain([thresholds]),
            );
        }
        tables.push(chosen);
        let mut seconds = Table::new("seconds for all pages", ["method", "seconds"]);
        for (method, taken) in &self.seconds {
            seconds.row([method.clone(), format!("{taken:.3}")]);
        }
        tables.push(seconds);
        tables
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "graded: by people; one host and two hosts: by a language model after a written rule, by weight, undecided ones left out"
                .to_owned(),
        ]
    }

    fn panels(&self) -> Vec<Panel> {
        let panel = |(kind, ..): &(TruthKind, usize, usize)| {
            let line = |name: &str, dashed, of: fn(&Figures) -> Option<f64>| PlotSeries {
                name: name.to_owned(),
                dashed,
                points: (self.sweep.iter().filter(|row| row.kind == *kind))
                    .filter_map(|row| of(&row.figures).map(|share| (row.threshold, share)))
                    .collect(),
            };
            Panel {
                title: format!("copies, {}", kind.name()),
                x: "threshold".to_owned(),
                y: "share of weight".to_owned(),
                series: vec![
                    line("precision", false, |figures| figures.precision),
                    line("recall", true, |figures| figures.recall),
                ],
                ..Panel::default()
            }
        };
        self.pairs.iter().map(panel).collect()
    }
}
