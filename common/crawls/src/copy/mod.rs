//! Copies the records of a file to others in the same format: those that are kept to one, those that are removed to another, and those
//! that a newer version supersedes to a third. The file is read by the same code that found its pages, and what is written of a record
//! are its own bytes.
//!
//! | format | what is written |
//! |---|---|
//! | JSON lines | the lines; blank ones are left out |
//! | CSV, TSV | the row of names, then rows; blank lines are left out |
//! | WARC, WET | the records, each a member of its own where the input has members; requests and metadata follow the record that they are concurrent to |
//! | ARC | the records; the one that describes the file goes to both sides |
//! | WACZ | the records of its WARC files, as one WARC file of gzip members |
//! | Parquet, Arrow | rows under the same schema, in the same compression; a row group or batch of each of the input's that has any |
//! | a page | the file |
//!
//! Invariants:
//! - every record that could be read goes to exactly one side, in the order of the input; a bad one goes to none;
//! - the bytes that are written depend on the records and on what is said of them alone;
//! - memory is that of a record, or of a row group of Parquet as it is written and a batch as it is read; for WARC some 100 bytes more for
//!   each record of the file.

mod columns;
mod columns_out;
mod files;
mod note;
mod packed;
mod parquet_types;
mod text;
mod warc;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use crate::error::{InputError, Place, Reason};
use crate::record::RecordFile;
use crate::stream::Stream;
use crate::{Fetched, InputOptions, Item, Source, open_as};
pub use files::{Take, copy_directory};
pub use note::{NAMES, Note, RecordName};

/// Where a record can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It is kept.
    Kept,
    /// It is removed.
    Removed,
    /// A newer version supersedes it.
    Superseded,
}

impl Side {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kept, Self::Removed, Self::Superseded];
}

/// Why a record is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// Its page is a duplicate of one that is kept.
    Duplicate,
    /// There is a newer version of its page.
    Superseded,
    /// Its page redirects to one that is on record.
    Redirect,
    /// Its page is gone.
    Dead,
}

impl Removal {
    /// Its name in annotations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::Superseded => "superseded",
            Self::Redirect => "redirect",
            Self::Dead => "dead",
        }
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// Why it is removed, if it is.
    pub removal: Option<Removal>,
    /// By which [`Judge::note`] knows it; none of a record that is no page.
    pub record: Option<u64>,
}

impl Fate {
    /// That of a record that is no page.
    const BESIDE: Self = Self { removal: None, record: None };

    fn side(self) -> Side {
        match self.removal {
            None => Side::Kept,
            Some(Removal::Superseded) => Side::Superseded,
            Some(_) => Side::Removed,
        }
    }
}

/// Who knows what becomes of the records.
pub trait Judge {
    /// What becomes of the next page of the input. `None` where it is a bad record.
    ///
    /// # Errors
    /// When it is not the page that was judged.
    fn page(&mut self, page: &Fetched) -> io::Result<Option<Fate>>;

    /// What is said of a record.
    ///
    /// # Errors
    /// When that cannot be read.
    fn note(&mut self, record: u64, removal: Option<Removal>) -> io::Result<Note>;

    /// So many stored bytes of the file were read.
    fn read(&mut self, bytes: u64);
}

/// A file for each side; `None` for a side that is not wanted.
#[derive(Debug)]
pub struct Sides<W> {
    /// The file of the records that are kept.
    pub kept: Option<W>,
    /// The file of the records that are removed.
    pub removed: Option<W>,
    /// The file of the records that newer versions supersede.
    pub superseded: Option<W>,
}

impl<W> Sides<W> {
    fn get(&mut self, side: Side) -> Option<&mut W> {
        match side {
            Side::Kept => self.kept.as_mut(),
            Side::Removed => self.removed.as_mut(),
            Side::Superseded => self.superseded.as_mut(),
        }
    }

    /// The same with other files.
    ///
    /// # Errors
    /// The first of `make`.
    pub fn try_map<V, E>(self, mut make: impl FnMut(Side, W) -> Result<V, E>) -> Result<Sides<V>, E> {
        let kept = self.kept.map(|kept| make(Side::Kept, kept)).transpose()?;
        let removed = self.removed.map(|removed| make(Side::Removed, removed)).transpose()?;
        let superseded = self.superseded.map(|superseded| make(Side::Superseded, superseded)).transpose()?;
        Ok(Sides { kept, removed, superseded })
    }
}

/// How many records went where. What is no record, such as a request in a WARC, is copied and not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Records that were judged and are kept.
    pub kept: u64,
    /// Records that are removed, by reason.
    pub removed: BTreeMap<Removal, u64>,
    /// Records that newer versions supersede.
    pub superseded: u64,
    /// Bad records, which are on no side.
    pub bad: u64,
    /// Records that are not judged, such as images: they are on the side of those that are kept.
    pub skipped: u64,
}

