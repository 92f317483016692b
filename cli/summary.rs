//! What `doppel dedup` found, in short.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use doppel_common::api::{Counters, GroupFilter, GroupSummary, GroupState, Status, Tier1Api};
use doppel_common::model::GroupId;
use serde::Serialize;

use crate::crawl::Tally;
use crate::output::{bytes, count, plural, table};

/// Groups or members read at a time.
const PAGE: usize = 1_000;

/// The end of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// What was read.
    pub(crate) input: Tally,
    /// The collection's totals.
    pages: Counters,
    groups: Groups,
    /// The largest, most pages first.
    largest: Vec<Largest>,
    seconds: f64,
    records_per_second: f64,
    megabytes_per_second: f64,
}

/// Groups by what ties them.
#[derive(Debug, Default, Serialize)]
struct Groups {
    /// All members have the same content.
    exact: u64,
    /// At least one member has another content.
    near: u64,
    /// One content, and redirects to it.
    redirects: u64,
}

/// One large group.
#[derive(Debug, Serialize)]
struct Largest {
    group: GroupId,
    pages: u64,
    exact: bool,
    winner: Option<String>,
}

/// What a group's members are.
#[derive(Debug, Default)]
struct Members {
    pages: u64,
    contents: u64,
    same: bool,
}

impl Summary {
    /// Reads the groups of a quiescent tier 1.
    ///
    /// # Errors
    /// When a record is damaged.
    pub(crate) fn of(tier1: &dyn Tier1Api, input: Tally, elapsed: Duration, top: usize) -> anyhow::Result<Self> {
        let mut groups = Groups::default();
        let mut largest = Vec::new();
        let mut after = None;
        loop {
            let piece = tier1.groups(GroupFilter::All, after, PAGE)?;
            let Some(last) = piece.last() else { break };
            after = Some(last.group);
            for GroupSummary { group, winner, .. } in piece.into_iter().filter(|g| g.state == GroupState::Active) {
                let members = Members::of(tier1, group)?;
                let kind = match members {
                    Members { contents: 0 | 1, .. } => &mut groups.redirects,
                    Members { same: true, .. } => &mut groups.exact,
                    Members { same: false, .. } => &mut groups.near,
                };
                *kind += 1;
                let winner = winner.map(|url| url.to_string());
                largest.push(Largest { group, pages: members.pages, exact: members.same, winner });
            }
            // Only the front is kept, so that memory does not grow with the number of groups.
            largest.sort_by(|a, b| b.pages.cmp(&a.pages).then_with(|| a.winner.cmp(&b.winner)));
            largest.truncate(top);
        }
        let seconds = elapsed.as_secs_f64();
        Ok(Self {
            records_per_second: input.records as f64 / seconds,
            megabytes_per_second: input.bytes as f64 / 1e6 / seconds,
            pages: tier1.counters(),
            input,
            groups,
            largest,
            seconds,
        })
    }

    /// Prints it for people.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { input, pages, groups, .. } = self;
        let row = |name: &str, number: u64, about: String| vec![name.to_owned(), count(number), about];
        let mut rows = vec![row("records", input.records, bytes(input.bytes))];
        let left = |name: &'static str, reasons: &BTreeMap<String, u64>| {
            let row = |(reason, records): (&String, &u64)| row(name, *records, reason.clone());
            reasons.iter().map(row).collect::<Vec<_>>()
        };
        rows.extend(left("skipped", &input.skipped));
        rows.extend(left("bad", &input.bad));
        let unique = pages.live - pages.winners - pages.duplicates - pages.members - pages.unresolved;
        rows.push(row("live pages", pages.live, format!("{} of them redirect", count(pages.redirects))));
        rows.push(row("  unique", unique, String::new()));
        rows.push(row("  winners", pages.winners, "one a group: keep".to_owned()));
        rows.push(row("  duplicates", pages.duplicates, "verified against their winner: drop".to_owned()));
        rows.push(row("  members", pages.members, "in a group, not similar to its winner: keep".to_owned()));
        rows.push(row("  unresolved", pages.unresolved, "redirects that lead to no known page".to_owned()));
        rows.push(row("dead pages", pages.dead, String::new()));
        rows.push(row("exact groups", groups.exact, "all members have the same text".to_owned()));
        rows.push(row("near groups", groups.near, "near-duplicates".to_owned()));
        rows.push(row("redirect groups", groups.redirects, "one text, and redirects to it".to_owned()));
        table(out, &rows)?;
        writeln!(
            out,
            "\n{:.1} s: {:.0} pages/s, {:.1} MB/s",
            self.seconds, self.records_per_second, self.megabytes_per_second
        )?;
        if !self.largest.is_empty() {
            writeln!(out, "\nlargest groups")?;
            let row = |group: &Largest| {
                let kind = if group.exact { "exact" } else { "near" };
                vec![plural(group.pages, "page"), kind.to_owned(), group.winner.clone().unwrap_or_default()]
            };
            table(out, &self.largest.iter().map(row).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl Members {
    fn of(tier1: &dyn Tier1Api, group: GroupId) -> anyhow::Result<Self> {
        let mut members = Self { same: true, ..Self::default() };
        let mut first = None;
        let mut after = None;
        while let Some(view) = tier1.group(group, after, PAGE)? {
            for member in &view.members {
                members.pages += 1;
                if let Some(content) = member.content {
                    members.contents += 1;
                    members.same &= *first.get_or_insert(content) == content;
                    debug_assert_ne!(member.line.status, Status::Dead);
                }
            }
            after = view.next;
            if after.is_none() {
                break;
            }
        }
        Ok(members)
    }
}
