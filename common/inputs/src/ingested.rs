//! The files that a collection has taken to their ends. They are listed in its data directory, so that later runs do not read them again.
//!
//! Invariants:
//! - a file is listed when all its pages are on disk in the collection, and not before;
//! - one that is not as it was, or that is to be read in another way or under another name, is not known, and is read;
//! - the list saves time and holds nothing else: where lines of it are lost or cannot be read, their files are read again.

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
use crate::sources::{Place, Source};
use crate::version::Version;
use doppel_terminal::whole_file::{self, Earlier};

/// The name of the list in a data directory: a line of JSON for each file.
pub const NAME: &str = "ingested.jsonl";
/// How the names begin under which it is written as a whole.
const ASIDE: &str = "ingested.jsonl.new";
/// How many lines that no longer count may stand in the list, beside as many as count.
const OLD_LINES: usize = 1_000;

/// Whether a name is that of the list, or of one whose writing was interrupted.
pub fn is_name(name: &OsStr) -> bool {
    name == NAME || is_aside(name)
}

/// Whether a name is that of a list whose writing was interrupted.
pub fn is_aside(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ASIDE.as_bytes())
}

/// A file that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ingested {
    file: Named,
    version: Version,
    /// How it was read.
    reading: String,
    had: Had,
}

/// What a file had.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Had {
    /// Pages, redirects and deaths.
    pub records: u64,
    /// Records that could not be read or used.
    pub bad: u64,
    /// How many of these could be read.
    pub unusable: u64,
    /// The latest date of a page in it.
    pub latest: Option<Timestamp>,
    /// The first date that was supplied to a page which had none.
    pub supplied: Option<Timestamp>,
    /// The fields that are named and that its records have.
    pub named: BTreeSet<Field>,
    /// What names its records, where their id is guessed.
    #[serde(default)]
    pub named_by: Option<NamedBy>,
}

impl Had {
    /// Pages, redirects and deaths, with those that could not be used.
    pub fn pages(&self) -> u64 {
        self.records + self.unusable
    }
}

/// A file, and what its records are named by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Named {
    /// Its one path, or the address of an object.
    file: String,
    name: String,
}

impl Named {
    /// Whether it is a file that is not there any more. Where a disk is not mounted, its files are read again.
    fn has_gone(&self) -> bool {
        self.file.starts_with('/') && !Path::new(&self.file).exists()
    }

    /// None of what may not be there another time, and of a path that is no text.
    fn of(source: &Source) -> Option<Self> {
        if source.copy_of.is_some() {
            return None;
        }
        let (path, name) = match &source.place {
            Place::File(path, name) => (fs::canonicalize(path).ok()?, name),
            Place::Object(object) => (object.path().to_owned(), object.name()),
            Place::Standard | Place::Pages(_) => return None,
        };
        Some(Self { file: path.to_str()?.to_owned(), name: name.as_str().to_owned() })
    }
}

impl Ingested {
    /// When the file was changed.
    pub fn modified(&self) -> Timestamp {
        self.version.modified()
    }

    /// What it had.
    pub fn had(&self) -> &Had {
        &self.had
    }

    /// How the names of its records begin, and what they are named by, where their id is guessed.
    pub fn named_by(&self) -> Option<(String, NamedBy)> {
        Some((self.file.name.clone(), self.had.named_by?))
    }

    /// So many of its records could not be used.
    pub fn without(mut self, unusable: u64) -> Self {
        self.had.records -= unusable;
        self.had.bad += unusable;
        self.had.unusable += unusable;
        self
    }
}

/// Which files are not read again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LeavesOut {
    #[default]
    None,
    /// Those that are replayed: an interrupted run, which was making the directory, has read them.
    Replayed,
    /// Those that are replayed, and those that the collection lists.
    Listed,
}

/// How a run reads files, and what is known of those that were read before.
#[derive(Debug, Default)]
pub struct Reading {
    how: String,
    leaves_out: LeavesOut,
    known: HashMap<Named, Ingested>,
    /// The first files of the inputs where their pages were replayed.
    replayed: Vec<Ingested>,
    /// Whether files that had bad records are read again, because these are asked for.
    asks_for_bad: bool,
}

impl Reading {
    /// Knows of no file, and leaves none out. What is read depends on these options, on whether languages are detected, and on the version of the program.
    pub fn new(fields: &FieldArgs, detect_language: bool) -> Self {
        let how = format!("{} {fields:?}, detect_language: {detect_language}", env!("CARGO_PKG_VERSION"));
        Self { how, ..Self::default() }
    }

    /// Goes on behind the files that an interrupted run has read; with `asks_for_bad` not behind those that had bad records.
    pub fn going_on(self, asks_for_bad: bool) -> Self {
        Self { leaves_out: LeavesOut::Replayed, asks_for_bad, ..self }
    }

