//! `doppel restore`: a data directory from a backup.
//!
//! Everything is written into `restoring` inside the directory and checked there. Then the database is moved
//! to its place, and last of all the manifest is written, without which nothing opens the directory. A run
//! that was killed leaves `restoring` behind, and the next one begins anew.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use doppel_model::pairwise::Policy;
use doppel_protocol::BackupSummary;
use doppel_tier1::backup::{Reader, restore};

use crate::command::check::Checked;
use crate::manifest::{self, Manifest, NAME};
use crate::output::{Output, bytes, plural};
use crate::progress;

/// Where the database is until it is sound.
const ASIDE: &str = "restoring";
const TIER1: &str = "tier1";

/// Make a data directory of a backup.
///
/// The whole file is verified, and then all that `doppel check` verifies, before the directory can be opened.
/// The index is built when a server first opens it. Cursors of the change feed that were given after the
/// backup are refused with 410: their consumers begin anew.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel restore doppel.backup --data /var/lib/doppel
  doppel restore doppel.backup --data copy && doppel serve --data copy --listen 127.0.0.1:7701")]
pub(crate) struct Restore {
    /// The backup.
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// The data directory: an empty one, or none yet.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Restore it also when a check finds fault with what was backed up.
    #[arg(long)]
    accept_findings: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

impl Restore {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let dir = &self.data;
        let of = || format!("cannot restore {}", self.backup.display());
        let file = File::open(&self.backup).with_context(of)?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let reader = Reader::open(&mut file).with_context(of)?;
        let manifest = Manifest::read(reader.head().manifest.as_bytes(), &self.backup)?;
        clear(dir)?;
        let cannot = || format!("cannot write {}", dir.display());
        let aside = dir.join(ASIDE);
        fs::create_dir_all(&aside).with_context(cannot)?;
        let bar = progress::waiting("restoring");
        let policy = Policy { tau: manifest.policy.tau };
        let restored = restore(reader, &aside.join(TIER1), manifest.map()?, policy, manifest.winners);
        let (summary, report) = restored.with_context(of)?;
        let checked = Checked::new(&manifest, report, doppel_tier2::check::Report::default());
        bar.finish_and_clear();
        if checked.advice().is_some() {
            checked.write(&self.backup, &mut io::stderr().lock())?;
            if !self.accept_findings {
                fs::remove_dir_all(&aside).with_context(cannot)?;
                bail!(
                    "{} is whole, but what was backed up is damaged; take an older one, or give \
                     --accept-findings",
                    self.backup.display()
                );
            }
        }
        fs::rename(aside.join(TIER1), dir.join(TIER1)).with_context(cannot)?;
        File::open(dir).and_then(|dir| dir.sync_all()).with_context(cannot)?;
        manifest.install(dir)?;
        fs::remove_dir_all(&aside).with_context(cannot)?;
        Output { json: self.json }.print(&summary, |out| {
            let BackupSummary { rows, changes, bytes: size } = summary;
            let of = format!("{} and {} of {}", plural(rows, "row"), plural(changes, "change"), bytes(size));
            writeln!(out, "{}: {of} restored", dir.display())
        })?;
        Ok(())
    }
}

/// The names in a directory; none where there is none.
fn names(dir: &Path) -> anyhow::Result<Vec<OsString>> {
    let cannot = || format!("cannot list {}", dir.display());
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(cannot),
    };
    entries.map(|entry| Ok(entry.with_context(cannot)?.file_name())).collect()
}

/// Takes away what a run that was killed left in a directory; any other content is refused.
fn clear(dir: &Path) -> anyhow::Result<()> {
    let mut names = names(dir)?;
    names.retain(|name| name != "lost+found");
    let interrupted = names.iter().any(|name| name == ASIDE)
        && names.iter().all(|name| name != NAME)
        && self::names(&dir.join(ASIDE))?.iter().all(|name| name == TIER1);
    let ours = |name: &OsString| name == ASIDE || name == TIER1 || manifest::is_aside(name);
    ensure!(
        names.is_empty() || interrupted && names.iter().all(ours),
        "{} is not empty; name a directory that is, or none yet",
        dir.display()
    );
    // The directory that marks an interrupted restore goes last, because this run may be killed as well.
    names.sort_by_key(|name| name == ASIDE);
    for name in names {
        let path = dir.join(name);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}
