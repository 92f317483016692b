//! `doppel restore`: makes a data directory from a full backup and its increments.
//!
//! The directory is checked before it can be opened. Until then, [`NewDirectory`] removes it if the command
//! fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{bail, ensure};
use clap::Args;
use doppel_model::tables::{Tables, TablesHash};
use doppel_node::directory::manifest::Manifest;
use doppel_node::directory::new_directory::{NewDirectory, WHOLE};
use doppel_node::directory::policy_tables::{self, PolicyTablesError};
use doppel_protocol::BackupSummary;
use doppel_terminal::interrupt;
use doppel_terminal::output::{self, Output, bytes, plural};
use doppel_terminal::progress;
use doppel_tier1::backup::{RestoreError, Series, refuse_pipes, restore};
use serde::Serialize;

use crate::command::directories::check::DirectoryCheck;

/// Make a data directory from a backup, or from a full backup and its increments.
///
/// Give the full backup first, and then its increments (`doppel backup --since`) in the order in which they
/// were made. The directory gets the state of the last file. If a file is missing, in the wrong place,
/// damaged, incomplete or of another collection, the command names it and makes no directory.
///
/// A backup may come from a single process or from a cluster, and the new directory is for `doppel serve`. A
/// cluster with a log cannot use it. In a cluster without a log, it is the directory `collection` below the
/// directory of each node of tier 1; restore it on all nodes from the same files
/// (docs/guides/grow-and-repair-a-cluster.md).
///
/// Before the directory can be opened, the command verifies all files, and everything that `doppel check`
/// verifies. A server builds the index when it first opens the directory. It refuses cursors of the change
/// feed that were issued after the backup, with status 410, and their consumers must start again.
///
/// A backup does not contain the tables of a policy. Give them with --policy-tables here, or at the first
/// start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel restore doppel.backup --data /var/lib/doppel
  doppel restore monday.backup tuesday.increment wednesday.increment --data /var/lib/doppel
  doppel restore doppel.backup --data copy && doppel serve --data copy --listen 127.0.0.1:7701
  doppel restore doppel.backup --data /var/lib/doppel/collection     (a node of tier 1 in a cluster without a log)")]
pub(crate) struct Restore {
    /// A full backup, and its increments in order.
    #[arg(value_name = "FILE", required = true)]
    backups: Vec<PathBuf>,
    /// Data directory to make. It must be empty or missing.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Tables of the collection, which the backup does not contain: `policy-tables` of the data directory
    /// that was backed up. Other tables are refused.
    #[arg(long, value_name = "FILE")]
    policy_tables: Option<PathBuf>,
    /// Restore the backup even if a check finds problems in it.
    #[arg(long)]
    accept_findings: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// Summary of a restored backup.
#[derive(Debug, Serialize)]
struct RestoreSummary {
    #[serde(flatten)]
    summary: BackupSummary,
    /// Tables that the first start needs, if they were not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    tables_needed: Option<TablesHash>,
}

impl Restore {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let dir = &self.data;
        if self.backups.len() > 1 {
            refuse_pipes(&self.backups)?;
        }
        let series = Series::open(&self.backups)?;
        let manifest = Manifest::read(series.head().directory_manifest.as_bytes(), &self.backups[0])?;
        let tables = self.tables(&manifest)?;
        let new = NewDirectory::begin(dir)?;
        interrupt::set_message("interrupted; nothing is restored, and the same command begins anew")?;
        let bar = progress::waiting("restoring");
        if self.backups.len() > 1 {
            // A missing or misplaced file is found here, before hours of work. A single backup may be a pipe,
            // which can be read only once.
            Series::open(&self.backups)?.verify()?;
        }
        let policy = manifest.policy;
        let restored = restore(series, &new.tier1(), manifest.map()?, policy, manifest.winners);
        let (summary, report) = restored.map_err(|error| match error {
            RestoreError::Series(error) => anyhow::Error::new(error),
            RestoreError::Store(error) => {
                anyhow::Error::new(error).context(format!("cannot write {}", dir.display()))
            }
        })?;
        let checked = DirectoryCheck::new(&manifest, report, doppel_tier2::check::IndexReport::default());
        bar.finish_and_clear();
        if checked.advice().is_some() {
            checked.write(self.newest(), &mut output::stderr())?;
            if !self.accept_findings {
                bail!(
                    "{} is whole, but what was backed up is damaged; take an older one, or give \
                     --accept-findings",
                    self.newest().display()
                );
            }
        }
        if let Some(tables) = &tables {
            policy_tables::write(&new.tables(), tables)?;
        }
        new.finish(&manifest, WHOLE)?;
        let tables_needed = manifest.tables.filter(|_| tables.is_none());
        Output { json: self.json }.print(&RestoreSummary { summary, tables_needed }, |out| {
            let BackupSummary { rows, changes, bytes: size } = summary;
            let of = format!("{} and {} of {}", plural(rows, "row"), plural(changes, "change"), bytes(size));
            writeln!(out, "{}: {of} restored", dir.display())?;
            tables_needed.map_or(Ok(()), |hash| {
                writeln!(out, "before its first start `doppel serve` needs --policy-tables FILE with hash {hash}; in a cluster the coordinators do")
            })
        })?;
        Ok(())
    }

    /// The backup whose state is restored.
    fn newest(&self) -> &Path {
        self.backups.last().map_or(Path::new("the backup"), PathBuf::as_path)
    }

    /// Reads the given tables, and refuses tables that the backup does not need.
    fn tables(&self, manifest: &Manifest) -> anyhow::Result<Option<Arc<Tables>>> {
        let Some(path) = &self.policy_tables else { return Ok(None) };
        let has = manifest.tables.ok_or(PolicyTablesError::Unread(manifest.policy.name()))?;
        let tables = policy_tables::read(path)?;
        ensure!(
            tables.hash() == has,
            "{} needs the tables {has}; {} has {}",
            self.newest().display(),
            path.display(),
            tables.hash()
        );
        Ok(Some(tables))
    }
}
