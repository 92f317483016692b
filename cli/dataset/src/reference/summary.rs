//! Summary of a run that compares records with reference sets alone.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use doppel_crawls::copy::Copied;
use doppel_inputs::tally::Tally;
use doppel_model::pairwise::Policy;
use doppel_terminal::output::{bytes, count, plural, table};
use serde::Serialize;

use super::ComparedRecords;
use crate::accounts::Accounts;
use crate::learnt_tables::LearntTables;
use crate::results::{self, RecordDecisions};

/// Summary of a run.
#[derive(Debug, Serialize)]
pub struct ReferenceSummary {
    /// Number of records by outcome.
    records: Accounts,
    /// Policy as text.
    policy: Policy,
    /// Tables that this run learned from its inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<LearntTables>,
    /// What was read of the inputs.
    pub input: Tally,
    /// The sets, in the order in which the user named them.
    references: Vec<ReferenceSetSummary>,
    /// Records that were copied to directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<Copied>,
    seconds: f64,
    records_per_second: f64,
}

/// A reference set, and what was found in it.
#[derive(Debug, Clone, Serialize)]
pub struct ReferenceSetSummary {
    /// Path as the user named it.
    path: PathBuf,
    /// Number of records with a content.
    records: u64,
    /// Number of bad records.
    bad: u64,
    /// Number of records of the inputs that are removed because they are near-duplicates of a record of this set. If
    /// each record is compared with all sets, a record with near-duplicates in several sets counts in each of them.
    /// Otherwise it counts in the set of the record that it names.
    pub(super) removed: u64,
    /// Number of pairs of such a record and a distinct content of this set, if all pairs were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<u64>,
    /// Whether each record is compared with all sets.
    #[serde(skip)]
    compares_all: bool,
}

impl ReferenceSetSummary {
    /// Describes a set with so many records, which was read with this tally.
    pub(super) fn new(path: &Path, records: u64, tally: &Tally) -> Self {
        let bad = tally.bad.values().sum();
        Self { path: path.to_owned(), records, bad, removed: 0, pairs: None, compares_all: false }
    }

    /// The row of the summary for people.
    pub(crate) fn row(&self) -> Vec<String> {
        let bad = if self.bad > 0 { format!(", {} bad", count(self.bad)) } else { String::new() };
        let pairs = self.pairs.map(|pairs| format!(", in {}", plural(pairs, "pair"))).unwrap_or_default();
        let is = if self.compares_all { "near-duplicates of" } else { "removed for" };
        vec![
            format!("  {}", self.path.display()),
            count(self.removed),
            format!("{is} one of its {}{bad}{pairs}", plural(self.records, "record")),
        ]
    }
}

impl ReferenceSummary {
    /// Creates the summary of a run that took `elapsed`. `decisions` are those by which records were written.
    #[must_use]
    pub fn new(
        policy: Policy,
        mut references: Vec<ReferenceSetSummary>,
        (compared, decisions): (ComparedRecords<'_>, Option<&RecordDecisions>),
        (tables, elapsed): (Option<LearntTables>, Duration),
    ) -> Self {
        for (reference, found) in references.iter_mut().zip(compared.found()) {
            reference.compares_all = true;
            reference.removed = found.records;
            reference.pairs = compared.finds_all().then_some(found.pairs);
        }
        let (mut records, seconds) = (compared.accounts(), elapsed.as_secs_f64());
        if let Some(decisions) = decisions {
            records.keep_originals(decisions.originals());
        }
        let input = compared.tally;
        let records_per_second = input.records as f64 / seconds;
        Self { records, policy, tables, input, references, results: None, seconds, records_per_second }
    }

    /// Prints the summary for people.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let row = |(name, number, about): (&str, u64, String)| vec![name.to_owned(), count(number), about];
        table(out, &self.records.terms(Some(self.input.bytes)).into_iter().map(row).collect::<Vec<_>>())?;
        writeln!(out, "\npolicy {}\n\nremoved for a reference", self.policy)?;
        table(out, &self.references.iter().map(ReferenceSetSummary::row).collect::<Vec<_>>())?;
        let mut rows: Vec<(&str, u64, String)> = Vec::new();
        rows.extend(self.input.skipped.iter().map(|(reason, records)| ("skipped", *records, reason.clone())));
        rows.extend(self.input.bad.iter().map(|(reason, records)| ("bad", *records, reason.clone())));
        rows.extend(self.input.passed_over());
        if !rows.is_empty() {
            writeln!(out)?;
            table(out, &rows.into_iter().map(row).collect::<Vec<_>>())?;
        }
        if let Some(copied) = &self.results {
            writeln!(out, "\n{}", results::written(copied))?;
        }
        let (seconds, speed) = (self.seconds, self.records_per_second);
        writeln!(out, "\n{seconds:.1} s: {speed:.0} records/s, {} read", bytes(self.input.bytes))?;
        self.tables.as_ref().map_or(Ok(()), |tables| tables.print(out))
    }
}
