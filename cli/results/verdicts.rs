//! What is decided of each record, by its number in the order of the inputs.

use std::collections::HashMap;
use std::io;

use super::notes::{Notes, NotesOut, Said};
use crate::accounts;
use crate::record_names::RecordNames;
use anyhow::Context;
use doppel_crawls::Fetched;
use doppel_crawls::copy::{Fate, Judge, Note, Removal};
use doppel_model::PageId;
use doppel_protocol::{Line, Outcome, Status};
use doppel_tier1::bulk::{Grouped, NamedRecords, Unit};

/// What is known of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It was read and could not be used.
    Bad,
    /// There is a newer version of its page.
    Superseded,
    /// The present version of a page that is not live.
    Dead,
    /// The same of one that is a redirect.
    DeadRedirect,
    /// That of a page that stands for itself.
    Kept,
    /// That of a page for which another one stands.
    Duplicate,
    /// That of a redirect to a page on record.
    Redirect,
}

impl Verdict {
    const ALL: [Self; 7] = [
        Self::Bad,
        Self::Superseded,
        Self::Dead,
        Self::DeadRedirect,
        Self::Kept,
        Self::Duplicate,
        Self::Redirect,
    ];
}

/// The bits of a verdict in a byte. The others are of the id of the page: where the second reading meets other pages than the first, that is
/// seen after few of them.
const VERDICT: u8 = 7;

/// A record: its verdict, and bits of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record(u8);

impl Record {
    const BAD: Self = Self(Verdict::Bad as u8);

    fn new(page: PageId, verdict: Verdict) -> Self {
        Self(Self::bits(page) | verdict as u8)
    }

    fn verdict(self) -> Verdict {
        Verdict::ALL.get(usize::from(self.0 & VERDICT)).copied().unwrap_or(Verdict::Bad)
    }

    fn is_of(self, page: PageId) -> bool {
        self.verdict() == Verdict::Bad || self.0 & !VERDICT == Self::bits(page)
    }

    fn bits(page: PageId) -> u8 {
        page.bytes().last().map_or(0, |byte| byte & !VERDICT)
    }
}

/// Records that are grouped at once: which could be used, so far.
#[derive(Debug, Default)]
pub(crate) struct TakenRecords(Records);

impl TakenRecords {
    /// A record was taken. Those between it and the one before could not be used.
    pub(crate) fn note(&mut self, record: u64, page: PageId) {
        // A record that no page names in the end has a newer version.
        self.0.set(record, Record::new(page, Verdict::Superseded));
    }

    /// Decides which records are kept. With `annotate`, which gives their names, the annotation of each record can be read as well.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub(crate) fn decide(
        mut self,
        grouped: &Grouped,
        unit: Unit,
        annotate: Option<&RecordNames>,
    ) -> anyhow::Result<Decisions> {
        let mut notes = annotate.map(|_| NotesOut::new(self.0.0.len())).transpose()?;
        for page in grouped.pages_with_contents() {
            let Some(record) = page.records.own else { continue };
            let verdict = match accounts::removal((page.line.status, page.content), unit) {
                None => Verdict::Kept,
                Some(Removal::Redirect) => Verdict::Redirect,
                Some(_) => Verdict::Duplicate,
            };
            self.0.judge(record, verdict);
            if let (Some(notes), Some(names)) = (&mut notes, annotate) {
                let NamedRecords { winner, duplicate_of, .. } = page.records;
                let named = (names.name(winner), names.name(duplicate_of));
                notes.add(record, &Said::of(page.line, named)).context(CANNOT_NOTE)?;
            }
        }
        for record in &grouped.dead {
            self.0.judge(*record, Verdict::Dead);
        }
        let notes = notes.map(NotesOut::finish).transpose().context(CANNOT_NOTE)?;
        Ok(Decisions { records: self.0.0, next: 0, unusable: 0, notes })
    }
}

const CANNOT_NOTE: &str = "cannot write to a temporary file";

/// Verdicts by the numbers of records.
#[derive(Debug, Default)]
struct Records(Vec<Record>);

impl Records {
    fn verdict(&self, number: u64) -> Verdict {
        let record = usize::try_from(number).ok().and_then(|at| self.0.get(at));
        record.map_or(Verdict::Bad, |record| record.verdict())
    }

    /// Sets the verdict of a record that was taken.
    fn judge(&mut self, number: u64, verdict: Verdict) {
        if let Some(record) = usize::try_from(number).ok().and_then(|at| self.0.get_mut(at)) {
            *record = Record(record.0 & !VERDICT | verdict as u8);
        }
    }

    fn set(&mut self, number: u64, record: Record) {
        let Ok(at) = usize::try_from(number) else { return };
        if self.0.len() <= at {
            self.0.resize(at + 1, Record::BAD);
        }
        self.0[at] = record;
    }
}

/// Records that are recorded page by page: which is the present version of its page, so far.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    present: HashMap<PageId, u64>,
    records: Records,
}

