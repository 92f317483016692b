//! Runs `doppel dedup` and parses its output.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A line of the output. All six fields must be present.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) url: String,
    pub(crate) status: Status,
    #[serde(deserialize_with = "present")]
    pub(crate) group: Option<Group>,
    #[serde(deserialize_with = "present")]
    pub(crate) winner: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(crate) duplicate_of: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(crate) similarity: Option<f64>,
}

/// The possible statuses of a live page after everything has been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Unique,
    Winner,
    Duplicate,
    Secondary,
    Unresolved,
}

/// The id of a group, in any JSON form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(from = "Value")]
pub(crate) struct Group(String);

impl From<Value> for Group {
    fn from(id: Value) -> Self {
        Self(id.to_string())
    }
}

/// Deserialises null as `None`, but requires the field to be present.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}

/// The lines of an output.
pub(crate) fn parse(output: &[u8]) -> Result<Vec<Line>> {
    let lines = std::str::from_utf8(output)?.lines();
    lines.map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

/// Runs `doppel dedup` with these options and inputs, and returns its output.
pub(crate) fn dedup(options: &[&str], inputs: &[impl AsRef<Path>]) -> Result<Vec<u8>> {
    let directory = tempfile::tempdir()?;
    let out = directory.path().join("out.jsonl");
    let run = Command::new(env!("CARGO_BIN_EXE_doppel"))
        .args(["dedup", "--latest"])
        .args(options)
        .arg("--out")
        .arg(&out)
        .args(inputs.iter().map(AsRef::as_ref))
        .output()?;
    ensure!(run.status.success(), "{}: {}", run.status, String::from_utf8_lossy(&run.stderr));
    Ok(fs::read(out)?)
}
