//! Prints the load-balance report as tables.

mod panels;

use std::io::{self, Write};

use doppel_contract::answer::LoadBalance;
use doppel_contract::{LengthBox, LoadReport, PartitionLoad, RebalanceProgress};
use doppel_model::NodeId;
use doppel_terminal::output::{NO_FIGURE, bytes, count, headed, known, percent, plural};

pub(super) use panels::panels;

/// Balance and fan-out of the nodes, or of the partitions: one row of the table.
struct Evenness {
    name: &'static str,
    parts: u64,
    imbalance: f64,
    floor: f64,
    fan_out: u64,
    saved: Option<f64>,
}

/// Explanation of the columns `imbalance` and `at random`.
pub(super) const IMBALANCE: &str = "\
imbalance: most over mean of contents
at random: the imbalance of the same contents dealt at random, which is chance alone";

/// Explanation of the number of contents to copy in a change of the plan.
const TO_COPY: &str = "\
to copy: contents that change their node, those of partitions split or joined where they are, and
all of them when a map is learned anew";

/// Describes in words how far a change of the plan is.
pub(crate) fn describe_progress(progress: &RebalanceProgress) -> String {
    let RebalanceProgress { next_version, copied, contents, changed, seconds, .. } = progress;
    if *contents == 0 {
        return format!("plan {next_version} is being made; nothing is copied yet");
    }
    let (copied, contents) = (count(*copied), plural(*contents, "content"));
    let again = match changed {
        0 => String::new(),
        changed => format!(", {} again after a change", count(*changed)),
    };
    format!("changing to plan {next_version}: {copied} of {contents} copied in {seconds:.0} s{again}")
}

pub(super) fn print(report: &LoadBalance, out: &mut dyn Write) -> io::Result<()> {
    let LoadReport { partitions, dimensions, plan_version, searches, .. } = &report.load;
    let (nodes, parts) =
        (plural(report.nodes.len() as u64, "node"), plural(partitions.len() as u64, "partition"));
    writeln!(out, "{nodes}, {parts} in {}, plan {plan_version}", plural((*dimensions).into(), "dimension"))?;
    print_balance(report, out)?;
    writeln!(
        out,
        "{} since the start or the last change of the plan; fan-out, received and comparisons are theirs",
        plural(*searches, "search")
    )?;
    if !report.drained.is_empty() {
        let drained: Vec<String> = report.drained.iter().map(NodeId::to_string).collect();
        writeln!(out, "drained: {}", drained.join(", "))?;
    }
    if let Some(progress) = &report.progress {
        writeln!(out, "{}", describe_progress(progress))?;
        writeln!(out, "{TO_COPY}")?;
    }
    print_history(report, out)?;
    writeln!(out)?;
    print_nodes(report, out)?;
    writeln!(out)?;
    print_partitions(report, out)
}

fn print_balance(report: &LoadBalance, out: &mut dyn Write) -> io::Result<()> {
    let load = &report.load;
    let nodes = Evenness {
        name: "nodes",
        parts: load.serving_nodes.into(),
        imbalance: load.node_imbalance,
        floor: load.node_imbalance_floor,
        fan_out: load.node_fan_out,
        saved: load.node_fan_out_saved,
    };
    let partitions = Evenness {
        name: "partitions",
        parts: load.partitions.len() as u64,
        imbalance: load.imbalance,
        floor: load.imbalance_floor,
        fan_out: load.fan_out,
        saved: load.fan_out_saved,
    };
    let heading = ["of", "imbalance", "at random", "fan-out saved", "fan-out"];
    let rows = [nodes, partitions].map(|row| row.cells(load.searches));
    headed(out, &heading, rows)?;
    writeln!(out, "{IMBALANCE}")
}

