//! What `doppel plan` says of a mapping.

use std::io::{self, Write};

use doppel_common::mapping::{Drift, MappingLoad};
use doppel_common::model::Tau;
use serde::Serialize;

use crate::layout::{Layout, Mapping, Shape};
use crate::output::{count, table};

/// Contents of a node below which its load is mostly chance.
const NODE_MIN: usize = 100;
/// Imbalance, over that of a random deal, past which it is said.
const IMBALANCE_MAX: f64 = 1.2;

/// What a mapping makes of the contents.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    dimensions: usize,
    partitions: usize,
    /// Most over mean stored on a node.
    imbalance: f64,
    /// Share of sends saved against comparing everything everywhere.
    sends_saved: f64,
    /// All pairs over the work of the busiest node (stored x received).
    speed_up: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) tau: Tau,
    pub(super) nodes: u32,
    pub(super) mapping: Mapping,
    pub(super) contents: usize,
    pub(super) sample: usize,
    /// Imbalance of the same contents dealt at random.
    pub(super) imbalance_floor: f64,
    pub(super) plan: Figures,
    /// One dimension, equal numbers of contents: what the others are held against.
    pub(super) control: Figures,
    /// How far the contents are from the sample; none for the paper's mapping.
    pub(super) drift: Option<Drift>,
    /// By node.
    pub(super) load: MappingLoad,
    pub(super) warnings: Vec<String>,
}

impl Figures {
    pub(super) fn of(layout: &Layout, load: &MappingLoad) -> Self {
        Self {
            dimensions: layout.dimensions(),
            partitions: layout.partitions(),
            imbalance: load.imbalance(),
            sends_saved: load.sends_saved(),
            speed_up: load.speed_up(),
        }
    }
}

/// What should be known before the figures of a summary are believed.
pub(super) fn warnings(summary: &Summary, layout: &Layout, shape: Shape) -> Vec<String> {
    let Summary { contents, sample, drift, load, imbalance_floor, .. } = summary;
    let mut warnings = Vec::new();
    if *sample == 0 {
        warnings.push("there are no contents to learn from".to_owned());
    }
    for (number, name) in [(sample, "contents to learn from"), (contents, "contents")] {
        if (1..NODE_MIN * shape.nodes as usize).contains(number) {
            warnings.push(format!(
                "{} {name} are fewer than {NODE_MIN} a node; imbalance is mostly chance",
                count(*number as u64)
            ));
            break;
        }
    }
    let empty = load.stored.iter().filter(|stored| **stored == 0).count();
    if empty > 0 && *contents > 0 {
        warnings.push(format!(
            "{empty} of {} nodes have nothing to store: no content has such lengths",
            load.stored.len()
        ));
    }
    let imbalance = load.imbalance();
    if imbalance > IMBALANCE_MAX * imbalance_floor {
        warnings.push(format!("the fullest node stores {imbalance:.2} times the mean"));
    }
    match layout {
        Layout::Learned(plan) => {
            let constant: Vec<String> =
                plan.map().sample().constant_features().map(|number| (number + 1).to_string()).collect();
            if !constant.is_empty() {
                warnings.push(format!(
                    "no content of the sample differs from another in dimension {} of {}",
                    constant.join(", "),
                    shape.dimensions
                ));
            }
        }
        Layout::Paper(_) if shape.dimensions > 1 => {
            warnings.push("the paper's mapping may lose pairs; `doppel eval mapping` counts them".to_owned());
        }
        Layout::Paper(_) => {}
    }
    if let Some(drift) = drift.filter(Drift::is_unlike) {
        warnings.push(format!(
            "the contents are unlike the sample: {:.0} % of them lie elsewhere, by chance it were {:.0} %",
            100.0 * drift.distance,
            100.0 * drift.chance
        ));
    }
    warnings
}

impl Summary {
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { contents, nodes, tau, sample, imbalance_floor, .. } = self;
        writeln!(out, "{} distinct contents on {nodes} nodes, tau {tau}", count(*contents as u64))?;
        if sample != contents {
            writeln!(out, "learned from {} contents", count(*sample as u64))?;
        }
        writeln!(out)?;
        let head = ["mapping", "dimensions", "partitions", "imbalance", "sends saved", "times less work"];
        let row = |name: &str, figures: &Figures| {
            let Figures { dimensions, partitions, imbalance, sends_saved, speed_up } = figures;
            vec![
                name.to_owned(),
                dimensions.to_string(),
                partitions.to_string(),
                format!("{imbalance:.3}"),
                format!("{:.1} %", 100.0 * sends_saved),
                format!("{speed_up:.0}"),
            ]
        };
        let name = match self.mapping {
            Mapping::Learned => "learned",
            Mapping::Paper => "paper",
        };
        let rows = [head.map(str::to_owned).to_vec(), row(name, &self.plan), row("control", &self.control)];
        table(out, &rows)?;
        writeln!(out, "\nimbalance is most over mean; {imbalance_floor:.3} if dealt at random")?;
        for warning in &self.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        Ok(())
    }
}
