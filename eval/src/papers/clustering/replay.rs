//! Crawls that are read once and replayed many times: as submissions for the engine, and as contents for the
//! baseline.
//!
//! The extractor of the product turns pages into text for both. From the text on, engine and baseline share
//! no code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use clap::Args;
use doppel_baseline::Contents;
use doppel_crawls::{FetchedBody, FetchedPage};
use doppel_engine::ingest::{ExtractionBatch, Ingest, PageSource};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::processor;
use doppel_inputs::reading::crawl;
use doppel_inputs::tally::Tally;
use doppel_model::pairwise::Policy;
use doppel_model::{PageUrl, Timestamp};
use doppel_protocol::Submission;
use doppel_terminal::exit::Failure;
use doppel_text::{Extractor, PageText};

use crate::papers::clustering::collection::{Collection, FetchOutcome, Version};

/// Number of pages that are read ahead while earlier ones are extracted.
const AHEAD: usize = 1_024;
/// Time between two versions that are replayed as crawls.
const WEEK_MS: i64 = 7 * Timestamp::DAY_MS;

/// Options of a replay: inputs, and how they are read.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    /// Replay the versions of a site as re-crawls of one site. In URLs that begin with PREFIX, the next path
    /// segment names the version and is left out. Versions follow each other by number, those with no number
    /// last. A page that a version lacks is dead there. Other URLs are left out.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) versions: Option<String>,
    /// Keep the pages of the versions, too: every version comes at its own URLs, and then at the URLs without
    /// it, as on a site with a moving `stable`.
    #[arg(long, requires = "versions")]
    pub(crate) keep_versions: bool,
}

/// Fetch of a page, for the engine and for the baseline.
pub(crate) struct Fetch {
    /// Submission to the engine.
    pub(crate) submission: Submission,
    /// Version for the baseline.
    pub(crate) version: Version,
    /// Number of the round that the fetch belongs to.
    pub(crate) round: usize,
    /// Whether the page had a content before, and now has one with another set of shingles.
    pub(crate) update: bool,
}

/// Fetches in the order of their replay.
pub(crate) struct Replay {
    pub(crate) fetches: Vec<Fetch>,
    /// Name of each round: the file name of the input, or the version.
    pub(crate) rounds: Vec<String>,
    pub(crate) contents: Contents,
    pub(crate) tally: Tally,
}

impl Replay {
    /// Reads all fetches of the inputs. They stay in memory as signatures and sets of shingles.
    ///
    /// # Errors
    /// If an input does not exist, or if no input has a page to replay.
    pub(crate) fn read(args: &ReplayArgs) -> anyhow::Result<Self> {
        let mut reader = Reader::new()?;
        let (tally, rounds) = match &args.versions {
            None => reader.inputs(&args.inputs)?,
            Some(prefix) => reader.versions(&args.inputs, prefix, args.keep_versions)?,
        };
        reader.extract_waiting()?;
        if reader.fetches.is_empty() {
            return Err(Failure::BadInput(
                "there is no page to replay: no input has a page, or no URL begins with --versions"
                    .to_owned(),
            )
            .into());
        }
        Ok(Self { fetches: reader.fetches, rounds, contents: reader.contents, tally })
    }
}

/// Splits fetches into batches of at most `pages`. A batch belongs to one round, because a page occurs only
/// once in a round.
pub(crate) fn batches(fetches: &[Fetch], pages: usize) -> impl Iterator<Item = &[Fetch]> {
    fetches.chunk_by(|a, b| a.round == b.round).flat_map(move |round| round.chunks(pages))
}

struct Reader {
    ingest: Ingest,
    now: Timestamp,
    extractor: Extractor,
    contents: Contents,
    collection: Collection,
    waiting: Vec<FetchedPage>,
    waiting_round: usize,
    fetches: Vec<Fetch>,
}

