//! Directories for tests, and commands that use them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::harness::run;

/// Copies a directory recursively.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// A temporary directory in which a test creates its data directories and files.
pub(crate) struct Place {
    home: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

/// Total bytes of the signature files of a data directory's first range.
pub(crate) fn signature_bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir.join("tier1/range-0/signatures")).unwrap();
    files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `doppel`, and retries for a short time while the directory is in use: a process that another test is
/// just starting inherits open files for a moment, including the lock.
pub(crate) fn run_when_free<'p>(arguments: impl AsRef<[&'p Path]>) -> Output {
    let begun = Instant::now();
    loop {
        let output = run(arguments.as_ref());
        if begun.elapsed() > MOMENT || !stderr(&output).contains("another process uses it") {
            return output;
        }
    }
}

/// How long a directory may appear to be in use without a real user.
const MOMENT: Duration = Duration::from_secs(2);

/// Backs up a directory.
pub(crate) fn back_up(dir: &Path, file: &Path) -> Output {
    run_when_free([Path::new("backup"), Path::new("--data"), dir, Path::new("--out"), file])
}

/// Restores a backup.
pub(crate) fn restore(file: &Path, dir: &Path) -> Output {
    run([Path::new("restore"), file, Path::new("--data"), dir])
}

/// Panics unless a command exited with 0.
pub(crate) fn done(output: &Output) {
    assert!(output.status.success(), "{}: {}", output.status, stderr(output));
}

/// Panics unless a command exited with 1 and its messages contain `says`.
pub(crate) fn fails(output: &Output, says: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    assert!(stderr(output).contains(says), "{says:?} is not in: {}", stderr(output));
}
