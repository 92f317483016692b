//! A data directory that one command creates with all its contents.
//!
//! The command writes all files into the folder [`UNFINISHED`] inside the directory. When they are on disk,
//! it moves them to their final places and writes the manifest last. Nothing opens a directory without a
//! manifest. A killed run leaves `UNFINISHED` behind, and the next run begins anew, because the files in it
//! were never reported as kept. The next run may reuse only the log of extracted pages.
//!
//! Invariants:
//! - no file is removed from a directory with a manifest, and no file with an unknown name is removed;
//! - one process at a time writes a directory, and holds a lock on a file in `UNFINISHED`.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use doppel_inputs::ingested;
use doppel_snapshot::create_directories;
use doppel_terminal::destination::is_same_file;
use doppel_terminal::interrupt;

use crate::directory::manifest::{self, Manifest, NAME, UNFINISHED, is_unfinished};
use crate::directory::named_by;
use crate::directory::policy_tables;

const TIER1: &str = "tier1";
const TIER2: &str = "tier2";
const LOCK: &str = "lock";
const LOG: &str = "extracted.log";

/// Message of a run that a signal ends after its directory is complete.
pub const WHOLE: &str = "interrupted; the collection is whole";

/// A directory that is being written. Unless it is finished, its files are removed on drop.
#[derive(Debug)]
pub struct NewDirectory {
    dir: PathBuf,
    /// Whether the log of extracted pages stays for the next run if this run fails.
    keeps_log: Cell<bool>,
    // Dropped before the lock, and after the written files are removed.
    _made: CreatedDirectories,
    _lock: File,
}

/// Directories that were created for the new directory, the innermost first. Empty ones are removed on drop.
#[derive(Debug)]
struct CreatedDirectories(Vec<PathBuf>);

impl NewDirectory {
    /// Whether a directory can be written at a path: it does not exist, is empty, or is left by an
    /// interrupted run.
    ///
    /// # Errors
    /// If the path is not a directory or cannot be listed.
    pub fn is_possible(dir: &Path) -> anyhow::Result<bool> {
        manifest::require_directory(dir)?;
        let mut names = names(dir)?;
        names.retain(|name| name != "lost+found");
        let is_left = is_unfinished(dir)
            && self::names(&dir.join(UNFINISHED))?
                .iter()
                .all(|name| is_part(name) || name == LOCK || name == LOG);
        let ours =
            |name: &OsString| manifest::is_aside(name) || is_left && (name == UNFINISHED || is_part(name));
        Ok(names.iter().all(ours))
    }

    /// Begins to write a directory. Removes all files of an interrupted run.
    ///
    /// # Errors
    /// If the directory has other files, another process writes it, or it cannot be written.
    pub fn begin(dir: &Path) -> anyhow::Result<Self> {
        let this = Self::resume(dir)?;
        let log = this.extraction_log();
        if log.exists() {
            remove(&log)?;
        }
        Ok(this)
    }