impl Reader {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            ingest: Ingest::new(processor::cores(), Policy::default())
                .context("cannot start the extractor threads")?,
            now: Timestamp::now(),
            extractor: Extractor::default(),
            contents: Contents::default(),
            collection: Collection::default(),
            waiting: Vec::new(),
            waiting_round: 0,
            fetches: Vec::new(),
        })
    }

    /// Reads the inputs. Every input is a round.
    fn inputs(&mut self, inputs: &InputArgs) -> anyhow::Result<(Tally, Vec<String>)> {
        let tally = crawl::read_with_positions(inputs, |at, page| self.take(at.input, page))?;
        Ok((tally, inputs.inputs.iter().map(|path| name(path)).collect()))
    }

    /// Reads the versions of a site. Every version is a round.
    fn versions(
        &mut self,
        inputs: &InputArgs,
        prefix: &str,
        keep: bool,
    ) -> anyhow::Result<(Tally, Vec<String>)> {
        let mut versions: BTreeMap<VersionName, Vec<(PageUrl, FetchedPage)>> = BTreeMap::new();
        let tally = crawl::read(inputs, |page| {
            if let Some((version, url)) = unversioned(&page.url, prefix) {
                versions.entry(VersionName::new(version)).or_default().push((url, page));
            }
            Ok(())
        })?;
        let rounds = versions.keys().map(|version| version.text.clone()).collect();
        let mut before = BTreeSet::new();
        for (round, pages) in versions.into_values().enumerate() {
            let at = Some(Timestamp::from_millis(round as i64 * WEEK_MS));
            let here: BTreeSet<PageUrl> = pages.iter().map(|(url, _)| url.clone()).collect();
            if keep {
                for (_, page) in &pages {
                    self.take(round, FetchedPage { fetched_at: at, ..page.clone() })?;
                }
            }
            for url in before.difference(&here) {
                let (url, body) = (PageUrl::clone(url), FetchedBody::Dead);
                self.take(
                    round,
                    FetchedPage { url, fetched_at: at, body, popularity: None, language: None },
                )?;
            }
            for (url, page) in pages {
                self.take(round, FetchedPage { url, fetched_at: at, ..page })?;
            }
            before = here;
        }
        Ok((tally, rounds))
    }

    fn take(&mut self, round: usize, page: FetchedPage) -> anyhow::Result<()> {
        if round != self.waiting_round || self.waiting.len() >= AHEAD {
            self.extract_waiting()?;
        }
        self.waiting_round = round;
        self.waiting.push(page);
        Ok(())
    }

    /// Extracts the waiting pages on the threads of the engine, and meanwhile makes the versions of the
    /// baseline.
    fn extract_waiting(&mut self) -> anyhow::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let batch: ExtractionBatch =
            self.ingest.start(waiting.iter().cloned().map(PageSource::Fetched).collect(), self.now);
        let versions: Vec<Version> = waiting.iter().map(|page| self.version(page)).collect();
        for (ingested, version) in batch.wait().into_iter().zip(versions) {
            let submission = ingested.context("cannot extract a page")?;
            let before = self.collection.fetch(&submission, &version);
            let update = self.is_update(&before, &version);
            self.fetches.push(Fetch { submission, version, round: self.waiting_round, update });
        }
        Ok(())
    }

    fn version(&mut self, page: &FetchedPage) -> Version {
        let raw = page.body.raw_content();
        match (raw.map(|raw| self.extractor.page_text(&page.url, raw)), &page.body) {
            (Some(PageText::Text(text)), _) => Version::Content(self.contents.intern(&text)),
            (Some(PageText::Redirect(target)), _) => Version::Redirect(target),
            (None, FetchedBody::Redirect(target)) => Version::Redirect(target.clone()),
            (None, _) => Version::Dead,
        }
    }

    fn is_update(&self, before: &FetchOutcome, version: &Version) -> bool {
        let (FetchOutcome::Replaced(Version::Content(before)), Version::Content(now)) = (before, version)
        else {
            return false;
        };
        self.contents.get(*before).shingles != self.contents.get(*now).shingles
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Splits a URL after `prefix` into the version that it names and the URL without it.
fn unversioned<'u>(url: &'u PageUrl, prefix: &str) -> Option<(&'u str, PageUrl)> {
    let (version, rest) = url.as_str().strip_prefix(prefix)?.split_once('/')?;
    if version.is_empty() {
        return None;
    }
    Some((version, PageUrl::parse(&format!("{prefix}{rest}")).ok()?))
}

/// Name of a version. Versions are ordered by their numbers. Versions without numbers come last, in the order
/// of their texts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct VersionName {
    numberless: bool,
    numbers: Vec<u64>,
    text: String,
}

impl VersionName {
    fn new(text: &str) -> Self {
        let numbers: Vec<u64> =
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
        Self { numberless: numbers.is_empty(), numbers, text: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_their_numbers() {
        let mut names = ["stable", "2.0", "1.17", "1.2", "dev", "1.2.1"].map(VersionName::new);
        names.sort();
        assert_eq!(names.map(|name| name.text), ["1.2", "1.2.1", "1.17", "2.0", "dev", "stable"]);
    }

    #[test]
    fn the_version_is_left_out_of_the_url() {
        let url = |text: &str| PageUrl::parse(text).unwrap();
        let page = url("https://a.org/doc/1.2/x/y");
        let (version, without) = unversioned(&page, "https://a.org/doc/").unwrap();
        assert_eq!((version, without), ("1.2", url("https://a.org/doc/x/y")));
        for other in ["https://a.org/other/1.2/x", "https://a.org/doc/1.2", "https://a.org/doc//x"] {
            assert!(unversioned(&url(other), "https://a.org/doc/").is_none(), "{other}");
        }
    }
}
