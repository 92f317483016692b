//! Results of earlier runs in the directories that a run writes to.
//!
//! Each directory has a list of its results, with the path, the input, and the size and time of each file. A
//! run removes a result of an earlier run if the run reads the input and writes no such file, or if the input
//! has gone from a directory that the run names. A run never removes a file that is not in the list or has
//! changed since. Such a file in the place of a result is an error that names the file.
//!
//! The list is a file of JSON lines. A line is written before its file gets its final name, so the list of a
//! killed run is complete. At the end of a run, the list is written anew without obsolete lines.

mod named_inputs;
#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::hash::BuildHasher;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail, ensure};
use doppel_crawls::copy::{CopySide, Sides};
use doppel_inputs::sources::InputSource;
use doppel_snapshot::{create_directories, sync_directory};
use doppel_terminal::output::{count, say};
use serde::{Deserialize, Serialize};

use super::part_file::PartFile;
pub(super) use named_inputs::NamedInputs;
use named_inputs::UnreadFile;

/// Name of the list in a directory.
pub(super) const NAME: &str = ".doppel-results";

/// The first line of a list.
const HEAD: &[u8] = b"{\"doppel_results\":1}\n";

/// Largest number of removed files that are reported one by one.
const NAMED: usize = 20;

/// A result in a list.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// Path of the result below the directory. Each character stands for a byte.
    path: String,
    /// Path of the input. Each character stands for a byte.
    input: String,
    bytes: u64,
    /// Time of the last change, in seconds and nanoseconds.
    modified: (i64, i64),
}

/// How a run has read an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// A file whose results are written.
    File,
    /// A file that cannot be read at all.
    Bad,
    /// A directory of pages, read completely. Results that this run lacks belong to bad or missing pages.
    Pages,
    /// A directory of pages that was read in part, or is empty. It may be an unmounted directory.
    PagesInPart,
}

/// Name of an input in the list.
pub(super) fn name_of(source: &InputSource) -> String {
    let path = source.path();
    to_text(fs::canonicalize(path).as_deref().unwrap_or(path))
}

/// The results of earlier runs, and of this one.
#[derive(Debug)]
pub(super) struct EarlierResults {
    lists: Vec<List>,
    /// Whether the run writes a collection. It keeps the pages of unreadable inputs, so their results stay.
    is_collection: bool,
    inputs: HashMap<String, Reading>,
    named: NamedInputs,
    /// Hashes of side and path of the results of this run.
    written: HashSet<u64>,
    /// Hashes of the paths of results that this run does not have, because the input is bad.
    bad: HashSet<u64>,
    hasher: RandomState,
    /// Files at paths where this run has no result.
    in_place: Vec<PathBuf>,
}

/// The list of results of a directory.
#[derive(Debug)]
struct List {
    side: CopySide,
    dir: PathBuf,
    /// The open file; `None` before the first line.
    file: Option<File>,
    /// Size of the part that earlier runs have written, in bytes.
    earlier: u64,
}

/// The decision about a line of an earlier run.
#[derive(Debug, PartialEq, Eq)]
enum EntryFate {
    /// The line is dropped, because this run has written a newer one.
    Forgotten,
    /// The line and its file stay.
    Kept,
    /// The file is removed.
    Stale,
    /// The file may be stale, and the input does not show whether it is.
    Unknown,
}

/// Results of earlier runs, by what happened to them at the end of a run.
#[derive(Debug, Default)]
struct Findings {
    removed: Vec<PathBuf>,
    not_removed: usize,
    unknown: Option<(PathBuf, String)>,
    /// Number of results that stay although their inputs are bad or have gone.
    stays: u64,
}

