//! Locks on the directories of results. Two runs never write to the same directory, or to directories of
//! which one contains the other.
//!
//! A run holds an exclusive lock on each directory that it writes to, and shared locks on all directories
//! above it. A run therefore conflicts with the exclusive lock of a run that writes above it, and with the
//! shared locks of runs that write below it. The operating system releases the locks when the run ends, in
//! whatever way. On a file system without locks, there is no such protection.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use walkdir::WalkDir;

/// Largest number of entries that are searched for the directory that another run writes to.
const LOOKED_AT: usize = 10_000;

const WHAT_TO_DO: &str = "wait until it ends, or name another directory";

/// The locks of a run. They are released when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Locks {
    files: Vec<File>,
    /// Device and inode number of each directory that is locked already.
    exclusive: HashSet<(u64, u64)>,
    shared: HashSet<(u64, u64)>,
}

impl Locks {
    /// Locks an existing directory for this run alone. `shown` is the user's name of the directory.
    ///
    /// # Errors
    /// If another run writes to the directory, to a directory that contains it, or to one inside it.
    pub(super) fn lock(&mut self, dir: &Path, shown: &Path) -> anyhow::Result<()> {
        let cannot = || format!("cannot write to {}", shown.display());
        let dir = fs::canonicalize(dir).with_context(cannot)?;
        let file = File::open(&dir).with_context(cannot)?;
        let number = number(&file).with_context(cannot)?;
        if !self.exclusive.contains(&number) {
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                // If a shared lock succeeds, all other locks are shared: other runs write to directories
                // inside.
                if file.try_lock_shared().is_ok() {
                    let inside =
                        locked_below(&dir).map_or("a directory".to_owned(), |dir| dir.display().to_string());
                    bail!("another run writes to {inside} inside {}: {WHAT_TO_DO}", shown.display());
                }
                bail!("another run writes to {}: {WHAT_TO_DO}", shown.display());
            }
            self.exclusive.insert(number);
            self.files.push(file);
        }
        dir.ancestors().skip(1).try_for_each(|above| self.share(above, shown))
    }

    /// Takes a shared lock on a directory above, which shows other runs that this run writes inside it.
    fn share(&mut self, above: &Path, shown: &Path) -> anyhow::Result<()> {
        // A directory that this user cannot read cannot be locked. Part files are still checked by their
        // names.
        let Ok(file) = File::open(above) else { return Ok(()) };
        let number = number(&file).with_context(|| format!("cannot read {}", above.display()))?;
        if self.exclusive.contains(&number) || self.shared.contains(&number) {
            return Ok(());
        }
        if let Err(TryLockError::WouldBlock) = file.try_lock_shared() {
            bail!(
                "another run writes to {}, which contains {}: {WHAT_TO_DO}",
                above.display(),
                shown.display()
            );
        }
        self.shared.insert(number);
        self.files.push(file);
        Ok(())
    }
}

fn number(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The first directory below `dir` with an exclusive lock, among the first [`LOOKED_AT`] entries.
fn locked_below(dir: &Path) -> Option<PathBuf> {
    let below = WalkDir::new(dir).min_depth(1).into_iter().flatten().take(LOOKED_AT);
    let mut dirs = below.filter(|entry| entry.file_type().is_dir());
    let is_locked = |path: &Path| {
        let locked =
            File::open(path).map(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)));
        locked.unwrap_or(false)
    };
    dirs.find(|entry| is_locked(entry.path())).map(walkdir::DirEntry::into_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locks a directory. In a test, one process can stand for several, because a lock belongs to an open
    /// file.
    fn try_to(dir: &Path) -> Result<Locks, String> {
        let mut locks = Locks::default();
        match locks.lock(dir, dir) {
            Ok(()) => Ok(locks),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_run_locks_a_directory_and_everything_inside() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| fs::canonicalize(home.path()).unwrap().join(name);
        for dir in ["k/sub/deep", "k/other", "beside"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        let first = try_to(&at("k/sub")).unwrap();
        let says = |dir: &str| try_to(&at(dir)).unwrap_err();
        assert!(says("k/sub").starts_with(&format!("another run writes to {}: wait", at("k/sub").display())));
        let (inside, contains) = (says("k"), says("k/sub/deep"));
        let expected =
            format!("another run writes to {} inside {}: wait", at("k/sub").display(), at("k").display());
        assert!(inside.starts_with(&expected), "{inside}");
        let expected =
            format!("{}, which contains {}: wait", at("k/sub").display(), at("k/sub/deep").display());
        assert!(contains.contains(&expected), "{contains}");
        let others = ["k/other", "beside"].map(|dir| try_to(&at(dir)).unwrap());
        assert!(says("k").contains("inside"), "all of them are inside");
        drop((first, others));
        let all = try_to(&at("k")).unwrap();
        assert!(says("k/other").contains("which contains"));
        drop(all);
        try_to(&at("k/other")).unwrap();
    }

    #[test]
    fn a_run_does_not_conflict_with_its_own_locks() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::create_dir_all(at("kept/linked")).unwrap();
        fs::create_dir_all(at("removed")).unwrap();
        std::os::unix::fs::symlink(at("kept"), at("link")).unwrap();
        let mut locks = Locks::default();
        for dir in ["kept", "removed", "kept/linked", "kept", "link"] {
            locks.lock(&at(dir), &at(dir)).unwrap();
        }
        assert!(try_to(&at("link")).unwrap_err().contains("another run writes to"));
    }
}
