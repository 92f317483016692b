//! `doppel repairs`: the audit trail, of repairs that were applied and of quarantines.

use clap::Args;
use doppel_contract::TrailEvent;
use doppel_contract::answer::{AppliedRepair, AppliedRepairUrls, Trail};
use doppel_contract::client::{Client, Method, ParsedAnswer};
use doppel_model::GroupId;
use doppel_protocol::RepairId;
use doppel_terminal::output::{Output, plural, table};

use super::repair::print_components;
use crate::args::AskArgs;
use crate::client::connect;

/// The most entries of one answer.
const REPAIRS_PER_REQUEST: u64 = 1_000;

/// Show the repairs that were applied, and the quarantines that began and ended: when, by whom, and what came of them.
///
/// The newest come first. Dry runs are not among them. With an ID one entry is shown with its pages. With
/// --json a line is one answer of the server, with up to 1,000 entries.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel repairs
  doppel repairs --group g12-0
  doppel repairs r7-0")]
pub(crate) struct Repairs {
    /// Show this entry with its pages; a quarantine has none.
    #[arg(value_name = "ID", conflicts_with_all = ["group", "limit"])]
    repair: Option<RepairId>,
    /// Only entries of this group; those of a group that was merged into it stay under the old id.
    #[arg(long, value_name = "ID")]
    group: Option<GroupId>,
    /// The most entries to show.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    #[command(flatten)]
    ask: AskArgs,
}

impl Repairs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        match self.repair {
            Some(id) => self.show(&client, id),
            None => self.list(&client),
        }
    }

    fn show(&self, client: &Client, id: RepairId) -> anyhow::Result<()> {
        let request = client.request(Method::GET, &["v1", "repairs", &id.to_string()]);
        let ParsedAnswer { text, value } = client.ask(request)?;
        let AppliedRepairUrls { repair, components, forgotten, .. } = value;
        Output { json: self.ask.json }.print(&text, |out| {
            let [at, by, group, before, after, id] = row(&repair);
            match repair.event {
                TrailEvent::Repair => writeln!(out, "{id}: {group} by {by}, {at}: {before} in {after}")?,
                _ => writeln!(out, "{id}: {group}, {at}: {after}, with {before}")?,
            }
            print_components(out, &components, repair.truncated)?;
            if forgotten > 0 {
                writeln!(out, "{} since forgotten", plural(forgotten, "page"))?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn list(&self, client: &Client) -> anyhow::Result<()> {
        let output = Output { json: self.ask.json };
        let (mut left, mut before) = (self.limit, None::<String>);
        let mut rows = vec![["when", "by", "group", "before", "after", "id"].map(str::to_owned).to_vec()];
        loop {
            let mut query = vec![("limit", left.min(REPAIRS_PER_REQUEST).to_string())];
            query.extend(self.group.map(|group| ("group", group.to_string())));
            query.extend(before.map(|before| ("before", before)));
            let request = client.request(Method::GET, &["v1", "repairs"]).query(&query);
            let ParsedAnswer { text, value: Trail { repairs, next } } = client.ask(request)?;
            if output.json {
                output.print(&text, |_| Ok(()))?;
            }
            left = left.saturating_sub(repairs.len() as u64);
            rows.extend(repairs.iter().map(|repair| row(repair).to_vec()));
            if next.is_none() || left == 0 {
                break;
            }
            before = next;
        }
        if !output.json {
            output.print(&(), |out| match rows.len() {
                1 => writeln!(out, "no repair was applied, and no group was quarantined"),
                _ => table(out, &rows),
            })?;
        }
        Ok(())
    }
}

/// When, by whom, group, before, after, id.
fn row(repair: &AppliedRepair) -> [String; 6] {
    let AppliedRepair { id, at, event, by, group, into, members, component_count, truncated } = repair;
    let more = if *truncated { " at least" } else { "" };
    let after = match event {
        TrailEvent::Repair => plural(*component_count, "component") + more,
        TrailEvent::Quarantined => "quarantined".to_owned(),
        TrailEvent::Released => match into {
            Some(into) => format!("merged into {into}"),
            None => "not quarantined any more".to_owned(),
        },
    };
    let by = by.as_deref().unwrap_or("-").to_owned();
    [at.clone(), by, group.clone(), plural(*members, "page"), after, id.clone()]
}
