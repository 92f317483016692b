//! `doppel rebalance`: even load, a node drained or joined, a partition moved, while the server goes on.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use doppel_protocol::answer::{LoadBalance, Present};
use doppel_protocol::client::{Answer, Client, ClientError, Method, StatusCode};
use doppel_protocol::{PartitionMove, RebalanceOutcome, RebalancePlan, RebalanceRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::report::describe_progress;
use crate::args::AskArgs;
use crate::client::connect;
use crate::interrupt;
use crate::output::{Output, count, plural, table};

/// How often the server is asked how far it is.
const ASK: Duration = Duration::from_millis(500);
/// The first pause; each is a quarter longer than the one before, so that a change is seen however short it is.
const ASK_FIRST: Duration = Duration::from_millis(2);
/// How often it is said how far it is.
const SAY: Duration = Duration::from_secs(2);

const INTERRUPTED: &str = "interrupted; the server goes on with what it has accepted, and `doppel report load-balance` says how far it is";
const INTERRUPTED_BEFORE: &str =
    "interrupted before its turn: the server goes on with the other change, and was not asked for this one";

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
    /// Learn the map anew from the present contents: less fan-out, where others have come than it was learned from.
    /// Nearly everything is copied.
    #[arg(long, conflicts_with_all = ["drain", "join", "partition"])]
    learn: bool,
    /// Take everything from this node, and leave it without partitions until it is joined again.
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
    /// this one. How far it is goes to standard error; with --json,
    /// `done` says how it ended.
    #[arg(long)]
    wait: bool,
    /// With --wait: give up when the server has not answered, or had no time for this, for so long.
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
    done: Option<Done>,
}

/// How a change ended.
#[derive(Debug, Serialize)]
struct Done {
    /// Number of the plan that is served now.
    plan_version: u64,
    /// Since the server accepted it.
    seconds: f64,
    /// Contents copied; null where the server was started anew after it.
    copied: Option<u64>,
    /// Most over mean of contents per serving node, now.
    imbalance: f64,
}

impl Rebalance {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        if self.cancel {
            let request = client.request(Method::DELETE, &["v1", "rebalance"]);
            let Answer { text, value: outcome } = client.ask(request)?;
            return Ok(output.print(&text, |out| print_cancelled(&outcome, out))?);
        }
        let request = self.request();
        let Answer { text, value: change } = self.accepted(&client, request)?;
        let human = |out: &mut dyn Write| print(request, &change, self.dry_run, out);
        if !self.wait || self.dry_run {
            return Ok(output.print(&text, human)?);
        }
        if !output.json {
            output.print(&text, human)?;
        }
        let done = change.started.then(|| self.until_done(&client, &change)).transpose()?;
        let outcome = Waited { change: &change, done };
        Ok(output.print(&outcome, |out| outcome.done.as_ref().map_or(Ok(()), |done| done.print(out)))?)
    }

    fn request(&self) -> RebalanceRequest {
        match (self.drain, self.join, self.partition.zip(self.to)) {
            (Some(node), ..) => RebalanceRequest::Drain { node },
            (_, Some(node), _) => RebalanceRequest::Join { node },
            (.., Some((partition, node))) => RebalanceRequest::Move { partition, node },
            (None, None, None) if self.learn => RebalanceRequest::Learn,
            (None, None, None) => RebalanceRequest::Balance,
        }
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }

    /// The server's answer to the request; with `--wait` as soon as it has time for it.
    fn accepted(&self, client: &Client, request: RebalanceRequest) -> anyhow::Result<Answer<RebalancePlan>> {
        let body = Request { request, dry_run: self.dry_run };
        let mut said = false;
        let mut busy_since = Instant::now();
        loop {
            if self.wait {
                interrupt::announce(INTERRUPTED)?;
            }
            let mut request = client.request(Method::POST, &["v1", "rebalance"]).json(&body);
            if self.wait {
                request = request.timeout(self.patience());
            }
            let error = match client.ask(request) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some((what, status, text)) = busy(&error) else { return Err(error.into()) };
            if !self.wait {
                let text = format!("{text}; with --wait this command waits for its turn");
                return Err(ClientError::Refused { status, text }.into());
            }
            if busy_since.elapsed() > self.patience() {
                return Err(anyhow::Error::new(error).context(format!("no turn within {} s", self.patience)));
            }
            interrupt::announce(INTERRUPTED_BEFORE)?;
            if !said {
                eprintln!("doppel: {what}; waiting for its end");
                said = true;
            }
            sleep(ASK);
            while self.present(client)?.progress.is_some() {
                busy_since = Instant::now();
                sleep(ASK);
            }
        }
    }

    /// The present mapping, once the server answers.
    fn present(&self, client: &Client) -> anyhow::Result<Present> {
        self.get(client, &["v1", "rebalance"])
    }

    fn get<T: DeserializeOwned>(&self, client: &Client, path: &[&str]) -> anyhow::Result<T> {
        Ok(client.ask_patiently(&client.request(Method::GET, path), self.patience())?.value)
    }

    /// Asks until the change is done, and says on stderr how far it is.
    fn until_done(&self, client: &Client, change: &RebalancePlan) -> anyhow::Result<Done> {
        let asked = || {
            self.present(client).context("gave up waiting; the server carries it out when it goes on again")
        };
        let begin = Instant::now();
        let (mut pause, mut due) = (ASK_FIRST, begin);
        let (plan_version, outcome) = loop {
            let Present { plan_version, progress, outcome, .. } = asked()?;
            let Some(progress) = progress else { break (plan_version, outcome) };
            if due <= Instant::now() {
                eprintln!("doppel: {}", describe_progress(&progress));
                due = Instant::now() + SAY;
            }
            sleep(pause);
            pause = ASK.min(pause * 5 / 4);
        };
        match &outcome {
            Some(RebalanceOutcome { failed: Some(why), .. }) => {
                anyhow::bail!("it was not carried out: {why}")
            }
            None if plan_version == change.plan_version => {
                anyhow::bail!(
                    "plan {plan_version} is still served: it was not carried out, and the server's log says why"
                )
            }
            _ => {}
        }
        let LoadBalance { load, .. } = self.get(client, &["v1", "reports", "load-balance"])?;
        Ok(Done {
            plan_version,
            seconds: begin.elapsed().as_secs_f64(),
            copied: outcome.map(|outcome| outcome.copied),
            imbalance: load.node_imbalance,
        })
    }
}