    /// The same, and leaves out the files that the collection lists.
    pub fn leaving_out(self, asks_for_bad: bool) -> Self {
        Self { leaves_out: LeavesOut::Listed, asks_for_bad, ..self }
    }

    /// With what is [listed](IngestedList::open) in a data directory, if such files may be left out.
    pub fn with_list(&self, listed: Listed) -> Self {
        let known = if self.leaves_out == LeavesOut::Listed { listed.0 } else { HashMap::new() };
        Self { known, ..self.behind(Vec::new()) }
    }

    /// Behind these files, which are the first ones and were replayed.
    pub fn behind(&self, replayed: Vec<Ingested>) -> Self {
        Self { how: self.how.clone(), known: HashMap::new(), replayed, ..*self }
    }

    /// What was replayed of a file, by its place among the files and directories that are read.
    pub fn replayed(&self, source: usize) -> Option<&Ingested> {
        self.replayed.get(source)
    }

    /// How files are read.
    pub fn how(&self) -> &str {
        &self.how
    }

    /// How many pages the files have that were replayed, with those that could not be used and are not in the log.
    pub fn replayed_pages(&self) -> u64 {
        self.replayed.iter().map(|ingested| ingested.had.pages()).sum()
    }

    /// Whether a run goes on behind the files that an interrupted one has read.
    pub fn goes_on(&self) -> bool {
        self.leaves_out != LeavesOut::None
    }

    /// What is known of a file, if it is as it was and would be read in the same way.
    pub fn known(&self, source: &Source) -> Option<&Ingested> {
        if self.known.is_empty() {
            return None;
        }
        self.known.get(&Named::of(source)?).filter(|known| self.is_as_read(known, source))
    }

    /// Whether a file is as it was when it was read, and would be read in the same way.
    pub fn is_same(&self, known: &Ingested, source: &Source) -> bool {
        Named::of(source).as_ref() == Some(&known.file) && self.is_as_read(known, source)
    }

    /// The same of a file with the same name.
    fn is_as_read(&self, known: &Ingested, source: &Source) -> bool {
        let is_read_so = known.reading == self.how && !(self.asks_for_bad && known.had.bad > 0);
        is_read_so && source.version().as_ref() == Some(&known.version)
    }

    /// Whether a file could ever be listed.
    pub fn may_list(source: &Source) -> bool {
        Named::of(source).is_some() && source.version().is_some_and(|version| version.is_settled())
    }

    /// A file that was read to its end, in this version, if it can be listed: it has not changed since.
    pub fn ended(&self, source: &Source, version: Option<Version>, had: Had) -> Option<Ingested> {
        let version =
            version.filter(|version| source.version().as_ref() == Some(version) && version.is_settled())?;
        Some(Ingested { file: Named::of(source)?, version, reading: self.how.clone(), had })
    }
}

/// What a list has.
#[derive(Debug, Default)]
pub struct Listed(HashMap<Named, Ingested>);

/// The list of a data directory, to which files are added. Only for the process that holds the directory.
#[derive(Debug)]
pub struct IngestedList {
    path: PathBuf,
    file: File,
    /// Whether the last line has no end.
    is_torn: bool,
}

impl IngestedList {
    /// Opens the list, and makes it if there is none; gives what it has, too. Lines that others have replaced, and those of files that have gone, are removed now and then.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(dir: &Path) -> anyhow::Result<(Self, Listed)> {
        let path = dir.join(NAME);
        let open = || -> io::Result<_> {
            whole_file::remove_left(dir, is_aside);
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
            Ok((Self { path: path.clone(), file, is_torn }, Listed(known)))
        };
        open().with_context(|| {
            format!("cannot read or write the list of files that were read, {}", path.display())
        })
    }

    /// Lists files, of which all pages are on disk.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn add<'i>(&mut self, ended: impl IntoIterator<Item = &'i Ingested>) -> anyhow::Result<()> {
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
        // A line may be there in part.
        self.is_torn = added.is_err();
        added.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Writes a list of these files.
///
/// # Errors
/// When it cannot be written.
pub fn write_new<'i>(path: &Path, all: impl IntoIterator<Item = &'i Ingested>) -> io::Result<()> {
    whole_file::write(path, ASIDE, &lines(all)?, Earlier::Replaced)
}

fn lines<'i>(all: impl IntoIterator<Item = &'i Ingested>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for ingested in all {
        serde_json::to_writer(&mut text, ingested)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// What is listed, in how many lines, and whether the last one has no end. The last line of a file counts.
fn read(path: &Path) -> io::Result<(HashMap<Named, Ingested>, usize, bool)> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let (mut known, mut lines) = (HashMap::new(), 0);
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        lines += 1;
        if let Ok(ingested) = serde_json::from_slice::<Ingested>(line) {
            known.insert(ingested.file.clone(), ingested);
        }
    }
    Ok((known, lines, text.last().is_some_and(|last| *last != b'\n')))
}

#[cfg(test)]
mod tests;
