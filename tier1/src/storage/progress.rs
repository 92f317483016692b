//! A file beside the database with a number that shows the progress of the range. The number reveals a
//! database that has lost its last commits.
//!
//! A log may end within its last record after a crash, so the database opens with the rows of the complete
//! records. Older rows contradict nothing. Without this file a database that has lost a record or a file of
//! its log, or that was replaced by an older copy, would therefore seem sound.
//!
//! The number is written after its commit is on disk, so a sound database is never behind the number. The
//! file is written at most once a second and is not synced. It may therefore be older than the database, or
//! be lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::rows::record::Meta;
use crate::storage::store::StoreError;

const NAME: &str = "progress";

/// Least time between two writes of the file.
const PAUSE: Duration = Duration::from_secs(1);

/// Computes the progress of a range from the meta rows of its shards. The number grows with most commits, and
/// never shrinks.
pub(crate) fn of<'m>(metas: impl IntoIterator<Item = &'m Meta>) -> u64 {
    let of_shard = |meta: &Meta| {
        let counters = &meta.counters;
        counters.submissions
            + counters.searches
            + counters.verified
            + meta.events
            + meta.sent.iter().sum::<u64>()
    };
    metas.into_iter().map(of_shard).sum()
}

/// Compares the progress of the database in `dir`, which is `now`, with the number in the file.
///
/// # Errors
/// [`StoreError::Behind`] if the file has a greater number.
pub(crate) fn verify(dir: &Path, now: u64) -> Result<(), StoreError> {
    match read(dir) {
        Ok(Some(noted)) if noted > now => Err(StoreError::Behind { database: dir.to_owned(), now, noted }),
        // A missing or unreadable file proves nothing about the database.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn read(dir: &Path) -> io::Result<Option<u64>> {
    Ok(fs::read_to_string(dir.join(NAME))?.trim_end().parse().ok())
}

/// Writes the progress of a range to its file.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Directory of the database; `None` if commits are not synced, so that no file is written.
    dir: Option<PathBuf>,
    /// Number that was last written.
    noted: u64,
    /// Time of the last write.
    last: Option<Instant>,
}

impl Progress {
    pub(crate) fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, noted: 0, last: None }
    }

    /// Writes the progress if the last write is old enough. The writer calls this after a commit is on disk.
    pub(crate) fn note(&mut self, metas: &[Meta]) {
        let now = Instant::now();
        if self.last.is_none_or(|last| now.duration_since(last) >= PAUSE) {
            self.last = Some(now);
            self.note_now(metas);
        }
    }

    /// Writes the progress now. The writer calls this when it ends.
    pub(crate) fn note_now(&mut self, metas: &[Meta]) {
        let (Some(dir), now) = (&self.dir, of(metas)) else { return };
        if now == self.noted {
            return;
        }
        self.noted = now;
        let new = dir.join("progress.new");
        let written = fs::write(&new, format!("{now}\n")).and_then(|()| fs::rename(&new, dir.join(NAME)));
        if let Err(error) = written {
            tracing::warn!(%error, dir = %dir.display(), "cannot write the progress file; a later loss of commits may go unnoticed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_behind_its_progress_file_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let meta = |events| [Meta { events, sent: vec![3, 4], ..Meta::default() }];
        verify(dir.path(), 0).unwrap();
        let mut progress = Progress::new(Some(dir.path().to_owned()));
        progress.note(&meta(5));
        progress.note(&meta(6));
        assert_eq!(read(dir.path()).unwrap(), Some(12), "the second write was too early");
        progress.note_now(&meta(6));
        verify(dir.path(), 13).unwrap();
        verify(dir.path(), 14).unwrap();
        assert!(matches!(verify(dir.path(), 12), Err(StoreError::Behind { now: 12, noted: 13, .. })));
        fs::write(dir.path().join(NAME), "1x").unwrap();
        verify(dir.path(), 0).unwrap();
    }
}