fn print_cancelled(outcome: &RebalanceOutcome, out: &mut dyn Write) -> io::Result<()> {
    let RebalanceOutcome { request, plan_version, copied, .. } = outcome;
    let what = match request {
        RebalanceRequest::Balance => "making the nodes even".to_owned(),
        RebalanceRequest::Learn => "learning the map anew".to_owned(),
        RebalanceRequest::Drain { node } => format!("draining node {node}"),
        RebalanceRequest::Join { node } => format!("joining node {node}"),
        RebalanceRequest::Move { partition, node } => format!("moving partition {partition} to node {node}"),
    };
    let copied = plural(*copied, "copied content");
    writeln!(out, "cancelled: {what}; {copied} given up, and plan {plan_version} stays")
}

/// What a server that refused is busy with, and its own words; none where it refused for another reason.
fn busy(error: &ClientError) -> Option<(&'static str, StatusCode, &str)> {
    let ClientError::Refused { status, text } = error else { return None };
    let what = match *status {
        StatusCode::CONFLICT => "another change of the plan is under way",
        StatusCode::SERVICE_UNAVAILABLE => "the server is busy, mostly with another plan",
        _ => return None,
    };
    Some((what, *status, text))
}

fn print(
    request: RebalanceRequest,
    change: &RebalancePlan,
    dry_run: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some(why) = &change.nothing {
        return writeln!(out, "nothing to do: {why} (imbalance {:.2})", change.imbalance_before);
    }
    let (what, idle) = match request {
        RebalanceRequest::Balance => ("making the nodes even".to_owned(), ""),
        RebalanceRequest::Learn => ("learning the map anew".to_owned(), ""),
        RebalanceRequest::Drain { node } => {
            (format!("draining node {node}"), "; it has none, and gets none any more")
        }
        RebalanceRequest::Join { node } => {
            (format!("joining node {node}"), " now; it may have partitions again")
        }
        RebalanceRequest::Move { partition, node } => {
            (format!("moving partition {partition} to node {node}"), "")
        }
    };
    let dry = if dry_run { "a dry run of " } else { "" };
    if change.moves.is_empty() && request != RebalanceRequest::Learn {
        return writeln!(out, "{dry}{what}: no partition to move{idle}");
    }
    let (moved, all) = (count(change.contents_moved), plural(change.contents, "content"));
    let share = 100.0 * change.contents_moved as f64 / change.contents.max(1) as f64;
    let cuts = splits_and_joins(change);
    match request {
        // A new partition has a row for each node that contents of it come from.
        RebalanceRequest::Learn => {
            writeln!(out, "{dry}{what}: {all} to copy, {moved} of them ({share:.1} %) to another node")?;
        }
        _ => {
            let partitions = plural(change.moves.len() as u64, "partition");
            writeln!(out, "{dry}{what}: {partitions} to move, with {moved} of {all} ({share:.1} %){cuts}")?;
        }
    }
    let heading = ["partition", "from node", "to node", "contents"].map(str::to_owned);
    let row = |one: &PartitionMove| {
        vec![one.partition.to_string(), one.from.to_string(), one.to.to_string(), count(one.contents)]
    };
    let rows: Vec<_> = std::iter::once(heading.to_vec()).chain(change.moves.iter().map(row)).collect();
    if !change.moves.is_empty() {
        table(out, &rows)?;
    }
    if !cuts.is_empty() {
        writeln!(
            out,
            "ids are those of plan {}; more contents are copied than move: what is split or joined is copied\nwhere it stays, too",
            change.plan_version + 1
        )?;
    }
    writeln!(out, "imbalance {:.2} before, {:.2} after", change.imbalance_before, change.imbalance_after)?;
    match (change.fan_out_saved_before, change.fan_out_saved_after) {
        (Some(before), Some(after)) => {
            writeln!(out, "fan-out saved {:.1} % before, {:.1} % after", before * 100.0, after * 100.0)
        }
        _ => Ok(()),
    }
}

