//! Checks redirects and dead pages in the result against the crawls' own lists, not against the oracle.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde::Deserialize;

use crate::accuracy::corpus::{Corpus, QUICK, TRACE, data};
use crate::accuracy::dedup::{self, Line, Status};
use crate::oracle::{Resolution, collection};

/// One fetch, as described in the list of a crawl.
#[derive(Deserialize)]
struct Fetch {
    url: String,
    round: u32,
    status: u16,
    change: String,
    /// The target of a redirect.
    to: Option<String>,
}

/// The list of a corpus, and the result by URL.
struct CheckedRedirects {
    corpus: &'static Corpus,
    /// The last fetch of each URL.
    last: BTreeMap<String, Fetch>,
    /// URLs that turned into redirects, with the round in which they did.
    moved: Vec<(String, u32)>,
    lines: HashMap<String, Line>,
}

impl CheckedRedirects {
    fn new(corpus: &'static Corpus, list: &str) -> Result<Option<Self>> {
        if corpus.files()?.is_none() {
            return Ok(None);
        }
        let lines = dedup::parse(corpus.output()?)?;
        let lines = lines.into_iter().map(|line| (line.url.clone(), line)).collect();
        let (mut last, mut moved) = (BTreeMap::new(), Vec::new());
        for fetch in read(&data().join(list))? {
            if fetch.change == "redirect" {
                moved.push((fetch.url.clone(), fetch.round));
            }
            last.insert(fetch.url.clone(), fetch);
        }
        Ok(Some(Self { corpus, last, moved, lines }))
    }

    fn line(&self, url: &str) -> Result<&Line> {
        self.lines.get(url).with_context(|| format!("{url} is missing"))
    }

    /// Checks that every page whose last fetch found nothing is absent from the result. Returns the number of
    /// these pages.
    fn dead(&self) -> Result<usize> {
        let dead = self.last.values().filter(|fetch| matches!(fetch.status, 404 | 410));
        let mut count = 0;
        for fetch in dead {
            ensure!(!self.lines.contains_key(&fetch.url), "{} is dead", fetch.url);
            count += 1;
        }
        Ok(count)
    }

    /// Checks that every stub whose target is a live page and not a stub itself is in the target's group.
    /// Returns the URLs of these stubs.
    fn stubs(&self) -> Result<Vec<&str>> {
        let mut stubs = Vec::new();
        for (url, fetch) in &self.last {
            let Some(to) = fetch.to.as_deref() else { continue };
            let target = self.last.get(to).filter(|target| target.status == 200 && target.to.is_none());
            if target.is_none() || !self.leads_to(url, to)? {
                continue;
            }
            self.ensure_together(url, to)?;
            stubs.push(url.as_str());
        }
        Ok(stubs)
    }

    /// Whether the stub leads to the target in the list. It does not if it spells the target differently,
    /// such as `x/index.html` for `x/`: the two have different normal forms, so that target was never
    /// fetched.
    fn leads_to(&self, url: &str, to: &str) -> Result<bool> {
        match self.corpus.collection()?.pages.get(url) {
            Some(collection::Page::Redirect(target)) => {
                ensure!(
                    target == to || *target == format!("{to}index.html"),
                    "{url} leads to {target}, listed is {to}"
                );
                Ok(target == to)
            }
            _ => anyhow::bail!("{url} is listed as a redirect, the oracle sees none"),
        }
    }

    fn ensure_together(&self, url: &str, to: &str) -> Result<()> {
        let (line, target) = (self.line(url)?, self.line(to)?);
        ensure!(line.status == Status::Duplicate, "{line:?}");
        ensure!(line.group.is_some() && line.group == target.group, "{line:?} {target:?}");
        Ok(())
    }

    /// Checks that every redirect, also through a chain, is in the group of its final target, or unresolved
    /// if that does not exist. Returns the number of redirects that resolve.
    fn chains(&self) -> Result<usize> {
        let collection = self.corpus.collection()?;
        let mut count = 0;
        for (url, page) in &collection.pages {
            if !matches!(page, collection::Page::Redirect(_)) {
                continue;
            }
            match collection.resolve(url) {
                Resolution::At(target, _) => {
                    self.ensure_together(url, target)?;
                    count += 1;
                }
                Resolution::Unresolved(reason) => {
                    let line = self.line(url)?;
                    ensure!(line.status == Status::Unresolved, "{reason:?}: {line:?}");
                }
            }
        }
        Ok(count)
    }
}

fn read(path: &Path) -> Result<Vec<Fetch>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> = if packed { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
    let lines = BufReader::new(reader).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

#[test]
fn quick_redirects_follow_their_targets() -> Result<()> {
    let Some(checked) = CheckedRedirects::new(&QUICK, "quick/quick.jsonl")? else { return Ok(()) };
    let (dead, stubs, chains) = (checked.dead()?, checked.stubs()?.len(), checked.chains()?);
    println!("quick: {dead} dead, {stubs} stubs, {chains} redirects that resolve");
    ensure!(dead > 0 && stubs > 50 && chains >= stubs, "the lists should say more");
    Ok(())
}

#[test]
fn trace_redirects_and_the_site_move_follow_their_targets() -> Result<()> {
    let Some(checked) = CheckedRedirects::new(&TRACE, "trace/trace.jsonl.gz")? else { return Ok(()) };
    let (dead, stubs, chains) = (checked.dead()?, checked.stubs()?, checked.chains()?);
    println!("trace: {dead} dead, {} stubs, {chains} redirects that resolve", stubs.len());
    ensure!(dead > 100 && chains >= stubs.len(), "the lists should say more");
    // In round 8 about 200 pages move: they become stubs, and their new URLs appear.
    let is_stub = |url: &str| stubs.binary_search(&url).is_ok();
    let moved = checked.moved.iter().filter(|(url, round)| *round == 8 && is_stub(url)).count();
    println!("trace: {moved} pages of the move of round 8 are with their new URLs");
    ensure!(moved > 150, "only {moved} moved pages are with their targets");
    Ok(())
}
