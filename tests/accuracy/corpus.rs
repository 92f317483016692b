//! The real crawls on which the figures are measured, and the oracle's view of each.

use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};

use crate::accuracy::dedup;
use crate::oracle::{Collection, Crawl};

/// A crawl and its re-crawls.
pub(crate) struct Corpus {
    pub(crate) name: &'static str,
    /// The files in crawl order, relative to the data directory.
    files: &'static [&'static str],
    collection: OnceLock<Result<Collection, String>>,
    output: OnceLock<Result<Vec<u8>, String>>,
}

/// The default threshold of `doppel dedup`.
pub(crate) const DEFAULT_TAU: &str = "0.8";

/// A small crawl and two re-crawls.
pub(crate) static QUICK: Corpus =
    Corpus::new("quick", &["quick/round-00.warc.gz", "quick/round-01.warc.gz", "quick/round-02.warc.gz"]);

/// One crawl of several sites, in two files.
pub(crate) static MID: Corpus = Corpus::new("mid", &["mid/mid-00.warc.gz", "mid/mid-01.warc.gz"]);

/// Ten crawl rounds.
pub(crate) static TRACE: Corpus = Corpus::new(
    "trace",
    &[
        "trace/round-00.warc.gz",
        "trace/round-01.warc.gz",
        "trace/round-02.warc.gz",
        "trace/round-03.warc.gz",
        "trace/round-04.warc.gz",
        "trace/round-05.warc.gz",
        "trace/round-06.warc.gz",
        "trace/round-07.warc.gz",
        "trace/round-08.warc.gz",
        "trace/round-09.warc.gz",
    ],
);

/// The crawls `mid` and `trace` as one corpus, `mid` first.
pub(crate) static MID_AND_TRACE: Corpus = Corpus::new(
    "mid and trace",
    &[
        "mid/mid-00.warc.gz",
        "mid/mid-01.warc.gz",
        "trace/round-00.warc.gz",
        "trace/round-01.warc.gz",
        "trace/round-02.warc.gz",
        "trace/round-03.warc.gz",
        "trace/round-04.warc.gz",
        "trace/round-05.warc.gz",
        "trace/round-06.warc.gz",
        "trace/round-07.warc.gz",
        "trace/round-08.warc.gz",
        "trace/round-09.warc.gz",
    ],
);

impl Corpus {
    const fn new(name: &'static str, files: &'static [&'static str]) -> Self {
        Self { name, files, collection: OnceLock::new(), output: OnceLock::new() }
    }

    /// The files in crawl order. Without data it prints a line and returns `None`; in CI that is an error.
    pub(crate) fn files(&self) -> Result<Option<Vec<PathBuf>>> {
        let files: Vec<PathBuf> = self.files.iter().map(|file| data().join(file)).collect();
        if files.iter().all(|file| file.is_file()) {
            return Ok(Some(files));
        }
        let missing = format!("no crawl {} in {}", self.name, data().display());
        ensure!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
        println!("skipped: {missing}");
        Ok(None)
    }

    /// The live pages as the oracle reads them. They are read once for all tests.
    pub(crate) fn collection(&self) -> Result<&Collection> {
        once(&self.collection, || Ok(Collection::new(&Crawl::read(&self.present()?)?)))
    }

    /// The output of `doppel dedup` without options. It is computed once for all tests.
    pub(crate) fn output(&self) -> Result<&[u8]> {
        Ok(once(&self.output, || dedup::dedup(&[], &self.present()?))?)
    }

    fn present(&self) -> Result<Vec<PathBuf>> {
        self.files()?.context("no data")
    }
}

/// The value of `cell`, computed at the first call. A failure is stored as well.
fn once<T>(cell: &OnceLock<Result<T, String>>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    let made = cell.get_or_init(|| make().map_err(|error| format!("{error:#}")));
    made.as_ref().map_err(|error| anyhow!("{error}"))
}

/// The directory of the crawls: `DOPPEL_DATA`, or `../shared/data` beside the repository.
pub(crate) fn data() -> PathBuf {
    match std::env::var_os("DOPPEL_DATA") {
        Some(data) => data.into(),
        None => [env!("CARGO_MANIFEST_DIR"), "..", "shared", "data"].iter().collect(),
    }
}
