//! The changes since a backup began: each commit as the writer made it, in a file without a name.
//!
//! The writer never waits for the backup. When there are more than [`CHANGES_BYTES_MAX`], or the file cannot be
//! written, the backup ends with an error and the writer goes on.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_protocol::range_owner::PeerError;
use doppel_protocol::{BackupError, Tier1Error};

use super::room::Reply;
use crate::backup::{Kind, Writer, entry, is_backed_up};
use crate::peers::READ_BYTES;
use crate::store::Write;

/// Changes kept during one backup: four times the writes of a day at a million pages.
const CHANGES_BYTES_MAX: u64 = 32 << 30;

/// The changes since a backup began.
#[derive(Debug)]
pub(crate) struct Changes(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    file: BufWriter<File>,
    bytes: u64,
    failed: Option<io::Error>,
}

/// What the writer is asked for a backup.
pub(crate) struct FollowCommits {
    pub(super) changes: Arc<Changes>,
    /// From the next commit on; false: not any more.
    pub(super) on: bool,
    pub(super) reply: Reply<()>,
}

/// The backups that are under way, for the writer.
#[derive(Debug, Default)]
pub(crate) struct Backups(Vec<Arc<Changes>>);

impl Backups {
    /// Begins or ends with a backup.
    pub(crate) fn follow(&mut self, follow: FollowCommits) {
        let FollowCommits { changes, on, reply } = follow;
        self.0.retain(|other| !Arc::ptr_eq(other, &changes));
        if on {
            self.0.push(changes);
        }
        reply.send(());
    }

    /// The bytes to keep of a commit that is about to be made.
    pub(crate) fn prepare(&self, writes: &[Write]) -> Option<io::Result<Vec<u8>>> {
        if self.0.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        let put = writes.iter().try_for_each(|(key, value)| entry::put(&mut bytes, key, value.as_deref()));
        Some(put.map(|()| bytes))
    }

