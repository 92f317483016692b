//! `doppel backup`: everything that cannot be derived, as one file.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use doppel_model::tables::TablesHash;
use doppel_protocol::BackupSummary;
use doppel_protocol::client::Method;
use doppel_tier1::backup::{Offline, Reader};
use serde::Serialize;

use crate::args::ServerArgs;
use crate::client::connect;
use crate::destination::Destination;
use crate::manifest::Manifest;
use crate::output::{Output, bytes, plural, say};
use crate::policy_tables;
use crate::served;

/// Back up a collection: from a server while it goes on, or a data directory that no server uses.
///
/// The file has the state of one moment, with checksums throughout; `doppel restore` makes a data directory
/// of it. The index is derived and not in it. The tables of a policy that reads some are not in it either: copy them beside it,
/// from `policy-tables` in the data directory, or in a cluster the file that the coordinators were given. Whatever the server acknowledged before the backup began is in
/// it. In a cluster ask any coordinator: the file has all ranges at one moment. A directory has to be writable, because the storage engine completes its own files: copy one on a
/// read-only or full disk to another place first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel backup --out doppel.backup
  doppel backup --data /var/lib/doppel --out doppel.backup")]
pub(crate) struct Backup {
    /// Write to this file; `-` is standard output. A file that is there is replaced at the end.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Back up this data directory instead of asking a server. Of a cluster, that is `collection` below the directory of its
    /// only node of tier 1; with several nodes ask a coordinator.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// What was backed up.
#[derive(Debug, Serialize)]
struct BackedUp {
    #[serde(flatten)]
    summary: BackupSummary,
    /// The tables of the policy, which are not in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tables_not_in_it: Option<TablesHash>,
}

impl Backup {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let out = Destination::open(&self.out)?;
        let mut summary = BackupSummary::default();
        let mut tables = None;
        match &self.data {
            Some(dir) => {
                let manifest = Manifest::open(dir)?;
                tables = manifest.tables;
                let (map, sealed) = (manifest.map()?, manifest.seal()?);
                let cannot = || format!("cannot back up {}", dir.display());
                let collection = Offline::open(&dir.join("tier1"), map)
                    .with_context(cannot)
                    .map_err(|error| served::name_server(dir, error))?;
                out.write(|out| {
                    summary = collection.back_up(&sealed, out).with_context(cannot)?;
                    Ok(())
                })?;
            }
            None => {
                let client = connect(&self.server)?;
                let mut response = client.send(client.request(Method::GET, &["v1", "backup"]))?;
                out.write(|out| {
                    (summary, tables) = verified(&mut Tee { input: &mut response, out }).context(
                        "the backup is incomplete; the server's log says why, and another try may do",
                    )?;
                    Ok(())
                })?;
            }
        }
        if matches!(out, Destination::Standard) {
            tables.inspect(|hash| say!("doppel: {}", self.not_in_it(*hash)));
            return Ok(());
        }
        Output { json: self.json }.print(&BackedUp { summary, tables_not_in_it: tables }, |out| {
            let BackupSummary { rows, changes, bytes: size } = summary;
            let meanwhile =
                if changes > 0 { format!(" and {}", plural(changes, "later change")) } else { String::new() };
            writeln!(out, "{}: {}{meanwhile} in {}", self.out.display(), plural(rows, "row"), bytes(size))?;
            tables.map_or(Ok(()), |hash| writeln!(out, "{}", self.not_in_it(hash)))
        })?;
        Ok(())
    }

    /// What a restored collection needs besides the file.
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

/// Reads a backup to its end, and the tables that its collection needs. One that is incomplete has no end, and is an error.
fn verified(input: &mut dyn Read) -> anyhow::Result<(BackupSummary, Option<TablesHash>)> {
    let mut reader = Reader::open(input)?;
    // A server of another version has another manifest, and the backup is as good.
    let manifest = Manifest::read(reader.head().manifest.as_bytes(), Path::new("the backup")).ok();
    while reader.writes()?.is_some() {}
    Ok((reader.summary(), manifest.and_then(|manifest| manifest.tables)))
}

/// Copies what is read.
struct Tee<'t> {
    input: &'t mut dyn Read,
    out: &'t mut dyn Write,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.out.write_all(&buffer[..read])?;
        Ok(read)
    }
}
