//! The list of files that a collection has read to their ends. The list lies in the data directory of the
//! collection, so that later runs do not read these files again.
//!
//! A run that makes a new directory keeps a log of the pages that it has read. If the run is interrupted, the
//! next run replays the pages of the log, and continues behind the files that end in the log. These are the
//! *replayed* files.
//!
//! Invariants:
//! - A file is listed only after all its pages are on disk in the collection.
//! - A listed file is read again if it has changed, if it is to be read with other options, or if its records
//!   are to get another name.
//! - The list only saves time. If lines of the list are lost or cannot be parsed, their files are read again.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use doppel_crawls::record::{Field, NamedBy};
use doppel_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::records::FieldArgs;
use crate::sources::{InputSource, SourceKind};
use crate::version::Version;
use doppel_terminal::atomic_file::{self, ExistingFile};

/// File name of the list in a data directory. The list has one line of JSON for each file.
pub const NAME: &str = "ingested.jsonl";
/// Beginning of the temporary name under which a new list is written.
const ASIDE: &str = "ingested.jsonl.new";
/// Obsolete lines that the list may contain, in addition to as many as it has valid lines. A list with more
/// obsolete lines is written anew.
const OLD_LINES: usize = 1_000;

/// Whether a file name belongs to the list, or to a new list whose write was interrupted.
pub fn is_name(name: &OsStr) -> bool {
    name == NAME || is_aside(name)
}

/// Whether a file name belongs to a new list whose write was interrupted.
pub fn is_aside(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ASIDE.as_bytes())
}

/// A file that was read to its end, as an entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestedFile {
    file: FileIdentity,
    version: Version,
    /// Options and program version with which the file was read.
    reading: String,
    had: FileStatistics,
}

/// Counts and dates of a file that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStatistics {
    /// Number of pages, redirects and deaths.
    pub records: u64,
    /// Number of records that could not be read or used.
    pub bad: u64,
    /// Number of bad records that could be read, but not used.
    pub unusable: u64,
    /// Latest date of a page in the file.
    pub latest: Option<Timestamp>,
    /// Date that was supplied to the first page without a date. `None` if every page had a date.
    pub supplied: Option<Timestamp>,
    /// Fields that the records of the file have.
    pub named: BTreeSet<Field>,
    /// What names the records of the file, if their id field is guessed.
    #[serde(default)]
    pub named_by: Option<NamedBy>,
}

impl FileStatistics {
    /// Number of pages, redirects and deaths, including those that could not be used.
    pub fn pages(&self) -> u64 {
        self.records + self.unusable
    }
}

/// Identity of a file in the list: its location, and the name that its records carry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct FileIdentity {
    /// Canonical path of the file, or address of the object.
    file: String,
    name: String,
}

impl FileIdentity {
    /// Whether the file no longer exists. If its disk is not mounted, the file leaves the list and is read
    /// again later. Always false for an object.
    fn has_gone(&self) -> bool {
        self.file.starts_with('/') && !Path::new(&self.file).exists()
    }

    /// Identity of a source. `None` for standard input, copies and directories of pages, which no list
    /// contains, and for a path that is not UTF-8.
    fn of(source: &InputSource) -> Option<Self> {
        if source.copy_of.is_some() {
            return None;
        }
        let (path, name) = match &source.kind {
            SourceKind::File(path, name) => (fs::canonicalize(path).ok()?, name),
            SourceKind::Object(object) => (object.path().to_owned(), object.name()),
            SourceKind::Standard | SourceKind::Pages(_) => return None,
        };
        Some(Self { file: path.to_str()?.to_owned(), name: name.as_str().to_owned() })
    }
}

impl IngestedFile {
    /// Time of the last write to the file.
    pub fn modified(&self) -> Timestamp {
        self.version.modified()
    }

    /// Counts and dates of the file.
    pub fn had(&self) -> &FileStatistics {
        &self.had
    }

    /// Name that the records of the file carry, and what names each record in the file. `None` unless the id
    /// field is guessed.
    pub fn named_by(&self) -> Option<(String, NamedBy)> {
        Some((self.file.name.clone(), self.had.named_by?))
    }

