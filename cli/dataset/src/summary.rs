//! Summary of a run of `doppel dedup`.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use doppel_contract::{Counters, SubmissionOutcome};
use doppel_crawls::copy::{Copied, Removal};
use doppel_inputs::tally::Tally;
use doppel_model::Timestamp;
use doppel_model::pairwise::Policy;
use doppel_terminal::output::{bytes, count, redirects, table};
use serde::Serialize;

use crate::accounts::Accounts;
use crate::collection_groups::{CollectionGroups, GroupCounts, LargestGroup};
use crate::learnt_tables::LearntTables;
use crate::reference::ReferenceSetSummary;
use crate::results;
use crate::weights::{Balance, Weight};

/// What a run has read and recorded.
#[derive(Debug, Default, Serialize)]
pub struct IngestSummary {
    /// Records that were read.
    pub input: Tally,
    /// Outcomes of the submitted pages.
    pub outcomes: Outcomes,
    /// Live pages whose file below an input directory is gone.
    pub gone: u64,
    /// Whether these pages were recorded as dead.
    pub pruned: bool,
    /// Whether the user asked for `--prune`.
    #[serde(skip)]
    pub prunes: bool,
    /// Earliest and latest date of the versions that were read.
    #[serde(skip)]
    pub dates: Option<(Timestamp, Timestamp)>,
}

/// Number of pages by outcome.
#[derive(Debug, Default, Serialize)]
pub struct Outcomes {
    unchanged: u64,
    confirmed: u64,
    pending: u64,
    stale: u64,
}

