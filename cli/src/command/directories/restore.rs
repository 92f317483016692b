//! `doppel restore`: a data directory from a backup, or from a full one and its increments.
//!
//! It is checked before it can be opened, and until then it is [`NewDirectory`]'s to remove.

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

use crate::command::directories::check::Checked;

/// Make a data directory of a backup, or of a full backup and its increments.
///
/// The full backup comes first, and then its increments (`doppel backup --since`) in the order in which they were made. The directory
/// has the state of the last one. When one is missing or in another place, damaged, cut off, or of another collection, it is named,
/// and no directory is made.
///
/// A backup may come from a single process or from a cluster, and the directory is one for `doppel serve`. It cannot be used in
/// a cluster with a log. Without a log it is the directory `collection` below that of each node of tier 1, restored from the
/// same files on all of them (docs/guides/grow-and-repair-a-cluster.md).
///
/// All files are verified, and then all that `doppel check` verifies, before the directory can be opened.
/// The index is built when a server first opens it. Cursors of the change feed that were given after the
/// backup are refused with 410: their consumers begin anew.
///
/// The tables of a policy that reads some are not in a backup. --policy-tables puts them in place; without, the first start needs it.
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
        if self.backups.len() > 1 {
            refuse_pipes(&self.backups)?;
        }
        let series = Series::open(&self.backups)?;
        let manifest = Manifest::read(series.head().manifest.as_bytes(), &self.backups[0])?;
        let tables = self.tables(&manifest)?;
        let new = NewDirectory::begin(dir)?;
        interrupt::set_message("interrupted; nothing is restored, and the same command begins anew")?;
        let bar = progress::waiting("restoring");
        if self.backups.len() > 1 {
            // A file that is missing or mixed up is found before hours of work. One alone may be a pipe, which is read once.
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
        let checked = Checked::new(&manifest, report, doppel_tier2::check::IndexReport::default());
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

    /// The backup whose state is restored.
    fn newest(&self) -> &Path {
        self.backups.last().map_or(Path::new("the backup"), PathBuf::as_path)
    }

    /// The tables that are given, when they are those of the backup.
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
