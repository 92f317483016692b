//! The decision on each record, by its number in the order of the inputs: collected in the first reading, and
//! queried in the second.

use std::collections::HashMap;
use std::io;

use anyhow::Context;
use doppel_contract::{Status, SubmissionOutcome};
use doppel_crawls::FetchedPage;
use doppel_crawls::copy::{Annotation, Fate, Judge, RecordName, Removal};
use doppel_model::PageId;
use doppel_protocol::Line;
use doppel_tier1::bulk::{GroupedCollection, NamedRecord, NamedRecords, Unit};

use super::annotations::{Annotations, AnnotationsWriter, PageAnnotation};
use super::originals::{KeptOriginals, References};
use super::record_verdicts::{Record, Records, Verdict};
use crate::accounts;

/// The decision on one record.
#[derive(Debug)]
pub struct JudgedRecord {
    /// Number of the record in the order of the inputs.
    pub record: u64,
    /// Why the record is removed. `None` if the record is kept.
    pub removal: Option<Removal>,
    /// The line of the answer about the record.
    pub line: Line,
    /// Name of the record that is the winner of the group. Only annotations contain it.
    pub winner: RecordName,
    /// Name of the record of which this one is a duplicate. Only annotations contain it.
    pub kept: RecordName,
}

/// The usable records so far, in a run that groups all records at once.
#[derive(Debug, Default)]
pub struct TakenRecords {
    records: Records,
    references: References,
}

impl TakenRecords {
    /// Notes a usable record. `original` is an earlier record that stores its content, if it stores none.
    /// Skipped numbers are records that could not be used.
    pub fn note(&mut self, (record, original): (u64, Option<u64>), page: PageId) {
        // Until a page names this record, its page counts as having a newer version.
        self.records.set(record, Record::new(page, Verdict::Superseded));
        self.references.note(record, original);
    }

    /// Decides which records are kept. With `annotate`, which names records, also writes their annotations.
    ///
    /// # Errors
    /// If the temporary file of annotations cannot be written.
    pub fn decide(
        mut self,
        grouped: &GroupedCollection,
        unit: Unit,
        annotate: Option<&dyn Fn(Option<NamedRecord>) -> RecordName>,
    ) -> anyhow::Result<RecordDecisions> {
        for record in &grouped.dead {
            self.records.judge(*record, Verdict::Dead);
        }
        let judged = grouped.pages_with_contents().filter_map(|page| {
            let NamedRecords { own, winner, duplicate_of } = page.records;
            let removal = accounts::removal((page.line.status, page.content), unit);
            let name = |number| annotate.map(|name| name(number)).unwrap_or_default();
            let (winner, kept) = (name(winner), name(duplicate_of));
            Some(JudgedRecord { record: own?, removal, line: page.line, winner, kept })
        });
        self.decide_each(judged, annotate.is_some())
    }

    /// Decides which records are kept. With `annotate`, also writes their annotations.
    ///
    /// # Errors
    /// If the temporary file of annotations cannot be written.
    pub fn decide_each(
        mut self,
        judged: impl Iterator<Item = JudgedRecord>,
        annotate: bool,
    ) -> anyhow::Result<RecordDecisions> {
        let mut annotations =
            if annotate { Some(AnnotationsWriter::new(self.records.0.len())?) } else { None };
        for JudgedRecord { record, removal, line, winner, kept } in judged {
            let verdict = match removal {
                None => Verdict::Kept,
                Some(Removal::Redirect) => Verdict::Redirect,
                Some(_) => Verdict::Duplicate,
            };
            self.records.judge(record, verdict);
            if let Some(annotations) = &mut annotations {
                annotations
                    .add(record, &PageAnnotation::of(line, (winner, kept)))
                    .context(CANNOT_ANNOTATE)?;
            }
        }
        let originals = self.references.keep_originals(&mut self.records);
        let annotations = annotations.map(AnnotationsWriter::finish).transpose().context(CANNOT_ANNOTATE)?;
        Ok(RecordDecisions { records: self.records.0, originals, next: 0, unusable: 0, annotations })
    }
}

const CANNOT_ANNOTATE: &str = "cannot write to a temporary file";

