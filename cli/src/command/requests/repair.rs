//! `doppel repair`: recompute a group.

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
/// Prints the components that the members fall into, the winner's first. What falls out leaves the group. A group
/// that was quarantined for the number of its contents is advised from again, until it has twice the members that are left.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel repair --dry-run g12-0
  doppel repair g12-0 --by alice")]
pub(crate) struct Repair {
    /// The group.
    #[arg(value_name = "ID")]
    group: GroupId,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Who does it; `doppel repairs` says so. Where the server has tokens it is the name of the token, and this is refused.
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

/// The components that a group falls into.
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
