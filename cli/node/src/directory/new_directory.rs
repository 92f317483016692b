//! A data directory that is made as a whole, by one command.
//!
//! Everything is written into [`UNFINISHED`] inside the directory. When all of it is on disk it is moved to its place, and last
//! of all the manifest is written, without which nothing opens the directory. A run that was killed leaves `UNFINISHED` behind,
//! and the next one begins anew: nothing in it was ever said to be kept. Only what was extracted may be taken from there.
//!
//! Invariants:
//! - nothing is removed from a directory that has a manifest, and nothing of a name that is not known;
//! - one process at a time makes a directory: it holds a lock on a file in `UNFINISHED`.

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

/// What is said when a signal ends a run whose directory is whole.
pub const WHOLE: &str = "interrupted; the collection is whole";

/// A directory that is being made. Unless it is finished, nothing stays.
#[derive(Debug)]
pub struct NewDirectory {
    dir: PathBuf,
    /// Whether the log stays for another run, should this one fail.
    keeps_log: Cell<bool>,
    // Dropped before the lock, and after what was written is removed.
    _made: CreatedDirectories,
    _lock: File,
}

/// The directories that were made for another, the innermost first. Those that are empty in the end are removed.
#[derive(Debug)]
struct CreatedDirectories(Vec<PathBuf>);

impl NewDirectory {
    /// Whether a directory can be made there: it is empty, or none yet, or a run that made it was interrupted.
    ///
    /// # Errors
    /// When it cannot be listed.
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

    /// Begins to make a directory; what an interrupted run has left is removed.
    ///
    /// # Errors
    /// When there is something else in it, or another process makes it, or it cannot be written.
    pub fn begin(dir: &Path) -> anyhow::Result<Self> {
        let this = Self::resume(dir)?;
        let log = this.extraction_log();
        if log.exists() {
            remove(&log)?;
        }
        Ok(this)
    }

    /// The same, but the [log](Self::extraction_log) of an interrupted run stays.
    ///
    /// # Errors
    /// The same.
    pub fn resume(dir: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write {}", dir.display());
        let check = || {
            let is_possible = Self::is_possible(dir)?;
            ensure!(is_possible, "{} is not empty; name a directory that is, or none yet", dir.display());
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
        // Another process may have finished meanwhile.
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
        // The name that marks all else as unfinished is on disk before it.
        sync(dir).and_then(|()| dir.canonicalize()?.parent().map_or(Ok(()), sync)).with_context(cannot)?;
        Ok(this)
    }

    /// Removes what an interrupted run has left, if that is all there is.
    ///
    /// # Errors
    /// When another process makes the directory, or it cannot be written.
    pub fn forget_interrupted(dir: &Path) -> anyhow::Result<()> {
        if is_unfinished(dir) && Self::is_possible(dir)? {
            drop(Self::begin(dir)?);
        }
        Ok(())
    }

    /// Where tier 1 is to be written.
    pub fn tier1(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(TIER1)
    }

    /// Where tier 2 may be written.
    pub fn tier2(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(TIER2)
    }

    /// Where the tables of a policy may be written.
    pub fn tables(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(policy_tables::NAME)
    }

    /// Where the list of the files that were read may be written.
    pub fn ingested(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(ingested::NAME)
    }

    /// Where it may be written what names the records of files.
    pub fn named_by(&self) -> PathBuf {
        self.dir.join(UNFINISHED).join(named_by::NAME)
    }

    /// Where it may be written what was extracted so far, for a run that goes on after this one was interrupted.
    pub fn extraction_log(&self) -> PathBuf {
        Self::extraction_log_of(&self.dir)
    }

    /// The same of a directory that is made, or was to be made.
    pub(crate) fn extraction_log_of(dir: &Path) -> PathBuf {
        dir.join(UNFINISHED).join(LOG)
    }

    /// The log stays for another run, should this one fail.
    pub fn keep_log(&self, keeps: bool) {
        self.keeps_log.set(keeps);
    }

    /// Whether it does.
    pub fn keeps_log(&self) -> bool {
        self.keeps_log.get()
    }

    /// Makes it a data directory. All files of both tiers are on disk, and so are their names. A signal that ends the process from then on says
    /// `words`.
    ///
    /// # Errors
    /// When it cannot be written, or another process has made a manifest meanwhile.
    pub fn finish(self, manifest: &Manifest, words: &'static str) -> anyhow::Result<()> {
        // An interruption removes what is not finished, and would follow it to its new name.
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
    /// Removes what is not finished, or the empty rest. What cannot be removed is removed by the next run.
    fn drop(&mut self) {
        let is_gone = |path: &PathBuf| remove(path).is_ok() || !path.exists();
        let mut left = vec![self.tier1(), self.tier2(), self.tables(), self.ingested(), self.named_by()];
        if !self.keeps_log.get() {
            left.push(self.extraction_log());
        }
        if !self.dir.join(NAME).exists() {
            // It failed after they were moved.
            let parts = [TIER1, TIER2, policy_tables::NAME, ingested::NAME, named_by::NAME];
            left.extend(parts.map(|part| self.dir.join(part)));
        }
        if left.iter().all(is_gone) && !self.keeps_log.get() {
            let aside = self.dir.join(UNFINISHED);
            let _ = fs::remove_file(aside.join(LOCK)).and_then(|()| fs::remove_dir(aside));
        }
    }
}

/// Removes what is left of making a directory that has a manifest since then: the process was killed between. Only for the process that holds the
/// directory. What cannot be removed does no harm.
pub(crate) fn remove_left(dir: &Path) {
    let aside = dir.join(UNFINISHED);
    if dir.join(NAME).exists() {
        let _ = [LOG, LOCK].map(|name| fs::remove_file(aside.join(name)));
        let _ = fs::remove_dir(aside);
    }
}

impl CreatedDirectories {
    /// Before they are made: what is not there of `path` and of what it is in.
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
        // One with anything in it stays, and so do those that it is in.
        let _ = self.0.iter().try_for_each(remove);
    }
}

/// Whether it is a tier, or the tables or a list of files or what these are written as.
fn is_part(name: &OsString) -> bool {
    let is_list = ingested::is_name(name) || named_by::is_name(name);
    name == TIER1 || name == TIER2 || policy_tables::is_name(name) || is_list
}

/// Locks the directory; none where another process has removed the file meanwhile.
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

/// The names in a directory; none where there is none.
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
        // As long as a path may be, so that the lock in it cannot be made.
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
