//! Finds the real crawls that some tests read, which are not part of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the crawls: `DOPPEL_DATA` if it is set, otherwise `shared/data` beside the repository. If
/// the folder does not exist, prints that `test` is skipped; with `CI=true` it panics instead.
pub fn crawls(test: &str) -> Option<PathBuf> {
    // This module is compiled into packages at different depths of the repository.
    let candidates =
        || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|above| above.join("shared/data"));
    let beside = || candidates().find(|folder| folder.is_dir()).unwrap_or("../shared/data".into());
    let data = std::env::var_os("DOPPEL_DATA").map_or_else(beside, PathBuf::from);
    if data.join("quick").is_dir() {
        return Some(data);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no crawls in {}; set DOPPEL_DATA", data.display());
    println!("{test}: skipped, no crawls in {}", data.display());
    None
}

/// The WARC files of one crawl in the order of their names, such as `crawl(&data, "quick")`.
pub fn crawl(data: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join(name)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(".warc.gz")).collect();
    files.sort();
    assert!(!files.is_empty(), "the crawl {name} has no WARC files");
    files
}
