//! Metrics of the cluster: the figures of `GET /v1/cluster`.
//!
//! A figure that is unknown at a scrape has no sample. If a node does not answer, its `up` is 0, and if a
//! range has no owner, its `owned` is 0.

use std::fmt;

use doppel_contract::answer::{
    ClusterNode, ClusterRange, ClusterStatus, EngineStatus, EngineStream, NodeRole,
};
use doppel_protocol::NodeTraffic;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::gauge;

type RangeFigure = fn(&ClusterRange) -> Option<u64>;
type StreamFigure = fn(&EngineStream) -> Option<u64>;
type NodeFigure = fn(&ClusterNode) -> Option<u64>;

/// Writes the samples of a cluster. A single process has none.
pub(super) fn encode(
    out: &mut DescriptorEncoder<'_>,
    status: &ClusterStatus,
    traffic: &[NodeTraffic],
) -> fmt::Result {
    if status.cluster.is_none() {
        return Ok(());
    }
    nodes(out, &status.nodes)?;
    ranges(out, &status.ranges)?;
    if let Some(engine) = &status.engine {
        log(out, engine)?;
    }
    if let Some(waiting) = status.orders_waiting {
        gauge(out, "doppel_cluster_waiting_orders", "Orders that wait in the index", waiting)?;
    }
    gauge(
        out,
        "doppel_cluster_attention_items",
        "Number of faults that need attention; `doppel cluster status` lists them",
        status.attention.len() as u64,
    )?;
    wire(out, traffic)
}

fn nodes(out: &mut DescriptorEncoder<'_>, nodes: &[ClusterNode]) -> fmt::Result {
    let figures: [(&str, &str, NodeFigure); 4] = [
        ("doppel_cluster_node_up", "Whether the node answers", |node| Some(node.answers.into())),
        ("doppel_cluster_index_node_lag_orders", "Orders that a tier-2 node has not applied", |node| {
            node.lag
        }),
        ("doppel_cluster_index_node_partitions", "Partitions of a tier-2 node", |node| {
            node.partitions.as_ref().map(|partitions| partitions.len() as u64)
        }),
        ("doppel_cluster_index_node_contents", "Contents stored on a tier-2 node", |node| node.contents),
    ];
    for (name, help, figure) in figures {
        let samples = nodes.iter().map(|node| {
            let tier = match node.role {
                NodeRole::Tier1 => "1",
                NodeRole::Tier2 => "2",
            };
            ([("node", node.name.clone()), ("tier", tier.to_owned())], figure(node))
        });
        family(out, name, help, samples)?;
    }
    Ok(())
}

fn ranges(out: &mut DescriptorEncoder<'_>, ranges: &[ClusterRange]) -> fmt::Result {
    let figures: [(&str, &str, RangeFigure); 7] = [
        ("doppel_cluster_range_owned", "Whether the owner of the range answers", |range| {
            Some(range.epoch.is_some().into())
        }),
        ("doppel_cluster_range_served", "Whether the range accepts writes", |range| {
            Some(range.served.into())
        }),
        ("doppel_cluster_range_epoch", "Epoch of the current owner of the range", |range| range.epoch),
        ("doppel_cluster_range_live_replicas", "Replicas of the range whose nodes answer", |range| {
            Some(range.live_replicas)
        }),
        ("doppel_cluster_range_wanted_replicas", "Replicas that the range should have", |range| {
            Some(range.replicas)
        }),
        ("doppel_cluster_range_live_pages", "Live pages of the range", |range| range.live),
        ("doppel_cluster_range_pending_pages", "Pages of the range that wait for a decision", |range| {
            range.pending
        }),
    ];
    for (name, help, figure) in figures {
        let samples = ranges.iter().map(|range| ([("range", range.range.to_string())], figure(range)));
        family(out, name, help, samples)?;
    }
    let standbys = ranges.iter().flat_map(|range| range.standbys.iter().map(move |standby| (range, standby)));
    let samples = standbys.map(|(range, standby)| {
        ([("range", range.range.to_string()), ("node", standby.node.clone())], standby.lag)
    });
    family(out, "doppel_cluster_standby_lag_records", "Records that a standby has not copied", samples)
}

fn log(out: &mut DescriptorEncoder<'_>, engine: &EngineStatus) -> fmt::Result {
    let up = engine
        .servers
        .iter()
        .map(|server| ([("address", server.address.clone())], Some(u64::from(server.answers))));
    family(out, "doppel_cluster_log_server_up", "Whether the log server answers", up)?;
    let figures: [(&str, &str, StreamFigure); 5] = [
        ("doppel_cluster_stream_bytes", "Size of the range's stream in the log", |stream| stream.bytes),
        (
            "doppel_cluster_stream_limit_bytes",
            "Maximum size of the stream; a full stream accepts no entries",
            |stream| stream.limit,
        ),
        (
            "doppel_cluster_stream_last_sequence",
            "Sequence number of the last entry of the stream",
            |stream| stream.last,
        ),
        (
            "doppel_cluster_stream_current_copies",
            "Copies of the stream that are available and current",
            |stream| Some(stream.current_copies.unwrap_or(0)),
        ),
        ("doppel_cluster_stream_wanted_copies", "Copies that the stream should have", |stream| {
            Some(stream.copies)
        }),
    ];
    for (name, help, figure) in figures {
        let samples =
            engine.streams.iter().map(|stream| ([("range", stream.range.to_string())], figure(stream)));
        family(out, name, help, samples)?;
    }
    Ok(())
}

fn wire(out: &mut DescriptorEncoder<'_>, traffic: &[NodeTraffic]) -> fmt::Result {
    let calls = || traffic.iter().flat_map(|node| node.calls.iter().map(move |call| (node, call)));
    let labels = |node: &NodeTraffic, call: &str| [("node", node.node.clone()), ("call", call.to_owned())];
    let help = "Requests between processes, made and answered";
    let mut family = out.encode_descriptor("doppel_wire_requests", help, None, MetricType::Counter)?;
    for (node, call) in calls() {
        let labels = labels(node, &call.call);
        ConstCounter::new(call.requests).encode(family.encode_family(&labels)?)?;
    }
    let help =
        "Bytes of the bodies of requests between processes, and bytes sent to and received from the log";
    let mut family = out.encode_descriptor("doppel_wire_bytes", help, None, MetricType::Counter)?;
    for (node, call) in calls() {
        for (direction, bytes) in [("sent", call.sent), ("received", call.received)] {
            let [node, call] = labels(node, &call.call);
            let labels = [node, call, ("direction", direction.to_owned())];
            ConstCounter::new(bytes).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Writes a gauge with a sample for every entry whose figure is known.
fn family<const N: usize>(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl Iterator<Item = ([(&'static str, String); N], Option<u64>)>,
) -> fmt::Result {
    let mut family = out.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, figure) in samples {
        let Some(figure) = figure else { continue };
        ConstGauge::new(figure).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
