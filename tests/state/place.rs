//! Directories for tests, and commands on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::harness::run;

/// Copies a directory with all below it.
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

/// A directory in a temporary one.
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

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `doppel`; again for a moment when the directory is in use: a process that another test is just
/// starting holds whatever this one has had open.
pub(crate) fn run_when_free<const N: usize>(arguments: [&Path; N]) -> Output {
    let begun = Instant::now();
    loop {
        let output = run(arguments);
        if begun.elapsed() > MOMENT || !stderr(&output).contains("another process uses it") {
            return output;
        }
    }
}

/// How long a directory may be in use without anybody using it.
const MOMENT: Duration = Duration::from_secs(2);

/// Backs a directory up.
pub(crate) fn back_up(dir: &Path, file: &Path) -> Output {
    run_when_free([Path::new("backup"), Path::new("--data"), dir, Path::new("--out"), file])
}

/// Restores a backup.
pub(crate) fn restore(file: &Path, dir: &Path) -> Output {
    run([Path::new("restore"), file, Path::new("--data"), dir])
}

/// Panics unless a command ended with 0.
pub(crate) fn done(output: &Output) {
    assert!(output.status.success(), "{}: {}", output.status, stderr(output));
}

/// Panics unless a command failed with 1 and said this.
pub(crate) fn fails(output: &Output, says: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    assert!(stderr(output).contains(says), "{says:?} is not in: {}", stderr(output));
}
