//! Copies the records of a file to up to three files in the same format, which are called *sides*. The kept
//! records go to one side, the removed records to another, and the records that a newer version supersedes to
//! a third.
//!
//! A [`Judge`] decides the side of each record. The copy reads the file with the same code that found its
//! pages. The bytes of a record are copied unchanged. With annotations, fields that begin with `doppel_` are
//! added to each record.
//!
//! | format | what is written |
//! |---|---|
//! | JSON lines | lines, without blank ones |
//! | CSV, TSV | the row of names, then rows, without blank lines |
//! | WARC, WET | records, each as a compressed member of its own if the input has members |
//! | ARC | records; the record that describes the file goes to all sides that have records |
//! | WACZ | the records of its WARC files, as one WARC file of gzip members |
//! | Parquet, Arrow | rows with the same schema and compression, in the row groups or batches of the input |
//! | a page | the file |
//!
//! In a WARC file, a request or metadata record goes to the side of the record that it is concurrent to.
//!
//! Invariants:
//! - Every record that can be read goes to exactly one side, in the order of the input. A bad record goes to
//!   no side.
//! - The written bytes depend only on the records and on the decisions and annotations of the judge.
//! - The copy needs the memory of one record. For Parquet it needs the memory of one batch that is read and
//!   one row group that is written. For WARC it needs about 100 bytes more for each record of the file.

mod annotation;
#[cfg(feature = "columns")]
mod batch_writers;
#[cfg(feature = "columns")]
mod columnar;
mod compressed_writer;
mod files;
#[cfg(feature = "columns")]
mod parquet_types;
mod text;
mod warc;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use doppel_streams::{InputError, InputPosition, Reason, Stream};
use serde::Serialize;

use crate::record::RecordFile;
use crate::{FetchedPage, InputOptions, Item, Source, open_as};
pub use annotation::{ANNOTATION_FIELDS, Annotation, RecordName};
pub use files::{FileVisitor, copy_directory};

/// A destination of the records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopySide {
    /// The side of the records that are kept.
    Kept,
    /// The side of the records that are removed.
    Removed,
    /// The side of the records that a newer version supersedes.
    Superseded,
}

impl CopySide {
    /// All sides, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Kept, Self::Removed, Self::Superseded];
}

/// The reason why a record is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// The page is a duplicate of a page that is kept.
    Duplicate,
    /// A newer version of the page exists.
    Superseded,
    /// The page redirects to a page that is on record.
    Redirect,
    /// The page is gone.
    Dead,
}

impl Removal {
    /// The name of the reason in annotations.
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

/// The decision about a record: whether it is kept or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// The reason why the record is removed. `None` if it is kept.
    pub removal: Option<Removal>,
    /// The number by which [`Judge::annotation`] identifies the record. `None` for a record that is not a
    /// page.
    pub record: Option<u64>,
}

impl Fate {
    /// The fate of a record that is not a page, which is kept.
    const NOT_A_PAGE: Self = Self { removal: None, record: None };

    fn side(self) -> CopySide {
        match self.removal {
            None => CopySide::Kept,
            Some(Removal::Superseded) => CopySide::Superseded,
            Some(_) => CopySide::Removed,
        }
    }
}

/// Decides the fates of the records of a file, and provides their annotations.
pub trait Judge {
    /// Returns the fate of the next page of the input. `None` if the page counts as a bad record.
    ///
    /// # Errors
    /// If the page is not the one that the judge expects, because the input has changed.
    fn page(&mut self, page: &FetchedPage) -> io::Result<Option<Fate>>;

    /// Returns the annotation of a record.
    ///
    /// # Errors
    /// If the annotation cannot be read.
    fn annotation(&mut self, record: u64, removal: Option<Removal>) -> io::Result<Annotation>;

    /// Reports progress: `bytes` stored bytes of the file have been read so far.
    fn read(&mut self, bytes: u64);
}

/// A file for each side. `None` for a side that the caller does not want.
#[derive(Debug)]
pub struct Sides<W> {
    /// The file for the records that are kept.
    pub kept: Option<W>,
    /// The file for the records that are removed.
    pub removed: Option<W>,
    /// The file for the records that newer versions supersede.
    pub superseded: Option<W>,
}

impl<W> Sides<W> {
    fn get(&mut self, side: CopySide) -> Option<&mut W> {
        match side {
            CopySide::Kept => self.kept.as_mut(),
            CopySide::Removed => self.removed.as_mut(),
            CopySide::Superseded => self.superseded.as_mut(),
        }
    }

    /// Converts the file of each wanted side by `make`.
    ///
    /// # Errors
    /// The first error of `make`.
    pub fn try_map<V, E>(self, mut make: impl FnMut(CopySide, W) -> Result<V, E>) -> Result<Sides<V>, E> {
        let kept = self.kept.map(|kept| make(CopySide::Kept, kept)).transpose()?;
        let removed = self.removed.map(|removed| make(CopySide::Removed, removed)).transpose()?;
        let superseded =
            self.superseded.map(|superseded| make(CopySide::Superseded, superseded)).transpose()?;
        Ok(Sides { kept, removed, superseded })
    }
}

