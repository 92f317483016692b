//! `doppel cluster`: what the nodes of a cluster have, and what is not as it should be.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use doppel_protocol::answer::{ClusterNode, ClusterRange, ClusterStatus, NodeRole};
use doppel_protocol::client::{Answer, Method};

use crate::args::AskArgs;
use crate::client::connect;
use crate::output::{NO_FIGURE, Output, count, plural, table};

/// Look after a cluster.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Status(Status),
}

/// Show the nodes, the ranges, and what is not as it should be.
///
/// Any coordinator answers. Nodes that do not answer within three seconds are shown as away.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster status --server http://10.0.0.5:7700")]
struct Status {
    #[command(flatten)]
    ask: AskArgs,
}

impl Cluster {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let What::Status(Status { ask }) = self.what;
        let client = connect(&ask.server)?;
        let Answer { text, value } = client.ask(client.request(Method::GET, &["v1", "cluster"]))?;
        Output { json: ask.json }.print(&text, |out| print(&value, out))?;
        Ok(())
    }
}

fn print(status: &ClusterStatus, out: &mut dyn Write) -> io::Result<()> {
    let ClusterStatus { cluster, replicated, nodes, ranges, orders_waiting, attention } = status;
    let Some(cluster) = cluster else {
        return writeln!(out, "a single process, `doppel serve`, and no cluster");
    };
    let kind = if *replicated { "replicated" } else { "distributed, not replicated" };
    writeln!(out, "cluster {cluster}, {kind}")?;
    let waiting =
        orders_waiting.map_or_else(|| "the router does not answer".to_owned(), |n| plural(n, "order"));
    writeln!(out, "waiting in the index: {waiting}")?;
    writeln!(out)?;
    let head =
        ["node", "tier", "address", "state", "partitions", "contents", "lag"].map(str::to_owned).to_vec();
    table(out, &[vec![head], nodes.iter().map(node_row).collect()].concat())?;
    writeln!(out)?;
    let head = ["range", "shards", "owner", "state", "epoch", "live", "pending"].map(str::to_owned).to_vec();
    table(out, &[vec![head], ranges.iter().map(range_row).collect()].concat())?;
    writeln!(out)?;
    if attention.is_empty() {
        return writeln!(out, "all is as it should be");
    }
    for one in attention {
        writeln!(out, "! {}", one.what)?;
        writeln!(out, "  {}", one.remedy)?;
    }
    Ok(())
}

fn figure(number: Option<u64>) -> String {
    number.map_or_else(|| NO_FIGURE.to_owned(), count)
}

fn node_row(node: &ClusterNode) -> Vec<String> {
    let state = match (node.answers, node.router) {
        (false, _) => "away",
        (true, true) => "there, router",
        (true, false) => "there",
    };
    let partitions = node.partitions.as_ref().map(|partitions| partitions.len() as u64);
    vec![
        node.name.clone(),
        match node.role {
            NodeRole::Tier1 => "1",
            NodeRole::Tier2 => "2",
        }
        .to_owned(),
        node.address.clone(),
        state.to_owned(),
        figure(partitions),
        figure(node.contents),
        figure(node.lag),
    ]
}

fn range_row(range: &ClusterRange) -> Vec<String> {
    vec![
        range.range.to_string(),
        format!("{}-{}", range.first_shard, range.last_shard),
        range.owner.clone(),
        if range.served { "served" } else { "not served" }.to_owned(),
        figure(range.epoch),
        figure(range.live),
        figure(range.pending),
    ]
}
