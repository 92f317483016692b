//! The state of the router in files: the plan and the requests to change it. The files are small, and each is
//! replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use doppel_protocol::{IndexState, IndexStateError, IndexStateItem};
use doppel_snapshot::{put, sync_name};

/// File of the plan.
pub(crate) const PLAN: &str = "map.json";
/// File of the requests.
pub(crate) const REQUESTS: &str = "rebalance.json";

/// State of a router in the files of a directory. No other process uses this directory.
#[derive(Debug, Clone)]
pub struct StateFiles(PathBuf);

impl StateFiles {
    /// State in the files of `dir`.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    pub(crate) fn path(&self, item: IndexStateItem) -> PathBuf {
        self.0.join(match item {
            IndexStateItem::Plan => PLAN,
            IndexStateItem::Requests => REQUESTS,
        })
    }
}

fn refused(action: &str, path: &Path, error: &io::Error) -> IndexStateError {
    IndexStateError::Refused(format!("cannot {action} {}: {error}", path.display()))
}

impl IndexState for StateFiles {
    fn check(&self) -> Result<(), IndexStateError> {
        Ok(())
    }

    fn load(&self, item: IndexStateItem) -> Result<Option<Vec<u8>>, IndexStateError> {
        let path = self.path(item);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                Err(IndexStateError::Unreadable(format!("cannot read {}: {error}", path.display())))
            }
        }
    }

    fn store(&self, item: IndexStateItem, bytes: &[u8]) -> Result<(), IndexStateError> {
        let path = self.path(item);
        replace(&path, bytes).map_err(|error| refused("write", &path, &error))
    }

    fn remove(&self, item: IndexStateItem) -> Result<(), IndexStateError> {
        let path = self.path(item);
        remove(&path).map_err(|error| refused("remove", &path, &error))
    }

    fn put_aside(&self, item: IndexStateItem) -> Result<(), IndexStateError> {
        let path = self.path(item);
        let aside = path.with_extension("damaged");
        tracing::error!(
            path = %path.display(),
            aside = %aside.display(),
            "a state file of the index is damaged; renaming it"
        );
        fs::rename(&path, &aside).map_err(|error| refused("put aside", &path, &error))
    }
}

/// Replaces the contents of a file in one step. After a crash, even of the machine, the file has either the
/// old contents or the new ones.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let replace = || {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        put(&file, &new, path)
    };
    // A partial file would only take space on a disk that may be full.
    replace().inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Deletes a file. Succeeds if the file does not exist.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_name(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_stored_until_it_is_removed_or_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let files = StateFiles::new(dir.path());
        for item in IndexStateItem::ALL {
            assert_eq!(files.load(item), Ok(None));
            for bytes in [&b"one"[..], b"", b"another"] {
                files.store(item, bytes).unwrap();
                assert_eq!(files.load(item), Ok(Some(bytes.to_vec())));
            }
            files.put_aside(item).unwrap();
            assert_eq!(files.load(item), Ok(None));
            assert_eq!(fs::read(files.path(item).with_extension("damaged")).unwrap(), b"another");
            files.store(item, b"one").unwrap();
            files.remove(item).unwrap();
            files.remove(item).unwrap();
            assert_eq!(files.load(item), Ok(None));
        }
        // A directory with the name of the file.
        fs::create_dir(files.path(IndexStateItem::Plan)).unwrap();
        assert!(matches!(files.load(IndexStateItem::Plan), Err(IndexStateError::Unreadable(_))));
        assert!(matches!(files.store(IndexStateItem::Plan, b""), Err(IndexStateError::Refused(_))));
    }

    #[test]
    fn a_failed_store_leaves_no_file_and_does_not_change_the_item() {
        let dir = tempfile::tempdir().unwrap();
        let files = StateFiles::new(dir.path());
        let path = files.path(IndexStateItem::Plan);
        // Writing to this path fails as on a full disk.
        std::os::unix::fs::symlink("/dev/full", path.with_extension("new")).unwrap();
        files.store(IndexStateItem::Plan, b"one").unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // A directory, which a file cannot replace.
        fs::create_dir(&path).unwrap();
        files.store(IndexStateItem::Plan, b"one").unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
