//! Counts what was read of the inputs, and what was not taken. Decides from the counts how the command ends.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use doppel_crawls::record::Ignored;
use doppel_crawls::{InputError, SkipReason};
use doppel_model::Timestamp;
use serde::Serialize;

use crate::ingested::{FileStatistics, IngestedFile};
use crate::records::bad_records::{BadFile, class};
use crate::records::unusable::{UnusableCount, UnusablePages};
use crate::records::{FieldsRead, RecordArgs, Share};
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{count, plural, say};

/// Kind under which a page is counted if the extractor panics on it.
pub const FAILED: &str = "failed inside the extractor";

/// Number of bad records that are printed one by one. Further bad records are only counted.
const BAD_SHOWN: u64 = 20;
/// Share of bad records above which a run fails, unless the user gives another share. Applies only if more
/// than [`BAD_SHOWN`] records are bad.
const BAD_MAX: Share = Share(0.05);

/// Counts of what was read of the inputs, and of what was not taken.
#[derive(Debug, Default, Serialize)]
pub struct Tally {
    /// Number of pages, redirects and deaths.
    pub records: u64,
    /// Number of bytes of HTML and text.
    pub bytes: u64,
    /// Sound records that are not pages, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Skipped items that are records. Crawl files below directories do not count.
    #[serde(skip)]
    pub skipped_records: u64,
    /// Records that could not be read or used, by kind.
    pub bad: BTreeMap<String, u64>,
    /// Fields that were read from records, in files that are not in Doppel's own form.
    pub fields: Vec<FieldsRead>,
    /// Unpacked bytes of WARC and ARC files that were skipped because no record with a known end contains
    /// them.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped_bytes: u64,
    /// Files that have no record at all.
    #[serde(skip_serializing_if = "is_zero")]
    pub empty_files: u64,
    /// Values that could not be used and were ignored, by field. They come from guessed fields, and from the
    /// dates of WARC and ARC records.
    pub ignored: Ignored,
    /// Pages whose encoded body ends early, so that only their beginning was read.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_off_bodies: u64,
    /// Records whose ids were not remembered. Later records with the same ids count as new versions of these
    /// records.
    #[serde(skip_serializing_if = "is_zero")]
    pub unremembered_ids: u64,
    /// Texts with lone surrogates, which were read as U+FFFD.
    #[serde(skip_serializing_if = "is_zero")]
    pub mended_texts: u64,
    /// Crawl files below directories of pages or of crawl files, counted by a pattern that names them. They
    /// are not read, because they must be inputs of their own.
    pub crawl_files: BTreeMap<String, u64>,
    /// Files and directories of which some or all records were not read, because of a limit on what is read.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_off: u64,
    /// Inputs that could not be read to their end.
    pub incomplete: Vec<String>,
    /// Files that an earlier run has read, so that this run did not read them again for the groups.
    #[serde(skip_serializing_if = "ReadBefore::is_none")]
    pub read_before: ReadBefore,
    /// Time at which reading began. Dates in the inputs may not be far ahead of it.
    #[serde(skip)]
    pub now: Option<Timestamp>,
    /// Counts of each file or directory, in the order of the inputs.
    #[serde(skip)]
    pub source_counts: Vec<SourceCounts>,
    /// Share of bad records above which a run fails, if the user gave one.
    #[serde(skip)]
    max_bad: Option<Share>,
    /// File that bad records are written to.
    #[serde(skip)]
    bad_file: Option<BadFile>,
}

/// Files that an earlier run has read, and the counts of their records.
#[derive(Debug, Default, Serialize)]
pub struct ReadBefore {
    /// Number of files that were read before.
    pub files: u64,
    /// Number of pages, redirects and deaths.
    pub records: u64,
    /// Number of records that could not be read or used.
    pub bad: u64,
}

impl ReadBefore {
    /// Adds a file that an earlier run has read.
    pub fn add(&mut self, known: &IngestedFile) {
        self.files += 1;
        self.records += known.had().records;
        self.bad += known.had().bad;
    }

    fn is_none(&self) -> bool {
        self.files == 0
    }
}

