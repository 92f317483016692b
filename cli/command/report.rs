//! `doppel report`: load of the partitions, quality and sizes of the groups.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use doppel_common::api::{Backlog, Counters, LoadReport};
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::args::AskArgs;
use crate::client::Client;
use crate::output::{Output, bytes, count, plural, redirects, table};

/// Show how a server is doing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel report load-balance
  doppel report quality --json")]
pub(crate) struct Report {
    /// Which report.
    #[arg(value_enum)]
    kind: Kind,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// How evenly contents and comparisons are spread over the partitions.
    LoadBalance,
    /// What was accepted, confirmed, merged and split, and what is still to be done.
    Quality,
    /// How large the groups are.
    Groups,
}

#[derive(Debug, Deserialize)]
struct Quality {
    counters: Counters,
    unique: u64,
    backlog: Backlog,
    confirm_share: Option<f64>,
    reject_share: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Groups {
    groups: u64,
    cut: bool,
    quarantined: u64,
    histogram: Vec<SizeClass>,
    largest: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct SizeClass {
    from: u64,
    to: u64,
    groups: u64,
}

#[derive(Debug, Deserialize)]
struct Group {
    group: String,
    winner: Option<String>,
    members: u64,
    quarantined: bool,
}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.kind {
            Kind::LoadBalance => self.show("load-balance", load_balance),
            Kind::Quality => self.show("quality", quality),
            Kind::Groups => self.show("groups", groups),
        }
    }

    fn show<T: DeserializeOwned>(
        &self,
        name: &str,
        human: impl FnOnce(&T, &mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let client = Client::new(&self.ask.server)?;
        let answer: Box<RawValue> = client.json(client.request(Method::GET, &["v1", "reports", name]))?;
        let report: T = serde_json::from_str(answer.get())?;
        Output { json: self.ask.json }.print(&answer, |out| human(&report, out))?;
        Ok(())
    }
}

fn load_balance(report: &LoadReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{} in {} dimensions, map {}",
        plural(report.partitions.len() as u64, "partition"),
        report.dimensions,
        report.epoch
    )?;
    writeln!(
        out,
        "imbalance {:.2} (largest over mean; dealt at random: {:.2}), sends saved {:.1} %",
        report.imbalance,
        report.imbalance_floor,
        report.sends_saved * 100.0
    )?;
    let heading =
        ["partition", "node", "contents", "pages", "received", "comparisons", "bytes"].map(str::to_owned);
    let mut rows = vec![heading.to_vec()];
    rows.extend(report.partitions.iter().map(|load| {
        vec![
            load.partition.to_string(),
            load.node.clone(),
            count(load.contents),
            count(load.pages),
            count(load.received),
            count(load.comparisons),
            bytes(load.bytes),
        ]
    }));
    table(out, &rows)
}

fn quality(report: &Quality, out: &mut dyn Write) -> io::Result<()> {
    let Quality { counters, backlog, .. } = report;
    let share = |share: Option<f64>| share.map(|s| format!("{:.1} %", s * 100.0)).unwrap_or_default();
    let row = |name: &str, number: u64, about: String| vec![name.to_owned(), count(number), about];
    let plain = |name: &str, number: u64| row(name, number, String::new());
    let rows = [
        row("live pages", counters.live, redirects(counters.redirects)),
        plain("  unique", report.unique),
        plain("  winners", counters.winners),
        plain("  duplicates", counters.duplicates),
        plain("  members", counters.members),
        plain("  unresolved", counters.unresolved),
        plain("  pending", backlog.pending),
        plain("dead pages", counters.dead),
        plain("groups", counters.groups),
        plain("submissions", counters.submissions),
        plain("  unchanged", counters.unchanged),
        plain("  stale", counters.stale),
        row("  updates confirmed", counters.confirmed, share(report.confirm_share)),
        plain("  updates compared", counters.compared_updates),
        plain("looks", counters.looks),
        plain("  stale results", counters.stale_results),
        plain("verifications", counters.verified),
        row("  rejected", counters.rejected, share(report.reject_share)),
        plain("merges", counters.merges),
        plain("splits", counters.splits),
        plain("to do: late looks", backlog.late_looks),
        plain("to do: touched groups", backlog.touched_groups),
        plain("to do: unverified", backlog.unverified),
        plain("to do: messages", backlog.messages),
    ];
    table(out, &rows)
}

fn groups(report: &Groups, out: &mut dyn Write) -> io::Result<()> {
    let more = if report.cut { " and more" } else { "" };
    let quarantined = match report.quarantined {
        0 => String::new(),
        number => format!(", {} quarantined for their size until `doppel repair ID`", count(number)),
    };
    writeln!(out, "{}{more}{quarantined}", plural(report.groups, "group"))?;
    let class = |class: &SizeClass| {
        let range = if class.from == class.to {
            class.from.to_string()
        } else {
            format!("{}-{}", class.from, class.to)
        };
        vec![format!("  {range} with content"), count(class.groups)]
    };
    table(out, &report.histogram.iter().map(class).collect::<Vec<_>>())?;
    writeln!(out, "largest")?;
    let row = |group: &Group| {
        let quarantined = if group.quarantined { "quarantined" } else { "" };
        let winner = group.winner.clone().unwrap_or_default();
        vec![format!("  {}", group.group), count(group.members), winner, quarantined.to_owned()]
    };
    table(out, &report.largest.iter().map(row).collect::<Vec<_>>())
}
