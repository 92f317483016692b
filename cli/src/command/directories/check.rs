//! `doppel check`: every invariant of a data directory, or whether backups are whole and follow each other.

mod backups;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use doppel_control::node_directory;
use doppel_model::pairwise::Policy;
use doppel_model::tables::TablesHash;
use doppel_node::directory::manifest::Manifest;
use doppel_node::directory::policy_tables;
use doppel_node::directory::served;
use doppel_protocol::WinnerOrder;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, bytes, count, plural};
use doppel_tier1::check::{Finding, Invariant};
use serde::Serialize;

/// Verify a data directory: every row, what the rows say of each other, and the index's files.
///
/// Changes no row. No server may use the directory, and it has to be writable: the storage engine completes its own
/// files, as at every start. Copy a directory on a read-only or full disk to another place first. Where messages
/// between shards are under way, the rows they are about may still differ, and are not found fault with; all others
/// are held to the letter. Ends with 1 when anything does not hold. It does not compute the groups anew:
/// `doppel repair` does.
///
/// With --backup it verifies a full backup and its increments instead, and writes nothing: that every file is whole and not damaged,
/// that all are of one collection, and that each follows the one before. What their rows say of each other is checked when they
/// are restored.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel check /var/lib/doppel
  doppel check --json collection
  doppel check --backup monday.backup tuesday.increment wednesday.increment")]
pub(crate) struct Check {
    /// The data directory.
    #[arg(value_name = "DIR", required_unless_present = "backup")]
    dir: Option<PathBuf>,
    /// Verify these files instead: a full backup, and its increments in order.
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with = "dir")]
    backup: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What a check found.
#[derive(Debug, Serialize)]
pub(crate) struct Checked {
    sound: bool,
    policy: Policy,
    winners: WinnerOrder,
    shards: u16,
    ranges: u16,
    /// What is wrong with the tables of the policy, if it reads any.
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<String>,
    /// The tables that a start needs, because there are none here.
    #[serde(skip_serializing_if = "Option::is_none")]
    tables_needed: Option<TablesHash>,
    tier1: doppel_tier1::check::CheckReport,
    tier2: doppel_tier2::check::IndexReport,
}

impl Check {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let output = Output { json: self.json };
        let Some(dir) = &self.dir else { return backups::check(&self.backup, output) };
        let manifest = Manifest::open(dir)?;
        let checked = Checked::of(dir, &manifest)
            .with_context(|| format!("cannot check {}", dir.display()))
            .map_err(|error| served::name_server(dir, error))?;
        output.print(&checked, |out| checked.write(dir, out))?;
        match checked.advice() {
            None => Ok(()),
            Some(advice) => {
                Err(Failure::CheckFailed(format!("{} is damaged: {advice}", dir.display())).into())
            }
        }
    }
}

impl Checked {
    /// Checks a directory with this manifest.
    pub(crate) fn of(dir: &Path, manifest: &Manifest) -> anyhow::Result<Self> {
        let tier2 = doppel_tier2::check::of_directory(&dir.join("tier2"))?;
        let policy = manifest.policy;
        let mut tier1 =
            doppel_tier1::check::of_directory(&dir.join("tier1"), manifest.map()?, policy, manifest.winners)?;
        if tier1.rows == 0 && !doppel_tier2::check::is_empty(&dir.join("tier2")) {
            // An empty database contradicts nothing, so the check of its rows finds nothing.
            tier1.findings.add(Finding {
                invariant: Invariant::Engine,
                row: "the database".to_owned(),
                detail: "is empty, and the index has contents".to_owned(),
            });
        }
        let checked = Self::new(manifest, tier1, tier2);
        let tables = policy_tables::damage(dir, manifest.tables);
        // In a cluster coordinators alone read them.
        let needs_tables = !node_directory::is_collection(dir) && policy_tables::is_missing(dir);
        let tables_needed = manifest.tables.filter(|_| needs_tables);
        Ok(Self { sound: checked.sound && tables.is_none(), tables, tables_needed, ..checked })
    }

    /// What the two checks of a directory with this manifest found.
    pub(crate) fn new(
        manifest: &Manifest,
        tier1: doppel_tier1::check::CheckReport,
        tier2: doppel_tier2::check::IndexReport,
    ) -> Self {
        let sound = tier1.is_sound() && tier2.damage.is_empty();
        let Manifest { policy, winners, shards, ranges, .. } = manifest.clone();
        Self { sound, policy, winners, shards, ranges, tables: None, tables_needed: None, tier1, tier2 }
    }

    /// What to do; none when everything holds.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        let counts = &self.tier1.findings.counts;
        if self.sound {
            None
        } else if counts.is_empty() && self.tables.is_some() {
            Some(
                "no page is lost; start once with --policy-tables and the tables of this collection, and look after the disk",
            )
        } else if counts.is_empty() {
            Some("no page is lost, and the next start makes anew what is damaged; look after the disk")
        } else if counts.contains_key(&Invariant::Version) {
            Some(
                "another version of this program made it; use that one, or load the pages into a new directory",
            )
        } else {
            Some(
                "do not serve it; `doppel restore` the newest backup and load what came after it, or load the \
                 pages into a new directory",
            )
        }
    }

    pub(crate) fn write(&self, dir: &Path, out: &mut dyn Write) -> io::Result<()> {
        let (tier1, tier2) = (&self.tier1, &self.tier2);
        let (shards, ranges) = (plural(self.shards.into(), "shard"), plural(self.ranges.into(), "range"));
        writeln!(out, "{}: {}, {shards} in {ranges}", dir.display(), self.policy)?;
        writeln!(out, "winners by {}", self.winners)?;
        if let Some(damage) = &self.tables {
            writeln!(out, "tables of the policy: {damage}")?;
        }
        if let Some(hash) = self.tables_needed {
            writeln!(out, "tables of the policy: none; a start needs --policy-tables with {hash}")?;
        }
        let (pages, groups) = (plural(tier1.pages, "page"), plural(tier1.groups, "group"));
        let (rows, size) = (plural(tier1.rows, "row"), bytes(tier1.bytes));
        writeln!(out, "tier 1: {pages} and {groups} in {rows} of {size}")?;
        let backlog = &tier1.backlog;
        if !backlog.is_quiescent() {
            writeln!(
                out,
                "        under way: {} pending, {} deferred searches, {} dirty groups, {} to be verified, {}",
                count(backlog.pending),
                count(backlog.deferred_searches),
                count(backlog.dirty_groups),
                count(backlog.unverified),
                plural(backlog.messages, "message")
            )?;
        }
        for damage in &tier1.damage {
            writeln!(out, "        {damage}")?;
        }
        match tier2.snapshot_contents {
            Some(contents) => {
                let contents = plural(contents, "content");
                writeln!(out, "tier 2: a snapshot of {contents}, {}", bytes(tier2.bytes))?;
            }
            None => writeln!(out, "tier 2: no snapshot; the next start makes the index of the signatures")?,
        }
        for damage in &tier2.damage {
            writeln!(out, "        {damage}")?;
        }
        if self.sound {
            return writeln!(out, "sound");
        }
        for (invariant, found) in &tier1.findings.counts {
            writeln!(out, "does not hold, {}: {}", plural(*found, "time"), invariant.meaning())?;
            let of_it = tier1.findings.examples.iter().filter(|finding| finding.invariant == *invariant);
            let mut shown = 0;
            for Finding { row, detail, .. } in of_it {
                writeln!(out, "  {row} {detail}")?;
                shown += 1;
            }
            if *found > shown {
                writeln!(out, "  and {} more", count(found - shown))?;
            }
        }
        Ok(())
    }
}
