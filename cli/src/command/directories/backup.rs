//! `doppel backup`: writes everything that cannot be derived into one file, or only what has changed since
//! earlier backups.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use doppel_contract::client::Method;
use doppel_model::tables::TablesHash;
use doppel_node::directory::manifest::Manifest;
use doppel_node::directory::policy_tables;
use doppel_node::directory::served;
use doppel_protocol::BackupSummary;
use doppel_terminal::destination::{Destination, directory_of, refuse_input};
use doppel_terminal::output::{Output, bytes, plural};
use doppel_terminal::progress;
use doppel_tier1::backup::{
    BackupHash, BackupReader, FinishedBackup, IncrementError, OfflineCollection, SeriesState, increment,
};
use serde::Serialize;

use crate::args::ServerArgs;
use crate::client::connect;

/// Back up a collection: from a server while it goes on, or a data directory that no server uses.
///
/// The file contains the state of one moment, protected by checksums; `doppel restore` makes a data directory
/// from it. It contains everything that the server acknowledged before the backup began. It does not contain
/// the index, which can be derived. If the policy needs tables, it does not contain these either. Copy them
/// beside the file: from `policy-tables` in the data directory, or in a cluster from the file that was given
/// to the coordinators.
///
/// In a cluster ask any coordinator: the file contains all ranges at one moment. A data directory must be
/// writable, because the storage engine completes its own files. If a directory is on a read-only or full
/// disk, first copy it to another place.
///
/// With --since the file contains only what has changed since earlier backups. Name these in order: the full
/// backup, and the increments that follow it. `doppel restore` takes them in the same order, and then this
/// file. An increment saves only space: the server reads and sends everything as for a full backup, and this
/// command compares it with the earlier files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel backup --out doppel.backup
  doppel backup --data /var/lib/doppel --out doppel.backup
  doppel backup --out tuesday.increment --since monday.backup
  doppel backup --out wednesday.increment --since monday.backup tuesday.increment")]
pub(crate) struct Backup {
    /// Write to this file; `-` is standard output. An existing file is replaced when the backup is complete.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Back up this data directory instead of asking a server. For a cluster with a single node of tier 1,
    /// give `collection` below the directory of this node; with several nodes ask a coordinator.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Write only what has changed since these files: a full backup, and its increments in order.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    since: Vec<PathBuf>,
    /// Directory in which the increments of --since are sorted. It needs up to twice the unpacked size of the
    /// increments [default: beside --out].
    #[arg(long, value_name = "DIR", requires = "since")]
    temp_dir: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Summary of a backup.
#[derive(Debug, Serialize)]
struct BackupReport {
    #[serde(flatten)]
    summary: BackupSummary,
    /// Hash that identifies the file.
    hash: BackupHash,
    /// Hash of the backup that an increment follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<BackupHash>,
    /// Tables of the policy, which the file does not contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    tables_not_in_it: Option<TablesHash>,
}

impl Backup {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        refuse_input("--out", &self.out, &self.since)?;
        let out = Destination::open(&self.out)?;
        let since = self.since()?;
        let follows = since.as_ref().map(SeriesState::hash);
        let (written, tables) = match &self.data {
            Some(dir) => back_up_directory(dir, since, &out)?,
            None => self.ask_server(since, &out)?,
        };
        let FinishedBackup { summary, hash } = written;
        let report = BackupReport { summary, hash, follows, tables_not_in_it: tables };
        let output = Output { json: self.json };
        if matches!(out, Destination::Standard) {
            output.print_beside(&report, |out| {
                tables.map_or(Ok(()), |hash| writeln!(out, "doppel: {}", self.not_in_it(hash)))
            })?;
            return Ok(());
        }
        output.print(&report, |out| {
            let BackupSummary { rows, changes, bytes: size } = summary;
            let of = plural(rows, if follows.is_some() { "changed row" } else { "row" });
            let meanwhile =
                if changes > 0 { format!(" and {}", plural(changes, "later change")) } else { String::new() };
            writeln!(out, "{}: {of}{meanwhile} in {}", self.out.display(), bytes(size))?;
            tables.map_or(Ok(()), |hash| writeln!(out, "{}", self.not_in_it(hash)))
        })?;
        Ok(())
    }

