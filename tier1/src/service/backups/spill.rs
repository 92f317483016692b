//! The commits since a backup began, which the writer of a range appends to a file without a name.
//!
//! The writer never waits for the backup. The backup fails if there are more than [`CHANGES_BYTES_MAX`]
//! bytes, if the disk has little room left, or if the file cannot be written. The writer goes on in each
//! case. The space of the file is given back at that moment, even if the backup is still being read.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_protocol::range_owner::PeerError;
use doppel_protocol::{BackupError, Tier1Error};

use crate::backup::{BackupWriter, BlockKind, entry, is_backed_up};
use crate::peers::READ_BYTES;
use crate::service::ownership::disk_space;
use crate::service::writer::queue_space::Reply;
use crate::storage::store::Write;

/// Most bytes that are spilled during one backup: four times the writes of a day at a million pages.
const CHANGES_BYTES_MAX: u64 = 32 << 30;

/// Bytes between two checks of the free space.
const LOOK_BYTES: u64 = 256 << 10;

/// The commits since a backup began, in a file.
#[derive(Debug)]
pub(crate) struct CommitSpill(Mutex<SpillState>);

#[derive(Debug)]
struct SpillState {
    /// `None` after a failure.
    file: Option<BufWriter<File>>,
    bytes: u64,
    /// Number of bytes at the last check of the free space.
    looked: Option<u64>,
    /// Whether the disk of a file has room for a number of bytes, besides what it must keep free.
    has_room: fn(&File, u64) -> bool,
    failed: Option<io::Error>,
}

/// Asks the writer to begin or end a spill.
pub(crate) struct SpillRequest {
    pub(in crate::service) changes: Arc<CommitSpill>,
    /// True to spill from the next commit on, false to stop.
    pub(in crate::service) on: bool,
    pub(in crate::service) reply: Reply<()>,
}

/// The spills that the writer of a range appends its commits to.
#[derive(Debug, Default)]
pub(crate) struct CommitSpills(Vec<Arc<CommitSpill>>);

impl CommitSpills {
    /// Begins or ends a spill.
    pub(crate) fn take_request(&mut self, request: SpillRequest) {
        let SpillRequest { changes, on, reply } = request;
        self.0.retain(|other| !Arc::ptr_eq(other, &changes));
        if on {
            self.0.push(changes);
        }
        reply.send(());
    }

    /// Encodes a commit that is about to be made. `None` if there is no spill.
    pub(crate) fn encode(&self, writes: &[Write]) -> Option<io::Result<Vec<u8>>> {
        if self.0.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        let put = writes.iter().try_for_each(|(key, value)| entry::put(&mut bytes, key, value.as_deref()));
        Some(put.map(|()| bytes))
    }

    /// Appends a commit that was made to all spills.
    pub(crate) fn append(&self, encoded: Option<io::Result<Vec<u8>>>) {
        let Some(encoded) = encoded else { return };
        for changes in &self.0 {
            let mut kept = changes.lock();
            let added = match &encoded {
                Ok(bytes) => kept.add(bytes),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            if let Err(error) = added {
                kept.fail(error);
            }
        }
    }
}

impl CommitSpill {
    pub(in crate::service) fn new(dir: &Path) -> io::Result<Self> {
        Self::with_room(dir, disk_space::has_spare)
    }

    fn with_room(dir: &Path, has_room: fn(&File, u64) -> bool) -> io::Result<Self> {
        let file = Some(BufWriter::new(tempfile::tempfile_in(dir)?));
        Ok(Self(Mutex::new(SpillState { file, bytes: 0, looked: None, has_room, failed: None })))
    }

    fn lock(&self) -> MutexGuard<'_, SpillState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ensures that all commits were spilled so far.
    pub(in crate::service) fn check(&self, dir: &Path) -> Result<(), BackupError> {
        let kept = self.lock();
        if kept.bytes > CHANGES_BYTES_MAX {
            return Err(BackupError::TooMuch(CHANGES_BYTES_MAX));
        }
        // The error stays, so that every later call gets it.
        match &kept.failed {
            Some(error) => {
                let source = io::Error::new(error.kind(), error.to_string());
                Err(BackupError::Spill { dir: dir.to_owned(), source })
            }
            None => Ok(()),
        }
    }