/// The present version of each page so far, in a run that submits pages one by one.
#[derive(Debug, Default)]
pub struct Verdicts {
    present: HashMap<PageId, u64>,
    records: Records,
    references: References,
}

impl Verdicts {
    /// Notes a usable record of a page and the outcome of its submission. `original` is an earlier record
    /// that stores its content, if it stores none. Skipped numbers are records that could not be used.
    pub fn note(
        &mut self,
        (record, original): (u64, Option<u64>),
        (page, is_redirect): (PageId, bool),
        outcome: SubmissionOutcome,
    ) {
        self.references.note(record, original);
        let verdict = if outcome == SubmissionOutcome::Stale {
            Verdict::Superseded
        } else {
            // Only `decide` knows whether the page is live.
            if let Some(earlier) = self.present.insert(page, record) {
                self.records.judge(earlier, Verdict::Superseded);
            }
            if is_redirect { Verdict::DeadRedirect } else { Verdict::Dead }
        };
        self.records.set(record, Record::new(page, verdict));
    }

    /// Decides which records of the live pages are kept. With `annotate`, also writes their annotations.
    ///
    /// # Errors
    /// If a line is an error, or the temporary file of annotations cannot be written.
    pub fn decide<E>(
        mut self,
        live: impl Iterator<Item = Result<Line, E>>,
        annotate: bool,
    ) -> anyhow::Result<RecordDecisions>
    where
        anyhow::Error: From<E>,
    {
        let mut annotations =
            if annotate { Some(AnnotationsWriter::new(self.records.0.len())?) } else { None };
        for line in live {
            let line = line?;
            let page = line.url.id();
            let Some(record) = self.present.get(&page).copied() else { continue };
            let verdict = match (line.status, self.records.verdict(record)) {
                (Status::Duplicate, Verdict::DeadRedirect) => Verdict::Redirect,
                (Status::Duplicate, _) => Verdict::Duplicate,
                _ => Verdict::Kept,
            };
            self.records.judge(record, verdict);
            if let Some(annotations) = &mut annotations {
                // The collection does not know the names of records.
                annotations
                    .add(record, &PageAnnotation::of(line, Default::default()))
                    .context(CANNOT_ANNOTATE)?;
            }
        }
        let annotations = annotations.map(AnnotationsWriter::finish).transpose().context(CANNOT_ANNOTATE)?;
        let originals = self.references.keep_originals(&mut self.records);
        Ok(RecordDecisions { records: self.records.0, originals, next: 0, unusable: 0, annotations })
    }
}

/// The decisions on all records, which the second reading queries in the order of the records.
#[derive(Debug)]
pub struct RecordDecisions {
    records: Vec<Record>,
    /// How many originals are kept for a revisit, by the reason for which they would have been removed.
    originals: KeptOriginals,
    /// Record number of the next queried record.
    next: u64,
    /// Number of queried records that could not be used.
    unusable: u64,
    annotations: Option<Annotations>,
}

/// How many records the second reading has queried.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueriedRecords {
    /// Number of queried records.
    pub(super) all: u64,
    /// Number of queried records that could not be used.
    pub(super) unusable: u64,
}

impl RecordDecisions {
    /// How many originals are kept for a revisit, by the reason for which they would have been removed.
    pub fn originals(&self) -> &KeptOriginals {
        &self.originals
    }

    /// The records that were queried so far.
    pub(super) fn queried(&self) -> QueriedRecords {
        QueriedRecords { all: self.next, unusable: self.unusable }
    }

    /// Returns the judge of the next file's records. `read` is called with the number of bytes read of the
    /// file.
    pub(super) fn judge<'d>(&'d mut self, read: &'d dyn Fn(u64)) -> impl Judge + 'd {
        FileJudge { decisions: self, read }
    }

    fn fate(&mut self, page: &FetchedPage) -> io::Result<Option<Fate>> {
        let number = self.next;
        self.next += 1;
        let Some(record) = usize::try_from(number).ok().and_then(|at| self.records.get(at)) else {
            // Bad records at the end have no entry.
            self.unusable += 1;
            return Ok(None);
        };
        if !record.is_of(page.url.id()) {
            return Err(io::Error::other("the file has changed since it was read first"));
        }
        if record.verdict() == Verdict::Bad {
            self.unusable += 1;
            return Ok(None);
        }
        Ok(Some(Fate { removal: record.verdict().removal(), record: Some(number) }))
    }
}