    /// Reads the state of the earlier backups. `None` if the user wants a full backup.
    fn since(&self) -> anyhow::Result<Option<SeriesState>> {
        if self.since.is_empty() {
            return Ok(None);
        }
        let dir = self.temp_dir.clone().unwrap_or_else(|| self.room());
        ensure!(
            dir.is_dir(),
            "{} is not a directory; name one with enough space with --temp-dir",
            dir.display()
        );
        let bar = progress::waiting("reading");
        let state = SeriesState::of(&self.since, &dir)?;
        bar.finish_and_clear();
        Ok(Some(state))
    }

    /// Returns the directory for sorting. The system's temporary directory is in memory on some machines, so it
    /// is used only if `--out` is a pipe or a device. Otherwise it is the directory of the backup file.
    fn room(&self) -> PathBuf {
        if self.out.exists() && !self.out.is_file() {
            return std::env::temp_dir();
        }
        directory_of(&self.out).to_owned()
    }

    /// Backs up the collection of a server.
    fn ask_server(&self, since: Option<SeriesState>, out: &Destination) -> anyhow::Result<BackupOutcome> {
        let incomplete = "the backup is incomplete; the server's log says why; try again";
        let client = connect(&self.server)?;
        let mut response = client.send(client.request(Method::GET, &["v1", "backup"]))?;
        out.write(|out| match since {
            None => {
                let mut tee = Tee { input: &mut response, out, failed: None };
                let made = verified(&mut tee);
                match tee.failed {
                    Some(error) => Err(error.into()),
                    None => made.context(incomplete),
                }
            }
            Some(since) => {
                let tables = tables_of(since.manifest());
                let written = increment(since, &mut response, out).map_err(|error| match error {
                    IncrementError::Unusable(_) => anyhow::Error::new(error).context(incomplete),
                    error => error.into(),
                })?;
                Ok((written, tables))
            }
        })
    }

    /// Says which tables a restored collection needs besides the file.
    fn not_in_it(&self, hash: TablesHash) -> String {
        let path = self.data.as_ref().map(|dir| dir.join(policy_tables::NAME)).filter(|path| path.exists());
        let from = match path {
            Some(path) => path.display().to_string(),
            None => "policy-tables in the server's data directory, in a cluster the coordinators' file,"
                .to_owned(),
        };
        format!("not in it: the tables {hash} of this collection; copy {from} beside the backup")
    }
}

/// A finished backup, and the tables of its collection, which it does not contain.
type BackupOutcome = (FinishedBackup, Option<TablesHash>);

/// Backs up a directory that no server uses.
fn back_up_directory(
    dir: &Path,
    since: Option<SeriesState>,
    out: &Destination,
) -> anyhow::Result<BackupOutcome> {
    let manifest = Manifest::open(dir)?;
    let (map, sealed) = (manifest.map()?, manifest.seal()?);
    let cannot = || format!("cannot back up {}", dir.display());
    let collection = OfflineCollection::open(&dir.join("tier1"), map)
        .with_context(cannot)
        .map_err(|error| served::name_server(dir, error))?;
    let written = out.write(|out| match since {
        None => collection.back_up(&sealed, out).with_context(cannot),
        Some(since) => collection.back_up_since(since, &sealed, out).with_context(cannot),
    })?;
    Ok((written, manifest.tables))
}

/// Reads a backup to its end, and the hash of the tables that its collection needs. Fails if the backup is
/// incomplete, because it then has no end.
fn verified(input: &mut dyn Read) -> anyhow::Result<BackupOutcome> {
    let mut reader = BackupReader::open(input)?;
    let tables = tables_of(&reader.head().directory_manifest);
    while reader.writes()?.is_some() {}
    Ok((FinishedBackup { summary: reader.summary(), hash: reader.hash() }, tables))
}

fn tables_of(manifest: &str) -> Option<TablesHash> {
    // The manifest of a server of another version may be unreadable here. The backup is still valid.
    Manifest::read(manifest.as_bytes(), Path::new("the backup")).ok()?.tables
}

/// Copies its input to an output while the input is read.
struct Tee<'t> {
    input: &'t mut dyn Read,
    out: &'t mut dyn Write,
    /// Error in writing the copy. Kept apart, because it says nothing about the input.
    failed: Option<io::Error>,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.out.write_all(&buffer[..read]).map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            io::Error::from(kind)
        })?;
        Ok(read)
    }
}
