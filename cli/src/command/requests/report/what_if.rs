//! Prints and draws the what-if report.

use std::io::{self, Write};

use doppel_contract::answer::WhatIfReport;
use doppel_control::layout;
use doppel_partitioning::WhatIf;
use doppel_terminal::output::{headed, of_several, percent, plural};
use doppel_terminal::svg::{Panel, PlotSeries};

use super::load_balance::IMBALANCE;

pub(super) fn print(report: &WhatIfReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "from {}; the present plan first", plural(report.sample, "content"))?;
    let heading = ["dimensions", "nodes", "imbalance", "at random", "fan-out saved", "speed-up"];
    headed(out, &heading, std::iter::once(&report.present).chain(&report.rows).map(cells))?;
    writeln!(out, "{IMBALANCE}")?;
    writeln!(out, "fan-out saved: against comparing every content on every node")?;
    writeln!(out, "{}", layout::SPEED_UP)?;
    let mut nodes: Vec<u32> = report.rows.iter().chain([&report.present]).map(|row| row.nodes).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let few = layout::warn_if_few(usize::try_from(report.sample).unwrap_or(usize::MAX), "", &nodes);
    few.map_or(Ok(()), |few| writeln!(out, "warning: {few}"))
}

pub(super) fn panels(report: &WhatIfReport) -> Vec<Panel> {
    let panel = |title: &str, value: fn(&WhatIf) -> f64| Panel {
        title: title.to_owned(),
        x: "nodes".to_owned(),
        series: lines(report, value),
        logarithmic_x: true,
        powers_of_two: true,
        ..Panel::default()
    };
    let mut imbalance = panel("Imbalance: most over mean of contents", |row| row.imbalance);
    // The random floor depends on the number of nodes alone, so one line is enough for all dimensions.
    imbalance.series.extend(lines(report, |row| row.imbalance_floor).into_iter().take(1).map(|line| {
        PlotSeries { name: "the same contents dealt at random".to_owned(), dashed: true, ..line }
    }));
    let saved = panel("Fan-out saved against all nodes, %", |row| row.fan_out_saved * 100.0);
    let speed_up = panel("Speed-up: all pairs over the busiest node's work", |row| row.speed_up);
    vec![imbalance, saved, Panel { logarithmic_y: true, ..speed_up }]
}

/// Returns one line for each number of dimensions: a figure over the number of nodes.
fn lines(report: &WhatIfReport, value: fn(&WhatIf) -> f64) -> Vec<PlotSeries> {
    let rows = report.rows.chunk_by(|a, b| a.dimensions == b.dimensions);
    let line = |rows: &[WhatIf]| {
        let name = plural(rows.first()?.dimensions.into(), "dimension");
        let points = rows.iter().map(|row| (f64::from(row.nodes), value(row))).collect();
        Some(PlotSeries { name, dashed: false, points })
    };
    rows.filter_map(line).collect()
}

/// Returns the cells of a row. For a single node, which stores and receives everything, figures of balance
/// are left out.
fn cells(row: &WhatIf) -> Vec<String> {
    let several = |text: String| of_several(row.nodes, text);
    vec![
        row.dimensions.to_string(),
        row.nodes.to_string(),
        several(format!("{:.2}", row.imbalance)),
        several(format!("{:.2}", row.imbalance_floor)),
        several(percent(row.fan_out_saved)),
        format!("{:.1}", row.speed_up),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use doppel_terminal::svg;

    fn report(sample: u64) -> WhatIfReport {
        let row = |dimensions, nodes| WhatIf {
            dimensions,
            nodes,
            imbalance: 1.25,
            imbalance_floor: 1.1,
            fan_out_saved: 0.5,
            speed_up: 12.34,
        };
        let rows = [1, 2].into_iter().flat_map(|n| [2, 4, 8].map(|nodes| row(n, nodes))).collect();
        WhatIfReport { sample, present: row(3, 1), rows, age_ms: None }
    }

    fn text(sample: u64) -> String {
        let mut out = Vec::new();
        print(&report(sample), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_columns_are_explained_and_a_small_sample_is_warned_of() {
        let text = text(399);
        for line in [
            "from 399 contents; the present plan first",
            "dimensions  nodes  imbalance  at random  fan-out saved  speed-up",
            "3           1      -          -          -              12.3",
            "1           8      1.25       1.10       50.0 %         12.3",
            layout::SPEED_UP,
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
        let warning = text.lines().find(|line| line.starts_with("warning: ")).unwrap();
        assert!(warning.contains("399 contents") && warning.contains(" 4, 8 nodes"), "{warning}");
        assert!(!self::text(800).contains("warning"));
        assert!(self::text(1).starts_with("from 1 content;"));
    }

    #[test]
    fn plots_have_a_tick_for_every_number_of_nodes() {
        let svg = svg::document(&panels(&report(800)));
        for nodes in [2, 4, 8] {
            let tick = format!("text-anchor=\"middle\">{nodes}</text>");
            assert_eq!(svg.matches(&tick).count(), 3, "{nodes} {svg}");
        }
        assert_eq!(svg.matches("dashed").count(), 1 + 2, "a style, a line and its name: {svg}");
    }
}
