//! Groups depend on the pages alone, and not on how the work is divided or in which order the pages arrive.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::accuracy::corpus::QUICK;
use crate::accuracy::dedup::{self, Status};
use crate::oracle::warc::{self, Record};

/// Maps each URL to its status, its winner and the page that it is a duplicate of. Pages of one group have
/// the same winner, so this represents the groups as sets of URLs without their ids.
type Groups = BTreeMap<String, (Status, Option<String>, Option<String>)>;

/// Option with which the engine records page by page. Without it, shards, ranges, partitions and nodes have
/// no effect.
const INCREMENTAL: &str = "--incremental";

fn groups(options: &[&str], inputs: &[impl AsRef<Path>]) -> Result<Groups> {
    read(&dedup::dedup(options, inputs)?)
}

fn read(output: &[u8]) -> Result<Groups> {
    let lines = dedup::parse(output)?.into_iter();
    Ok(lines.map(|line| (line.url, (line.status, line.winner, line.duplicate_of))).collect())
}

/// Fails with the first few pages on which two results differ.
fn ensure_equal(name: &str, expected: &Groups, found: &Groups) -> Result<()> {
    let urls = expected.keys().chain(found.keys());
    let differing: Vec<_> = urls
        .filter(|url| expected.get(*url) != found.get(*url))
        .take(5)
        .map(|url| (url, expected.get(url), found.get(url)))
        .collect();
    ensure!(differing.is_empty(), "{name}: {differing:#?}");
    Ok(())
}

fn ensure_invariant(option: &str, values: &[&str]) -> Result<()> {
    let Some(files) = QUICK.files()? else { return Ok(()) };
    let expected = read(QUICK.output()?)?;
    ensure!(expected.values().any(|(status, ..)| *status == Status::Duplicate), "no duplicates");
    for value in values {
        ensure_equal(
            &format!("{option} {value}"),
            &expected,
            &groups(&[INCREMENTAL, option, value], &files)?,
        )?;
    }
    Ok(())
}

#[test]
fn the_number_of_shards_changes_nothing() -> Result<()> {
    ensure_invariant("--shards", &["1", "4", "16"])
}

#[test]
fn the_number_of_ranges_changes_nothing() -> Result<()> {
    ensure_invariant("--ranges", &["1", "2", "8"])
}

#[test]
fn ranges_and_index_nodes_together_change_nothing() -> Result<()> {
    let Some(files) = QUICK.files()? else { return Ok(()) };
    let expected = read(QUICK.output()?)?;
    for ranges in ["2", "8"] {
        let found = groups(&[INCREMENTAL, "--ranges", ranges, "--index-nodes", "4"], &files)?;
        ensure_equal(&format!("{ranges} ranges on 4 index nodes"), &expected, &found)?;
    }
    Ok(())
}

#[test]
fn the_number_of_partitions_changes_nothing() -> Result<()> {
    ensure_invariant("--partitions", &["1", "8", "64"])
}

/// Partitions move between the nodes while pages arrive.
#[test]
fn the_number_of_index_nodes_changes_nothing() -> Result<()> {
    ensure_invariant("--index-nodes", &["2", "8"])
}

#[test]
fn the_order_of_pages_in_a_round_changes_nothing() -> Result<()> {
    let Some(files) = QUICK.files()? else { return Ok(()) };
    let expected = read(QUICK.output()?)?;
    for seed in 0..3 {
        let directory = tempfile::tempdir()?;
        let shuffled: Result<Vec<PathBuf>> =
            files.iter().map(|file| shuffle(file, directory.path(), seed)).collect();
        let shuffled = shuffled?;
        for options in [&[][..], &[INCREMENTAL]] {
            ensure_equal(&format!("seed {seed}, {options:?}"), &expected, &groups(options, &shuffled)?)?;
        }
    }
    Ok(())
}

#[test]
fn crawls_in_any_order_give_the_same_groups() -> Result<()> {
    let Some(mut files) = QUICK.files()? else { return Ok(()) };
    let members = |groups: Groups| {
        let mut by_winner: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (url, (_, winner, _)) in groups {
            by_winner.entry(winner.unwrap_or_else(|| url.clone())).or_default().push(url);
        }
        let mut members: Vec<Vec<String>> = by_winner.into_values().collect();
        members.sort();
        members
    };
    let expected = members(read(QUICK.output()?)?);
    files.reverse();
    // The first crawl arrives last. It contains no newer versions, but it can make a page's first fetch
    // earlier.
    for options in [&[][..], &[INCREMENTAL]] {
        ensure!(
            members(groups(options, &files)?) == expected,
            "other groups for crawls in reverse, {options:?}"
        );
    }
    Ok(())
}

#[test]
fn the_same_crawls_again_change_nothing() -> Result<()> {
    let Some(files) = QUICK.files()? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let options = ["--data", data.to_str().context("a path in UTF-8")?];
    let first = dedup::dedup(&options, &files)?;
    ensure!(!first.is_empty(), "no output");
    let again = [&options[..], &["--read-again"]].concat();
    ensure!(dedup::dedup(&again, &files)? == first, "another output the second time");
    Ok(())
}

#[test]
fn crawls_fed_one_at_a_time_give_the_same_groups() -> Result<()> {
    let Some(files) = QUICK.files()? else { return Ok(()) };
    let expected = read(QUICK.output()?)?;
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let options = ["--data", data.to_str().context("a path in UTF-8")?];
    let mut found = Groups::new();
    for file in &files {
        found = groups(&options, &[file])?;
    }
    ensure_equal("one at a time", &expected, &found)
}

/// Writes the records of a crawl file in another order (gzip per record) and returns the new file.
fn shuffle(file: &Path, directory: &Path, seed: u64) -> Result<PathBuf> {
    let mut records: Vec<Record> = Vec::new();
    warc::read(file, |record| {
        records.push(record);
        Ok(())
    })?;
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    // `warcinfo` stays at the front, because false sorts first.
    records.sort_by_cached_key(|record| (record.is_response(), hasher.hash_one((seed, &record.bytes))));
    let path = directory.join(file.file_name().context("a file name")?);
    let mut out = File::create(&path)?;
    for record in &records {
        let mut member = GzEncoder::new(&mut out, Compression::fast());
        member.write_all(&record.bytes)?;
        member.finish()?;
    }
    Ok(path)
}