impl Copied {
    /// Counts a record that was judged.
    fn count(&mut self, fate: Fate) {
        *match fate.removal {
            None => &mut self.kept,
            Some(Removal::Superseded) => &mut self.superseded,
            Some(removal) => self.removed.entry(removal).or_default(),
        } += 1;
    }

    /// Adds those of another file.
    pub fn add(&mut self, other: &Self) {
        self.kept += other.kept;
        self.superseded += other.superseded;
        self.bad += other.bad;
        self.skipped += other.skipped;
        for (removal, records) in &other.removed {
            *self.removed.entry(*removal).or_default() += records;
        }
    }
}

/// Why a file could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The input cannot be opened.
    #[error(transparent)]
    Open(Box<InputError>),
    /// The input cannot be read, or cannot be written in its own format.
    #[error(transparent)]
    Input(Box<InputError>),
    /// One of the files cannot be written.
    #[error("{0}")]
    Write(Side, #[source] io::Error),
    /// What was decided cannot be read, or is not of these records.
    #[error("{path}", path = .0.display())]
    Judge(std::path::PathBuf, #[source] io::Error),
}

impl From<InputError> for CopyError {
    fn from(error: InputError) -> Self {
        Self::Input(Box::new(error))
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "kept",
            Self::Removed => "removed",
            Self::Superseded => "superseded",
        })
    }
}

/// Copies the records of a file. Its pages are told to `judge` in the order in which [`open_as`] gives them, each once. With
/// `annotate` every record has what is said of it beside it.
///
/// # Errors
/// When the input cannot be opened, or a file not be written.
pub fn copy<W: Write + Send>(
    path: &Path,
    name: RecordFile,
    options: &InputOptions,
    sides: Sides<W>,
    (judge, annotate): (&mut dyn Judge, bool),
) -> Result<(Copied, Sides<W>), CopyError> {
    let options = &InputOptions { all_columns: true, ..options.clone() };
    let mut input = open_as(path, name, options.clone()).map_err(|error| CopyError::Open(Box::new(error)))?;
    let mut job = Job { path, judge, annotate, copied: Copied::default() };
    let packing = Stream::open(path, &options.limits).map_err(|reason| job.cannot(reason))?.packing();
    let sides = match &mut input.source {
        Source::Lines(lines) => {
            let sides = text::begin(sides, packing, b"")?;
            text::lines(lines, sides, &mut job)?
        }
        Source::Delimited(rows) => text::rows(rows, (sides, packing), &mut job)?,
        Source::Columns(_) => columns::copy(&mut input, options, (sides, packing), &mut job)?,
        Source::Warc(pages) => warc::copy(pages, (sides, packing), &mut job)?,
        Source::Wacz(files) => warc::copy_wacz(files, sides, &mut job)?,
        Source::Files(_) => files::one(&mut input, sides, &mut job)?,
    };
    Ok((job.copied, sides))
}

/// Finds what of a file could not be copied, as far as its description tells.
///
/// # Errors
/// When a column could not be written as it is read. What cannot be opened is no error here.
pub fn check(path: &Path, name: RecordFile, options: &InputOptions) -> Result<(), InputError> {
    match open_as(path, name, options.clone()).map(|input| input.source) {
        Ok(Source::Columns(rows)) => {
            let types = rows.parquet_types().map_or(Ok(()), parquet_types::check_types);
            types.map_err(|reason| InputError::new(&path.into(), Place::File, reason))
        }
        _ => Ok(()),
    }
}

/// One file that is copied.
struct Job<'j> {
    path: &'j Path,
    judge: &'j mut dyn Judge,
    annotate: bool,
    copied: Copied,
}

impl Job<'_> {
    /// What becomes of an item; `None` where it is no record, or a bad one.
    fn fate(&mut self, item: &Item) -> Result<Option<Fate>, CopyError> {
        let fate = match item {
            Item::Fields(_) => return Ok(None),
            Item::Page(page) => {
                self.judge.page(page).map_err(|error| CopyError::Judge(self.path.to_owned(), error))?
            }
            Item::Skipped(skip) => {
                self.copied.skipped += u64::from(skip.is_of_record());
                return Ok(Some(Fate::BESIDE));
            }
            Item::Bad(_) => None,
        };
        match fate {
            Some(fate) => self.copied.count(fate),
            None => self.copied.bad += 1,
        }
        Ok(fate)
    }

    /// What is said of a record where something is to be said.
    fn note(&mut self, fate: Fate) -> Result<Option<Note>, CopyError> {
        if !self.annotate {
            return Ok(None);
        }
        let Some(record) = fate.record else { return Ok(Some(Note::default())) };
        let note = self.judge.note(record, fate.removal);
        note.map(Some).map_err(|error| CopyError::Judge(self.path.to_owned(), error))
    }

    fn cannot(&self, reason: Reason) -> CopyError {
        InputError::new(&self.path.into(), Place::File, reason).into()
    }
}

#[cfg(test)]
mod tests;
