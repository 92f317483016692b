//! Tables and figures, beside those of the paper.

use doppel_model::pairwise::Policy;
use doppel_terminal::output::{count, known, plural};
use doppel_terminal::svg::{Panel, PlotSeries};

use super::figures::{PolicyFigures, Spread, ThresholdFigures};
use super::{BELOW, MultiSimhashResult};
use crate::report::{Report, Table};

/// F in the paper by words of a feature, from 1 on. The paper states no more of these values.
const SOURCE_WORDS: [f64; 2] = [0.6117, 0.7469];
/// Table 1 of the paper: F and the threshold, by lexicons from 1 on.
const SOURCE_LEXICONS: [(f64, usize); 10] = [
    (0.7469, 4),
    (0.8071, 6),
    (0.8213, 3),
    (0.8515, 2),
    (0.8805, 3),
    (0.7855, 3),
    (0.8356, 3),
    (0.8077, 1),
    (0.8139, 2),
    (0.7942, 2),
];
/// Numbers of lexicons that figures 3 to 5 of the paper show.
const SHOWN: [u32; 4] = [1, 4, 7, 10];
/// Last threshold that figures 3 to 5 of the paper show.
const SHOWN_BELOW: usize = 15;

fn lexicons(of: &PolicyFigures) -> u32 {
    if let Policy::MultiSimhash { lexicons, .. } = of.policy { lexicons } else { 0 }
}

fn words(of: &PolicyFigures) -> u32 {
    if let Policy::MultiSimhash { words, .. } = of.policy { words } else { 0 }
}

/// Formats a mean with its standard deviation.
fn cell(spread: Spread) -> String {
    format!("{:.4} ± {:.4}", spread.mean, spread.deviation)
}

fn optional(spread: Option<Spread>) -> String {
    known(spread, cell)
}

/// Formats precision, recall and F, and the numbers of wrong texts that a query finds.
fn cells(at: &ThresholdFigures) -> [String; 6] {
    [
        optional(at.precision),
        cell(at.recall),
        cell(at.f),
        format!("{:.4} to {:.4}", at.f.least, at.f.most),
        format!("{:.2}", at.wrong_real),
        format!("{:.2}", at.wrong_recombined),
    ]
}

const CELLS: [&str; 6] = ["precision", "recall", "F", "F of a seed", "wrong, pieces", "wrong, recombined"];

/// Makes a table with a row for each policy at its best threshold, the figures of pieces alone, and the
/// figures of the paper.
fn best_table(
    title: &str,
    by: &str,
    rows: &[PolicyFigures],
    number: fn(&PolicyFigures) -> u32,
    source: impl Fn(usize) -> Option<(f64, String)>,
) -> Table {
    let head =
        [&[by, "best below", "of a seed"], &CELLS[..], &["F, pieces alone", "below", "source: F", "below"]];
    let mut table = Table::new(title, head.concat());
    for (at, of) in rows.iter().enumerate() {
        let Some(best) = of.at(of.best) else { continue };
        let (least, most) = of.best_of_sets;
        let mut row = vec![number(of).to_string(), of.best.to_string(), format!("{least} to {most}")];
        row.extend(cells(best));
        row.extend([cell(of.real_f), of.real_best.to_string()]);
        let source =
            source(at).map_or_else(|| ["-", "-"].map(str::to_owned), |(f, below)| [format!("{f:.4}"), below]);
        row.extend(source);
        table.row(row);
    }
    table
}

impl MultiSimhashResult {
    fn shown(&self) -> impl Iterator<Item = &PolicyFigures> {
        self.by_lexicons.iter().filter(|of| SHOWN.contains(&lexicons(of)))
    }

    /// Figures at the product's threshold, with one lexicon and with all lexicons.
    fn ends(&self) -> Option<[&ThresholdFigures; 2]> {
        let [first, last] = [self.by_lexicons.first()?, self.by_lexicons.last()?];
        Some([first.at(BELOW as usize)?, last.at(BELOW as usize)?])
    }
}

