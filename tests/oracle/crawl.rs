//! The newest fetch of every URL in a list of crawl files.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::warc::{self, Record};

/// The result of one fetch.
pub(crate) enum FetchOutcome {
    /// A page with this HTML.
    Html(String),
    /// An HTTP redirect to this reference, as the server sent it.
    Location(String),
    /// The page was not found, or is gone.
    Dead,
}

/// The state of a collection after some crawls: maps each URL to the time of its newest fetch and the result.
#[derive(Default)]
pub(crate) struct Crawl {
    newest: BTreeMap<String, (String, FetchOutcome)>,
    /// Time of the earliest fetch, by URL.
    pub(crate) first_seen: BTreeMap<String, String>,
    /// The number of fetches read.
    pub(crate) fetches: usize,
}

impl FetchOutcome {
    fn order_of_one_time(&self) -> u8 {
        match self {
            Self::Location(_) => 0,
            Self::Html(_) => 1,
            Self::Dead => 2,
        }
    }
}

impl Crawl {
    /// Reads crawl files in crawl order.
    pub(crate) fn read(files: &[impl AsRef<Path>]) -> Result<Self> {
        let mut crawl = Self::default();
        files.iter().try_for_each(|file| crawl.read_on(file.as_ref()))?;
        Ok(crawl)
    }

    /// Reads the next crawl file.
    pub(crate) fn read_on(&mut self, file: &Path) -> Result<()> {
        warc::read(file, |record| self.add_record(&record))
    }

    /// Adds a fetch unless a later one is known. If times are equal, a death is later than a document, and a
    /// document later than a redirect. Among documents with equal times the oracle keeps the one added last,
    /// because it has no hashes; the crawls of the tests contain no such case.
    pub(crate) fn add(&mut self, url: &str, fetched_at: &str, found: FetchOutcome) {
        self.fetches += 1;
        let first_seen = self.first_seen.entry(url.to_owned()).or_insert_with(|| fetched_at.to_owned());
        if fetched_at < first_seen.as_str() {
            fetched_at.clone_into(first_seen);
        }
        let version = (fetched_at.to_owned(), found);
        match self.newest.entry(url.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(version);
            }
            Entry::Occupied(mut entry) => {
                let place =
                    |(time, found): &(String, FetchOutcome)| (time.clone(), found.order_of_one_time());
                if place(entry.get()) <= place(&version) {
                    entry.insert(version);
                }
            }
        }
    }

    /// Every URL with the result of its newest fetch, sorted by URL.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (&str, &FetchOutcome)> {
        self.newest.iter().map(|(url, (_, found))| (url.as_str(), found))
    }

    fn add_record(&mut self, record: &Record) -> Result<()> {
        if !record.is_response() {
            return Ok(());
        }
        let url = record.field("WARC-Target-URI").context("no URL")?;
        ensure!(!url.contains('#'), "a fetched URL has a fragment: {url}");
        let date = record.field("WARC-Date").context("no date")?;
        // UTC dates in the same format can be sorted as text.
        ensure!(
            date.len() == "2024-01-01T00:00:00Z".len() && date.ends_with('Z'),
            "not a date in whole seconds of UTC: {date}"
        );
        let response = record.response()?;
        let found = match response.status {
            200 => match response.header("Content-Type") {
                Some(kind) if kind.starts_with("text/html") => {
                    let html = std::str::from_utf8(response.body);
                    FetchOutcome::Html(html.with_context(|| format!("{url} is not UTF-8"))?.to_owned())
                }
                kind => bail!("{url} is {kind:?}, the oracle reads HTML only"),
            },
            301 | 302 | 303 | 307 | 308 => match response.header("Location") {
                Some(location) => FetchOutcome::Location(location.to_owned()),
                None => return Ok(()),
            },
            404 | 410 => FetchOutcome::Dead,
            _ => return Ok(()),
        };
        self.add(url, date, found);
        Ok(())
    }
}
