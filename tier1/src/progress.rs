//! How far the collection had come, in a file beside the database. It shows when a database has lost its end.
//!
//! A log that breaks off in its last record is taken for one that was being written, and the database opens with the rows
//! before the break. Rows of an earlier moment contradict nothing, so without this file a database that lost its last
//! record or file of the log, or was replaced by an older copy, would be taken for sound.
//!
//! The number is written after its commit was on disk, so a sound database is never behind it. It is written once a
//! second at most and is not synced itself, so it may be older than the database, or lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::record::Meta;
use crate::store::StoreError;

const NAME: &str = "progress";

/// Time between two writes.
const PAUSE: Duration = Duration::from_secs(1);

/// A number that grows with most commits and never shrinks.
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

/// Compares a database in `dir` with what was noted.
pub(crate) fn verify(dir: &Path, now: u64) -> Result<(), StoreError> {
    match read(dir) {
        Ok(Some(noted)) if noted > now => Err(StoreError::Behind { database: dir.to_owned(), now, noted }),
        // What cannot be read says nothing about the database.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn read(dir: &Path) -> io::Result<Option<u64>> {
    Ok(fs::read_to_string(dir.join(NAME))?.trim_end().parse().ok())
}

/// Writes the number down from time to time.
#[derive(Debug)]
pub(crate) struct Progress {
    /// None where commits are not flushed.
    dir: Option<PathBuf>,
    noted: u64,
    last: Option<Instant>,
}

impl Progress {
    pub(crate) fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, noted: 0, last: None }
    }

    /// After a commit that was flushed.
    pub(crate) fn note(&mut self, metas: &[Meta]) {
        let now = Instant::now();
        if self.last.is_none_or(|last| now.duration_since(last) >= PAUSE) {
            self.last = Some(now);
            self.note_now(metas);
        }
    }

    /// At the end.
    pub(crate) fn note_now(&mut self, metas: &[Meta]) {
        let (Some(dir), now) = (&self.dir, of(metas)) else { return };
        if now == self.noted {
            return;
        }
        self.noted = now;
        let new = dir.join("progress.new");
        let written = fs::write(&new, format!("{now}\n")).and_then(|()| fs::rename(&new, dir.join(NAME)));
        if let Err(error) = written {
            tracing::warn!(%error, dir = %dir.display(), "cannot note how far the collection has come");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_behind_is_told_from_one_that_is_ahead() {
        let dir = tempfile::tempdir().unwrap();
        let meta = |events| [Meta { events, sent: vec![3, 4], ..Meta::default() }];
        verify(dir.path(), 0).unwrap();
        let mut progress = Progress::new(Some(dir.path().to_owned()));
        progress.note(&meta(5));
        progress.note(&meta(6));
        assert_eq!(read(dir.path()).unwrap(), Some(12), "the second came too soon");
        progress.note_now(&meta(6));
        verify(dir.path(), 13).unwrap();
        verify(dir.path(), 14).unwrap();
        assert!(matches!(verify(dir.path(), 12), Err(StoreError::Behind { now: 12, noted: 13, .. })));
        fs::write(dir.path().join(NAME), "1x").unwrap();
        verify(dir.path(), 0).unwrap();
    }
}
