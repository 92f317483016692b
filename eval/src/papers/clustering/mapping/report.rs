//! Tables and plots of the measured mappings.

use anyhow::ensure;
use doppel_control::layout::SPEED_UP;
use doppel_terminal::output::{NO_FIGURE, count, of_several, plural};
use doppel_terminal::svg::{Panel, PlotSeries};

use super::later::LaterData;
use super::{Design, MappingResult, Pairs, Run, Variant, tolerance};
use crate::report::{Report, Table, percent};

/// Statement of the paper about later data sets.
const PAPER: &str =
    "the paper states a coefficient of variation of 4.5 % in one dimension and 0.29 % in three";

/// Explanation of the column `each`.
const EACH: &str = "each: partitions of each node, boxes in the paper's";

/// Explanations of the columns of later data.
const LATER: [&str; 4] = [
    "learned, later: imbalance of the contents learned from, and of the later data sets",
    "later / floor: over the imbalance of the same data sets dealt at random",
    "cv: standard deviation over mean of the data sets' imbalances; cv / floor: over that of the deal",
    "limit, limit of cv: these ratios for a map that knows what a sample of that size can tell at most",
];

/// Number of dimensions that the paper recommends for its mapping.
const PAPERS_DIMENSIONS: usize = 3;

/// Numbers of dimensions that plots show.
const SHOWN: [usize; 3] = [1, 3, 4];

impl Variant {
    fn name(self) -> String {
        match self.design {
            Design::Paper => format!("paper, N = {}", self.dimensions),
            Design::Control => "control, N = 1".to_owned(),
            Design::Ours => format!("ours, N = {}", self.dimensions),
        }
    }
}

impl MappingResult {
    /// Groups the runs into rows. The runs of a row have one threshold and one variant, and differ in the
    /// number of nodes.
    fn rows(&self) -> impl Iterator<Item = &[Run]> {
        self.runs.chunk_by(|a, b| (a.tau, a.variant) == (b.tau, b.variant))
    }

    fn by_nodes(&self, title: &str, cell: impl Fn(&Run) -> String) -> Table {
        let nodes = self.rows().next().unwrap_or_default().iter().map(|run| run.nodes.to_string());
        let head = ["tau", "mapping", "each"].map(str::to_owned).into_iter().chain(nodes);
        let mut table = Table::new(title, head);
        for row in self.rows() {
            let Some(Run { tau, variant, .. }) = row.first() else { continue };
            let names = [tau.to_string(), variant.name(), variant.partitions_per_node.to_string()];
            table.row(names.into_iter().chain(row.iter().map(&cell)));
        }
        table
    }

    /// Table of the paper's mapping by rho, on the most nodes with the most boxes.
    fn by_rho(&self, title: &str, cell: impl Fn(&Run) -> String) -> Option<Table> {
        let rows = || self.sweep.chunk_by(|a, b| (a.tau, a.variant) == (b.tau, b.variant));
        let first = rows().next()?;
        let on = first.first().map(|run| {
            format!("{}, {} of each", plural(run.nodes.into(), "node"), run.variant.partitions_per_node)
        })?;
        let head = ["tau".to_owned(), "mapping".to_owned()];
        let rhos = first.iter().map(|run| format!("rho {}", run.rho.get()));
        let mut table = Table::new(&format!("{title}, {on}"), head.into_iter().chain(rhos));
        for row in rows() {
            let Some(Run { tau, variant, .. }) = row.first() else { continue };
            table.row([tau.to_string(), variant.name()].into_iter().chain(row.iter().map(&cell)));
        }
        Some(table)
    }

    /// Share of the searches for a partner that do not reach the partner.
    fn loss(&self, run: &Run) -> String {
        match self.pairs.iter().find(|pairs| pairs.tau == run.tau).map_or(0, |pairs| 2 * pairs.pairs) {
            0 => NO_FIGURE.to_owned(),
            searches => percent(run.lost as f64 / searches as f64),
        }
    }

    /// Speed-up of ours on the most nodes, compared with the control and the best variant of the paper with
    /// equal partitions per node. `None` if there is nothing to compare with.
    fn comparison(&self) -> Option<Table> {
        let nodes = self.runs.last()?.nodes;
        let title = format!("speed-up of ours on {}, over that of the others", plural(nodes.into(), "node"));
        let head =
            ["tau", "mapping", "each", "over the control's", "over the best of the paper's", "which is"];
        let mut table = Table::new(&title, head);
        let most: Vec<&Run> = self.runs.iter().filter(|run| run.nodes == nodes).collect();
        for run in most.iter().filter(|run| run.variant.design == Design::Ours) {
            let alike = |other: &&&Run| {
                other.tau == run.tau && other.variant.partitions_per_node == run.variant.partitions_per_node
            };
            let best = |design| {
                let others = most.iter().filter(alike).filter(move |other| other.variant.design == design);
                others.max_by(|a, b| a.speed_up.total_cmp(&b.speed_up))
            };
            let (control, paper) = (best(Design::Control)?, best(Design::Paper)?);
            table.row([
                run.tau.to_string(),
                run.variant.name(),
                run.variant.partitions_per_node.to_string(),
                format!("{:.2}", run.speed_up / control.speed_up),
                format!("{:.2}", run.speed_up / paper.speed_up),
                paper.variant.name(),
            ]);
        }
        Some(table)
    }

    fn lengths_panel(&self) -> Panel {
        let share = |contents: usize| 100.0 * contents as f64 / self.contents as f64;
        Panel {
            title: "Figure 1: contents by length".to_owned(),
            x: "distinct shingles, from".to_owned(),
            y: "% of the contents".to_owned(),
            logarithmic_x: true,
            series: vec![PlotSeries {
                name: "contents".to_owned(),
                dashed: false,
                points: self.lengths.iter().map(|bin| (f64::from(bin.from), share(bin.contents))).collect(),
            }],
            ..Panel::default()
        }
    }

