//! Tables and plots of the measured mappings.

use anyhow::ensure;

use super::later::Later;
use super::{Design, Result, Run, Variant};
use crate::eval::svg::{Panel, Series};
use crate::eval::{Report, Table, percent};
use crate::output::count;

/// What the paper states of later data sets.
const PAPER: &str =
    "the paper states a coefficient of variation of 4.5 % in one dimension and 0.29 % in three";

/// Dimensions that are drawn.
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

impl Result {
    /// The runs of one threshold and variant each, by the number of machines.
    fn rows(&self) -> impl Iterator<Item = &[Run]> {
        self.runs.chunk_by(|a, b| (a.tau, a.variant) == (b.tau, b.variant))
    }

    fn by_machines(&self, title: &str, cell: impl Fn(&Run) -> String) -> Table {
        let machines = self.rows().next().unwrap_or_default().iter().map(|run| run.machines.to_string());
        let head = ["tau".to_owned(), "mapping".to_owned()].into_iter().chain(machines);
        let mut table = Table::new(title, head);
        for row in self.rows() {
            let Some(Run { tau, variant, .. }) = row.first() else { continue };
            table.row([tau.to_string(), variant.name()].into_iter().chain(row.iter().map(&cell)));
        }
        table
    }

    fn looks(&self, run: &Run) -> u64 {
        self.pairs.iter().find(|pairs| pairs.tau == run.tau).map_or(0, |pairs| 2 * pairs.pairs)
    }

    /// How a variant compares with the control and the paper's in one dimension on the most machines.
    fn comparison(&self, ours: &[Run]) -> Option<String> {
        let run = ours.last().filter(|run| run.variant.design == Design::Ours)?;
        let other = |design| {
            let same = |other: &&Run| other.tau == run.tau && other.machines == run.machines;
            let of = |other: &&Run| other.variant == Variant { design, dimensions: 1 };
            self.runs.iter().filter(same).find(of).map(|other| run.speed_up / other.speed_up)
        };
        let (paper, control) = (other(Design::Paper)?, other(Design::Control)?);
        Some(format!(
            "{} machines, tau {}, {}: {control:.2} times the work saved by the control, {paper:.1} times that of the \
             paper's in one dimension",
            run.machines,
            run.tau,
            run.variant.name()
        ))
    }

    fn lengths_panel(&self) -> Panel {
        let share = |contents: usize| 100.0 * contents as f64 / self.contents as f64;
        Panel {
            title: "Figure 1: contents by length".to_owned(),
            x: "distinct shingles, from".to_owned(),
            y: "% of the contents".to_owned(),
            logarithmic_x: true,
            series: vec![Series {
                name: "contents".to_owned(),
                dashed: false,
                points: self.lengths.iter().map(|bin| (f64::from(bin.from), share(bin.contents))).collect(),
            }],
            ..Panel::default()
        }
    }

    /// A figure by the number of machines at the first threshold, of one, three and four dimensions.
    fn panel(&self, title: &str, y: &str, logarithmic_y: bool, value: impl Fn(&Run) -> f64) -> Panel {
        let tau = self.runs.first().map(|run| run.tau);
        let shown = self.rows().filter(|row| row.first().is_some_and(|run| Some(run.tau) == tau));
        let series = shown.filter_map(|row| {
            let variant = row.first()?.variant;
            SHOWN.contains(&variant.dimensions).then(|| Series {
                name: variant.name(),
                dashed: variant.design == Design::Paper,
                points: row.iter().map(|run| (f64::from(run.machines), value(run))).collect(),
            })
        });
        Panel {
            title: format!("{title}, tau {}", tau.map_or_else(String::new, |tau| tau.to_string())),
            x: "machines".to_owned(),
            y: y.to_owned(),
            logarithmic_y,
            series: series.collect(),
            ..Panel::default()
        }
    }

    fn later_table(&self) -> Table {
        let title = format!(
            "ten later data sets, learned from {} % of the contents, {} machines, means of {} random splits",
            self.learned_percent, self.later_machines, self.splits
        );
        let head = [
            "tau",
            "mapping",
            "imbalance, learned from",
            "imbalance, later",
            "over the floor",
            "limit of any sample",
            "coefficient of variation, %",
            "over the floor's",
            "limit of any sample",
        ];
        let mut table = Table::new(&title, head);
        for Later { tau, variant, learned, ours, floor, limit } in &self.later {
            table.row([
                tau.to_string(),
                variant.name(),
                format!("{learned:.3}"),
                format!("{:.3}", ours.imbalance),
                format!("{:.3}", ours.imbalance / floor.imbalance),
                format!("{:.3}", limit.imbalance / floor.imbalance),
                percent(ours.variation),
                format!("{:.3}", ours.variation / floor.variation),
                format!("{:.3}", limit.variation / floor.variation),
            ]);
        }
        table
    }
}

impl Report for Result {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![
            self.by_machines("figure 4: imbalance, by the number of machines", |run| {
                format!("{:.3}", run.imbalance)
            }),
            self.by_machines("figure 5: sends saved against broadcast, %", |run| percent(run.sends_saved)),
            self.by_machines("figure 6: throughput, in times of one machine", |run| {
                format!("{:.1}", run.speed_up)
            }),
            self.by_machines("looks of near-duplicates that do not reach each other, %", |run| {
                percent(run.lost as f64 / self.looks(run).max(1) as f64)
            }),
        ];
        if !self.later.is_empty() {
            tables.push(self.later_table());
        }
        tables
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "{} distinct contents; the paper's intervals are widened by rho = {}; {PAPER}",
            count(self.contents as u64),
            self.rho.get()
        )];
        notes.extend(
            self.pairs.iter().map(|pairs| format!("tau {}: {} pairs", pairs.tau, count(pairs.pairs))),
        );
        let floors = self.rows().next().unwrap_or_default().iter();
        let floors: Vec<String> = floors.map(|run| format!("{:.3}", run.imbalance_floor)).collect();
        notes.push(format!("imbalance of the same contents dealt at random: {}", floors.join(", ")));
        notes.extend(self.rows().filter_map(|row| self.comparison(row)));
        notes
    }

    fn panels(&self) -> Vec<Panel> {
        vec![
            self.lengths_panel(),
            self.panel("Figure 4: imbalance", "most over mean stored", true, |run| run.imbalance),
            self.panel("Figure 5: sends saved", "% of a broadcast", false, |run| 100.0 * run.sends_saved),
            self.panel("Figure 6: throughput", "times one machine", true, |run| run.speed_up),
        ]
    }

    fn verdict(&self) -> anyhow::Result<()> {
        let exact = self.runs.iter().filter(|run| run.variant.design != Design::Paper);
        let lost: u64 = exact.map(|run| run.lost).sum();
        ensure!(lost == 0, "{} looks do not reach their partner, and the bound is exact", count(lost));
        Ok(())
    }
}
