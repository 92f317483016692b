//! `doppel plan` against exact truth: no pair above the threshold is outside the nodes that compare it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::accuracy::corpus::{Corpus, QUICK, TRACE};
use crate::oracle::Truth;
use crate::oracle::collection::Page;

#[derive(Deserialize)]
struct Assignment {
    url: String,
    node: u32,
    contacts: Vec<u32>,
}

fn assignments(corpus: &Corpus, nodes: u32, dimensions: u32, tau: &str) -> Result<Option<Vec<Assignment>>> {
    let Some(files) = corpus.files()? else { return Ok(None) };
    let directory = tempfile::tempdir()?;
    let out = directory.path().join("assignments.jsonl");
    let mut command = Command::new(env!("CARGO_BIN_EXE_doppel"));
    command.args(["plan", "--tau", tau, "--nodes", &nodes.to_string()]);
    command.args(["--dimensions", &dimensions.to_string(), "--assignments"]).arg(&out).args(files);
    let run = command.output()?;
    ensure!(run.status.success(), "{}: {}", run.status, String::from_utf8_lossy(&run.stderr));
    let text = fs::read_to_string(out)?;
    Ok(Some(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?))
}

fn check(corpus: &Corpus, nodes: u32, dimensions: u32, tau: &str) -> Result<()> {
    let Some(assignments) = assignments(corpus, nodes, dimensions, tau)? else { return Ok(()) };
    let truth = Truth::new(corpus.collection()?, tau.parse()?);
    let mut places: BTreeMap<usize, &Assignment> = BTreeMap::new();
    for assignment in &assignments {
        ensure!(assignment.contacts.is_sorted() && assignment.contacts.contains(&assignment.node));
        ensure!(assignment.contacts.iter().all(|node| *node < nodes));
        if let Some(Page::Content(content)) = truth.collection.pages.get(&assignment.url) {
            ensure!(places.insert(*content, assignment).is_none(), "{} is there twice", assignment.url);
        }
    }
    ensure!(assignments.is_sorted_by(|a, b| a.url < b.url), "not sorted by URL");
    let mut pairs = 0;
    for (a, b) in &truth.similar.above {
        let (Some(a), Some(b)) = (places.get(a), places.get(b)) else {
            anyhow::bail!("a content is assigned to no node");
        };
        ensure!(a.contacts.contains(&b.node) && b.contacts.contains(&a.node), "{} and {}", a.url, b.url);
        pairs += 1;
    }
    ensure!(pairs > 0, "nothing to compare");
    Ok(())
}

#[test]
fn no_pair_of_quick_is_lost() -> Result<()> {
    (1..=8).try_for_each(|dimensions| check(&QUICK, 64, dimensions, "0.8"))?;
    check(&QUICK, 7, 3, "0.9")
}

#[test]
fn no_pair_of_trace_is_lost() -> Result<()> {
    check(&TRACE, 64, 3, "0.8")?;
    check(&TRACE, 64, 3, "0.9")
}