    /// Like [`begin`](Self::begin), but keeps the [log](Self::extraction_log) of an interrupted run.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    pub fn resume(dir: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write {}", dir.display());
        let check = || {
            let is_possible = Self::is_possible(dir)?;
            ensure!(is_possible, "{} is not empty; name an empty or a new directory", dir.display());
            Ok(())
        };
        check()?;
        let unfinished = dir.join(UNFINISHED);
        let made = CreatedDirectories::before(&unfinished);
        let lock = loop {
            create_directories(&unfinished).with_context(cannot)?;
            if let Some(lock) = lock(dir).with_context(cannot)? {
                break lock;
            }
        };
        // Another process may have finished the directory before this one got the lock.
        check()?;
        for name in names(dir)?.into_iter().filter(|name| is_part(name) || manifest::is_aside(name)) {
            remove(&dir.join(name))?;
        }
        let this = Self { dir: dir.to_owned(), keeps_log: Cell::new(false), _made: made, _lock: lock };
        for left in names(&unfinished)?.into_iter().filter(is_part) {
            remove(&unfinished.join(left))?;
        }
        interrupt::create_removable(|| {
            let tier1 = this.tier1();
            fs::create_dir(&tier1).map(|()| tier1)
        })
        .with_context(cannot)?;
        // The name `UNFINISHED` is on disk before the files that it marks as unfinished.
        sync(dir).and_then(|()| dir.canonicalize()?.parent().map_or(Ok(()), sync)).with_context(cannot)?;
        Ok(this)
    }

    /// Removes the files of an interrupted run, if the directory has no other files.
    ///
    /// # Errors
    /// If another process writes the directory, or it cannot be written.
    pub fn forget_interrupted(dir: &Path) -> anyhow::Result<()> {
        if is_unfinished(dir) && Self::is_possible(dir)? {
            drop(Self::begin(dir)?);
        }
        Ok(())
    }

    /// Folder into which the caller writes tier 1.
    pub fn tier1(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(TIER1)
    }

    /// Creates the empty folder into which the caller writes tier 2, and returns its path. Replaces a folder that
    /// was created before. An interruption removes the folder.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn create_tier2(&self) -> anyhow::Result<PathBuf> {
        let create = || {
            let tier2 = self.tier2();
            if tier2.exists() {
                fs::remove_dir_all(&tier2)?;
            }
            fs::create_dir(&tier2).map(|()| tier2)
        };
        let created = interrupt::create_removable(create);
        created.with_context(|| format!("cannot write {}", self.dir.display()))
    }

    /// Path of the folder of tier 2.
    pub fn tier2(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(TIER2)
    }

    /// File into which the caller may write the tables of the policy.
    pub fn tables(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(policy_tables::NAME)
    }

    /// File into which the caller may write the list of ingested files.
    pub fn ingested(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(ingested::NAME)
    }

    /// File into which the caller may write the choices of [`named_by`].
    pub fn named_by(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(named_by::NAME)
    }

    /// File into which the caller may write the log of extracted pages, so that a run after an interruption
    /// can go on.
    pub fn extraction_log(&self) -> PathBuf {
        Self::extraction_log_of(&self.dir)
    }

    /// Like [`extraction_log`](Self::extraction_log), for a directory that this process does not hold.
    pub(crate) fn extraction_log_of(dir: &Path) -> PathBuf {
        dir.join(UNFINISHED).join(LOG)
    }

    /// Sets whether the log stays for the next run if this run fails.
    pub fn keep_log(&self, keeps: bool) {
        self.keeps_log.set(keeps);
    }

    /// Whether the log stays for the next run if this run fails.
    pub fn keeps_log(&self) -> bool {
        self.keeps_log.get()
    }

    /// Moves all files to their places and writes the manifest, which makes this a data directory.
    ///
    /// The caller must have synced all files and their names to disk. If a signal ends the process later, its
    /// message is `words`.
    ///
    /// # Errors
    /// If the directory cannot be written, or another process has written a manifest meanwhile.
    pub fn finish(self, manifest: &Manifest, words: &'static str) -> anyhow::Result<()> {
        // An interruption removes unfinished files, and would also remove them under their new names.
        interrupt::run_uninterrupted(|| self.move_to_its_place(manifest), words)?;
        self.keeps_log.set(false);
        Ok(())
    }

    fn move_to_its_place(&self, manifest: &Manifest) -> anyhow::Result<()> {
        let dir = &self.dir;
        if dir.join(NAME).exists() {
            bail!("another process has made a collection in {}; name another directory", dir.display());
        }
        let cannot = || format!("cannot write {}", dir.display());
        fs::rename(self.tier1(), dir.join(TIER1)).with_context(cannot)?;
        let parts = [
            (self.tier2(), TIER2),
            (self.tables(), policy_tables::NAME),
            (self.ingested(), ingested::NAME),
            (self.named_by(), named_by::NAME),
        ];
        for (part, name) in parts {
            if part.exists() {
                fs::rename(part, dir.join(name)).with_context(cannot)?;
            }
        }
        sync(dir).with_context(cannot)?;
        manifest.install(dir)?;
        Ok(())
    }
}