/// Summary of a run, at its end.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Number of records by outcome.
    records: Accounts,
    /// Policy as text, such as `jaccard:tau=0.8`.
    policy: Policy,
    #[serde(flatten)]
    /// What the run has read and recorded.
    pub ingest: IngestSummary,
    /// Tables that this run learned from its inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<LearntTables>,
    /// Records that were copied to directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<Copied>,
    /// References, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceSetSummary>,
    /// Totals of the collection.
    pages: Counters,
    #[serde(flatten)]
    balance: Balance,
    groups: GroupCounts,
    /// Largest groups; the group with most pages comes first.
    largest: Vec<LargestGroup>,
    seconds: f64,
    records_per_second: f64,
    megabytes_per_second: f64,
    /// Warnings about the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Summary {
    /// Creates the summary of a run under a policy that took `elapsed`.
    pub fn new(
        policy: Policy,
        (records, ingest): (Accounts, IngestSummary),
        elapsed: Duration,
        collection: CollectionGroups,
        balance: Balance,
    ) -> Self {
        let seconds = elapsed.as_secs_f64();
        let CollectionGroups { pages, groups, largest, sizes: _ } = collection;
        Self {
            records_per_second: ingest.input.records as f64 / seconds,
            megabytes_per_second: ingest.input.bytes as f64 / 1e6 / seconds,
            records,
            policy,
            tables: None,
            results: None,
            references: Vec::new(),
            pages,
            ingest,
            balance,
            warnings: Vec::new(),
            groups,
            largest,
            seconds,
        }
    }

    /// Adds warnings about groups in quarantine. `collection` is the data directory, if the run has one.
    pub fn warn(&mut self, collection: Option<&Path>) {
        self.warnings.extend(self.groups.warning(collection, !self.references.is_empty()));
    }

    /// Returns the warnings about the result.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Prints the summary for people. Rows with a count of zero are left out, except the main figures.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self {
            ingest: IngestSummary { input, outcomes, gone, pruned, prunes, .. }, pages, groups, ..
        } = self;
        let others = pages.winners + pages.duplicates + pages.secondaries + pages.unresolved;
        let unique = pages.live.saturating_sub(others);
        let mut rows = self.records.terms(Some(input.bytes));
        table(out, &rows.drain(..).map(row).collect::<Vec<_>>())?;
        writeln!(out, "\npolicy {}\n", self.policy)?;
        rows.extend(input.skipped.iter().map(|(reason, records)| ("skipped", *records, reason.clone())));
        rows.extend(input.bad.iter().map(|(reason, records)| ("bad", *records, reason.clone())));
        rows.extend(input.passed_over());
        let some = |(name, number, about): (&'static str, u64, &str)| {
            (number > 0).then(|| (name, number, about.to_owned()))
        };
        rows.extend(some(("mended", input.mended_texts, "texts with lone surrogates, each read as U+FFFD")));
        let gone_but = if *pruned {
            "their files have gone: dead now"
        } else if *prunes {
            "their files have gone; they stay live, because nothing or not all could be read: is it mounted?"
        } else {
            "their files have gone; they stay live, --prune records them as dead"
        };
        if input.read_before.files > 0 {
            rows.push(("known files", input.read_before.files, input.read_before.to_string()));
        }
        let optional = [
            ("cut off", input.cut_off_bodies, "bodies whose encoding ends early: read as far as they go"),
            ("unchanged", outcomes.unchanged, "as on record"),
            ("stale", outcomes.stale, "older than what is on record: not taken"),
            ("gone", *gone, gone_but),
        ];
        rows.extend(optional.into_iter().filter_map(some));
        // If each record is judged on its own, the rows below count records, not pages.
        let judges_pages = self.records.superseded.is_some();
        let of_redirects = redirects(pages.redirects);
        if judges_pages {
            rows.push(("live pages", pages.live, of_redirects));
        } else {
            rows.push(("judged", pages.live, of_redirects));
        }
        rows.push(("  unique", unique, String::new()));
        rows.push(("  winners", pages.winners, "one a group: keep".to_owned()));
        let removed = *self.records.removed.get(&Removal::Duplicate).unwrap_or(&0);
        if judges_pages {
            let verified = "verified against a page that is kept: drop".to_owned();
            rows.push(("  duplicates", pages.duplicates, verified));
        } else {
            rows.push(("  duplicates", removed, "verified against a record that is kept: drop".to_owned()));
        }
        let resolved = if judges_pages { 0 } else { pages.duplicates.saturating_sub(removed) };
        let dead = if judges_pages { "" } else { "of pages that are gone: keep" };
        let optional = [
            ("  secondaries", pages.secondaries, "kept beside the winner of their group: keep"),
            ("  resolved", resolved, "redirects whose target is here: keep"),
            ("  unresolved", pages.unresolved, "redirects that end at no known page: keep"),
            ("dead pages", pages.dead, dead),
        ];
        rows.extend(optional.into_iter().filter_map(some));
        let equality = self.policy.equality();
        rows.push(("exact groups", groups.exact, format!("all members have {equality}")));
        let near = format!("some members have other {}, and the policy links them", self.policy.units());
        rows.push(("near groups", groups.near, near));
        let redirecting = "groups of one content and redirects to it";
        let optional = [
            ("redirects", groups.redirects, redirecting),
            (
                "quarantined",
                groups.quarantined,
                "groups with more contents than --group-members-max: all their pages are kept",
            ),
        ];
        rows.extend(optional.into_iter().filter_map(some));
        table(out, &rows.into_iter().map(row).collect::<Vec<_>>())?;
        if !self.references.is_empty() {
            writeln!(out, "\nremoved for a reference")?;
            table(out, &self.references.iter().map(ReferenceSetSummary::row).collect::<Vec<_>>())?;
        }
        let Self { balance, seconds, records_per_second, megabytes_per_second, .. } = self;
        let Balance { kept, removed } = balance;
        let weight = |weight: &Weight| weight.bytes.map(bytes);
        let [of_kept, of_removed] =
            [kept, removed].map(|of| weight(of).map_or(String::new(), |bytes| format!(" ({bytes})")));
        let percent = balance.removed_percent();
        let (kept, removed) = (count(kept.pages), count(removed.pages));
        let of = if judges_pages { "pages" } else { "records" };
        writeln!(out, "\nkept {kept}{of_kept}, removed {removed}{of_removed}: {percent:.1} % of {of}")?;
        if let Some(copied) = &self.results {
            writeln!(out, "{}", results::written(copied))?;
        }
        writeln!(out, "\n{seconds:.1} s: {records_per_second:.0} pages/s, {megabytes_per_second:.1} MB/s")?;
        self.tables.as_ref().map_or(Ok(()), |tables| tables.print(out))?;
        if !self.largest.is_empty() {
            writeln!(out, "\nlargest groups")?;
            table(out, &self.largest.iter().map(LargestGroup::row).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl IngestSummary {
    /// Extends the range of dates by the date of a version.
    pub fn note_date(&mut self, date: Timestamp) {
        let (first, last) = self.dates.unwrap_or((date, date));
        self.dates = Some((first.min(date), last.max(date)));
    }
}

impl Outcomes {
    /// Adds the outcomes of some submissions to the counts.
    pub fn add(&mut self, outcomes: &[SubmissionOutcome]) {
        for outcome in outcomes {
            *match outcome {
                SubmissionOutcome::Unchanged => &mut self.unchanged,
                SubmissionOutcome::Confirmed => &mut self.confirmed,
                SubmissionOutcome::Pending => &mut self.pending,
                SubmissionOutcome::Stale => &mut self.stale,
            } += 1;
        }
    }
}

/// A row of the summary.
fn row((name, number, about): (&str, u64, String)) -> Vec<String> {
    vec![name.to_owned(), count(number), about]
}
