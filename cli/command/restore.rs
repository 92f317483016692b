//! `doppel restore`: a data directory from a backup.
//!
//! It is checked before it can be opened, and until then it is [`NewDirectory`]'s to remove.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Args;
use doppel_model::tables::{Tables, TablesHash};
use doppel_protocol::BackupSummary;
use doppel_tier1::backup::{Reader, restore};
use serde::Serialize;

use crate::command::check::Checked;
use crate::manifest::Manifest;
use crate::new_directory::NewDirectory;
use crate::output::{self, Output, bytes, plural};
use crate::policy_tables::{self, PolicyTablesError};
use crate::progress;

/// Make a data directory of a backup.
///
/// The file may come from a single process or from a cluster, and the directory is one for `doppel serve`. It cannot be used in
/// a cluster with a log. Without a log it is the directory `collection` below that of each node of tier 1, restored from one
/// file on all of them (docs/CLUSTER.md).
///
/// The whole file is verified, and then all that `doppel check` verifies, before the directory can be opened.
/// The index is built when a server first opens it. Cursors of the change feed that were given after the
/// backup are refused with 410: their consumers begin anew.
///
/// The tables of a policy that reads some are not in a backup. --policy-tables puts them in place; without, the first start needs it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel restore doppel.backup --data /var/lib/doppel
  doppel restore doppel.backup --data copy && doppel serve --data copy --listen 127.0.0.1:7701
  doppel restore doppel.backup --data /var/lib/doppel/collection     (a node of tier 1 in a cluster without a log)")]
pub(crate) struct Restore {
    /// The backup.
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// The data directory to make: an empty one, or none yet.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The tables of the collection, which are not in the backup: `policy-tables` of the data directory that was backed up. Refused
    /// when they are others.
    #[arg(long, value_name = "FILE")]
    policy_tables: Option<PathBuf>,
    /// Restore it also when a check finds fault with what was backed up.
    #[arg(long)]
    accept_findings: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// What was restored.
#[derive(Debug, Serialize)]
struct Restored {
    #[serde(flatten)]
    summary: BackupSummary,
    /// The tables that the first start needs, where they were not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    tables_needed: Option<TablesHash>,
}

impl Restore {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let dir = &self.data;
        let of = || format!("cannot restore {}", self.backup.display());
        let file = File::open(&self.backup).with_context(of)?;
        ensure!(
            !self.backup.is_dir(),
            "{} is a directory, not a backup; name the file",
            self.backup.display()
        );
        let mut file = BufReader::with_capacity(1 << 20, file);
        let reader = Reader::open(&mut file).with_context(of)?;
        let manifest = Manifest::read(reader.head().manifest.as_bytes(), &self.backup)?;
        let tables = self.tables(&manifest)?;
        let new = NewDirectory::begin(dir)?;
        let bar = progress::waiting("restoring");
        let policy = manifest.policy;
        let restored = restore(reader, &new.tier1(), manifest.map()?, policy, manifest.winners);
        let (summary, report) = restored.with_context(of)?;
        let checked = Checked::new(&manifest, report, doppel_tier2::check::Report::default());
        bar.finish_and_clear();
        if checked.advice().is_some() {
            checked.write(&self.backup, &mut output::stderr())?;
            if !self.accept_findings {
                bail!(
                    "{} is whole, but what was backed up is damaged; take an older one, or give \
                     --accept-findings",
                    self.backup.display()
                );
            }
        }
        if let Some(tables) = &tables {
            policy_tables::write(&new.tables(), tables)?;
        }
        new.finish(&manifest)?;
        let tables_needed = manifest.tables.filter(|_| tables.is_none());
        Output { json: self.json }.print(&Restored { summary, tables_needed }, |out| {
            let BackupSummary { rows, changes, bytes: size } = summary;
            let of = format!("{} and {} of {}", plural(rows, "row"), plural(changes, "change"), bytes(size));
            writeln!(out, "{}: {of} restored", dir.display())?;
            tables_needed.map_or(Ok(()), |hash| {
                writeln!(out, "before its first start `doppel serve` needs --policy-tables FILE with hash {hash}; in a cluster the coordinators do")
            })
        })?;
        Ok(())
    }

    /// The tables that are given, when they are those of the backup.
    fn tables(&self, manifest: &Manifest) -> anyhow::Result<Option<Arc<Tables>>> {
        let Some(path) = &self.policy_tables else { return Ok(None) };
        let has = manifest.tables.ok_or(PolicyTablesError::Unread(manifest.policy.name()))?;
        let tables = policy_tables::read(path)?;
        ensure!(
            tables.hash() == has,
            "{} needs the tables {has}; {} has {}",
            self.backup.display(),
            path.display(),
            tables.hash()
        );
        Ok(Some(tables))
    }
}