impl EarlierResults {
    /// Opens the lists of all directories.
    pub(super) fn of(dirs: &Sides<PathBuf>, is_collection: bool, named: NamedInputs) -> anyhow::Result<Self> {
        let dirs = [
            (CopySide::Kept, &dirs.kept),
            (CopySide::Removed, &dirs.removed),
            (CopySide::Superseded, &dirs.superseded),
        ];
        let wanted = dirs.into_iter().filter_map(|(side, dir)| Some((side, dir.as_ref()?)));
        let lists = wanted.map(|(side, dir)| List::open(side, dir)).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            lists,
            is_collection,
            inputs: HashMap::new(),
            named,
            written: HashSet::new(),
            bad: HashSet::new(),
            hasher: RandomState::new(),
            in_place: Vec::new(),
        })
    }

    fn hash(&self, side: Option<CopySide>, below: &Path) -> u64 {
        self.hasher.hash_one((side.map(|side| side as u8), below.as_os_str()))
    }

    /// Notes a result that is about to get its final name.
    pub(super) fn note(
        &mut self,
        (side, below): (CopySide, &Path),
        input: &str,
        file: &Metadata,
    ) -> io::Result<()> {
        let Some(list) = self.lists.iter_mut().find(|list| list.side == side) else { return Ok(()) };
        list.add(&Entry {
            path: to_text(below),
            input: input.to_owned(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
        })?;
        let hash = self.hash(Some(side), below);
        self.written.insert(hash);
        Ok(())
    }

    /// Notes how an input was read.
    pub(super) fn note_input(&mut self, input: String, reading: Reading) {
        self.inputs.insert(input, reading);
    }

    /// Notes that this run has a result at a path on `side` alone, or on no side because the input is bad.
    pub(super) fn note_side(&mut self, below: &Path, side: Option<CopySide>) {
        let hash = self.hash(side, below);
        let is_bad = side.is_none();
        let noted = if is_bad { &mut self.bad } else { &mut self.written };
        noted.insert(hash);
        if is_bad && self.is_collection {
            return;
        }
        let others =
            self.lists.iter().filter(|list| Some(list.side) != side).map(|list| list.dir.join(below));
        self.in_place.extend(others.filter(|path| fs::symlink_metadata(path).is_ok()));
    }

    fn fate(&self, side: CopySide, below: &Path, entry: &Entry) -> EntryFate {
        let is_written = |side| self.written.contains(&self.hash(Some(side), below));
        if is_written(side) {
            return EntryFate::Forgotten;
        }
        if CopySide::ALL.into_iter().any(is_written) {
            return EntryFate::Stale;
        }
        let is_bad = self.bad.contains(&self.hash(None, below));
        match self.inputs.get(&entry.input) {
            None if self.is_collection => EntryFate::Kept,
            None => match self.named.unread(&to_path(&entry.input)) {
                UnreadFile::NotNamed => EntryFate::Kept,
                UnreadFile::Gone => EntryFate::Stale,
                UnreadFile::Unreachable => EntryFate::Unknown,
            },
            Some(Reading::File) => EntryFate::Stale,
            Some(_) if self.is_collection => EntryFate::Kept,
            Some(Reading::Bad | Reading::Pages) => EntryFate::Stale,
            Some(Reading::PagesInPart) if is_bad => EntryFate::Stale,
            Some(Reading::PagesInPart) => EntryFate::Unknown,
        }
    }

    /// Removes the stale results of earlier runs. Call it after all results of this run are written.
    ///
    /// # Errors
    /// If a list cannot be read or written, a file not removed, or a foreign file is at a result's path.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        let mut findings = Findings::default();
        for mut list in std::mem::take(&mut self.lists) {
            let path = list.path();
            self.end_list(&mut list, &mut findings)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let Findings { removed, not_removed, unknown, stays } = findings;
        for path in &removed {
            say!(
                "doppel: removed {}: an earlier run wrote it, and its input has no such result now",
                path.display()
            );
        }
        if not_removed > 0 {
            say!("doppel: removed {} more results of earlier runs", count(not_removed as u64));
        }
        if stays > 0 {
            say!(
                "doppel: {} results of earlier runs stay, although their inputs are bad or have gone: the collection still has their pages",
                count(stays)
            );
        }
        self.in_place.retain(|path| fs::symlink_metadata(path).is_ok());
        if let Some(path) = self.in_place.first() {
            let more = self.in_place.len() - 1;
            let others = if more > 0 { format!(" and {} more", count(more as u64)) } else { String::new() };
            bail!(
                "{}{others} would be taken for a result of this run, and is none; Doppel does not remove it, because \
                 it has changed since a run wrote it, or no run wrote it: move it away, and run the command again",
                path.display()
            );
        }
        if let Some((path, input)) = unknown {
            bail!(
                "{} is a result of an earlier run, and it is unknown whether it still holds: {input} was not read to its \
                 end, has no pages, or has gone with its directory; run the command again when it can be read, or \
                 remove the results",
                path.display()
            );
        }
        Ok(())
    }

    fn end_list(&mut self, list: &mut List, findings: &mut Findings) -> anyhow::Result<()> {
        let path = list.path();
        let Some(file) = &mut list.file else { return Ok(()) };
        if list.earlier == HEAD.len() as u64 {
            file.sync_all()?;
            return Ok(sync_directory(&list.dir)?);
        }
        let mut anew = PartFile::begin(&path)?;
        anew.write_all(HEAD)?;
        file.seek(SeekFrom::Start(HEAD.len() as u64))?;
        let mut lines = BufReader::new(&*file).take(list.earlier - HEAD.len() as u64);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            // A killed run may have left an incomplete line.
            if let Ok(entry) = serde_json::from_slice::<Entry>(&line)
                && self.keeps((list.side, &list.dir), &entry, findings)?
            {
                anew.write_all(&line)?;
            }
            line.clear();
        }
        file.seek(SeekFrom::Start(list.earlier))?;
        io::copy(file, &mut anew)?;
        Ok(anew.finish(|_| Ok(()))?)
    }

    /// Whether a line of an earlier run stays. Removes the file of a stale result.
    fn keeps(
        &mut self,
        (side, dir): (CopySide, &Path),
        entry: &Entry,
        findings: &mut Findings,
    ) -> anyhow::Result<bool> {
        let below = to_path(&entry.path);
        let is_below = below.components().all(|part| matches!(part, Component::Normal(_)));
        let path = dir.join(&below);
        let Some(there) = fs::symlink_metadata(&path).ok().filter(|_| is_below) else { return Ok(false) };
        let is_as_written = there.is_file()
            && (there.len(), (there.mtime(), there.mtime_nsec())) == (entry.bytes, entry.modified);
        match self.fate(side, &below, entry) {
            EntryFate::Forgotten => return Ok(false),
            EntryFate::Kept => {
                let is_read = self.inputs.contains_key(&entry.input);
                findings.stays += u64::from(is_as_written && is_read);
                return Ok(is_as_written);
            }
            EntryFate::Unknown => {
                if is_as_written {
                    findings
                        .unknown
                        .get_or_insert_with(|| (path, to_path(&entry.input).display().to_string()));
                }
                return Ok(is_as_written);
            }
            EntryFate::Stale => {}
        }
        if !is_as_written {
            // A later line may describe the file in its present state.
            self.in_place.push(path);
            return Ok(false);
        }
        let cannot = || format!("cannot remove {}", path.display());
        fs::remove_file(&path).with_context(cannot)?;
        path.parent().map_or(Ok(()), sync_directory).with_context(cannot)?;
        if findings.removed.len() < NAMED {
            findings.removed.push(path);
        } else {
            findings.not_removed += 1;
        }
        Ok(false)
    }
}

