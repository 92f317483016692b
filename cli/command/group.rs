//! `doppel group`: one group and its members.

use clap::Args;
use doppel_model::GroupId;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::args::AskArgs;
use crate::client::Client;
use crate::output::{Output, plural, table};

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
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Deserialize)]
struct Answer {
    group: String,
    merged_into: Option<String>,
    winner: Option<String>,
    members: u64,
    dissimilar: u64,
    dirty: bool,
    quarantined: bool,
    pages: Vec<Member>,
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Member {
    url: String,
    status: String,
    similarity: Option<f64>,
    content: Option<String>,
}

impl Group {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = Client::new(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        let id = self.group.to_string();
        let mut after: Option<String> = None;
        loop {
            let mut query = vec![("limit", MEMBERS_PER_REQUEST)];
            query.extend(after.as_deref().map(|after| ("after", after)));
            let request = client.request(Method::GET, &["v1", "groups", &id]).query(&query);
            let answer: Box<RawValue> = client.json(request)?;
            let mut view: Answer = serde_json::from_str(answer.get())?;
            view.pages.sort_by_key(|page| page.status != "winner");
            output.print(&answer, |out| {
                if after.is_none() {
                    writeln!(out, "{}", view.heading())?;
                }
                table(out, &view.pages.iter().map(Member::row).collect::<Vec<_>>())
            })?;
            if view.next.is_none() {
                return Ok(());
            }
            after = view.next;
        }
    }
}

impl Answer {
    fn heading(&self) -> String {
        if let Some(survivor) = &self.merged_into {
            return format!("{} was merged into {survivor}", self.group);
        }
        let mut heading = format!("{}: {} with content", self.group, plural(self.members, "page"));
        if let Some(winner) = &self.winner {
            heading += &format!(", winner {winner}");
        }
        if self.dissimilar > 0 {
            heading += &format!(", {} not similar to it", plural(self.dissimilar, "page"));
        }
        if self.dirty {
            heading += ", to be recomputed";
        }
        if self.quarantined {
            let repair = format!("`doppel repair {}`", self.group);
            heading += &format!(
                "\nquarantined for its size, so no member is advised as a duplicate; {repair} recomputes it and accepts what is left until that has doubled"
            );
        }
        heading
    }
}

impl Member {
    fn row(&self) -> Vec<String> {
        let about = match (&self.content, self.similarity) {
            (None, _) => "redirect".to_owned(),
            (Some(_), Some(similarity)) => format!("similarity {similarity:.3}"),
            (Some(_), None) => String::new(),
        };
        vec![self.status.clone(), self.url.clone(), about]
    }
}
