//! `doppel cluster`: what the nodes of a cluster have, what is not as it should be, and how a cluster is described.

mod describe;
mod in_meta;

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, Subcommand};
use doppel_contract::answer::{
    ClusterNode, ClusterRange, ClusterStatus, EngineServer, EngineStatus, EngineStream, NodeRole,
};
use doppel_contract::client::{Method, ParsedAnswer};
use doppel_terminal::output::{NO_FIGURE, Output, bytes, count, headed, known, plural};
use serde_json::json;

use crate::args::AskArgs;
use crate::client::connect;

/// How long a node may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Look after a cluster.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Status(Status),
    Takeover(Takeover),
    Show(describe::Show),
    Add(describe::Add),
    Remove(describe::Remove),
    Address(describe::Address),
    Replicas(describe::Replicas),
    Log(describe::Log),
}

/// Show the nodes, the ranges, the log, and what is not as it should be.
///
/// Any coordinator answers. Nodes that do not answer within three seconds are shown as away. The number of a node of tier 2 is
/// the one by which `doppel rebalance` and `doppel report load-balance` name it. `lag` and the figure behind a standby are what
/// it has still to take of what the owners have recorded. `copies` of a stream are those that have all of it, of those that are
/// wanted.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster status --server http://10.0.0.31:7700")]
struct Status {
    #[command(flatten)]
    ask: AskArgs,
}

/// Have a node own a range, of which it has a replica.
///
/// The present owner finds that it was deposed, and follows. For some tenths of a second the pages of the range get a
/// `retry`. Use it to spread the ranges again when a node has come back, or before a machine is taken away.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel cluster takeover --range 3 --to record-2 --server http://10.0.0.31:7700")]
struct Takeover {
    /// The range, by its number.
    #[arg(long, value_name = "RANGE")]
    range: u16,
    /// The node of tier 1, by its name.
    #[arg(long, value_name = "NODE")]
    to: String,
    #[command(flatten)]
    ask: AskArgs,
}

impl Takeover {
    fn run(&self) -> anyhow::Result<()> {
        let Self { range, to, ask } = self;
        let client = connect(&ask.server)?;
        let body = json!({ "range": range, "to": to });
        client.send(client.request(Method::POST, &["v1", "cluster", "takeover"]).json(&body))?;
        let until = Instant::now() + PATIENCE;
        loop {
            let asked = client.ask(client.request(Method::GET, &["v1", "cluster"]))?;
            let ParsedAnswer { value: ClusterStatus { ranges, .. }, .. } = asked;
            let found = ranges.into_iter().find(|one| one.range.0 == *range);
            let range = found.with_context(|| format!("there is no range {range}"))?;
            if range.owner.as_deref() == Some(to) && range.served {
                let text = serde_json::to_string(&range)?;
                let shown = |out: &mut dyn Write| {
                    let epoch = figure(range.epoch);
                    writeln!(out, "{to} owns range {} now, in epoch {epoch}", range.range)
                };
                return Ok(Output { json: ask.json }.print(&text, shown)?);
            }
            anyhow::ensure!(
                Instant::now() < until,
                "{to} has not taken range {} over in {} s; `doppel cluster status` shows what is wrong",
                range.range,
                PATIENCE.as_secs()
            );
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Cluster {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let ask = match self.what {
            What::Status(Status { ask }) => ask,
            What::Takeover(takeover) => return takeover.run(),
            What::Show(show) => return show.run(),
            What::Add(add) => return add.run(),
            What::Remove(remove) => return remove.run(),
            What::Address(address) => return address.run(),
            What::Replicas(replicas) => return replicas.run(),
            What::Log(log) => return log.run(),
        };
        let client = connect(&ask.server)?;
        let ParsedAnswer { text, value } = client.ask(client.request(Method::GET, &["v1", "cluster"]))?;
        Output { json: ask.json }.print(&text, |out| print(&value, out))?;
        Ok(())
    }
}

fn print(status: &ClusterStatus, out: &mut dyn Write) -> io::Result<()> {
    let ClusterStatus { cluster, replicated, nodes, ranges, engine, orders_waiting, attention } = status;
    let Some(cluster) = cluster else {
        return writeln!(out, "a single process, `doppel serve`, and no cluster");
    };
    let kind = if *replicated { "replicated" } else { "distributed, not replicated" };
    writeln!(out, "cluster {cluster}, {kind}")?;
    let waiting =
        orders_waiting.map_or_else(|| "the router does not answer".to_owned(), |n| plural(n, "order"));
    writeln!(out, "waiting in the index: {waiting}")?;
    writeln!(out)?;
    let head = ["node", "tier", "number", "address", "state", "partitions", "contents", "lag"];
    // The index knows its nodes by their places in the description of the cluster, which is the order here.
    let mut numbers = 0..;
    let rows = nodes.iter().map(|node| {
        let number = if node.role == NodeRole::Tier2 { numbers.next() } else { None };
        node_row(node, number)
    });
    headed(out, &head, rows)?;
    writeln!(out)?;
    let head = ["range", "shards", "owner", "standbys", "state", "epoch", "live", "pending"];
    headed(out, &head, ranges.iter().map(range_row))?;
    writeln!(out)?;
    if let Some(EngineStatus { servers, streams }) = engine {
        headed(out, &["log server", "address", "version", "state"], servers.iter().map(server_row))?;
        writeln!(out)?;
        let head = ["stream of range", "bytes", "limit", "first", "last", "leader", "copies"];
        headed(out, &head, streams.iter().map(stream_row))?;
        writeln!(out)?;
    }
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
    known(number, count)
}

fn node_row(node: &ClusterNode, number: Option<u64>) -> Vec<String> {
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
        figure(number),
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
        range.owner.clone().unwrap_or_else(|| NO_FIGURE.to_owned()),
        standbys(range),
        if range.served { "served" } else { "not served" }.to_owned(),
        figure(range.epoch),
        figure(range.live),
        figure(range.pending),
    ]
}

fn server_row(server: &EngineServer) -> Vec<String> {
    let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| NO_FIGURE.to_owned());
    let state = if server.answers { "there" } else { "away" };
    vec![
        server.name.clone().unwrap_or_else(|| "unknown".to_owned()),
        server.address.clone(),
        shown(&server.version),
        state.to_owned(),
    ]
}

fn stream_row(stream: &EngineStream) -> Vec<String> {
    let size = |size: Option<u64>| known(size, bytes);
    vec![
        stream.range.to_string(),
        size(stream.bytes),
        size(stream.limit),
        figure(stream.first),
        figure(stream.last),
        stream.leader.clone().unwrap_or_else(|| NO_FIGURE.to_owned()),
        format!("{} of {}", figure(stream.current_copies), stream.copies),
    ]
}

/// The standbys, and how far each is behind.
fn standbys(range: &ClusterRange) -> String {
    let shown = range.standbys.iter().map(|standby| match (standby.follows, standby.lag) {
        (true, Some(0)) => standby.node.clone(),
        (true, Some(lag)) => format!("{} (-{lag})", standby.node),
        (true, None) => format!("{} (?)", standby.node),
        (false, _) => format!("{} (away)", standby.node),
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { NO_FIGURE.to_owned() } else { shown.join(", ") }
}
