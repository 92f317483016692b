//! Reads pages of the developer corpora for tests and benchmarks. Other crates include this file by its path.
#![allow(unreachable_pub, dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use doppel_crawls::{FetchedBody, Item, Limits};
use doppel_model::{PageUrl, Timestamp};

/// HTML page from a crawl.
pub struct Html {
    pub url: PageUrl,
    pub charset: Option<String>,
    pub bytes: Vec<u8>,
}

/// Returns the directory of the corpora: `DOPPEL_DATA`, or `../shared/data` beside the repository. If the
/// directory is absent, prints a line and returns `None`.
///
/// # Panics
/// If the directory is absent and `CI=true`, because CI must not skip tests.
pub fn data() -> Option<PathBuf> {
    // The crates that include this file lie at different depths of the repository.
    let candidates =
        || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|above| above.join("shared/data"));
    let beside = || candidates().find(|directory| directory.is_dir()).unwrap_or("../shared/data".into());
    let directory = std::env::var_os("DOPPEL_DATA").map_or_else(beside, PathBuf::from);
    if directory.is_dir() {
        return Some(directory);
    }
    let at = directory.display();
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no corpora at {at}; set DOPPEL_DATA");
    println!("skipped: no corpora at {at}; set DOPPEL_DATA to run this test");
    None
}

/// Returns the HTML pages of crawl files of the corpora, such as `mid/mid-00`.
pub fn html(files: &[&str]) -> Option<Vec<Html>> {
    let data = data()?;
    Some(files.iter().flat_map(|file| pages(&data.join(format!("{file}.warc.gz")))).collect())
}

fn pages(file: &Path) -> impl Iterator<Item = Html> + use<> {
    let limits = Limits::at("2100-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
    doppel_crawls::open(file, limits).unwrap().filter_map(|item| match item {
        Item::Page(page) => match page.body {
            FetchedBody::Html { bytes, charset } => Some(Html { url: page.url, charset, bytes }),
            _ => None,
        },
        other => panic!("unexpected item in a corpus: {other:?}"),
    })
}