    /// Up to `most` bytes from the place `from` on. Empty at the end.
    pub(in crate::service) fn read_at(&self, from: u64, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; most];
        let read = self.lock().flushed()?.read_at(&mut bytes, from)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// All spilled commits from the beginning. The writer must not append to the spill any more.
    pub(in crate::service) fn read(&self) -> io::Result<BufReader<File>> {
        let mut file = self.lock().flushed()?.try_clone()?;
        file.rewind()?;
        Ok(BufReader::new(file))
    }
}

/// Copies some spilled commits to a backup. Returns false if there are no more.
pub(in crate::service) fn copy_changes<W: io::Write>(
    changes: &mut impl io::Read,
    writer: &mut BackupWriter<W>,
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
            writer.entry(BlockKind::Changes, &key, value.as_deref())?;
        }
    }
    Ok(true)
}

impl SpillState {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if self.bytes > CHANGES_BYTES_MAX {
            self.give_back();
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.looked.is_none_or(|looked| self.bytes - looked >= LOOK_BYTES) {
            self.looked = Some(self.bytes);
            if !(self.has_room)(file.get_ref(), LOOK_BYTES.max(bytes.len() as u64)) {
                return Err(io::Error::new(io::ErrorKind::StorageFull, disk_space::LOW_SPACE));
            }
        }
        file.write_all(bytes)
    }

    /// The file with everything that was added.
    fn flushed(&mut self) -> io::Result<&File> {
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        if let Err(error) = flushed {
            self.fail(error);
        }
        match (&self.file, &self.failed) {
            (Some(file), None) => Ok(file.get_ref()),
            (_, Some(error)) => Err(io::Error::new(error.kind(), error.to_string())),
            (None, None) => Err(io::Error::other("the commits were not spilled")),
        }
    }

    /// Notes why commits are missing, for good.
    fn fail(&mut self, error: io::Error) {
        self.failed.get_or_insert(error);
        self.give_back();
    }

