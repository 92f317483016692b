//! Metrics of the load of tier 2: its partitions and nodes, and the progress of a rebalance.

use std::collections::BTreeMap;
use std::fmt;

use doppel_contract::{LoadReport, PartitionLoad, RebalanceProgress};
use doppel_model::NodeId;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{counter, gauge};

/// Selects a figure of a partition.
type PartitionFigure = fn(&PartitionLoad) -> u64;

pub(super) fn encode(
    out: &mut DescriptorEncoder<'_>,
    load: &LoadReport,
    progress: Option<&RebalanceProgress>,
) -> fmt::Result {
    gauge(out, "doppel_tier2_plan_version", "Version of the partition plan", load.plan_version)?;
    // These counters restart with every plan, as counters of a process restart with the process.
    counter(out, "doppel_tier2_searches", "Searches made under the current plan", load.searches)?;
    counter(
        out,
        "doppel_tier2_fan_out",
        "Number of partitions to which the searches were sent, summed over all searches",
        load.fan_out,
    )?;
    gauge(out, "doppel_tier2_file_bytes", "Size of the signature file on disk", load.file_bytes)?;
    gauge(out, "doppel_tier2_serving_nodes", "Nodes that may have partitions", load.serving_nodes.into())?;
    counter(
        out,
        "doppel_tier2_node_fan_out",
        "Number of nodes to which the searches were sent, summed over all searches",
        load.node_fan_out,
    )?;
    let (copied, wanted) = progress.map_or((0, 0), |progress| (progress.copied, progress.contents));
    gauge(out, "doppel_tier2_migration_contents", "Contents that a change of the plan must copy", wanted)?;
    gauge(
        out,
        "doppel_tier2_migration_copied_contents",
        "Contents that a change of the plan has copied",
        copied,
    )?;
    for (name, help, value) in [
        (
            "doppel_tier2_imbalance_ratio",
            "Largest number of contents of a partition divided by the mean",
            Some(load.imbalance),
        ),
        (
            "doppel_tier2_imbalance_floor_ratio",
            "Imbalance of the partitions if the contents were distributed at random",
            Some(load.imbalance_floor),
        ),
        (
            "doppel_tier2_fan_out_saved_ratio",
            "Share of the fan-out to partitions saved compared with a broadcast",
            load.fan_out_saved,
        ),
        (
            "doppel_tier2_node_imbalance_ratio",
            "Largest number of contents of a node divided by the mean",
            Some(load.node_imbalance),
        ),
        (
            "doppel_tier2_node_imbalance_floor_ratio",
            "Imbalance of the nodes if the contents were distributed at random",
            Some(load.node_imbalance_floor),
        ),
        (
            "doppel_tier2_node_fan_out_saved_ratio",
            "Share of the fan-out to nodes saved compared with a broadcast",
            load.node_fan_out_saved,
        ),
    ] {
        let Some(value) = value else { continue };
        ConstGauge::new(value).encode(out.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
    }
    partitions(out, load)?;
    nodes(out, load)
}

fn partitions(out: &mut DescriptorEncoder<'_>, load: &LoadReport) -> fmt::Result {
    let figures: [(&str, &str, MetricType, PartitionFigure); 5] = [
        ("doppel_tier2_partition_contents", "Contents stored in a partition", MetricType::Gauge, |p| {
            p.contents
        }),
        ("doppel_tier2_partition_pages", "Pages stored in a partition", MetricType::Gauge, |p| p.pages),
        (
            "doppel_tier2_partition_received_pages",
            "Searches received by a partition",
            MetricType::Counter,
            |p| p.received,
        ),
        (
            "doppel_tier2_partition_comparisons",
            "Exact comparisons in a partition",
            MetricType::Counter,
            |p| p.comparisons,
        ),
        (
            "doppel_tier2_partition_memory_bytes",
            "Memory of the columns and tables of a partition",
            MetricType::Gauge,
            |p| p.bytes,
        ),
    ];
    for (name, help, kind, value) in figures {
        let mut family = out.encode_descriptor(name, help, None, kind)?;
        for partition in &load.partitions {
            let labels =
                [("partition", partition.partition.to_string()), ("node", partition.node.to_string())];
            let sample = family.encode_family(&labels)?;
            match kind {
                MetricType::Counter => ConstCounter::new(value(partition)).encode(sample)?,
                _ => ConstGauge::new(value(partition)).encode(sample)?,
            }
        }
    }
    Ok(())
}

/// Writes the sums over the partitions of each node that has partitions.
fn nodes(out: &mut DescriptorEncoder<'_>, load: &LoadReport) -> fmt::Result {
    let figures: [(&str, &str, PartitionFigure); 3] = [
        ("doppel_tier2_node_partitions", "Partitions of a node", |_| 1),
        ("doppel_tier2_node_contents", "Contents stored on a node", |p| p.contents),
        ("doppel_tier2_node_memory_bytes", "Memory of the columns and tables of a node", |p| p.bytes),
    ];
    for (name, help, value) in figures {
        let mut sums: BTreeMap<NodeId, u64> = BTreeMap::new();
        for partition in &load.partitions {
            *sums.entry(partition.node).or_default() += value(partition);
        }
        let mut family = out.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (node, sum) in sums {
            ConstGauge::new(sum).encode(family.encode_family(&[("node", node.to_string())])?)?;
        }
    }
    Ok(())
}