impl Drop for NewDirectory {
    /// Removes the unfinished files, or the empty rest of a finished directory. The next run removes what
    /// stays.
    fn drop(&mut self) {
        let is_gone = |path: &PathBuf| remove(path).is_ok() || !path.exists();
        let mut left = vec![self.tier1(), self.tier2(), self.tables(), self.ingested(), self.named_by()];
        if !self.keeps_log.get() {
            left.push(self.extraction_log());
        }
        if !self.dir.join(NAME).exists() {
            // The run failed after it moved the files.
            let parts = [TIER1, TIER2, policy_tables::NAME, ingested::NAME, named_by::NAME];
            left.extend(parts.map(|part| self.dir.join(part)));
        }
        if left.iter().all(is_gone) && !self.keeps_log.get() {
            let aside = self.dir.join(UNFINISHED);
            let _ = fs::remove_file(aside.join(LOCK)).and_then(|()| fs::remove_dir(aside));
        }
    }
}

/// Removes the rest of `UNFINISHED` that a process left when it was killed after it wrote the manifest.
///
/// Only the process that holds the directory may call this. Files that cannot be removed do no harm.
pub(crate) fn remove_leftovers(dir: &Path) {
    let aside = dir.join(UNFINISHED);
    if dir.join(NAME).exists() {
        let _ = [LOG, LOCK].map(|name| fs::remove_file(aside.join(name)));
        let _ = fs::remove_dir(aside);
    }
}

impl CreatedDirectories {
    /// Lists the directories of `path` that do not exist yet. Call it before they are created.
    fn before(path: &Path) -> Self {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        Self(path.ancestors().take_while(is_missing).map(Path::to_owned).collect())
    }
}

impl Drop for CreatedDirectories {
    fn drop(&mut self) {
        let remove = |path: &PathBuf| match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        // A directory that is not empty stays, and so do its parents.
        let _ = self.0.iter().try_for_each(remove);
    }
}

/// Whether a name belongs to a part of a directory: a tier, the tables, a list of files, or a temporary file
/// of these.
fn is_part(name: &OsString) -> bool {
    let is_list = ingested::is_name(name) || named_by::is_name(name);
    name == TIER1 || name == TIER2 || policy_tables::is_name(name) || is_list
}

/// Locks the directory. Returns `None` if another process has removed the lock file meanwhile.
fn lock(dir: &Path) -> anyhow::Result<Option<File>> {
    let path = dir.join(UNFINISHED).join(LOCK);
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => bail!("another process is making it: wait for its end, or end it"),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    let is_there =
        fs::metadata(&path).is_ok_and(|there| file.metadata().is_ok_and(|ours| is_same_file(&there, &ours)));
    Ok(is_there.then_some(file))
}

/// The names in a directory; empty if the directory does not exist.
fn names(dir: &Path) -> anyhow::Result<Vec<OsString>> {
    let cannot = || format!("cannot list {}", dir.display());
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(cannot),
    };
    entries.map(|entry| Ok(entry.with_context(cannot)?.file_name())).collect()
}

fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.with_context(|| format!("cannot remove {}", path.display()))
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_begun_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        // The longest possible path, so that the lock file in the directory cannot be created.
        let longest = 4_095 - UNFINISHED.len() - 1;
        let mut dir = home.path().join("a");
        while dir.as_os_str().len() < longest {
            let left = longest - dir.as_os_str().len() - 1;
            dir.push("b".repeat(if left > 202 { 200 } else { left }));
        }
        let error = NewDirectory::begin(&dir).unwrap_err();
        assert!(format!("{error:#}").contains("File name too long"), "{error:#}");
        assert_eq!(names(home.path()).unwrap(), Vec::<OsString>::new());
    }
}
