//! Counts of the records of a run by their outcome. Every record is counted once:
//! read = kept + removed + superseded + bad + skipped.

use std::collections::BTreeMap;
use std::io::{self, Write};

use doppel_contract::Status;
use doppel_crawls::copy::Removal;
use doppel_inputs::tally::Tally;
use doppel_model::ContentHash;
use doppel_terminal::output::{bytes, count};
use doppel_tier1::bulk::{GroupedCollection, Unit};
use serde::Serialize;

/// Numbers of records of a run, by outcome. A record is a capture, a row, or a file of a directory of pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Accounts {
    /// Number of records that were read.
    pub read: u64,
    /// Number of records that stand for themselves.
    pub kept: u64,
    /// Numbers of removed records by reason: near-duplicates of kept records and, if pages are judged, also
    /// redirects to kept pages and pages that are gone.
    pub removed: BTreeMap<Removal, u64>,
    /// Number of records with a newer version. `None` if each record is judged on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded: Option<u64>,
    /// Number of records that could not be read or used.
    pub bad: u64,
    /// Number of sound records that are not judged, such as images.
    pub skipped: u64,
}

/// Numbers of usable records: the kept ones, and the removed ones by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecisionCounts {
    /// Number of kept records.
    pub kept: u64,
    /// Numbers of removed records by reason.
    pub removed: BTreeMap<Removal, u64>,
}

impl DecisionCounts {
    /// Counts the record of a page, or a record that is judged on its own.
    pub(crate) fn count(&mut self, removal: Option<Removal>) {
        *match removal {
            None => &mut self.kept,
            Some(removal) => self.removed.entry(removal).or_default(),
        } += 1;
    }

    /// Counts the records of a collection that was grouped at once.
    pub fn of_grouped(grouped: &GroupedCollection, unit: Unit) -> Self {
        let mut decided = Self::default();
        for judged in grouped.judged().filter(|judged| judged.records.own.is_some()) {
            decided.count(removal((judged.status, judged.content), unit));
        }
        for _ in &grouped.dead {
            decided.count(Some(Removal::Dead));
        }
        decided
    }
}

/// Why the record of a page with this status and content is removed. `None` if the record is kept. Redirects
/// are removed only if pages are judged.
pub fn removal(judged: (Status, Option<ContentHash>), unit: Unit) -> Option<Removal> {
    match judged {
        (Status::Duplicate, Some(_)) => Some(Removal::Duplicate),
        (Status::Duplicate, None) if unit == Unit::Page => Some(Removal::Redirect),
        _ => None,
    }
}

impl Accounts {
    /// Counts the records of a run. `taken` records could be used. `bad` records are bad in addition to the
    /// bad records of the tally.
    pub fn new(tally: &Tally, taken: u64, bad: u64, unit: Unit, decided: DecisionCounts) -> Self {
        let bad = bad + tally.bad.values().sum::<u64>();
        let skipped = tally.skipped_records + tally.crawl_files.values().sum::<u64>();
        let DecisionCounts { kept, removed } = decided;
        let judged = kept + removed.values().sum::<u64>();
        let superseded = (unit == Unit::Page).then(|| taken.saturating_sub(judged));
        Self { read: taken + bad + skipped, kept, removed, superseded, bad, skipped }
    }

    /// Moves originals that are kept for a revisit to `kept`, from the reason for which they would have been
    /// removed.
    pub fn keep_originals(&mut self, originals: &BTreeMap<Removal, u64>) {
        for (removal, records) in originals {
            let from = match removal {
                Removal::Superseded => self.superseded.get_or_insert_default(),
                other => self.removed.entry(*other).or_default(),
            };
            *from -= records;
            self.kept += records;
        }
        self.removed.retain(|_, records| *records > 0);
    }

    /// Number of removed records, for any reason.
    pub fn removed(&self) -> u64 {
        self.removed.values().sum()
    }

    /// The reasons for which records are removed, in words.
    pub fn reasons(&self) -> String {
        let reasons = self.removed.iter().map(|(reason, records)| format!("{} {reason}", count(*records)));
        reasons.collect::<Vec<_>>().join(", ")
    }

    /// The terms of the equation, each with an explanation. The first term is the sum of the others.
    pub fn terms(&self, read_bytes: Option<u64>) -> Vec<(&'static str, u64, String)> {
        let mut terms = vec![
            (
                "read",
                self.read,
                read_bytes.map_or_else(String::new, |read| format!("records, {}", bytes(read))),
            ),
            ("  kept", self.kept, String::new()),
            ("  removed", self.removed(), self.reasons()),
        ];
        terms.extend(
            self.superseded.map(|records| ("  superseded", records, "there is a newer version".to_owned())),
        );
        terms.push(("  bad", self.bad, String::new()));
        terms.push(("  skipped", self.skipped, String::new()));
        terms
    }

    /// The equation as one line of text.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_line(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(
            out,
            "read {} = kept {} + removed {}",
            count(self.read),
            count(self.kept),
            count(self.removed())
        )?;
        if let Some(superseded) = self.superseded {
            write!(out, " + superseded {}", count(superseded))?;
        }
        writeln!(out, " + bad {} + skipped {}", count(self.bad), count(self.skipped))
    }
}