    /// Panel of a figure by the number of nodes, at the first threshold, with the most partitions per node.
    /// The paper's mapping in three dimensions is drawn with every number of partitions per node.
    fn panel(&self, title: &str, y: &str, logarithmic_y: bool, value: impl Fn(&Run) -> f64) -> Panel {
        let tau = self.runs.first().map(|run| run.tau);
        let most = self.runs.iter().map(|run| run.variant.partitions_per_node).max();
        let shown = self.rows().filter(|row| row.first().is_some_and(|run| Some(run.tau) == tau));
        let series = shown.filter_map(|row| {
            let variant = row.first()?.variant;
            let each = variant.partitions_per_node;
            let papers = variant.design == Design::Paper && variant.dimensions == PAPERS_DIMENSIONS;
            let drawn = SHOWN.contains(&variant.dimensions) && Some(each) == most || papers;
            drawn.then(|| PlotSeries {
                name: format!("{}, {each} of each node", variant.name()),
                dashed: variant.design == Design::Paper,
                points: row.iter().map(|run| (f64::from(run.nodes), value(run))).collect(),
            })
        });
        Panel {
            title: format!("{title}, tau {}", tau.map_or_else(String::new, |tau| tau.to_string())),
            x: "nodes".to_owned(),
            y: y.to_owned(),
            logarithmic_y,
            series: series.collect(),
            ..Panel::default()
        }
    }

    fn later_table(&self) -> Table {
        let title = format!(
            "later data: {} % of the contents learned from, the rest in ten sets, {} nodes, {}",
            self.learned_percent,
            self.later_nodes,
            plural(self.splits.into(), "random split")
        );
        let head = [
            "tau",
            "mapping",
            "each",
            "learned",
            "later",
            "later / floor",
            "limit",
            "cv, %",
            "cv / floor",
            "limit of cv",
        ];
        let mut table = Table::new(&title, head);
        for LaterData { tau, variant, learned, ours, floor, limit } in &self.later {
            table.row([
                tau.to_string(),
                variant.name(),
                variant.partitions_per_node.to_string(),
                format!("{learned:.3}"),
                format!("{:.3}", ours.imbalance),
                over(ours.imbalance, floor.imbalance),
                over(limit.imbalance, floor.imbalance),
                percent(ours.variation),
                over(ours.variation, floor.variation),
                over(limit.variation, floor.variation),
            ]);
        }
        table
    }
}

/// Formats a ratio. Data sets with equal imbalances have no variation, and so no ratio.
fn over(value: f64, floor: f64) -> String {
    if floor > 0.0 { format!("{:.3}", value / floor) } else { NO_FIGURE.to_owned() }
}

impl Report for MappingResult {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![
            self.by_nodes("figure 4: imbalance, by the number of nodes", |run| {
                of_several(run.nodes, format!("{:.3}", run.imbalance))
            }),
            self.by_nodes("figure 5: fan-out saved against broadcast, %", |run| {
                of_several(run.nodes, percent(run.fan_out_saved))
            }),
            self.by_nodes("figure 6: speed-up", |run| format!("{:.1}", run.speed_up)),
            self.by_nodes(
                "recall loss: near-duplicates not compared, % of searches (two of each pair, one from each side)",
                |run| self.loss(run),
            ),
        ];
        tables.extend(self.comparison());
        tables.extend(self.by_rho("recall loss by rho, %", |run| self.loss(run)));
        tables.extend(
            self.by_rho("fan-out saved by rho, %", |run| of_several(run.nodes, percent(run.fan_out_saved))),
        );
        tables.extend(self.by_rho("speed-up by rho", |run| format!("{:.1}", run.speed_up)));
        if !self.tolerances.is_empty() {
            tables.push(tolerance::table(&self.tolerances));
        }
        if !self.later.is_empty() {
            tables.push(self.later_table());
        }
        tables
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![SPEED_UP.to_owned(), EACH.to_owned()];
        if !self.later.is_empty() {
            notes.extend(LATER.map(str::to_owned));
            notes.push(PAPER.to_owned());
        }
        notes.push(format!(
            "{}; the paper's intervals are widened by rho = {}",
            plural(self.contents as u64, "distinct content"),
            self.rho.get()
        ));
        let pairs = |pairs: &Pairs| format!("tau {}: {}", pairs.tau, plural(pairs.pairs, "pair"));
        notes.extend(self.pairs.iter().map(pairs));
        let floors = self.rows().next().unwrap_or_default().iter();
        let floors: Vec<String> =
            floors.map(|run| of_several(run.nodes, format!("{:.3}", run.imbalance_floor))).collect();
        notes.push(format!("imbalance of the same contents dealt at random: {}", floors.join(", ")));
        notes.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        notes
    }

    fn panels(&self) -> Vec<Panel> {
        vec![
            self.lengths_panel(),
            self.panel("Figure 4: imbalance", "most over mean stored", true, |run| run.imbalance),
            self.panel("Figure 5: fan-out saved", "% of a broadcast", false, |run| 100.0 * run.fan_out_saved),
            self.panel("Figure 6: speed-up", "all pairs over the busiest node's work", true, |run| {
                run.speed_up
            }),
        ]
    }

    fn verdict(&self) -> anyhow::Result<()> {
        let exact = self.runs.iter().filter(|run| run.variant.design != Design::Paper);
        let lost: u64 = exact.map(|run| run.lost).sum();
        ensure!(
            lost == 0,
            "the bound of ours and of the control is exact, yet {} searches miss a partner",
            count(lost)
        );
        Ok(())
    }
}