impl Report for MultiSimhashResult {
    fn tables(&self) -> Vec<Table> {
        let source_words = |at: usize| SOURCE_WORDS.get(at).map(|f| (*f, "-".to_owned()));
        let source_lexicons = |at: usize| SOURCE_LEXICONS.get(at).map(|(f, below)| (*f, below.to_string()));
        let mut tables = vec![
            best_table(
                "by words of a feature, one lexicon, at the best threshold (figure 2): mean ± standard deviation of the seeds",
                "words",
                &self.by_words,
                words,
                source_words,
            ),
            best_table(
                "by lexicons, features of two words, at the best threshold (table 1)",
                "lexicons",
                &self.by_lexicons,
                lexicons,
                source_lexicons,
            ),
        ];
        let head = [&["lexicons"], &CELLS[..]].concat();
        let mut table = Table::new(&format!("by lexicons, at a distance below {BELOW} (the default)"), head);
        for of in &self.by_lexicons {
            if let Some(at) = of.at(BELOW as usize) {
                table.row(std::iter::once(lexicons(of).to_string()).chain(cells(at)));
            }
        }
        tables.push(table);
        let head = [&["policy"], &CELLS[..]].concat();
        let mut table = Table::new("what the source compares with", head);
        for of in &self.baselines {
            let at = of.thresholds.iter().map(|at| std::iter::once(of.policy.to_string()).chain(cells(at)));
            at.for_each(|row| table.row(row));
        }
        tables.push(table);
        let name = |of: &PolicyFigures| plural(lexicons(of).into(), "lexicon");
        let head = std::iter::once("below".to_owned()).chain(self.shown().map(name));
        let mut table = Table::new("recall, precision, F by threshold and lexicons (figures 3 to 5)", head);
        for below in 0..=SHOWN_BELOW {
            let cell = |of: &PolicyFigures| {
                let at = of.at(below)?;
                let precision = known(at.precision, |of| format!("{:.3}", of.mean));
                Some(format!("{:.3}, {precision}, {:.3}", at.recall.mean, at.f.mean))
            };
            let cells = self.shown().map(|of| cell(of).unwrap_or_default());
            table.row(std::iter::once(below.to_string()).chain(cells));
        }
        tables.push(table);
        tables
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!(
                "texts: {} of {} pieces of 4 KB, the others near-duplicates of these; and {} recombined from stretches of them",
                count(self.real as u64),
                count(self.pieces as u64),
                count(self.recombined as u64)
            ),
            format!(
                "{} seeds; of each {} queries with {} copies, which change up to {} % of the words",
                self.seeds, self.queries, self.copies_each, self.changed_percent
            ),
            "wrong: what a query finds on average; copies of other queries are among the pieces".to_owned(),
        ];
        if let Some([one, all]) = self.ends() {
            let precision = |at: &ThresholdFigures| known(at.precision, |of| format!("{:.4}", of.mean));
            notes.push(format!(
                "from 1 to {} lexicons at a distance below {BELOW}: recall {:.4} to {:.4}, precision {} to {}",
                self.by_lexicons.len(),
                one.recall.mean,
                all.recall.mean,
                precision(one),
                precision(all)
            ));
        }
        notes.push(format!("{:.0} s", self.seconds));
        notes
    }

    fn panels(&self) -> Vec<Panel> {
        let curve = |of: &PolicyFigures, last: usize, figure: fn(&ThresholdFigures) -> Option<f64>| {
            let shown = of.thresholds.iter().filter(|at| at.below <= last);
            shown.filter_map(|at| Some((at.below as f64, figure(at)?))).collect()
        };
        let line = |name: String, dashed, points| PlotSeries { name, dashed, points };
        let panel = |title: &str, y: &str, series| Panel {
            title: title.to_owned(),
            x: "distance below".to_owned(),
            y: y.to_owned(),
            series,
            ..Panel::default()
        };
        let by_words = self.by_words.iter().map(|of| {
            line(plural(words(of).into(), "word"), false, curve(of, usize::MAX, |at| Some(at.f.mean)))
        });
        let by_lexicons = |figure: fn(&ThresholdFigures) -> Option<f64>| -> Vec<PlotSeries> {
            let name = |of: &PolicyFigures| plural(lexicons(of).into(), "lexicon");
            self.shown().map(|of| line(name(of), false, curve(of, SHOWN_BELOW, figure))).collect()
        };
        let best = |figure: fn(&ThresholdFigures) -> f64| -> Vec<(f64, f64)> {
            let point = |of: &PolicyFigures| Some((f64::from(lexicons(of)), figure(of.at(of.best)?)));
            self.by_lexicons.iter().filter_map(point).collect()
        };
        let source = (1..).zip(SOURCE_LEXICONS).map(|(lexicons, (f, _))| (f64::from(lexicons), f)).collect();
        let mut table = panel(
            "Table 1: best F by lexicons",
            "F",
            vec![
                line("mean of the seeds".to_owned(), false, best(|at| at.f.mean)),
                line("a deviation less".to_owned(), true, best(|at| at.f.mean - at.f.deviation)),
                line("a deviation more".to_owned(), true, best(|at| at.f.mean + at.f.deviation)),
                line("the source, five queries".to_owned(), false, source),
            ],
        );
        table.x = "lexicons".to_owned();
        vec![
            panel("Figure 2: words of a feature", "F", by_words.collect()),
            panel("Figure 3: lexicons", "recall", by_lexicons(|at| Some(at.recall.mean))),
            panel("Figure 4: lexicons", "precision", by_lexicons(|at| at.precision.map(|of| of.mean))),
            panel("Figure 5: lexicons", "F", by_lexicons(|at| Some(at.f.mean))),
            table,
        ]
    }
}
