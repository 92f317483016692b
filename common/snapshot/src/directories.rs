//! Creates directories whose names survive a crash of the machine.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Creates a directory and its missing ancestors. Returns when the names of all created directories are on
/// disk.
///
/// # Errors
/// When a directory cannot be created, or the directory that it lies in cannot be synced.
pub fn create_directories(path: &Path) -> io::Result<()> {
    create_with(path, &mut sync_directory)
}

/// Returns when the names in a directory are on disk.
///
/// # Errors
/// When the directory cannot be opened or synced.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The directory that a path lies in: `.` for a file name alone.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn create_with(path: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(path)?;
    missing.into_iter().rev().try_for_each(|created| sync(parent(created)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_every_created_directory_is_synced_from_the_outermost_on() {
        let home = tempfile::tempdir().unwrap();
        let mut synced = Vec::new();
        let mut note = |dir: &Path| {
            synced.push(dir.to_owned());
            Ok(())
        };
        create_with(&home.path().join("a/b/c"), &mut note).unwrap();
        create_with(&home.path().join("a/b/c"), &mut note).unwrap();
        create_with(&home.path().join("a/b/d"), &mut note).unwrap();
        let expected = ["", "a", "a/b", "a/b"].map(|dir| home.path().join(dir));
        assert_eq!(synced, expected);
        assert!(home.path().join("a/b/d").is_dir());
        assert_eq!(parent(Path::new("new")), Path::new("."));
    }

    #[test]
    fn a_name_that_cannot_be_synced_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let mut fails = |_: &Path| Err(io::ErrorKind::StorageFull.into());
        let error = create_with(&home.path().join("a/b"), &mut fails).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