impl Verdicts {
    /// A record of a page, which may be a redirect, was taken. Those between it and the one before could not be used.
    pub(crate) fn note(&mut self, record: u64, (page, is_redirect): (PageId, bool), outcome: Outcome) {
        let verdict = if outcome == Outcome::Stale {
            Verdict::Superseded
        } else {
            // Whether the page is live is known in the end.
            if let Some(earlier) = self.present.insert(page, record) {
                self.records.judge(earlier, Verdict::Superseded);
            }
            if is_redirect { Verdict::DeadRedirect } else { Verdict::Dead }
        };
        self.records.set(record, Record::new(page, verdict));
    }

    /// Decides which records of these live pages are kept. With `annotate` the annotation of each record can be read as well.
    ///
    /// # Errors
    /// Those of the lines, or of the temporary file.
    pub(crate) fn decide<E>(
        mut self,
        live: impl Iterator<Item = Result<Line, E>>,
        annotate: bool,
    ) -> anyhow::Result<Decisions>
    where
        anyhow::Error: From<E>,
    {
        let mut notes = if annotate { Some(NotesOut::new(self.records.0.len())?) } else { None };
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
            if let Some(notes) = &mut notes {
                // Pages on record have no records.
                notes.add(record, &Said::of(line, Default::default())).context(CANNOT_NOTE)?;
            }
        }
        let notes = notes.map(NotesOut::finish).transpose().context(CANNOT_NOTE)?;
        Ok(Decisions { records: self.records.0, next: 0, unusable: 0, notes })
    }
}

/// What is decided of all records. It is told in their order.
#[derive(Debug)]
pub(crate) struct Decisions {
    records: Vec<Record>,
    /// The number of the next record.
    next: u64,
    /// How many of them could not be used.
    unusable: u64,
    notes: Option<Notes>,
}

impl Decisions {
    /// How many records were asked for, and how many of them could not be used.
    pub(super) fn asked(&self) -> (u64, u64) {
        (self.next, self.unusable)
    }

    /// Judges the records of a file; `read` is told how many bytes of it were read.
    pub(super) fn judge<'d>(&'d mut self, read: &'d dyn Fn(u64)) -> impl Judge + 'd {
        FileJudge { decisions: self, read }
    }

    fn fate(&mut self, page: &Fetched) -> io::Result<Option<Fate>> {
        let number = self.next;
        self.next += 1;
        let Some(record) = usize::try_from(number).ok().and_then(|at| self.records.get(at)) else {
            // Bad ones at the end are not noted.
            self.unusable += 1;
            return Ok(None);
        };
        if !record.is_of(page.url.id()) {
            return Err(io::Error::other("it has changed since it was read first"));
        }
        let removal = match record.verdict() {
            Verdict::Bad => {
                self.unusable += 1;
                return Ok(None);
            }
            Verdict::Kept => None,
            Verdict::Superseded => Some(Removal::Superseded),
            Verdict::Dead | Verdict::DeadRedirect => Some(Removal::Dead),
            Verdict::Redirect => Some(Removal::Redirect),
            Verdict::Duplicate => Some(Removal::Duplicate),
        };
        Ok(Some(Fate { removal, record: Some(number) }))
    }
}

struct FileJudge<'d> {
    decisions: &'d mut Decisions,
    read: &'d dyn Fn(u64),
}

impl Judge for FileJudge<'_> {
    fn page(&mut self, page: &Fetched) -> io::Result<Option<Fate>> {
        self.decisions.fate(page)
    }

    fn note(&mut self, record: u64, removal: Option<Removal>) -> io::Result<Note> {
        let reason = removal.map(Removal::name);
        let said = self.decisions.notes.as_ref().map_or(Ok(None), |notes| notes.get(record))?;
        Ok(match said {
            Some(said) => said.note(reason),
            None => Note { reason, ..Note::default() },
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
    fn the_last_version_that_is_not_stale_stands_for_its_page() {
        let mut verdicts = Verdicts::default();
        for (record, name, outcome, is_redirect) in [
            (0, "a", Outcome::Pending, false),
            (1, "a", Outcome::Stale, true),
            (3, "a", Outcome::Unchanged, false),
            (4, "b", Outcome::Pending, false),
            (5, "gone", Outcome::Pending, true),
            (6, "c", Outcome::Confirmed, true),
            (8, "moved", Outcome::Pending, true),
        ] {
            verdicts.note(record, (url(name).id(), is_redirect), outcome);
        }
        let live = [
            line("a", Status::Winner),
            line("b", Status::Duplicate),
            line("c", Status::Unresolved),
            line("x", Status::Unique),
            line("moved", Status::Duplicate),
        ];
        let mut decisions = verdicts.decide(live.into_iter(), true).unwrap();
        let ask = |decisions: &mut Decisions, name: &str| {
            let body = FetchedBody::Text(String::new());
            let page = Fetched { url: url(name), fetched_at: None, body, popularity: None, language: None };
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
        let note = judge.note(4, Some(Removal::Duplicate)).unwrap();
        assert_eq!((note.winner.as_deref(), note.similarity), (Some("http://h/winner"), Some(0.9)));
        let note = judge.note(1, Some(Removal::Superseded)).unwrap();
        assert_eq!(note, Note { reason: Some("superseded"), ..Note::default() });
    }
}