/// Describes the records of the files, and says how to read the files again.
impl fmt::Display for ReadBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "with {} records", count(self.records))?;
        if self.bad > 0 {
            write!(f, ", {} bad", count(self.bad))?;
        }
        f.write_str(": as they were, so not read again; --read-again reads them")
    }
}

impl Tally {
    /// Creates an empty tally for reading that begins at `now`.
    pub fn begin(now: Timestamp, records: &RecordArgs) -> Self {
        Self { now: Some(now), max_bad: records.max_bad, bad_file: records.bad.clone(), ..Self::default() }
    }

    /// Number of sound records that are not pages.
    pub fn all_skipped(&self) -> u64 {
        self.skipped.values().sum()
    }

    /// Returns what was ignored inside files: a name, a number and a description of each. Leaves out what did
    /// not occur.
    pub fn passed_over(&self) -> impl Iterator<Item = (&'static str, u64, String)> {
        let values = self.ignored.iter().map(|(field, values)| {
            ("ignored", *values, format!("values of the {field} that cannot be used"))
        });
        let of_files = [
            ("skipped bytes", self.skipped_bytes, "of broken WARC or ARC records, and between records"),
            ("empty files", self.empty_files, "they have no records"),
        ];
        values
            .chain(of_files.map(|(name, number, about)| (name, number, about.to_owned())))
            .filter(|(_, number, _)| *number > 0)
    }

    /// Like [`Self::verdict`], but accepts a run over files that have no records, if nothing else went wrong:
    /// every file was read.
    ///
    /// # Errors
    /// The errors of [`Self::verdict`].
    pub fn verdict_of_run(&self, strict: bool, refused: u64) -> Result<(), Failure> {
        self.check_bad_file()?;
        let all_are_empty = self.empty_files > 0 && self.empty_files == self.source_counts.len() as u64;
        let is_nothing_else =
            self.crawl_files.is_empty() && self.bad.is_empty() && self.incomplete.is_empty();
        if all_are_empty && is_nothing_else { Ok(()) } else { self.verdict(strict, refused) }
    }

    /// Decides whether the command fails because of its inputs. `refused` is the number of pages that were
    /// read and then refused.
    ///
    /// # Errors
    /// - If nothing was read, an input is incomplete, or too many records were bad.
    /// - With `strict`, if any record was bad, or any page was refused.
    /// - If the file of bad records could not be written.
    pub fn verdict(&self, strict: bool, refused: u64) -> Result<(), Failure> {
        self.check_bad_file()?;
        let bad: u64 = self.bad.values().sum();
        if self.records + self.read_before.records == 0 {
            let skipped = self.all_skipped();
            let crawls = self.crawl_files.values().sum();
            let left = [
                (bad + self.read_before.bad, "bad"),
                (skipped, "skipped"),
                (crawls, "to be named as inputs of their own"),
            ];
            let left = left.into_iter().filter(|(number, _)| *number > 0);
            let left: Vec<_> = left.map(|(number, what)| format!("{} {what}", count(number))).collect();
            let why =
                if left.is_empty() { "there is nothing in the input".to_owned() } else { left.join(", ") };
            return Err(Failure::BadInput(format!("nothing was read: {why}")));
        }
        if let Some(path) = self.incomplete.first() {
            let more = self.incomplete.len() - 1;
            let others = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!("{path}{others} could not be read to the end; all readable records were used");
            return Err(Failure::BadInput(text));
        }
        if strict && bad + refused > 0 {
            let was = |number, noun, what| {
                let verb = if number == 1 { "was" } else { "were" };
                (number > 0).then(|| format!("{} {verb} {what}", plural(number, noun)))
            };
            let left: Vec<_> =
                [was(bad, "record", "bad"), was(refused, "page", "refused")].into_iter().flatten().collect();
            let text = format!("{}; all others were taken", left.join(" and "));
            return Err(Failure::BadInput(text));
        }
        // Counts the files that were not read again, too. Otherwise the outcome would change if a run is
        // repeated.
        let bad = bad + self.read_before.bad;
        let all = self.records + self.read_before.records + bad;
        let allowed = self.max_bad.unwrap_or(BAD_MAX).0 * all as f64;
        if bad as f64 > allowed && (self.max_bad.is_some() || bad > BAD_SHOWN) {
            let share = self.max_bad.unwrap_or(BAD_MAX).0;
            let text = format!(
                "{} of {} records were bad, and at most a share of {share} may be (--max-bad); all others were taken",
                count(bad),
                count(all)
            );
            return Err(Failure::BadInput(text));
        }
        Ok(())
    }

