//! Draws the load-balance report.

use doppel_contract::PartitionLoad;
use doppel_contract::answer::{LoadBalance, LoadPoint, NodeLoad};
use doppel_model::NodeId;
use doppel_terminal::output::plural;
use doppel_terminal::svg::{Panel, PlotSeries, Rectangle};

/// Reads one figure of a node.
type Figure = fn(&NodeLoad) -> u64;

/// Returns the panels of the drawing: the boxes over two features, the load of every node, and the imbalance
/// over time.
pub(in super::super) fn panels(report: &LoadBalance) -> Vec<Panel> {
    vec![boxes(report), loads(report), times(report)]
}

fn boxes(report: &LoadBalance) -> Panel {
    let (total, half) = (limits(report, 0), limits(report, 1));
    let group = |node: NodeId| report.nodes.iter().position(|one| one.node == node).unwrap_or_default();
    let draw = |load: &PartitionLoad| {
        let side = |feature: usize, (least, most): (f64, f64)| {
            let value = |values: &[Option<i64>]| values.get(feature).copied().flatten();
            let number = |value: Option<i64>, open: f64| value.map_or(open, |value| value as f64);
            // Boxes include both bounds, so the drawn rectangle ends one after the upper bound.
            (number(value(&load.bounds.lo), least), number(value(&load.bounds.hi), most - 1.0) + 1.0)
        };
        let ((left, right), (bottom, top)) = (side(0, total), side(1, half));
        Rectangle {
            name: format!(
                "partition {} on node {}: {}",
                load.partition,
                load.node,
                plural(load.contents, "content")
            ),
            group: group(load.node),
            least: (left, bottom),
            greatest: (right, top),
        }
    };
    Panel {
        title: format!("Boxes of the {}", plural(report.load.partitions.len() as u64, "partition")),
        x: "distinct shingles".to_owned(),
        y: "of them in the first half of the dictionary, less the others".to_owned(),
        logarithmic_x: true,
        boxes: report.load.partitions.iter().map(draw).collect(),
        ..Panel::default()
    }
}

/// Returns where the drawing ends boxes without a limit: some way beyond the outermost boundaries.
fn limits(report: &LoadBalance, feature: usize) -> (f64, f64) {
    let of = |values: &[Option<i64>]| values.get(feature).copied().flatten();
    let bounds = report.load.partitions.iter().map(|load| &load.bounds);
    let known = bounds.flat_map(|bounds| [of(&bounds.lo), of(&bounds.hi)]).flatten();
    let (least, most) = known.fold((0, 10), |(least, most), value| (least.min(value), most.max(value)));
    let least = if feature == 0 { 1.0 } else { least as f64 * 1.5 - 10.0 };
    (least, most as f64 * 1.5)
}

fn loads(report: &LoadBalance) -> Panel {
    let figures: [(&str, Figure); 4] = [
        ("contents", |node| node.contents),
        ("pages received", |node| node.received),
        ("comparisons", |node| node.comparisons),
        ("bytes", |node| node.bytes),
    ];
    let series = figures.map(|(name, figure)| {
        let mut values: Vec<f64> = report.nodes.iter().map(|node| figure(node) as f64).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let points = (1..).zip(values).map(|(at, value)| (f64::from(at), value / mean)).collect();
        PlotSeries { name: name.to_owned(), dashed: false, points }
    });
    Panel {
        title: "Load of the nodes".to_owned(),
        x: "node, for each figure the one with the most first".to_owned(),
        y: "over the mean".to_owned(),
        series: series.into(),
        marks: vec![(report.load.node_imbalance_floor, "most of contents dealt at random".to_owned())],
        ..Panel::default()
    }
}

fn times(report: &LoadBalance) -> Panel {
    let line = |name: &str, dashed: bool, value: fn(&LoadPoint) -> f64| {
        let from = -(report.history.len() as f64);
        let hours = |(at, point): (u32, &LoadPoint)| ((from + f64::from(at)) / 60.0, value(point));
        PlotSeries { name: name.to_owned(), dashed, points: (1..).zip(&report.history).map(hours).collect() }
    };
    Panel {
        title: "Imbalance of the nodes".to_owned(),
        x: "hours ago".to_owned(),
        y: "most over mean of contents".to_owned(),
        series: vec![
            line("as it was", false, |point| point.node_imbalance),
            line("dealt at random", true, |point| point.node_imbalance_floor),
        ],
        ..Panel::default()
    }
}
