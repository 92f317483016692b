//! Inspects directories of pages: finds the crawl files in them, which must be inputs of their own, and the
//! pages on record whose file no longer exists.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, anyhow};
use doppel_crawls::crawl_ending;
use doppel_model::PageUrl;
use reqwest::Url;
use walkdir::{DirEntry, WalkDir};

/// Crawl files below a directory, counted by a shell pattern that matches them, such as `site/*.warc.gz`.
/// Hidden files are left out, as everywhere. Errors are ignored here, because the reader of the pages reports
/// them.
pub fn crawl_files(dir: &Path) -> BTreeMap<String, u64> {
    let is_shown =
        |entry: &DirEntry| entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".");
    let walk = WalkDir::new(dir).into_iter().filter_entry(is_shown).flatten();
    let mut found = BTreeMap::new();
    for pattern in walk.filter(|entry| entry.file_type().is_file()).filter_map(|entry| pattern(entry.path()))
    {
        *found.entry(pattern).or_default() += 1;
    }
    found
}

fn pattern(file: &Path) -> Option<String> {
    let pattern = format!("*{}", crawl_ending(file)?);
    Some(file.with_file_name(pattern).display().to_string())
}

/// Returns the live pages on record that belong to a file below `dirs` which no longer exists. A page does
/// not count if its file exists but cannot be read, or is no longer a page.
///
/// # Errors
/// If a directory cannot be read or has no URL, or if `live` yields an error.
pub fn gone<'d>(
    live: impl Iterator<Item = anyhow::Result<PageUrl>>,
    dirs: impl Iterator<Item = &'d Path>,
) -> anyhow::Result<Vec<PageUrl>> {
    let prefixes = dirs.map(url).collect::<anyhow::Result<Vec<_>>>()?;
    let mut gone = Vec::new();
    if prefixes.is_empty() {
        return Ok(gone);
    }
    for url in live {
        let url = url?;
        let is_below = prefixes.iter().any(|prefix| url.as_str().starts_with(prefix.as_str()));
        if is_below && is_gone(&url) {
            gone.push(url);
        }
    }
    Ok(gone)
}

/// URL with which the URLs of all files below a directory begin.
fn url(dir: &Path) -> anyhow::Result<Url> {
    let path = fs::canonicalize(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    Url::from_directory_path(path).map_err(|()| anyhow!("the path {} has no file URL", dir.display()))
}

fn is_gone(page: &PageUrl) -> bool {
    let path = Url::parse(page.as_str()).ok().and_then(|url| url.to_file_path().ok());
    // Any other error leaves open whether the file exists.
    let gone = |error: std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    path.is_some_and(|path| fs::symlink_metadata(path).is_err_and(gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crawl_files_are_counted_by_pattern() {
        let home = tempfile::tempdir().unwrap();
        for name in ["a.warc.gz", "b.WARC.gz", "c.warc.gz", "d/e.jsonl", "d/.f.jsonl", "g.txt", ".h/i.warc"] {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        let found: Vec<_> = crawl_files(home.path()).into_iter().collect();
        let pattern = |pattern: &str| home.path().join(pattern).display().to_string();
        let expected = [(pattern("*.WARC.gz"), 1), (pattern("*.warc.gz"), 2), (pattern("d/*.jsonl"), 1)];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_a_file_that_is_not_there_has_gone() {
        let home = tempfile::tempdir().unwrap();
        let there = home.path().join("there.txt");
        fs::write(&there, b"").unwrap();
        let page = |name: &str| {
            let url = Url::from_file_path(home.path().join(name)).unwrap();
            PageUrl::parse(url.as_str()).unwrap()
        };
        assert!(!is_gone(&page("there.txt")));
        assert!(is_gone(&page("other.txt")) && is_gone(&page("none/other.txt")));
        assert!(is_gone(&page("there.txt/other.txt")), "a file has replaced the directory");
        assert!(!is_gone(&PageUrl::parse("http://a.example/none").unwrap()));
    }
}