impl List {
    fn open(side: CopySide, dir: &Path) -> anyhow::Result<Self> {
        let mut this = Self { side, dir: dir.to_owned(), file: None, earlier: HEAD.len() as u64 };
        let path = this.path();
        let cannot = || format!("cannot read {}", path.display());
        let file = match File::options().read(true).append(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(this),
            opened => opened.with_context(cannot)?,
        };
        let mut head = Vec::new();
        (&file).take(HEAD.len() as u64).read_to_end(&mut head).with_context(cannot)?;
        let metadata = file.metadata().with_context(cannot)?;
        let mut bytes = metadata.len();
        ensure!(
            metadata.is_file() && HEAD.starts_with(&head),
            "{} is no list of results of this version of Doppel; name another directory, or move the file away",
            path.display()
        );
        if head.len() < HEAD.len() {
            // The run that began the list was killed.
            (&file).write_all(&HEAD[head.len()..]).with_context(cannot)?;
            bytes = HEAD.len() as u64;
        }
        let mut last = [0];
        file.read_exact_at(&mut last, bytes - 1).with_context(cannot)?;
        if last != *b"\n" {
            (&file).write_all(b"\n").with_context(cannot)?;
            bytes += 1;
        }
        (this.file, this.earlier) = (Some(file), bytes);
        Ok(this)
    }

    fn path(&self) -> PathBuf {
        self.dir.join(NAME)
    }

    /// Adds a line with a single write, so that a killed run leaves at most its last line incomplete.
    fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                create_directories(&self.dir)?;
                let mut options = File::options();
                let mut file = options.read(true).append(true).create_new(true).open(self.dir.join(NAME))?;
                file.write_all(HEAD)?;
                none.insert(file)
            }
        };
        file.write_all(&line)
    }
}

/// Converts a path to text in which each character stands for a byte.
fn to_text(path: &Path) -> String {
    path.as_os_str().as_bytes().iter().map(|byte| char::from(*byte)).collect()
}

/// Converts the text of [`to_text`] back to the path.
fn to_path(text: &str) -> PathBuf {
    let bytes = text.chars().map(|byte| u8::try_from(u32::from(byte)).unwrap_or(b'?')).collect();
    std::ffi::OsString::from_vec(bytes).into()
}