    fn check_bad_file(&self) -> Result<(), Failure> {
        self.bad_file.as_ref().map_or(Ok(()), BadFile::check)
    }

    /// Advice on how to read the crawl files that were left out, with the command `command`. `None` if there
    /// are none.
    pub fn left_out(&self, command: &str) -> Option<String> {
        let files: u64 = self.crawl_files.values().sum();
        let patterns: Vec<&str> = self.crawl_files.keys().map(String::as_str).collect();
        let read = format!("{command} {}", patterns.join(" "));
        (files > 0)
            .then(|| format!("{} in directories not read: `{read}` reads them", plural(files, "crawl file")))
    }

    /// Moves unusable pages from the records that were read to the bad records.
    pub fn without(&mut self, unusable: UnusablePages) {
        for UnusableCount { reason, pages: records, bytes } in unusable.end() {
            self.records -= records;
            self.bytes -= bytes;
            *self.bad.entry(reason).or_default() += records;
        }
    }

    /// Counts a bad record. If `tell` is set, also writes the record to the file of bad records, and shows
    /// the first ones on standard error.
    pub fn bad(&mut self, error: &InputError, tell: bool) {
        match self.bad.values().sum::<u64>() {
            _ if !tell => {}
            ..BAD_SHOWN => say!("doppel: {error}"),
            BAD_SHOWN => say!("doppel: more bad records are only counted"),
            _ => {}
        }
        *self.bad.entry(class(error).to_owned()).or_default() += 1;
        if let Some(file) = self.bad_file.as_ref().filter(|_| tell) {
            file.note(class(error), error);
        }
    }

    /// Moves the crawl files of a directory from the skipped files with an unknown name to
    /// [`Self::crawl_files`].
    pub fn leave_out(&mut self, files: BTreeMap<String, u64>) {
        let strange = SkipReason::FileName.to_string();
        let skipped = self.skipped.remove(&strange).unwrap_or(0);
        let others = skipped.saturating_sub(files.values().sum());
        if others > 0 {
            self.skipped.insert(strange, others);
        }
        for (pattern, number) in files {
            self.skipped_records = self.skipped_records.saturating_sub(number);
            *self.crawl_files.entry(pattern).or_default() += number;
        }
    }

    /// Notes an input that could not be read to its end.
    pub fn incomplete(&mut self, input: &Path) {
        let input = input.display().to_string();
        // The user may have given an input twice.
        if !self.incomplete.contains(&input) {
            self.incomplete.push(input);
        }
    }
}

/// Counts of a file or directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceCounts {
    /// Number of pages, redirects and deaths, including those that could not be used.
    pub pages: u64,
    /// Number of records that could not be read.
    pub bad: u64,
}

impl From<&FileStatistics> for SourceCounts {
    fn from(had: &FileStatistics) -> Self {
        Self { pages: had.pages(), bad: had.bad.saturating_sub(had.unusable) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_tells_incomplete_from_bad() {
        let mut tally = Tally { records: 1, ..Tally::default() };
        assert!(tally.verdict(true, 0).is_ok());
        let refused = tally.verdict(true, 1).unwrap_err();
        assert_eq!(refused.to_string(), "1 page was refused; all others were taken");
        tally.bad.insert("too large".to_owned(), 2);
        assert!(tally.verdict(false, 1).is_ok());
        let bad = tally.verdict(true, 1).unwrap_err();
        assert_eq!(bad.to_string(), "2 records were bad and 1 page was refused; all others were taken");
        let nothing = Tally { records: 0, bad: tally.bad.clone(), ..Tally::default() };
        let error = nothing.verdict(false, 0).unwrap_err();
        assert_eq!(error.to_string(), "nothing was read: 2 bad");
        tally.incomplete(Path::new("a.warc.gz"));
        tally.incomplete(Path::new("a.warc.gz"));
        let error = tally.verdict(false, 0).unwrap_err();
        assert!(error.to_string().starts_with("a.warc.gz could not be read to the end"), "{error}");
    }
}
