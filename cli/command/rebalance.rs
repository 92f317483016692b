//! `doppel rebalance`: even load, a node drained, a node joined, while the server goes on.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use doppel_common::api::{Moving, Rebalanced};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::report::progress;
use crate::args::AskArgs;
use crate::client::Client;
use crate::output::{Output, count, plural, table};

/// How often the server is asked how far it is.
const ASK: Duration = Duration::from_millis(500);

/// Move partitions between the nodes of the index while pages are accepted, compared and answered.
///
/// Without more, the load is made even with as few moves as that takes; the server does so by itself, too, as the
/// collection grows.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel rebalance --dry-run
  doppel rebalance --drain 3 --wait
  doppel rebalance --join 3")]
pub(crate) struct Rebalance {
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Take everything from this node, and leave it without partitions until it is joined again.
    #[arg(long, value_name = "NODE", conflicts_with = "join")]
    drain: Option<u32>,
    /// Give this node its part again.
    #[arg(long, value_name = "NODE")]
    join: Option<u32>,
    /// Wait until it is done.
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    #[command(flatten)]
    ask: AskArgs,
}

/// What is read of the present mapping.
#[derive(Debug, Deserialize)]
struct Present {
    moving: Option<Moving>,
}

impl Rebalance {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = Client::new(&self.ask.server)?;
        let (wish, node) = match (self.drain, self.join) {
            (Some(node), _) => ("drain", Some(node)),
            (None, Some(node)) => ("join", Some(node)),
            (None, None) => ("balance", None),
        };
        let body = json!({"wish": wish, "node": node, "dry_run": self.dry_run});
        let answer: Box<RawValue> =
            client.json(client.request(Method::POST, &["v1", "rebalance"]).json(&body))?;
        let change: Rebalanced = serde_json::from_str(answer.get())?;
        Output { json: self.ask.json }.print(&answer, |out| print(&change, self.dry_run, out))?;
        if self.wait && change.started { wait(&client) } else { Ok(()) }
    }
}

fn print(change: &Rebalanced, dry_run: bool, out: &mut dyn Write) -> io::Result<()> {
    if change.moves.is_empty() && !change.started {
        return writeln!(out, "nothing to do: imbalance {:.2}", change.imbalance_before);
    }
    let done = if dry_run { "would be" } else { "is being" };
    let share = 100.0 * change.contents_moved as f64 / change.contents.max(1) as f64;
    let (moved, all) = (count(change.contents_moved), plural(change.contents, "content"));
    writeln!(out, "{moved} of {all} ({share:.1} %) {done} moved, after {}", splits_and_joins(change))?;
    writeln!(out, "imbalance {:.2} before, {:.2} after", change.imbalance_before, change.imbalance_after)?;
    let heading = ["partition", "from", "to", "contents"].map(str::to_owned);
    let row = |one: &doppel_common::api::PartitionMove| {
        vec![one.partition.to_string(), one.from.to_string(), one.to.to_string(), count(one.contents)]
    };
    let rows: Vec<_> = std::iter::once(heading.to_vec()).chain(change.moves.iter().map(row)).collect();
    table(out, &rows)
}

fn splits_and_joins(change: &Rebalanced) -> String {
    format!("{} and {}", plural(change.splits.into(), "split"), plural(change.joins.into(), "join"))
}

/// Asks until the change is done, and says on stderr how far it is.
fn wait(client: &Client) -> anyhow::Result<()> {
    let mut said = String::new();
    loop {
        let present: Present = client.json(client.request(Method::GET, &["v1", "rebalance"]))?;
        let Some(moving) = present.moving else { return Ok(()) };
        let say = progress(&moving);
        if say != said {
            eprintln!("doppel: {say}");
            said = say;
        }
        sleep(ASK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doppel_common::api::PartitionMove;

    #[test]
    fn a_change_is_told() {
        let change = Rebalanced {
            epoch: 4,
            started: false,
            splits: 1,
            joins: 2,
            moves: vec![PartitionMove { partition: 9, from: 0, to: 3, contents: 1_250 }],
            contents_moved: 1_250,
            contents: 10_000,
            imbalance_before: 1.4,
            imbalance_after: 1.08,
        };
        let told = |change: &Rebalanced, dry_run| {
            let mut out = Vec::new();
            print(change, dry_run, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let expected = "1,250 of 10,000 contents (12.5 %) would be moved, after 1 split and 2 joins\n\
            imbalance 1.40 before, 1.08 after\n\
            partition  from  to  contents\n\
            9          0     3   1,250\n";
        assert_eq!(told(&change, true), expected);
        let nothing = Rebalanced { moves: Vec::new(), contents_moved: 0, ..change };
        assert_eq!(told(&nothing, true), "nothing to do: imbalance 1.40\n");
    }
}
