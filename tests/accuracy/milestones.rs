//! The groups are right whenever the collection is at rest: after every crawl, not only after the last one.

use anyhow::{Context, Result, ensure};

use crate::accuracy::compare::compare;
use crate::accuracy::corpus::{Corpus, MID, QUICK, TRACE};
use crate::accuracy::dedup;
use crate::accuracy::figures::ensure_right;
use crate::oracle::{Collection, Crawl, Truth};

/// Feeds one crawl after the other to one data directory, and compares with the oracle after each.
fn check(corpus: &Corpus, taus: &[&str]) -> Result<()> {
    let Some(files) = corpus.files()? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let data = |tau: &str| directory.path().join(tau);
    let mut crawl = Crawl::default();
    for file in &files {
        crawl.read_on(file)?;
        let collection = Collection::new(&crawl);
        for tau in taus {
            let data = data(tau);
            let data = data.to_str().context("a path in UTF-8")?;
            let output = dedup::dedup(&["--incremental", "--tau", tau, "--data", data], &[file])?;
            let agreement = compare(&dedup::parse(&output)?, &Truth::new(&collection, tau.parse()?));
            ensure_right(&agreement).with_context(|| format!("tau {tau}, after {}", file.display()))?;
        }
    }
    ensure!(files.len() > 1, "one crawl is no milestone");
    Ok(())
}

#[test]
fn groups_of_quick_are_right_after_every_crawl() -> Result<()> {
    check(&QUICK, &["0.8", "0.9"])
}

#[test]
fn groups_of_trace_are_right_after_every_crawl() -> Result<()> {
    check(&TRACE, &["0.8"])
}

#[test]
#[ignore = "half a minute"]
fn groups_of_all_crawls_are_right_after_every_crawl() -> Result<()> {
    check(&TRACE, &["0.9"])?;
    check(&MID, &["0.8", "0.9"])
}
