//! `doppel repair`: recomputes a group.

use std::io::{self, Write};

use clap::Args;
use doppel_contract::answer;
use doppel_contract::client::{Method, ParsedAnswer};
use doppel_model::GroupId;
use doppel_terminal::output::{Output, plural};

use crate::args::AskArgs;
use crate::client::connect;

/// Recompute a group's membership by exact comparison of all its members.
///
/// Prints the connected components of the members, the winner's first. Members in other components leave the
/// group. A group that was quarantined because it has too many contents gives advice again, until it has
/// twice as many contents as after the repair.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel repair --dry-run g12-0
  doppel repair g12-0 --by alice")]
pub(crate) struct Repair {
    /// Id of the group.
    #[arg(value_name = "ID")]
    group: GroupId,
    /// Print what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Name of the operator who makes the repair, as `doppel repairs` shows it. A server with tokens records the name of the
    /// token instead, and refuses this option.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

impl Repair {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        let id = self.group.to_string();
        let request = client.request(Method::POST, &["v1", "groups", &id, "repair"]);
        let request =
            request.query(&[("dry_run", self.dry_run)]).query(&self.by.as_ref().map(|by| [("by", by)]));
        let ParsedAnswer { text, value: repair } = client.ask::<answer::RepairResult>(request)?;
        Output { json: self.ask.json }.print(&text, |out| {
            let done = if repair.applied { "recomputed" } else { "nothing was changed" };
            let before = plural(repair.total_members.unwrap_or(repair.before.len()) as u64, "page");
            let after =
                plural(repair.total_components.unwrap_or(repair.components.len()) as u64, "component");
            writeln!(out, "{}: {before} in {after}; {done}", repair.group)?;
            print_components(out, &repair.components, repair.truncated)
        })?;
        Ok(())
    }
}

/// Prints the components into which a group is divided, each with its pages.
pub(super) fn print_components(
    out: &mut dyn Write,
    components: &[Vec<String>],
    truncated: bool,
) -> io::Result<()> {
    for component in components {
        writeln!(out, "{}", plural(component.len() as u64, "page"))?;
        component.iter().try_for_each(|url| writeln!(out, "  {url}"))?;
    }
    if truncated { writeln!(out, "not all pages are listed") } else { Ok(()) }
}