/// How many records of a file have which fate. Records such as a request in a WARC file are copied, but not
/// counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// The number of judged records that are kept.
    pub kept: u64,
    /// The number of records that are removed, by reason.
    pub removed: BTreeMap<Removal, u64>,
    /// The number of records that newer versions supersede.
    pub superseded: u64,
    /// The number of bad records, which go to no side.
    pub bad: u64,
    /// The number of records that are not judged, such as images. They go to the side of the kept records.
    pub skipped: u64,
}

impl Copied {
    /// Counts a judged record.
    fn count(&mut self, fate: Fate) {
        *match fate.removal {
            None => &mut self.kept,
            Some(Removal::Superseded) => &mut self.superseded,
            Some(removal) => self.removed.entry(removal).or_default(),
        } += 1;
    }

    /// Adds the numbers of another file.
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

/// The reason why a file could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The input cannot be opened.
    #[error(transparent)]
    Open(Box<InputError>),
    /// The input cannot be read, or cannot be written in its own format.
    #[error(transparent)]
    Input(Box<InputError>),
    /// The file of a side cannot be written.
    #[error("{0}")]
    Write(CopySide, #[source] io::Error),
    /// The judge cannot read its decisions, or the decisions do not belong to these records.
    #[error("{path}", path = .0.display())]
    Judge(std::path::PathBuf, #[source] io::Error),
}

impl From<InputError> for CopyError {
    fn from(error: InputError) -> Self {
        Self::Input(Box::new(error))
    }
}

impl fmt::Display for CopySide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "kept",
            Self::Removed => "removed",
            Self::Superseded => "superseded",
        })
    }
}

/// Copies the records of a file to the `sides`. Asks `judge` about each page once, in the order in which
/// [`open_as`] returns the pages. If `annotate`, adds the annotations of the judge to every record.
///
/// # Errors
/// If the input cannot be opened or copied, a side cannot be written, or the judge fails.
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
    let packing = Stream::open(path, &options.limits).map_err(|reason| job.input_error(reason))?.packing();
    let sides = match &mut input.source {
        Source::Lines(lines) => {
            let sides = text::begin(sides, packing, b"")?;
            text::copy_lines(lines, sides, &mut job)?
        }
        Source::Delimited(rows) => text::copy_rows(rows, (sides, packing), &mut job)?,
        #[cfg(feature = "columns")]
        Source::Columns(_) => columnar::copy(&mut input, options, (sides, packing), &mut job)?,
        #[cfg(not(feature = "columns"))]
        Source::Columns(rows) => rows.never(),
        Source::Warc(pages) => warc::copy(pages, (sides, packing), &mut job)?,
        Source::Wacz(files) => warc::copy_wacz(files, sides, &mut job)?,
        Source::Files(_) => files::copy_page(&mut input, sides, &mut job)?,
    };
    Ok((job.copied, sides))
}

/// Checks before a copy whether the schema of a Parquet file can be copied. Other files always pass.
///
/// # Errors
/// If the values of a column cannot be written as they are read. A file that cannot be opened is not an error
/// here.
pub fn check(path: &Path, name: RecordFile, options: &InputOptions) -> Result<(), InputError> {
    match open_as(path, name, options.clone()).map(|input| input.source) {
        #[cfg(feature = "columns")]
        Ok(Source::Columns(rows)) => {
            let types = rows.parquet_types().map_or(Ok(()), parquet_types::check_types);
            types.map_err(|reason| InputError::new(&path.into(), InputPosition::File, reason))
        }
        _ => Ok(()),
    }
}

/// The state of copying one file.
struct Job<'j> {
    path: &'j Path,
    judge: &'j mut dyn Judge,
    annotate: bool,
    copied: Copied,
}

impl Job<'_> {
    /// Finds the fate of an item and counts the item. `None` for an item that goes to no side: a bad record,
    /// or the map of the fields.
    fn fate(&mut self, item: &Item) -> Result<Option<Fate>, CopyError> {
        let fate = match item {
            Item::Fields(_) => return Ok(None),
            Item::Page(page) => {
                self.judge.page(page).map_err(|error| CopyError::Judge(self.path.to_owned(), error))?
            }
            Item::Skipped(skip) => {
                self.copied.skipped += u64::from(skip.is_of_record());
                return Ok(Some(Fate::NOT_A_PAGE));
            }
            Item::Bad(_) => None,
        };
        match fate {
            Some(fate) => self.copied.count(fate),
            None => self.copied.bad += 1,
        }
        Ok(fate)
    }

    /// The annotation of a record. `None` if the copy is not annotated.
    fn annotation(&mut self, fate: Fate) -> Result<Option<Annotation>, CopyError> {
        if !self.annotate {
            return Ok(None);
        }
        let Some(record) = fate.record else { return Ok(Some(Annotation::default())) };
        let annotation = self.judge.annotation(record, fate.removal);
        annotation.map(Some).map_err(|error| CopyError::Judge(self.path.to_owned(), error))
    }

    /// The error for an input that cannot be copied for this reason.
    fn input_error(&self, reason: Reason) -> CopyError {
        InputError::new(&self.path.into(), InputPosition::File, reason).into()
    }
}

#[cfg(test)]
#[cfg(feature = "columns")]
mod tests;