    /// Counts `unusable` of the sound records as bad, because they could not be used.
    pub fn without(mut self, unusable: u64) -> Self {
        self.had.records -= unusable;
        self.had.bad += unusable;
        self.had.unusable += unusable;
        self
    }
}

/// Files that a run does not read again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LeavesOut {
    #[default]
    None,
    /// Replayed files: the interrupted run that began to make the directory has read them.
    Replayed,
    /// Replayed files, and files that the collection lists.
    Listed,
}

/// How a run reads files, and what it knows about files that an earlier run has read.
#[derive(Debug, Default)]
pub struct ReadingPlan {
    how: String,
    leaves_out: LeavesOut,
    known: HashMap<FileIdentity, IngestedFile>,
    /// First files of the inputs, if their pages were replayed.
    replayed: Vec<IngestedFile>,
    /// Whether files with bad records are read again, because an option asks for the bad records.
    asks_for_bad: bool,
}

impl ReadingPlan {
    /// Creates a reading that knows no file and leaves none out. A later run reads a file in the same way if
    /// these options, the detection of languages, and the version of the program are equal.
    pub fn new(fields: &FieldArgs, detect_language: bool) -> Self {
        let how = format!("{} {fields:?}, detect_language: {detect_language}", env!("CARGO_PKG_VERSION"));
        Self { how, ..Self::default() }
    }

    /// Leaves out the files that an interrupted run has read. With `asks_for_bad`, reads files with bad
    /// records again.
    pub fn going_on(self, asks_for_bad: bool) -> Self {
        Self { leaves_out: LeavesOut::Replayed, asks_for_bad, ..self }
    }

    /// Like [`Self::going_on`], but also leaves out the files that the collection lists.
    pub fn leaving_out(self, asks_for_bad: bool) -> Self {
        Self { leaves_out: LeavesOut::Listed, asks_for_bad, ..self }
    }

    /// Returns a reading that knows the files [listed](IngestedList::open) in a data directory, if it may
    /// leave out listed files. The new reading knows no replayed files.
    pub fn with_list(&self, listed: ListedFiles) -> Self {
        let known = if self.leaves_out == LeavesOut::Listed { listed.0 } else { HashMap::new() };
        Self { known, ..self.behind(Vec::new()) }
    }

    /// Returns a reading that continues behind `replayed`, the first files of the inputs. The new reading
    /// knows no listed files.
    pub fn behind(&self, replayed: Vec<IngestedFile>) -> Self {
        Self { how: self.how.clone(), known: HashMap::new(), replayed, ..*self }
    }

    /// Entry of a replayed file, by the index of its source. `None` if the source was not replayed.
    pub fn replayed(&self, source: usize) -> Option<&IngestedFile> {
        self.replayed.get(source)
    }

    /// Options and program version with which this run reads files.
    pub fn how(&self) -> &str {
        &self.how
    }

    /// Number of pages of the replayed files. Includes the pages that could not be used and are not in the
    /// log.
    pub fn replayed_pages(&self) -> u64 {
        self.replayed.iter().map(|ingested| ingested.had.pages()).sum()
    }

    /// Whether the run continues behind the files that an interrupted run has read.
    pub fn goes_on(&self) -> bool {
        self.leaves_out != LeavesOut::None
    }

    /// List entry of a source. `None` if the file has changed, or would be read in another way.
    pub fn known(&self, source: &InputSource) -> Option<&IngestedFile> {
        if self.known.is_empty() {
            return None;
        }
        self.known.get(&FileIdentity::of(source)?).filter(|known| self.is_as_read(known, source))
    }

    /// Whether a file is unchanged since it was read, and would be read in the same way.
    pub fn is_same(&self, known: &IngestedFile, source: &InputSource) -> bool {
        FileIdentity::of(source).as_ref() == Some(&known.file) && self.is_as_read(known, source)
    }

    /// Like [`Self::is_same`], but assumes that `known` and `source` have the same identity.
    fn is_as_read(&self, known: &IngestedFile, source: &InputSource) -> bool {
        let is_read_so = known.reading == self.how && !(self.asks_for_bad && known.had.bad > 0);
        is_read_so && source.version().as_ref() == Some(&known.version)
    }