    /// Keeps a commit that was made.
    pub(crate) fn committed(&self, prepared: Option<io::Result<Vec<u8>>>) {
        let Some(prepared) = prepared else { return };
        for changes in &self.0 {
            let mut kept = changes.lock();
            let added = match &prepared {
                Ok(bytes) => kept.add(bytes),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            if let Err(error) = added {
                kept.failed.get_or_insert(error);
            }
        }
    }
}

impl Changes {
    pub(super) fn new(dir: &Path) -> io::Result<Self> {
        let file = BufWriter::new(tempfile::tempfile_in(dir)?);
        Ok(Self(Mutex::new(Kept { file, bytes: 0, failed: None })))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all of them were kept so far.
    pub(super) fn check(&self, dir: &Path) -> Result<(), BackupError> {
        let kept = self.lock();
        if kept.bytes > CHANGES_BYTES_MAX {
            return Err(BackupError::TooMuch(CHANGES_BYTES_MAX));
        }
        // It stays: whoever asks again is told again.
        match &kept.failed {
            Some(error) => {
                let source = io::Error::new(error.kind(), error.to_string());
                Err(BackupError::Spill { dir: dir.to_owned(), source })
            }
            None => Ok(()),
        }
    }

    /// Bytes from a place on, at most so many; none at the end.
    pub(super) fn read_at(&self, from: u64, most: usize) -> io::Result<Vec<u8>> {
        let mut kept = self.lock();
        kept.file.flush()?;
        let mut bytes = vec![0; most];
        let read = kept.file.get_ref().read_at(&mut bytes, from)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// All of them, to read from the beginning. The writer must not follow with them any more.
    pub(super) fn read(&self) -> io::Result<BufReader<File>> {
        let mut kept = self.lock();
        kept.file.flush()?;
        let mut file = kept.file.get_ref().try_clone()?;
        file.rewind()?;
        Ok(BufReader::new(file))
    }
}

/// Adds some of the changes to a backup; false when there are no more.
pub(super) fn copy_changes<W: io::Write>(
    changes: &mut impl io::Read,
    writer: &mut Writer<W>,
    dir: &Path,
) -> Result<bool, BackupError> {
    let mut bytes = 0;
    while bytes < READ_BYTES {
        let read = entry::read(changes, usize::MAX);
        let read = read.map_err(|source| match source.get_ref().and_then(|cause| cause.downcast_ref()) {
            Some(away) => Tier1Error::from(PeerError::clone(away)).into(),
            None => BackupError::Spill { dir: dir.to_owned(), source },
        })?;
        let Some((key, value)) = read else { return Ok(false) };
        bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        if is_backed_up(&key) {
            writer.entry(Kind::Changes, &key, value.as_deref())?;
        }
    }
    Ok(true)
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if self.failed.is_some() || self.bytes > CHANGES_BYTES_MAX {
            return Ok(());
        }
        self.file.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use crossbeam::channel::bounded;
    use doppel_model::ShardId;
    use doppel_protocol::IndexStateItem;

    use super::*;
    use crate::backup::{Reader, copy_piece};
    use crate::check::rows::pieces;
    use crate::key;
    use crate::service::room::Place;
    use crate::store::{Memory, Store};

    fn row(number: u64, value: Option<u8>) -> Write {
        (key::feed(ShardId(0), number), value.map(|byte| vec![byte; 16]))
    }

    fn rows(store: &dyn Store) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows = Vec::new();
        pieces(store, &mut |key, value| rows.push((key.to_vec(), value.to_vec()))).unwrap();
        rows
    }

    /// Commits fall between all pieces, before and behind the place where the copy is.
    #[test]
    fn what_changes_meanwhile_has_the_last_word() {
        let dir = tempfile::tempdir().unwrap();
        let store = Memory::default();
        store.commit((0..5_000).map(|number| row(number, Some(1))).collect()).unwrap();
        let of_index = key::index_state(IndexStateItem::Plan);
        let changes = Arc::new(Changes::new(dir.path()).unwrap());
        let (mut backups, (reply, _answer)) = (Backups::default(), bounded(1));
        backups.follow(FollowCommits {
            changes: Arc::clone(&changes),
            on: true,
            reply: Reply::new(reply, Place::default()),
        });
        let commit = |writes: Vec<Write>| {
            let kept = backups.prepare(&writes);
            store.commit(writes).unwrap();
            backups.committed(kept);
        };
        let (mut file, mut turn) = (Vec::new(), 0);
        let mut writer = Writer::begin(&mut file, "").unwrap();
        let mut from = Vec::new();
        while copy_piece(&store, &mut from, &mut writer).unwrap() {
            turn += 1;
            // Changed, deleted, made and made again; each time some of those of the last time, too.
            let at = |number: u64| number * 997 * (turn / 2 + 1) % 6_000;
            commit((0..200).map(|n| row(at(n), (n % 3 > 0).then_some(10 + turn as u8))).collect());
            commit(vec![(of_index.clone(), Some(vec![turn as u8]))]);
            commit((100..150).map(|n| row(at(n), (n % 2 > 0).then_some(20 + turn as u8))).collect());
        }
        let mut kept = changes.read().unwrap();
        while copy_changes(&mut kept, &mut writer, dir.path()).unwrap() {}
        let summary = writer.end().unwrap();
        assert!(turn >= 5 && summary.changes == turn * 250, "{summary:?} in {turn} turns");

        let restored = Memory::default();
        let mut input = file.as_slice();
        let mut reader = Reader::open(&mut input).unwrap();
        while let Some(writes) = reader.writes().unwrap() {
            restored.commit(writes).unwrap();
        }
        // What the router of the index keeps is left out.
        assert_eq!(restored.get(&of_index).unwrap(), None);
        store.commit(vec![(of_index, None)]).unwrap();
        assert!(rows(&restored) == rows(&store));
        assert!(rows(&restored).iter().any(|(_, value)| value[0] == 1));
    }

    #[test]
    fn a_commit_that_could_not_be_kept_ends_the_backup() {
        let dir = tempfile::tempdir().unwrap();
        let changes = Changes::new(dir.path()).unwrap();
        changes.check(dir.path()).unwrap();
        changes.lock().failed = Some(io::ErrorKind::StorageFull.into());
        assert!(matches!(changes.check(dir.path()), Err(BackupError::Spill { .. })));
        changes.lock().bytes = CHANGES_BYTES_MAX + 1;
        assert!(matches!(changes.check(dir.path()), Err(BackupError::TooMuch(_))));
    }
}