struct FileJudge<'d> {
    decisions: &'d mut RecordDecisions,
    read: &'d dyn Fn(u64),
}

impl Judge for FileJudge<'_> {
    fn page(&mut self, page: &FetchedPage) -> io::Result<Option<Fate>> {
        self.decisions.fate(page)
    }

    fn annotation(&mut self, record: u64, removal: Option<Removal>) -> io::Result<Annotation> {
        let reason = removal.map(Removal::name);
        let stored =
            self.decisions.annotations.as_ref().map_or(Ok(None), |annotations| annotations.get(record))?;
        Ok(match stored {
            Some(stored) => stored.with_reason(reason),
            None => Annotation { reason, ..Annotation::default() },
        })
    }

    fn read(&mut self, bytes: u64) {
        (self.read)(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use doppel_crawls::FetchedBody;
    use doppel_model::{GroupId, PageUrl};

    use super::*;

    fn url(name: &str) -> PageUrl {
        PageUrl::parse(&format!("http://h/{name}")).unwrap()
    }

    fn line(name: &str, status: Status) -> Result<Line, Infallible> {
        let winner = (status == Status::Duplicate).then(|| url("winner"));
        let similarity = winner.as_ref().map(|_| 0.9);
        let duplicate_of = winner.clone();
        Ok(Line {
            url: url(name),
            status,
            group: None::<GroupId>,
            winner,
            duplicate_of,
            similarity,
            reason: None,
        })
    }

    #[test]
    fn the_last_version_that_is_not_stale_represents_its_page() {
        let mut verdicts = Verdicts::default();
        for (record, name, outcome, is_redirect) in [
            (0, "a", SubmissionOutcome::Pending, false),
            (1, "a", SubmissionOutcome::Stale, true),
            (3, "a", SubmissionOutcome::Unchanged, false),
            (4, "b", SubmissionOutcome::Pending, false),
            (5, "gone", SubmissionOutcome::Pending, true),
            (6, "c", SubmissionOutcome::Confirmed, true),
            (8, "moved", SubmissionOutcome::Pending, true),
        ] {
            verdicts.note((record, None), (url(name).id(), is_redirect), outcome);
        }
        let live = [
            line("a", Status::Winner),
            line("b", Status::Duplicate),
            line("c", Status::Unresolved),
            line("x", Status::Unique),
            line("moved", Status::Duplicate),
        ];
        let mut decisions = verdicts.decide(live.into_iter(), true).unwrap();
        let ask = |decisions: &mut RecordDecisions, name: &str| {
            let body = FetchedBody::Text(String::new());
            let page =
                FetchedPage { url: url(name), fetched_at: None, body, popularity: None, language: None };
            Ok::<_, String>(decisions.fate(&page).map_err(|e| e.to_string())?.map(|fate| fate.removal))
        };
        let names = ["a", "a", "bad", "a", "b", "gone", "c", "bad", "moved", "bad"];
        let fates: Vec<_> = names.iter().map(|name| ask(&mut decisions, name).unwrap()).collect();
        let superseded = Some(Some(Removal::Superseded));
        let (duplicate, dead) = (Some(Some(Removal::Duplicate)), Some(Some(Removal::Dead)));
        let redirect = Some(Some(Removal::Redirect));
        assert_eq!(
            fates,
            [superseded, superseded, None, Some(None), duplicate, dead, Some(None), None, redirect, None]
        );
        decisions.next = 0;
        let others = ["x", "y", "z"].map(|name| ask(&mut decisions, name).is_err());
        assert!(others.contains(&true), "these are other pages");
        let mut judge = decisions.judge(&|_| {});
        let annotation = judge.annotation(4, Some(Removal::Duplicate)).unwrap();
        assert_eq!(
            (annotation.winner.as_deref(), annotation.similarity),
            (Some("http://h/winner"), Some(0.9))
        );
        let annotation = judge.annotation(1, Some(Removal::Superseded)).unwrap();
        assert_eq!(annotation, Annotation { reason: Some("superseded"), ..Annotation::default() });
    }
}
