//! Checks whether a full backup and its increments can be restored, without restoring them.

use std::path::PathBuf;

use doppel_protocol::BackupSummary;
use doppel_terminal::output::{Output, bytes, plural};
use doppel_terminal::progress;
use doppel_tier1::backup::{BackupHash, Series, VerifiedSeries};
use serde::Serialize;

/// Result for backups that are complete and follow each other. Any other result is an error.
#[derive(Debug, Serialize)]
struct CheckedBackups {
    sound: bool,
    #[serde(flatten)]
    summary: BackupSummary,
    /// Hashes of the files, in order.
    hashes: Vec<BackupHash>,
}

/// Verifies a full backup and its increments.
///
/// # Errors
/// If a file is damaged, incomplete, of another collection, or does not follow the file before it.
pub(super) fn check(files: &[PathBuf], output: Output) -> anyhow::Result<()> {
    let bar = progress::waiting("reading");
    let VerifiedSeries { summary, hashes } = Series::open(files)?.verify()?;
    bar.finish_and_clear();
    output.print(&CheckedBackups { sound: true, summary, hashes: hashes.clone() }, |out| {
        for (file, hash) in files.iter().zip(&hashes) {
            writeln!(out, "{hash} {}", file.display())?;
        }
        let BackupSummary { rows, changes, bytes: size } = summary;
        writeln!(out, "{} and {} in {}", plural(rows, "row"), plural(changes, "change"), bytes(size))?;
        writeln!(out, "sound")
    })?;
    Ok(())
}
