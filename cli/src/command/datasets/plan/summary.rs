//! Summary of a plan, and how it is printed.

use std::io::{self, Write};

use doppel_control::layout::{ContentLayout, Mapping, SPEED_UP};
use doppel_model::Tau;
use doppel_partitioning::{Drift, MappingLoad};
use doppel_terminal::output::{headed, of_several, percent, plural};
use serde::Serialize;

/// Figures of one mapping of the contents.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    dimensions: usize,
    partitions: usize,
    /// Largest number of contents stored on a node, divided by the mean.
    imbalance: f64,
    /// Share of comparisons that is saved against comparing every content on every node.
    fan_out_saved: f64,
    /// Number of all pairs, divided by the work of the busiest node (stored x received).
    speed_up: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) tau: Tau,
    pub(super) nodes: u32,
    pub(super) mapping: Mapping,
    pub(super) contents: usize,
    pub(super) sample: usize,
    /// Imbalance of the same contents, dealt at random.
    pub(super) imbalance_floor: f64,
    pub(super) plan: Figures,
    /// Mapping of one dimension with equal numbers of contents, as a baseline.
    pub(super) control: Figures,
    /// How far the contents differ from the sample; `None` for the paper's mapping.
    pub(super) drift: Option<Drift>,
    /// Load of each node.
    pub(super) load: MappingLoad,
    pub(super) warnings: Vec<String>,
}

impl Figures {
    pub(super) fn of(layout: &ContentLayout, load: &MappingLoad) -> Self {
        Self {
            dimensions: layout.dimensions(),
            partitions: layout.partitions(),
            imbalance: load.imbalance(),
            fan_out_saved: load.fan_out_saved(),
            speed_up: load.speed_up(),
        }
    }
}

impl Summary {
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { contents, nodes, tau, sample, imbalance_floor, .. } = self;
        let on = plural(u64::from(*nodes), "node");
        writeln!(out, "{} on {on}, tau {tau}", plural(*contents as u64, "distinct content"))?;
        if sample != contents {
            writeln!(out, "learned from {}", plural(*sample as u64, "content"))?;
        }
        writeln!(out)?;
        let head = ["mapping", "dimensions", "partitions", "imbalance", "fan-out saved", "speed-up"];
        let row = |name: &str, figures: &Figures| {
            let Figures { dimensions, partitions, imbalance, fan_out_saved, speed_up } = figures;
            vec![
                name.to_owned(),
                dimensions.to_string(),
                partitions.to_string(),
                of_several(*nodes, format!("{imbalance:.3}")),
                of_several(*nodes, percent(*fan_out_saved)),
                format!("{speed_up:.1}"),
            ]
        };
        let name = match self.mapping {
            Mapping::Learned => "learned",
            Mapping::Paper => "paper",
        };
        headed(out, &head, [row(name, &self.plan), row("control", &self.control)])?;
        writeln!(out)?;
        if *nodes > 1 {
            writeln!(
                out,
                "imbalance: most over mean stored on a node; {imbalance_floor:.3} if dealt at random"
            )?;
        }
        writeln!(out, "{SPEED_UP}")?;
        for warning in &self.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        Ok(())
    }
}