    /// Whether a source can be listed: later runs can find it again, and its version is
    /// [settled](Version::is_settled).
    pub fn may_list(source: &InputSource) -> bool {
        FileIdentity::of(source).is_some() && source.version().is_some_and(|version| version.is_settled())
    }

    /// Creates the entry of a file that was read to its end. `version` is the version of the file before it
    /// was read. `None` if the file has changed since then, or cannot be listed.
    pub fn ended(
        &self,
        source: &InputSource,
        version: Option<Version>,
        had: FileStatistics,
    ) -> Option<IngestedFile> {
        let version =
            version.filter(|version| source.version().as_ref() == Some(version) && version.is_settled())?;
        Some(IngestedFile { file: FileIdentity::of(source)?, version, reading: self.how.clone(), had })
    }
}

/// Entries of a list, by the identity of the file.
#[derive(Debug, Default)]
pub struct ListedFiles(HashMap<FileIdentity, IngestedFile>);

/// The list of a data directory, open for further entries. Only the process that holds the directory may use
/// the list.
#[derive(Debug)]
pub struct IngestedList {
    path: PathBuf,
    file: File,
    /// Whether the last line of the list is incomplete.
    is_torn: bool,
}

impl IngestedList {
    /// Opens the list, or creates it if it does not exist. Returns the list and its entries. Now and then,
    /// removes lines that later lines have replaced, and lines of files that no longer exist.
    ///
    /// # Errors
    /// If the list cannot be read or written.
    pub fn open(dir: &Path) -> anyhow::Result<(Self, ListedFiles)> {
        let path = dir.join(NAME);
        let open = || -> io::Result<_> {
            atomic_file::remove_temporary_files(dir, is_aside);
            let (mut known, lines, mut is_torn) = read(&path)?;
            if lines > OLD_LINES {
                known.retain(|named, _| !named.has_gone());
            }
            if lines > 2 * known.len() + OLD_LINES {
                write_new(&path, known.values())?;
                is_torn = false;
            }
            let is_new = !path.exists();
            let file = File::options().create(true).append(true).open(&path)?;
            if is_new {
                File::open(dir)?.sync_all()?;
            }
            Ok((Self { path: path.clone(), file, is_torn }, ListedFiles(known)))
        };
        open().with_context(|| {
            format!("cannot read or write {}, the list of files that were read", path.display())
        })
    }

    /// Adds files to the list. All pages of the files must be on disk.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn add<'i>(&mut self, ended: impl IntoIterator<Item = &'i IngestedFile>) -> anyhow::Result<()> {
        let mut ended = ended.into_iter().peekable();
        if ended.peek().is_none() {
            return Ok(());
        }
        let mut text = if std::mem::take(&mut self.is_torn) { b"\n".to_vec() } else { Vec::new() };
        let added = lines(ended).and_then(|lines| {
            text.extend(lines);
            self.file.write_all(&text)?;
            self.file.sync_data()
        });
        // A failed write may leave part of a line behind.
        self.is_torn = added.is_err();
        added.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Writes a list of these files, which replaces the old list as a whole.
///
/// # Errors
/// If the list cannot be written.
pub fn write_new<'i>(path: &Path, all: impl IntoIterator<Item = &'i IngestedFile>) -> io::Result<()> {
    atomic_file::write(path, ASIDE, &lines(all)?, ExistingFile::Replace)
}

fn lines<'i>(all: impl IntoIterator<Item = &'i IngestedFile>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for ingested in all {
        serde_json::to_writer(&mut text, ingested)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Reads a list. Returns its entries, its number of lines, and whether the last line is incomplete. If
/// several lines are about one file, the last of them counts.
fn read(path: &Path) -> io::Result<(HashMap<FileIdentity, IngestedFile>, usize, bool)> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let (mut known, mut lines) = (HashMap::new(), 0);
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        lines += 1;
        if let Ok(ingested) = serde_json::from_slice::<IngestedFile>(line) {
            known.insert(ingested.file.clone(), ingested);
        }
    }
    Ok((known, lines, text.last().is_some_and(|last| *last != b'\n')))
}

#[cfg(test)]
mod tests;