/// `; 1 split and 2 joins of partitions`, as far as there are any.
fn splits_and_joins(change: &RebalancePlan) -> String {
    let counts = [(change.splits, "split"), (change.joins, "join")];
    let some = counts.into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = some.map(|(number, noun)| plural(number.into(), noun)).collect();
    if parts.is_empty() { String::new() } else { format!("; {} of partitions", parts.join(" and ")) }
}

impl Done {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { plan_version, seconds, copied, imbalance } = self;
        let copied =
            copied.map_or_else(String::new, |copied| format!(", {} copied", plural(copied, "content")));
        writeln!(out, "done in {seconds:.2} s: plan {plan_version}{copied}, imbalance {imbalance:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change() -> RebalancePlan {
        RebalancePlan {
            plan_version: 4,
            splits: 1,
            joins: 2,
            moves: vec![PartitionMove { partition: 9, from: 0, to: 3, contents: 1_250 }],
            contents_moved: 1_250,
            contents: 10_000,
            imbalance_before: 1.4,
            imbalance_after: 1.08,
            ..RebalancePlan::default()
        }
    }

    fn told(request: RebalanceRequest, change: &RebalancePlan, dry_run: bool) -> String {
        let mut out = Vec::new();
        print(request, change, dry_run, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_change_is_told() {
        let expected = "a dry run of making the nodes even: 1 partition to move, with 1,250 of 10,000 contents (12.5 %); \
            1 split and 2 joins of partitions\n\
            partition  from node  to node  contents\n\
            9          0          3        1,250\n\
            ids are those of plan 5; more contents are copied than move: what is split or joined is copied\n\
            where it stays, too\n\
            imbalance 1.40 before, 1.08 after\n";
        assert_eq!(told(RebalanceRequest::Balance, &change(), true), expected);
        let moved = RebalancePlan { splits: 0, joins: 0, contents: 1, contents_moved: 1, ..change() };
        let expected = "moving partition 9 to node 3: 1 partition to move, with 1 of 1 content (100.0 %)\n";
        let text = told(RebalanceRequest::Move { partition: 9, node: 3 }, &moved, false);
        assert!(text.starts_with(expected) && !text.contains("plan 5"), "{text}");
        let one_join = RebalancePlan { splits: 0, joins: 1, ..change() };
        assert!(
            told(RebalanceRequest::Drain { node: 0 }, &one_join, false).contains("; 1 join of partitions\n")
        );
        let expected = "learning the map anew: 1 content to copy, 1 of them (100.0 %) to another node\n";
        assert!(told(RebalanceRequest::Learn, &moved, false).starts_with(expected));
    }

    #[test]
    fn nothing_to_do_has_a_reason() {
        let nothing = RebalancePlan {
            nothing: Some("all is well".to_owned()),
            imbalance_before: 1.02,
            ..RebalancePlan::default()
        };
        assert_eq!(
            told(RebalanceRequest::Balance, &nothing, true),
            "nothing to do: all is well (imbalance 1.02)\n"
        );
        let marked = RebalancePlan { started: true, ..RebalancePlan::default() };
        let drained = told(RebalanceRequest::Drain { node: 3 }, &marked, false);
        assert_eq!(drained, "draining node 3: no partition to move; it has none, and gets none any more\n");
    }

    #[test]
    fn a_cancelled_request_is_told() {
        let outcome = RebalanceOutcome {
            request: RebalanceRequest::Drain { node: 3 },
            failed: Some("it was cancelled".to_owned()),
            cancelled: true,
            plan_version: 4,
            copied: 1,
            seconds: 0.5,
        };
        let mut out = Vec::new();
        print_cancelled(&outcome, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "cancelled: draining node 3; 1 copied content given up, and plan 4 stays
"
        );
    }

    #[test]
    fn a_request_is_sent_as_the_server_reads_it() {
        let text = |request| serde_json::to_string(&Request { request, dry_run: true }).unwrap();
        assert_eq!(text(RebalanceRequest::Balance), r#"{"action":"balance","dry_run":true}"#);
        assert_eq!(
            text(RebalanceRequest::Move { partition: 9, node: 3 }),
            r#"{"action":"move","partition":9,"node":3,"dry_run":true}"#
        );
    }

    #[test]
    fn a_busy_server_is_known() {
        let said = |status| ClientError::Refused { status, text: "node 503".to_owned() };
        assert!(busy(&said(StatusCode::CONFLICT)).unwrap().0.contains("another change"));
        assert!(busy(&said(StatusCode::SERVICE_UNAVAILABLE)).is_some());
        assert!(busy(&said(StatusCode::BAD_REQUEST)).is_none());
    }
}
