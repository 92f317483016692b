//! `doppel rebalance`: even load, a node drained or joined, a partition moved, while the server goes on.

mod print;
mod wait;

use std::io::Write;

use clap::Args;
use doppel_contract::client::{Method, ParsedAnswer};
use doppel_contract::{RebalancePlan, RebalanceRequest};
use doppel_model::{NodeId, PartitionId};
use doppel_terminal::output::Output;
use serde::Serialize;

use crate::args::AskArgs;
use crate::client::connect;
use wait::CompletedChange;

/// Move partitions between the nodes of the index while pages are accepted, compared and answered.
///
/// Without more, the load is made even with as few moves as that takes; the server does so by itself, too, as the
/// collection grows. What the server has accepted it carries out, also after a crash.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel rebalance --dry-run
  doppel rebalance --drain 3 --wait
  doppel rebalance --join 3
  doppel rebalance --move 17 --to 2
  doppel rebalance --learn --dry-run
  doppel rebalance --cancel")]
pub(crate) struct Rebalance {
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Learn the map anew from the present contents: less fan-out, if they differ from those it was learned from.
    /// Nearly everything is copied.
    #[arg(long, conflicts_with_all = ["drain", "join", "partition"])]
    learn: bool,
    /// Take everything from this node, and leave it without partitions until it is joined again. The nodes of the index are
    /// numbered from 0; `doppel cluster status` shows the numbers with the names.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["join", "partition"])]
    drain: Option<u32>,
    /// Give this node its part again.
    #[arg(long, value_name = "NODE", conflicts_with = "partition")]
    join: Option<u32>,
    /// Move this partition, by its id in `doppel report load-balance`. The load may move it back later, or at once
    /// where the move makes the nodes uneven.
    #[arg(long = "move", value_name = "PARTITION", requires = "to")]
    partition: Option<u32>,
    /// The node that --move moves it to.
    #[arg(long, value_name = "NODE", requires = "partition")]
    to: Option<u32>,
    /// End the present request before it is done: what it has begun is given up, and the plan that is served stays.
    #[arg(long, conflicts_with_all = ["dry_run", "learn", "drain", "join", "partition", "wait"])]
    cancel: bool,
    /// Wait for the end of another change that is under way, instead of ending with an error, and then for the end of
    /// this one. The progress goes to standard error; with --json, `done` says how it ended.
    #[arg(long)]
    wait: bool,
    /// With --wait: give up when the server has not answered, or was busy, for so long.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "wait",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,
    #[command(flatten)]
    ask: AskArgs,
}

/// What is asked of the server.
#[derive(Debug, Serialize)]
struct Request {
    #[serde(flatten)]
    request: RebalanceRequest,
    dry_run: bool,
}

/// The answer to a request that was waited for.
#[derive(Debug, Serialize)]
struct Waited<'a> {
    #[serde(flatten)]
    change: &'a RebalancePlan,
    /// Null where there was nothing to do.
    done: Option<CompletedChange>,
}

impl Rebalance {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        if self.cancel {
            let request = client.request(Method::DELETE, &["v1", "rebalance"]);
            let ParsedAnswer { text, value: outcome } = client.ask(request)?;
            return Ok(output.print(&text, |out| print::cancelled(&outcome, out))?);
        }
        let request = self.request();
        let ParsedAnswer { text, value: change } = self.accepted(&client, request)?;
        let human = |out: &mut dyn Write| print::change(request, &change, self.dry_run, out);
        if !self.wait || self.dry_run {
            return Ok(output.print(&text, human)?);
        }
        if !output.json {
            output.print(&text, human)?;
        }
        let done = change.started.then(|| self.until_done(&client, &change)).transpose()?;
        let outcome = Waited { change: &change, done };
        Ok(output
            .print(&outcome, |out| outcome.done.as_ref().map_or(Ok(()), |done| print::done(done, out)))?)
    }

    fn request(&self) -> RebalanceRequest {
        match (self.drain, self.join, self.partition.zip(self.to)) {
            (Some(node), ..) => RebalanceRequest::Drain { node: NodeId(node) },
            (_, Some(node), _) => RebalanceRequest::Join { node: NodeId(node) },
            (.., Some((partition, node))) => {
                RebalanceRequest::Move { partition: PartitionId(partition), node: NodeId(node) }
            }
            (None, None, None) if self.learn => RebalanceRequest::Learn,
            (None, None, None) => RebalanceRequest::Balance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_sent_as_the_server_reads_it() {
        let text = |request| serde_json::to_string(&Request { request, dry_run: true }).unwrap();
        assert_eq!(text(RebalanceRequest::Balance), r#"{"action":"balance","dry_run":true}"#);
        assert_eq!(
            text(RebalanceRequest::Move { partition: PartitionId(9), node: NodeId(3) }),
            r#"{"action":"move","partition":9,"node":3,"dry_run":true}"#
        );
    }
}
