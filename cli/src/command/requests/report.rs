//! `doppel report`: load of the partitions, quality and sizes of the groups, and what dropping duplicates
//! saves.

mod load_balance;
mod what_if;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use doppel_contract::answer::{GroupOverview, GroupSizes, Quality, SizeClass};
use doppel_contract::client::{Method, ParsedAnswer};
use doppel_snapshot::create_directories;
use doppel_terminal::destination::Destination;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, as_of, count, percent, plural, redirects, table};
use doppel_terminal::svg::{self, Panel};
use serde::de::DeserializeOwned;

use crate::args::AskArgs;
use crate::client::connect;
use crate::savings;
pub(crate) use load_balance::describe_progress;

/// Show how a server is doing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel report load-balance
  doppel report load-balance --what-if --svg plots
  doppel report savings
  doppel report quality --json")]
pub(crate) struct Report {
    /// The report to show.
    #[arg(value_enum)]
    kind: Kind,
    /// With load-balance: show how 1 to 4 dimensions and 2 to 128 nodes would divide the present contents.
    /// Takes some seconds.
    #[arg(long)]
    what_if: bool,
    /// With load-balance: also draw the report into this directory, as load-balance.svg or what-if.svg. A
    /// missing directory is created.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// How evenly contents and comparisons are spread over the partitions.
    LoadBalance,
    /// What was accepted, confirmed, merged and split, and what work is left.
    Quality,
    /// How large the groups are.
    Groups,
    /// What dropping exact copies, near-duplicates and redirects saves, and which hosts mirror which.
    Savings,
}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if (self.what_if || self.svg.is_some()) && !matches!(self.kind, Kind::LoadBalance) {
            let text = "--what-if and --svg are for the report load-balance";
            return Err(Failure::Usage(text.to_owned()).into());
        }
        match self.kind {
            Kind::LoadBalance if self.what_if => {
                let path = ["v1", "reports", "load-balance", "what-if"];
                self.show(&path, what_if::print, |report| self.draw("what-if.svg", &what_if::panels(report)))
            }
            Kind::LoadBalance => {
                let path = ["v1", "reports", "load-balance"];
                let draw = |report: &_| self.draw("load-balance.svg", &load_balance::panels(report));
                self.show(&path, load_balance::print, draw)
            }
            Kind::Quality => self.show(&["v1", "reports", "quality"], quality, |_| Ok(())),
            Kind::Groups => self.show(&["v1", "reports", "groups"], groups, |_| Ok(())),
            Kind::Savings => self.show(&["v1", "reports", "savings"], savings::print, |_| Ok(())),
        }
    }

    fn show<T: DeserializeOwned>(
        &self,
        path: &[&str],
        human: impl FnOnce(&T, &mut dyn Write) -> io::Result<()>,
        draw: impl FnOnce(&T) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        let ParsedAnswer { text, value } = client.ask(client.request(Method::GET, path))?;
        draw(&value)?;
        Output { json: self.ask.json }.print(&text, |out| human(&value, out))?;
        Ok(())
    }

    fn draw(&self, name: &str, panels: &[Panel]) -> anyhow::Result<()> {
        let Some(dir) = self.svg.as_deref() else { return Ok(()) };
        create_directories(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let file = Destination::open(&dir.join(name))?;
        file.write(|out| Ok(out.write_all(svg::document(panels).as_bytes())?))
    }
}

fn quality(report: &Quality, out: &mut dyn Write) -> io::Result<()> {
    let Quality { counters, backlog, .. } = report;
    let share = |share: Option<f64>| share.map(percent).unwrap_or_default();
    let row = |name: &str, number: u64, about: String| vec![name.to_owned(), count(number), about];
    let plain = |name: &str, number: u64| row(name, number, String::new());
    // A member is not compared with its winner again if a search has found the pair or their contents are
    // equal. The share therefore refers to these comparisons, not to the members.
    let of_comparisons = report.reject_share.map(|of| format!("{} of these comparisons", percent(of)));
    let of_comparisons = of_comparisons.unwrap_or_default();
    let rows = [
        row("live pages", counters.live, redirects(counters.redirects)),
        plain("  unique", report.unique),
        plain("  winners", counters.winners),
        plain("  duplicates", counters.duplicates),
        plain("  secondaries", counters.secondaries),
        plain("  unresolved", counters.unresolved),
        plain("  pending", backlog.pending),
        plain("dead pages", counters.dead),
        row("crowded pages", counters.crowded, "more than 10,000 redirects end at each".to_owned()),
        plain("groups", counters.groups),
        plain("submissions", counters.submissions),
        plain("  unchanged", counters.unchanged),
        plain("  stale", counters.stale),
        row("  updates confirmed", counters.confirmed, share(report.confirm_share)),
        plain("  updates compared", counters.compared_updates),
        plain("searches", counters.searches),
        plain("  stale results", counters.stale_results),
        plain("comparisons with a winner, since the collection was made", counters.verified),
        row("  no near-duplicate", counters.rejected, of_comparisons),
        plain("merges", counters.merges),
        plain("evictions", counters.evictions),
        plain("to do: deferred searches", backlog.deferred_searches),
        plain("to do: dirty groups", backlog.dirty_groups),
        plain("to do: uncovered groups", backlog.uncovered_groups),
        plain("to do: unverified", backlog.unverified),
        plain("to do: messages", backlog.messages),
    ];
    table(out, &rows)
}

fn groups(report: &GroupSizes, out: &mut dyn Write) -> io::Result<()> {
    let more = if report.truncated { " and more" } else { "" };
    let quarantined = match report.quarantined {
        0 => String::new(),
        number => format!(
            ", {} quarantined for their contents; `doppel repair ID` ends a quarantine",
            count(number)
        ),
    };
    let age = report.age_ms.map(|age| format!(", {}", as_of(age))).unwrap_or_default();
    writeln!(out, "{}{more}{quarantined}{age}", plural(report.groups, "group"))?;
    let class = |class: &SizeClass| {
        let range = if class.from == class.to {
            class.from.to_string()
        } else {
            format!("{}-{}", class.from, class.to)
        };
        vec![format!("  {range} with content"), count(class.groups)]
    };
    table(out, &report.histogram.iter().map(class).collect::<Vec<_>>())?;
    let row = |group: &GroupOverview| {
        let quarantined = if group.quarantined { "quarantined" } else { "" };
        let winner = group.winner.clone().unwrap_or_default();
        vec![format!("  {}", group.group), count(group.members), winner, quarantined.to_owned()]
    };
    writeln!(out, "largest, with their pages with content")?;
    table(out, &report.largest.iter().map(row).collect::<Vec<_>>())?;
    if report.most_secondaries.is_empty() {
        return Ok(());
    }
    writeln!(out, "most pages kept beside the winner, of their pages with content")?;
    let row = |group: &GroupOverview| {
        let kept = format!("{} of {}", count(group.secondaries), count(group.members));
        vec![format!("  {}", group.group), kept, group.winner.clone().unwrap_or_default()]
    };
    table(out, &report.most_secondaries.iter().map(row).collect::<Vec<_>>())
}
