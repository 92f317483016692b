//! `doppel rebalance`: balances the nodes of the index, drains or joins a node, or moves a partition, while
//! the server keeps working.

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
/// Without options, the server balances the load with as few moves as possible. The server also does so by
/// itself as the collection grows. A request that the server has accepted is carried out even if the server
/// crashes meanwhile.
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
    /// Print what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Learn a new partition map from the present contents. This saves fan-out if the contents have changed
    /// since the present map was learned. Nearly everything is copied.
    #[arg(long, conflicts_with_all = ["drain", "join", "partition"])]
    learn: bool,
    /// Move all partitions away from this node, and assign none to it until it is joined again. The nodes of
    /// the index are numbered from 0; `doppel cluster status` shows the numbers with the names.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["join", "partition"])]
    drain: Option<u32>,
    /// Let this drained node have its share of the partitions again.
    #[arg(long, value_name = "NODE", conflicts_with = "partition")]
    join: Option<u32>,
    /// Move this partition; `doppel report load-balance` lists the ids. A later rebalancing may move it back,
    /// even at once if the move makes the load uneven.
    #[arg(long = "move", value_name = "PARTITION", requires = "to")]
    partition: Option<u32>,
    /// The node that receives the partition of --move.
    #[arg(long, value_name = "NODE", requires = "partition")]
    to: Option<u32>,
    /// Cancel the present request before it is done. The server discards what was copied so far and keeps the
    /// present plan.
    #[arg(long, conflicts_with_all = ["dry_run", "learn", "drain", "join", "partition", "wait"])]
    cancel: bool,
    /// If another change is under way, wait for its end instead of failing, and then wait until this change
    /// is done. The progress goes to standard error. With --json, the field `done` says how the change ended.
    #[arg(long)]
    wait: bool,
    /// With --wait: give up if the server has not answered, or was busy, for this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "wait",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,
    #[command(flatten)]
    ask: AskArgs,
}

/// Body of the request to the server.
#[derive(Debug, Serialize)]
struct Request {
    #[serde(flatten)]
    request: RebalanceRequest,
    dry_run: bool,
}

/// Result of a request that the command has waited for.
#[derive(Debug, Serialize)]
struct AwaitedChange<'a> {
    #[serde(flatten)]
    change: &'a RebalancePlan,
    /// Result of the finished change; null if there was nothing to do.
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
        let ParsedAnswer { text, value: change } = self.request_change(&client, request)?;
        let human = |out: &mut dyn Write| print::change(request, &change, self.dry_run, out);
        if !self.wait || self.dry_run {
            return Ok(output.print(&text, human)?);
        }
        if !output.json {
            output.print(&text, human)?;
        }
        let done = change.started.then(|| self.wait_until_done(&client, &change)).transpose()?;
        let outcome = AwaitedChange { change: &change, done };
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
