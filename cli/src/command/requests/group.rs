//! `doppel group`: one group and its members.

use clap::Args;
use doppel_contract::Status;
use doppel_contract::answer::{self, GroupPage, ListedMember};
use doppel_contract::client::{Method, ParsedAnswer};
use doppel_model::GroupId;
use doppel_terminal::output::{Output, as_of, count, plural, table};

use crate::args::AskArgs;
use crate::client::connect;

const MEMBERS_PER_REQUEST: &str = "1000";

/// Show a group: its winner, what is known against it, and its members.
///
/// A group that was merged away says into which one. With --json a line is one answer of the server,
/// with up to 1,000 members.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel group g12-0
  doppel group --json g12-0")]
pub(crate) struct Group {
    /// Its id, as `doppel status` prints it.
    #[arg(value_name = "ID")]
    group: GroupId,
    /// Prefer winners of this market, by its name or as a host suffix such as `de`; see docs/reference/winner-rules.md.
    #[arg(long, value_name = "MARKET")]
    market: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

impl Group {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        let id = self.group.to_string();
        let mut after: Option<String> = None;
        loop {
            let mut query = vec![("limit", MEMBERS_PER_REQUEST)];
            query.extend(after.as_deref().map(|after| ("after", after)));
            query.extend(self.market.as_deref().map(|market| ("market", market)));
            let request = client.request(Method::GET, &["v1", "groups", &id]).query(&query);
            let ParsedAnswer { text, value } = client.ask(request)?;
            let GroupPage { group, mut pages, next, age_ms } = value;
            pages.sort_by_key(|page| page.status != Status::Winner);
            output.print(&text, |out| {
                if after.is_none() {
                    let age = age_ms.map(|age| format!(", {}", as_of(age))).unwrap_or_default();
                    writeln!(out, "{}{age}", heading(&group))?;
                }
                table(out, &pages.iter().map(row).collect::<Vec<_>>())
            })?;
            if next.is_none() {
                return Ok(());
            }
            after = next;
        }
    }
}

fn heading(group: &answer::GroupOverview) -> String {
    let answer::GroupOverview {
        group,
        merged_into,
        winner,
        members,
        dissimilar,
        secondaries,
        uncovered,
        dirty,
        quarantined,
    } = group;
    if let Some(survivor) = merged_into {
        return format!("{group} was merged into {survivor}");
    }
    let mut heading = format!("{group}: {} with content", plural(*members, "page"));
    if let Some(winner) = winner {
        heading += &format!(", winner {winner}");
    }
    if *dissimilar > 0 {
        heading += &format!(", {} not similar to it", plural(*dissimilar, "page"));
    }
    if *secondaries > 0 {
        heading += &format!(", {} kept beside the winner", count(*secondaries));
    }
    if *dirty {
        heading += ", to be recomputed";
    }
    if *uncovered {
        heading += ", duplicates of others than the winner to be found";
    }
    if *quarantined {
        let repair = format!("`doppel repair {group}`");
        heading += &format!(
            "\nquarantined for the number of its contents, so no member is advised as a duplicate; {repair} recomputes it and accepts what is left until that has doubled"
        );
    }
    heading
}

fn row(member: &ListedMember) -> Vec<String> {
    let mut about = Vec::new();
    if member.content.is_none() {
        about.push("redirect".to_owned());
    }
    about.extend(member.duplicate_of.as_ref().map(|kept| format!("of {kept}")));
    about.extend(member.similarity.map(|similarity| format!("similarity {similarity:.3}")));
    vec![member.status.to_string(), member.url.clone(), about.join(", ")]
}
