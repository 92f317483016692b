//! The load-balance report: as tables, and drawn.

use std::io::{self, Write};

use doppel_common::api::{LengthBox, LoadReport, Moving};
use doppel_common::mapping::WhatIf;
use serde::Deserialize;

use crate::eval::svg::{Panel, Rectangle, Series};
use crate::output::{bytes, count, plural, table};

/// What is read of the report.
#[derive(Debug, Deserialize)]
pub(super) struct LoadBalance {
    #[serde(flatten)]
    load: LoadReport,
    nodes: Vec<NodeLoad>,
    drained: Vec<u32>,
    moving: Option<Moving>,
    history: Vec<LoadPoint>,
    variation: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct NodeLoad {
    node: String,
    partitions: u64,
    contents: u64,
    pages: u64,
    received: u64,
    comparisons: u64,
    bytes: u64,
}

#[derive(Debug, Deserialize)]
struct LoadPoint {
    node_imbalance: f64,
    node_imbalance_floor: f64,
}

/// One of a node's figures.
type Figure = fn(&NodeLoad) -> u64;

/// What is read of the what-if report.
#[derive(Debug, Deserialize)]
pub(super) struct WhatIfs {
    sample: u64,
    present: WhatIf,
    rows: Vec<WhatIf>,
}

/// How far a change of the mapping is, in words.
pub(crate) fn progress(moving: &Moving) -> String {
    let Moving { next_epoch, copied, contents, changed, seconds, .. } = moving;
    let (copied, contents, changed) = (count(*copied), count(*contents), count(*changed));
    format!(
        "moving to map {next_epoch}: {copied} of {contents} contents copied in {seconds:.0} s, {changed} changed since"
    )
}

impl LoadBalance {
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let LoadReport { partitions, dimensions, epoch, .. } = &self.load;
        let (nodes, parts) =
            (plural(self.nodes.len() as u64, "node"), plural(partitions.len() as u64, "partition"));
        writeln!(out, "{nodes}, {parts} in {dimensions} dimensions, map {epoch}")?;
        self.print_balance(out)?;
        if !self.drained.is_empty() {
            let drained: Vec<String> = self.drained.iter().map(u32::to_string).collect();
            writeln!(out, "drained: {}", drained.join(", "))?;
        }
        if let Some(moving) = &self.moving {
            writeln!(out, "{}", progress(moving))?;
        }
        if let Some(variation) = self.variation {
            let values = self.history.iter().map(|point| point.node_imbalance);
            let (least, most) = values.fold((f64::MAX, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
            writeln!(
                out,
                "last {}: imbalance of nodes {least:.2} to {most:.2}, coefficient of variation {:.1} %",
                plural(self.history.len() as u64, "minute"),
                variation * 100.0
            )?;
        }
        writeln!(out)?;
        self.print_nodes(out)?;
        writeln!(out)?;
        self.print_partitions(out)
    }

    fn print_balance(&self, out: &mut dyn Write) -> io::Result<()> {
        let load = &self.load;
        let each = |sends: u64| if load.looks == 0 { 0.0 } else { sends as f64 / load.looks as f64 };
        let row = |name: &str, all: u64, imbalance: f64, floor: f64, saved: f64, sends: u64| {
            vec![
                name.to_owned(),
                format!("{imbalance:.2}"),
                format!("{floor:.2}"),
                format!("{:.1} %", saved * 100.0),
                format!("{:.2} of {all}", each(sends)),
            ]
        };
        let heading = ["of", "imbalance", "at random", "sends saved", "sends a look"].map(str::to_owned);
        let nodes = row(
            "nodes",
            load.serving.into(),
            load.node_imbalance,
            load.node_imbalance_floor,
            load.node_sends_saved,
            load.node_sends,
        );
        let parts = load.partitions.len() as u64;
        let partitions =
            row("partitions", parts, load.imbalance, load.imbalance_floor, load.sends_saved, load.sends);
        table(out, &[heading.to_vec(), nodes, partitions])
    }

    fn print_nodes(&self, out: &mut dyn Write) -> io::Result<()> {
        let heading = ["node", "partitions", "contents", "pages", "received", "comparisons", "bytes"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.nodes.iter().map(|load| {
            vec![
                load.node.clone(),
                count(load.partitions),
                count(load.contents),
                count(load.pages),
                count(load.received),
                count(load.comparisons),
                bytes(load.bytes),
            ]
        }));
        table(out, &rows)
    }

    fn print_partitions(&self, out: &mut dyn Write) -> io::Result<()> {
        let heading = ["partition", "node", "contents", "pages", "received", "comparisons", "bytes", "box"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.load.partitions.iter().map(|load| {
            vec![
                load.partition.to_string(),
                load.node.clone(),
                count(load.contents),
                count(load.pages),
                count(load.received),
                count(load.comparisons),
                bytes(load.bytes),
                ranges(&load.bounds),
            ]
        }));
        table(out, &rows)
    }

    /// The boxes over two features, and the load of every node.
    pub(super) fn panels(&self) -> Vec<Panel> {
        vec![self.boxes(), self.loads(), self.times()]
    }

    fn boxes(&self) -> Panel {
        let (total, half) = (self.limits(0), self.limits(1));
        let group = |node: &str| self.nodes.iter().position(|one| one.node == node).unwrap_or_default();
        let draw = |load: &doppel_common::api::PartitionLoad| {
            let side = |feature: usize, (least, most): (f64, f64)| {
                let value = |values: &[Option<i64>]| values.get(feature).copied().flatten();
                let number = |value: Option<i64>, open: f64| value.map_or(open, |value| value as f64);
                // Both ends belong to the box.
                (number(value(&load.bounds.lo), least), number(value(&load.bounds.hi), most - 1.0) + 1.0)
            };
            let ((left, right), (bottom, top)) = (side(0, total), side(1, half));
            Rectangle {
                name: format!("{} on {}: {} contents", load.partition, load.node, count(load.contents)),
                group: group(&load.node),
                least: (left, bottom),
                greatest: (right, top),
            }
        };
        Panel {
            title: format!("Boxes of the {}", plural(self.load.partitions.len() as u64, "partition")),
            x: "distinct shingles".to_owned(),
            y: "of them in the first half of the dictionary, less the others".to_owned(),
            logarithmic_x: true,
            boxes: self.load.partitions.iter().map(draw).collect(),
            ..Panel::default()
        }
    }

    /// Where boxes without a limit end in a drawing: some way beyond the last boundary.
    fn limits(&self, feature: usize) -> (f64, f64) {
        let of = |values: &[Option<i64>]| values.get(feature).copied().flatten();
        let bounds = self.load.partitions.iter().map(|load| &load.bounds);
        let known = bounds.flat_map(|bounds| [of(&bounds.lo), of(&bounds.hi)]).flatten();
        let (least, most) = known.fold((0, 10), |(least, most), value| (least.min(value), most.max(value)));
        let least = if feature == 0 { 1.0 } else { least as f64 * 1.5 - 10.0 };
        (least, most as f64 * 1.5)
    }

    fn loads(&self) -> Panel {
        let figures: [(&str, Figure); 4] = [
            ("contents", |node| node.contents),
            ("pages received", |node| node.received),
            ("comparisons", |node| node.comparisons),
            ("bytes", |node| node.bytes),
        ];
        let series = figures.map(|(name, figure)| {
            let mut values: Vec<f64> = self.nodes.iter().map(|node| figure(node) as f64).collect();
            values.sort_by(|a, b| b.total_cmp(a));
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            let points = (1..).zip(values).map(|(at, value)| (f64::from(at), value / mean)).collect();
            Series { name: name.to_owned(), dashed: false, points }
        });
        Panel {
            title: "Load of the nodes".to_owned(),
            x: "node, for each figure the one with the most first".to_owned(),
            y: "over the mean".to_owned(),
            series: series.into(),
            marks: vec![(self.load.node_imbalance_floor, "most of contents dealt at random".to_owned())],
            ..Panel::default()
        }
    }

    fn times(&self) -> Panel {
        let line = |name: &str, dashed: bool, value: fn(&LoadPoint) -> f64| {
            let from = -(self.history.len() as f64);
            let hours = |(at, point): (u32, &LoadPoint)| ((from + f64::from(at)) / 60.0, value(point));
            Series { name: name.to_owned(), dashed, points: (1..).zip(&self.history).map(hours).collect() }
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
}

/// A range for each feature; `*` is no limit.
fn ranges(bounds: &LengthBox) -> String {
    let end = |value: &Option<i64>| value.map_or_else(|| "*".to_owned(), |value| value.to_string());
    let range = |(lo, hi): (&Option<i64>, &Option<i64>)| format!("{}..{}", end(lo), end(hi));
    bounds.lo.iter().zip(&bounds.hi).map(range).collect::<Vec<_>>().join(" ")
}

impl WhatIfs {
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "from {}; the present plan first", plural(self.sample, "content"))?;
        let heading = ["dimensions", "nodes", "imbalance", "at random", "sends saved", "all pairs / work"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(std::iter::once(&self.present).chain(&self.rows).map(|row| {
            vec![
                row.dimensions.to_string(),
                row.nodes.to_string(),
                format!("{:.2}", row.imbalance),
                format!("{:.2}", row.imbalance_floor),
                format!("{:.1} %", row.sends_saved * 100.0),
                format!("{:.1}", row.speed_up),
            ]
        }));
        table(out, &rows)
    }

    pub(super) fn panels(&self) -> Vec<Panel> {
        let panel = |title: &str, logarithmic_y: bool, value: fn(&WhatIf) -> f64| {
            let rows = self.rows.chunk_by(|a, b| a.dimensions == b.dimensions);
            let series = rows.filter_map(|rows| {
                let name = plural(rows.first()?.dimensions.into(), "dimension");
                let points = rows.iter().map(|row| (f64::from(row.nodes), value(row))).collect();
                Some(Series { name, dashed: false, points })
            });
            Panel {
                title: title.to_owned(),
                x: "nodes".to_owned(),
                series: series.collect(),
                logarithmic_y,
                ..Panel::default()
            }
        };
        vec![
            panel("Most over mean of contents", false, |row| row.imbalance),
            panel("Sends saved against broadcast, %", false, |row| row.sends_saved * 100.0),
            panel("All pairs over the work of the busiest", true, |row| row.speed_up),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::svg;

    fn report() -> LoadBalance {
        let partition = |id: u32, node: &str, lo: [Option<i64>; 2], hi: [Option<i64>; 2]| {
            serde_json::json!({
                "partition": id, "node": node, "box": {"lo": lo, "hi": hi}, "contents": 1_000 * id, "pages": 1_100 * id,
                "received": 2_000, "comparisons": 30, "bytes": 4_096,
            })
        };
        let node = |node: &str, contents: u64| {
            serde_json::json!({
                "node": node, "partitions": 1, "contents": contents, "pages": contents, "received": 2_000,
                "comparisons": 30, "bytes": 4_096,
            })
        };
        let point =
            |imbalance: f64| serde_json::json!({"node_imbalance": imbalance, "node_imbalance_floor": 1.1});
        serde_json::from_value(serde_json::json!({
            "epoch": 4, "dimensions": 2, "looks": 10, "sends": 20, "imbalance": 1.5, "imbalance_floor": 1.2,
            "sends_saved": 0.25, "serving": 2, "node_sends": 13, "node_imbalance": 1.33,
            "node_imbalance_floor": 1.1, "node_sends_saved": 0.35, "file_bytes": 7,
            "partitions": [
                partition(1, "0", [None, None], [Some(99), None]),
                partition(2, "1", [Some(100), None], [None, Some(-5)]),
                partition(3, "0", [Some(100), Some(-4)], [None, None]),
            ],
            "nodes": [node("0", 4_000), node("1", 2_000), node("2", 0)],
            "drained": [2], "moving": null, "history": [point(1.2), point(1.3)], "variation": 0.04,
        }))
        .unwrap()
    }

    #[test]
    fn the_tables_have_nodes_partitions_and_boxes() {
        let mut out = Vec::new();
        report().print(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in [
            "3 nodes, 3 partitions in 2 dimensions, map 4",
            "nodes       1.33       1.10       35.0 %       1.30 of 2",
            "partitions  1.50       1.20       25.0 %       2.00 of 3",
            "drained: 2",
            "last 2 minutes: imbalance of nodes 1.20 to 1.30, coefficient of variation 4.0 %",
            "0     1           4,000     4,000  2,000     30           4.00 KiB",
            "2          1     2,000     2,200  2,000     30           4.00 KiB  100..* *..-5",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
    }

    #[test]
    fn every_box_is_drawn_within_the_plot() {
        let panels = report().panels();
        let boxes = &panels[0].boxes;
        assert_eq!(boxes.len(), 3);
        assert!(
            boxes.iter().all(|one| one.least.0 < one.greatest.0 && one.least.1 < one.greatest.1),
            "{boxes:?}"
        );
        assert_eq!((boxes[0].greatest.0, boxes[1].least.0), (100.0, 100.0), "neighbours touch");
        let svg = svg::document(&panels);
        assert_eq!(svg.matches("<rect ").count(), 3);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