/// Prints the imbalance over time, if there are at least two readings and two nodes.
fn print_history(report: &LoadBalance, out: &mut dyn Write) -> io::Result<()> {
    let Some(variation) = report.variation.filter(|_| report.history.len() > 1 && report.nodes.len() > 1)
    else {
        return Ok(());
    };
    let values = report.history.iter().map(|point| point.node_imbalance);
    let (least, most) = values.fold((f64::MAX, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
    writeln!(
        out,
        "over the last {} (one reading a minute): imbalance of nodes {least:.2} to {most:.2}, coefficient of variation {:.1} %",
        plural(report.history.len() as u64, "minute"),
        variation * 100.0
    )
}

fn print_nodes(report: &LoadBalance, out: &mut dyn Write) -> io::Result<()> {
    let heading = ["node", "partitions", "contents", "pages", "received", "comparisons", "bytes"];
    let rows = report.nodes.iter().map(|load| {
        vec![
            load.node.to_string(),
            count(load.partitions),
            count(load.contents),
            count(load.pages),
            count(load.received),
            count(load.comparisons),
            bytes(load.bytes),
        ]
    });
    headed(out, &heading, rows)
}

/// Prints the partitions, sorted by node.
fn print_partitions(report: &LoadBalance, out: &mut dyn Write) -> io::Result<()> {
    let heading = ["partition", "node", "contents", "pages", "received", "comparisons", "bytes", "box"];
    let mut loads: Vec<&PartitionLoad> = report.load.partitions.iter().collect();
    loads.sort_unstable_by_key(|load| (load.node, load.partition));
    let rows = loads.into_iter().map(|load| {
        vec![
            load.partition.to_string(),
            load.node.to_string(),
            count(load.contents),
            count(load.pages),
            count(load.received),
            count(load.comparisons),
            bytes(load.bytes),
            ranges(&load.bounds),
        ]
    });
    headed(out, &heading, rows)?;
    let halves = match report.load.dimensions {
        1 => "",
        _ => ", then for each half of the dictionary\n     the shingles in it less those not in it",
    };
    writeln!(out, "box: the range of each feature: distinct shingles{halves}; `*` is no limit")
}

impl Evenness {
    /// Returns the cells of the row. Figures are left out if they say nothing: balance if there is a single
    /// part, fan-out if there were no searches.
    fn cells(self, searches: u64) -> Vec<String> {
        let Self { name, parts, imbalance, floor, fan_out, saved } = self;
        let cell = |known: bool, text: String| if known { text } else { NO_FIGURE.to_owned() };
        let saved = saved.filter(|_| parts > 1);
        vec![
            name.to_owned(),
            cell(parts > 1, format!("{imbalance:.2}")),
            cell(parts > 1, format!("{floor:.2}")),
            known(saved, percent),
            cell(searches > 0, format!("{:.2} of {parts}", fan_out as f64 / searches as f64)),
        ]
    }
}

/// Formats one range for each feature; `*` means no limit.
fn ranges(bounds: &LengthBox) -> String {
    let end = |value: &Option<i64>| value.map_or_else(|| "*".to_owned(), |value| value.to_string());
    let range = |(lo, hi): (&Option<i64>, &Option<i64>)| format!("{}..{}", end(lo), end(hi));
    bounds.lo.iter().zip(&bounds.hi).map(range).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use doppel_terminal::svg;

    fn report() -> LoadBalance {
        let partition = |id: u32, node: u32, lo: [Option<i64>; 2], hi: [Option<i64>; 2]| {
            json!({
                "partition": id, "node": node, "box": {"lo": lo, "hi": hi}, "contents": 1_000 * id, "pages": 1_100 * id,
                "received": 2_000, "comparisons": 30, "bytes": 4_096,
            })
        };
        let node = |node: u32, contents: u64| {
            json!({
                "node": node, "partitions": 1, "contents": contents, "pages": contents, "received": 2_000,
                "comparisons": 30, "bytes": 4_096,
            })
        };
        let point = |imbalance: f64| {
            json!({
                "at": "2026-01-31T08:00:00Z", "plan_version": 4, "contents": 6_000, "node_imbalance": imbalance,
                "node_imbalance_floor": 1.1, "node_fan_out_saved": null,
            })
        };
        serde_json::from_value(json!({
            "plan_version": 4, "dimensions": 2, "searches": 10, "fan_out": 20, "imbalance": 1.5, "imbalance_floor": 1.2,
            "fan_out_saved": 0.25, "serving_nodes": 2, "node_fan_out": 13, "node_imbalance": 1.33,
            "node_imbalance_floor": 1.1, "node_fan_out_saved": 0.35, "file_bytes": 7,
            "partitions": [
                partition(1, 0, [None, None], [Some(99), None]),
                partition(2, 1, [Some(100), None], [None, Some(-5)]),
                partition(3, 0, [Some(100), Some(-4)], [None, None]),
            ],
            "nodes": [node(0, 4_000), node(1, 2_000), node(2, 0)],
            "drained": [2], "progress": null, "history": [point(1.2), point(1.3)], "variation": 0.04,
            "shard_map_version": 1, "shards": [{"shard": 0, "node": "local"}],
        }))
        .unwrap()
    }

    fn text(report: &LoadBalance) -> String {
        let mut out = Vec::new();
        print(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_tables_have_nodes_partitions_and_boxes() {
        let text = text(&report());
        let expected = "\
3 nodes, 3 partitions in 2 dimensions, plan 4
of          imbalance  at random  fan-out saved  fan-out
nodes       1.33       1.10       35.0 %         1.30 of 2
partitions  1.50       1.20       25.0 %         2.00 of 3
imbalance: most over mean of contents
at random: the imbalance of the same contents dealt at random, which is chance alone
10 searches since the start or the last change of the plan; fan-out, received and comparisons are theirs
drained: 2
over the last 2 minutes (one reading a minute): imbalance of nodes 1.20 to 1.30, coefficient of variation 4.0 %

node  partitions  contents  pages  received  comparisons  bytes
0     1           4,000     4,000  2,000     30           4.00 KiB
1     1           2,000     2,000  2,000     30           4.00 KiB
2     1           0         0      2,000     30           4.00 KiB

partition  node  contents  pages  received  comparisons  bytes     box
1          0     1,000     1,100  2,000     30           4.00 KiB  *..99 *..*
3          0     3,000     3,300  2,000     30           4.00 KiB  100..* -4..*
2          1     2,000     2,200  2,000     30           4.00 KiB  100..* *..-5
box: the range of each feature: distinct shingles, then for each half of the dictionary
     the shingles in it less those not in it; `*` is no limit
";
        assert_eq!(text, expected);
    }

    #[test]
    fn figures_that_say_nothing_are_left_out() {
        let mut report = report();
        (report.load.searches, report.load.fan_out, report.load.node_fan_out) = (0, 0, 0);
        (report.load.fan_out_saved, report.load.node_fan_out_saved) = (None, None);
        report.history.truncate(1);
        let text = text(&report);
        for line in [
            "nodes       1.33       1.10       -              -",
            "partitions  1.50       1.20       -              -",
            "0 searches since the start or the last change of the plan; fan-out, received and comparisons are theirs",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
        assert!(!text.contains("reading"), "{text}");

        // Only one node serves, and it has one partition.
        report.load.serving_nodes = 1;
        (report.load.searches, report.load.node_fan_out, report.load.node_fan_out_saved) = (1, 1, Some(0.0));
        report.load.dimensions = 1;
        let text = self::text(&report);
        for line in [
            "nodes       -          -          -              1.00 of 1",
            "1 search since the start or the last change of the plan; fan-out, received and comparisons are theirs",
            "box: the range of each feature: distinct shingles; `*` is no limit",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
        assert!(text.starts_with("3 nodes, 3 partitions in 1 dimension, plan 4\n"), "{text}");
    }

    #[test]
    fn a_change_under_way_is_described() {
        let progress = RebalanceProgress {
            plan_version: 4,
            next_version: 5,
            copied: 0,
            contents: 0,
            changed: 0,
            seconds: 0.0,
        };
        assert_eq!(describe_progress(&progress), "plan 5 is being made; nothing is copied yet");
        let progress = RebalanceProgress { copied: 1, contents: 1, seconds: 2.4, ..progress };
        assert_eq!(describe_progress(&progress), "changing to plan 5: 1 of 1 content copied in 2 s");
        let progress = RebalanceProgress { copied: 1_200, contents: 3_000, changed: 7, ..progress };
        let expected = "changing to plan 5: 1,200 of 3,000 contents copied in 2 s, 7 again after a change";
        assert_eq!(describe_progress(&progress), expected);
        let text = text(&LoadBalance { progress: Some(progress), ..report() });
        assert!(
            text.contains(&format!("\n{expected}\nto copy: contents that change their node, ")),
            "{text}"
        );
    }

    #[test]
    fn every_box_is_drawn_within_the_plot() {
        let panels = panels(&report());
        let boxes = &panels[0].boxes;
        assert_eq!(boxes.len(), 3);
        assert!(
            boxes.iter().all(|one| one.least.0 < one.greatest.0 && one.least.1 < one.greatest.1),
            "{boxes:?}"
        );
        assert_eq!((boxes[0].greatest.0, boxes[1].least.0), (100.0, 100.0), "neighbours touch");
        assert_eq!(boxes[0].name, "partition 1 on node 0: 1,000 contents");
        let svg = svg::document(&panels);
        assert_eq!(svg.matches("<rect ").count(), 3);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
