//! `doppel repairs`: the trail of repairs that were applied.

use clap::Args;
use doppel_model::GroupId;
use doppel_protocol::RepairId;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::repair::print_sets;
use crate::args::AskArgs;
use crate::client::Client;
use crate::output::{Output, plural, table};

/// The most repairs of one answer.
const REPAIRS_PER_REQUEST: u64 = 1_000;

/// Show the repairs that were applied: when, by whom, and what came of them.
///
/// The newest come first. Dry runs are not among them. With an ID one repair is shown with its pages. With
/// --json a line is one answer of the server, with up to 1,000 repairs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel repairs
  doppel repairs --group g12-0
  doppel repairs r7-0")]
pub(crate) struct Repairs {
    /// Show this repair with its pages.
    #[arg(value_name = "ID", conflicts_with_all = ["group", "limit"])]
    repair: Option<RepairId>,
    /// Only repairs of this group; those of a group that was merged into it stay under the old id.
    #[arg(long, value_name = "ID")]
    group: Option<GroupId>,
    /// The most repairs to show.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Deserialize)]
struct Applied {
    id: String,
    at: String,
    by: String,
    group: String,
    members: u64,
    sets: u64,
    truncated: bool,
}

#[derive(Debug, Deserialize)]
struct Trail {
    repairs: Vec<Applied>,
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Details {
    #[serde(flatten)]
    repair: Applied,
    components: Vec<Vec<String>>,
    forgotten: u64,
}

impl Repairs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = Client::new(&self.ask.server)?;
        match self.repair {
            Some(id) => self.show(&client, id),
            None => self.list(&client),
        }
    }

    fn show(&self, client: &Client, id: RepairId) -> anyhow::Result<()> {
        let request = client.request(Method::GET, &["v1", "repairs", &id.to_string()]);
        let answer: Box<RawValue> = client.json(request)?;
        let Details { repair, components, forgotten } = serde_json::from_str(answer.get())?;
        Output { json: self.ask.json }.print(&answer, |out| {
            let [at, by, group, before, after, id] = repair.row();
            writeln!(out, "{id}: {group} by {by}, {at}: {before} in {after}")?;
            print_sets(out, &components, repair.truncated)?;
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
            let answer: Box<RawValue> = client.json(request)?;
            let Trail { repairs, next } = serde_json::from_str(answer.get())?;
            if output.json {
                output.print(&answer, |_| Ok(()))?;
            }
            left = left.saturating_sub(repairs.len() as u64);
            rows.extend(repairs.iter().map(|repair| repair.row().to_vec()));
            if next.is_none() || left == 0 {
                break;
            }
            before = next;
        }
        if !output.json {
            output.print(&(), |out| match rows.len() {
                1 => writeln!(out, "no repair was applied"),
                _ => table(out, &rows),
            })?;
        }
        Ok(())
    }
}

impl Applied {
    /// When, by whom, group, before, after, id.
    fn row(&self) -> [String; 6] {
        let more = if self.truncated { " at least" } else { "" };
        let (before, after) = (plural(self.members, "page"), plural(self.sets, "set") + more);
        [self.at.clone(), self.by.clone(), self.group.clone(), before, after, self.id.clone()]
    }
}