    /// Gives the space of the file back, even if another handle of it is open. Buffered bytes are dropped.
    fn give_back(&mut self) {
        if let Some(file) = self.file.take() {
            let (file, _) = file.into_parts();
            // A file that cannot be truncated disappears with its last handle.
            let _ = file.set_len(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam::channel::bounded;
    use doppel_model::ShardId;
    use doppel_protocol::IndexStateItem;

    use super::*;
    use crate::backup::{BackupReader, copy_piece};
    use crate::check::rows::pieces;
    use crate::rows::key;
    use crate::service::writer::queue_space::Reservation;
    use crate::storage::store::{Memory, Store};

    fn row(number: u64, value: Option<u8>) -> Write {
        (key::feed(ShardId(0), number), value.map(|byte| vec![byte; 16]))
    }

    fn rows(store: &dyn Store) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows = Vec::new();
        pieces(store, &mut |key, value| rows.push((key.to_vec(), value.to_vec()))).unwrap();
        rows
    }

    /// Commits fall between all pieces, before and behind the place that the copy has reached.
    #[test]
    fn spilled_commits_overrule_the_copied_rows() {
        let dir = tempfile::tempdir().unwrap();
        let store = Memory::default();
        store.commit((0..5_000).map(|number| row(number, Some(1))).collect()).unwrap();
        let of_index = key::index_state(IndexStateItem::Plan);
        let changes = Arc::new(CommitSpill::new(dir.path()).unwrap());
        let (mut spills, (reply, _answer)) = (CommitSpills::default(), bounded(1));
        spills.take_request(SpillRequest {
            changes: Arc::clone(&changes),
            on: true,
            reply: Reply::new(reply, Reservation::default()),
        });
        let commit = |writes: Vec<Write>| {
            let encoded = spills.encode(&writes);
            store.commit(writes).unwrap();
            spills.append(encoded);
        };
        let (mut file, mut turn) = (Vec::new(), 0);
        let mut writer = BackupWriter::begin(&mut file, "").unwrap();
        let mut from = Vec::new();
        while copy_piece(&store, &mut from, &mut writer).unwrap() {
            turn += 1;
            // Some rows are changed, some deleted, and some created again, overlapping with those of the last
            // turn.
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
        let mut reader = BackupReader::open(&mut input).unwrap();
        while let Some(writes) = reader.writes().unwrap() {
            restored.commit(writes).unwrap();
        }
        // The state of the index's router is left out.
        assert_eq!(restored.get(&of_index).unwrap(), None);
        store.commit(vec![(of_index, None)]).unwrap();
        assert!(rows(&restored) == rows(&store));
        assert!(rows(&restored).iter().any(|(_, value)| value[0] == 1));
    }

    #[test]
    fn a_commit_that_could_not_be_spilled_ends_the_backup() {
        let dir = tempfile::tempdir().unwrap();
        let changes = CommitSpill::new(dir.path()).unwrap();
        changes.check(dir.path()).unwrap();
        changes.lock().fail(io::ErrorKind::StorageFull.into());
        assert!(matches!(changes.check(dir.path()), Err(BackupError::Spill { .. })));
        assert_eq!(changes.read().unwrap_err().kind(), io::ErrorKind::StorageFull);
        changes.lock().bytes = CHANGES_BYTES_MAX + 1;
        assert!(matches!(changes.check(dir.path()), Err(BackupError::TooMuch(_))));
    }

    /// Adds `bytes` to a spill. Also returns the length of the file as another handle sees it.
    fn add(changes: &CommitSpill, other: &File, bytes: usize) -> (io::Result<()>, u64) {
        let mut kept = changes.lock();
        let added = kept.add(&vec![7; bytes]);
        let failed = added.as_ref().err().map(|error| io::Error::from(error.kind()));
        failed.into_iter().for_each(|error| kept.fail(error));
        (added, other.metadata().unwrap().len())
    }

    #[test]
    fn a_spill_leaves_room_on_the_disk_and_frees_its_space_when_it_fails() {
        static FREE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(u64::MAX);
        let has_room = |_: &File, bytes| bytes <= FREE.load(std::sync::atomic::Ordering::SeqCst);
        let dir = tempfile::tempdir().unwrap();
        let changes = CommitSpill::with_room(dir.path(), has_room).unwrap();
        let other = changes.lock().flushed().unwrap().try_clone().unwrap();
        let (added, bytes) = add(&changes, &other, 1 << 20);
        added.unwrap();
        assert_eq!(bytes, 1 << 20);
        // Other files take the space.
        FREE.store(LOOK_BYTES - 1, std::sync::atomic::Ordering::SeqCst);
        let (added, bytes) = add(&changes, &other, LOOK_BYTES as usize);
        assert_eq!(added.unwrap_err().to_string(), disk_space::LOW_SPACE);
        assert_eq!(bytes, 0, "the space is given back at once");
        assert!(matches!(changes.check(dir.path()), Err(BackupError::Spill { .. })));
        // The writer goes on, and nothing more is spilled.
        FREE.store(u64::MAX, std::sync::atomic::Ordering::SeqCst);
        let (added, bytes) = add(&changes, &other, 1 << 20);
        assert!(added.is_ok() && bytes == 0);
        assert!(matches!(changes.check(dir.path()), Err(BackupError::Spill { .. })));
        assert!(changes.read_at(0, 10).is_err());

        let changes = CommitSpill::new(dir.path()).unwrap();
        let other = changes.lock().flushed().unwrap().try_clone().unwrap();
        assert_eq!(add(&changes, &other, 1 << 20).1, 1 << 20);
        changes.lock().bytes = CHANGES_BYTES_MAX;
        assert_eq!(add(&changes, &other, 1).1, 0, "more than the limit is not kept in part");
    }

    #[test]
    fn a_write_that_fails_ends_the_backup_and_not_the_writer() {
        let dir = tempfile::tempdir().unwrap();
        let changes = CommitSpill::new(dir.path()).unwrap();
        let full = File::options().read(true).write(true).open("/dev/full").unwrap();
        changes.lock().file = Some(BufWriter::new(full));
        // The error of a write that fits into the buffer appears only later.
        add(&changes, &File::open("/dev/null").unwrap(), 100).0.unwrap();
        assert_eq!(changes.read().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(matches!(changes.check(dir.path()), Err(BackupError::Spill { .. })));
    }
}
