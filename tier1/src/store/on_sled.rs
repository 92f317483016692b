//! The store on disk. The only module that names sled.
//!
//! sled 0.34.7 acknowledges a write long before it is on disk. Nothing is flushed here but when it is asked for: the log
//! has what a crash takes. A batch is atomic within one tree; there is only one.
//!
//! Some damaged files make sled panic instead of failing, when it opens them or comes upon the damage later. Such a panic
//! becomes [`StoreError::Corrupt`] here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use doppel_snapshot::create_directories;

use super::{Store, StoreError, Write, is_full};
use crate::files::sync_directory;

/// Page cache of sled in bytes, of all databases together. It takes about three times this in memory.
const CACHE_BYTES: u64 = 128 << 20;

/// What one of very many databases has.
const CACHE_BYTES_MIN: u64 = 4 << 20;

/// How long the engine's threads may hold a database that this process has closed, and how often it is tried.
const CLOSING: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(10);

/// The engine's file of rows.
const FILE: &str = "db";

/// What the engine's configuration file says of every database made here, before a checksum that the engine
/// does not hold it to.
const CONFIGURATION: &[u8] = b"segment_size: 524288\nuse_compression: false\nversion: 0.34\n";
const CHECKSUM_BYTES: usize = 4;

/// The name of that file.
const CONFIGURATION_FILE: &str = "conf";

/// A sled database with one tree.
#[derive(Debug)]
pub(crate) struct Sled {
    /// None at its end alone.
    db: Option<sled::Db>,
    dir: PathBuf,
}

impl Drop for Sled {
    /// The engine writes and syncs what it has, and panics when it cannot.
    fn drop(&mut self) {
        end(&self.dir, self.db.take());
    }
}

impl Sled {
    /// Opens or creates the database in `dir`, where so many databases of a process share what memory there is for
    /// their caches.
    ///
    /// # Errors
    /// When the directory is in use by another process or is damaged.
    pub(crate) fn open_share(dir: &Path, databases: u16) -> Result<Self, StoreError> {
        Self::open(dir, (CACHE_BYTES / u64::from(databases.max(1))).max(CACHE_BYTES_MIN))
    }

    /// The same for one whose rows are put once, in order, and not read: it has the smallest cache.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn open_to_fill(dir: &Path) -> Result<Self, StoreError> {
        Self::open(dir, CACHE_BYTES_MIN)
    }

    fn open(dir: &Path, cache: u64) -> Result<Self, StoreError> {
        // The engine would create the directory without syncing the one that it lies in.
        create_directories(dir).map_err(|error| StoreError::of_file("create a directory", dir, &error))?;
        let config = sled::Config::new()
            .path(dir)
            .cache_capacity(cache)
            .mode(sled::Mode::HighThroughput)
            .flush_every_ms(None);
        let deadline = Instant::now() + CLOSING;
        let mut may_mend = true;
        loop {
            let error = match guarded(dir, "opening", || config.open())? {
                Ok(db) => return Ok(Self { db: Some(db), dir: dir.to_owned() }),
                Err(error) => error,
            };
            // A file that the system does not let it read or write is not the one that is wrong.
            let is_of_system = matches!(error, sled::Error::Io(_));
            match failure(dir, error) {
                StoreError::InUse if Instant::now() < deadline => thread::sleep(LOOK),
                error if is_of_system && !matches!(error, StoreError::Corrupt { .. }) => return Err(error),
                // The engine reads this file before it locks the database. Another process that has the database does not read it again.
                _ if may_mend && remove_unfinished_configuration(dir) => may_mend = false,
                error => match configuration(dir) {
                    Some(damaged) => return Err(damaged),
                    // The engine had the lock, so nobody else is writing what is removed here.
                    None if matches!(error, StoreError::Corrupt { .. })
                        && remove_unfinished_snapshots(dir) => {}
                    None => return Err(error),
                },
            }
        }
    }

    /// Puts a row outside of any batch. Several threads may, at the same time.
    ///
    /// # Errors
    /// When the engine fails.
    pub(crate) fn put(&self, key: Vec<u8>, row: Vec<u8>) -> Result<(), StoreError> {
        let db = self.db()?;
        let put = guarded(&self.dir, "writing", || db.insert(key, row))?;
        put.map(drop).map_err(|error| failure(&self.dir, error))
    }

    fn db(&self) -> Result<&sled::Db, StoreError> {
        self.db.as_ref().ok_or_else(|| StoreError::Engine("the database is closed".to_owned()))
    }

    /// Whether there is a database in `dir`.
    pub(crate) fn is_in(dir: &Path) -> bool {
        dir.join(FILE).is_file()
    }
}

impl Store for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let db = self.db()?;
        let value = guarded(&self.dir, "reading", || db.get(key))?;
        Ok(value.map_err(|error| failure(&self.dir, error))?.map(|value| value.to_vec()))
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let mut rows = self.db()?.range(from..to);
        while let Some(row) = guarded(&self.dir, "reading", || rows.next())? {
            let (key, value) = row.map_err(|error| failure(&self.dir, error))?;
            if !each(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        let db = self.db()?;
        let applied = guarded(&self.dir, "writing", || db.apply_batch(batch))?;
        applied.map_err(|error| failure(&self.dir, error))
    }

    fn flush(&self) -> Result<(), StoreError> {
        let db = self.db()?;
        let flushed = guarded(&self.dir, "flushing", || db.flush())?;
        flushed.map_err(|error| failure(&self.dir, error))?;
        // The engine has the system write the bytes out, and not where in the file they are.
        let path = self.dir.join(FILE);
        let synced = std::fs::File::open(&path).and_then(|file| file.sync_all());
        synced.map_err(|error| StoreError::of_file("sync a file", &path, &error))?;
        // Long rows are files, whose names the engine does not sync.
        let blobs = self.dir.join("blobs");
        if blobs.is_dir() { sync_directory(&blobs) } else { Ok(()) }
    }

    fn bytes_on_disk(&self) -> u64 {
        self.db.as_ref().and_then(|db| db.size_on_disk().ok()).unwrap_or(0)
    }
}

/// Removes a configuration file that has no end: the engine writes it in place and in two steps, before there is a row, and a process that
/// is killed between them leaves a part. It says the same of every database, and the engine makes it anew. Whether there was one.
fn remove_unfinished_configuration(dir: &Path) -> bool {
    let path = dir.join(CONFIGURATION_FILE);
    let is_unfinished = |bytes: Vec<u8>| match bytes.strip_prefix(CONFIGURATION) {
        Some(checksum) => checksum.len() < CHECKSUM_BYTES,
        None => CONFIGURATION.starts_with(&bytes),
    };
    std::fs::read(&path).is_ok_and(is_unfinished) && std::fs::remove_file(&path).is_ok()
}

/// Removes snapshots that the engine had not written to their ends: one that found no room, or was killed, leaves such a file, and the
/// next start would take it for the newest snapshot and for damaged. Whether there were any.
fn remove_unfinished_snapshots(dir: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else { return false };
    let is_unfinished = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("snap.") && name.ends_with(".generating")
    };
    let unfinished = entries.flatten().map(|entry| entry.path()).filter(|path| is_unfinished(path));
    let removed = unfinished.filter(|path| std::fs::remove_file(path).is_ok()).count();
    removed > 0
}

fn failure(dir: &Path, error: sled::Error) -> StoreError {
    match error {
        sled::Error::Io(io) if is_full(&io) => StoreError::DiskFull,
        // The lock that another process holds; sled says so in words only.
        sled::Error::Io(io) if io.kind() == std::io::ErrorKind::Other && io.to_string().contains("lock") => {
            StoreError::InUse
        }
        sled::Error::Corruption { at, .. } => {
            let what = match at {
                None => "somewhere in its files".to_owned(),
                Some(sled::DiskPtr::Inline(at)) => format!("at byte {at}"),
                Some(sled::DiskPtr::Blob(_, blob)) => format!("its file blobs/{blob}"),
            };
            corrupt(dir, what)
        }
        sled::Error::Io(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => {
            corrupt(dir, "a file ends too soon".to_owned())
        }
        other => StoreError::Engine(format!("{other}, in {}", dir.display())),
    }
}

/// Calls the engine, whose panic is an error here.
fn guarded<T>(dir: &Path, doing: &str, call: impl FnOnce() -> T) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(call))
        .map_err(|_| corrupt(dir, format!("the engine panicked on {doing} it")))
}

/// Drops what the engine has open. A panic of that leaves what is on disk as it is, and ends no thread.
fn end<T>(dir: &Path, open: T) {
    if catch_unwind(AssertUnwindSafe(|| drop(open))).is_err() {
        let dir = dir.display();
        tracing::error!(%dir, "the engine panicked on closing a database; the log has what may be missing in its files");
    }
}

/// Whether the engine's configuration file is what kept it from opening a database.
fn configuration(dir: &Path) -> Option<StoreError> {
    let path = dir.join(CONFIGURATION_FILE);
    let is_whole = match std::fs::read(&path) {
        Ok(bytes) => bytes.starts_with(CONFIGURATION),
        // The engine makes a new one.
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    (!is_whole).then(|| corrupt(dir, "its file conf is not what was written".to_owned()))
}

fn corrupt(dir: &Path, what: String) -> StoreError {
    StoreError::Corrupt { database: dir.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_told_so() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Sled::open_share(dir.path(), 1).unwrap();
        assert!(matches!(Sled::open_share(dir.path(), 1), Err(StoreError::InUse)));
    }

    #[test]
    fn a_damaged_configuration_file_is_named() {
        for damage in [&b"segment_size: 524289"[..], b"segment_size: much", b"\xff\xfe\xfd", b"version: 0.99"]
        {
            let dir = tempfile::tempdir().unwrap();
            drop(Sled::open_share(dir.path(), 1).unwrap());
            let path = dir.path().join(CONFIGURATION_FILE);
            let mut conf = std::fs::read(&path).unwrap();
            assert_eq!(conf[..conf.len() - 4], *CONFIGURATION);
            let at = CONFIGURATION.windows(7).position(|part| damage.starts_with(part)).unwrap_or(0);
            conf[at..at + damage.len()].copy_from_slice(damage);
            std::fs::write(&path, conf).unwrap();
            let error = Sled::open_share(dir.path(), 1).unwrap_err().to_string();
            let expected = format!(
                "the database {} is damaged (its file conf is not what was written): restore it from a backup",
                dir.path().display()
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn a_configuration_file_that_was_not_written_to_its_end_harms_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(CONFIGURATION_FILE);
        let first = Sled::open_share(dir.path(), 1).unwrap();
        first.put(b"key".to_vec(), b"row".to_vec()).unwrap();
        first.flush().unwrap();
        drop(first);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), CONFIGURATION.len() + CHECKSUM_BYTES);
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let again = Sled::open_share(dir.path(), 1).unwrap_or_else(|error| panic!("{length}: {error}"));
            assert_eq!(again.get(b"key").unwrap(), Some(b"row".to_vec()));
        }
    }

    #[test]
    fn a_snapshot_that_was_not_written_to_its_end_harms_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let first = Sled::open_share(dir.path(), 1).unwrap();
        first.put(b"key".to_vec(), b"row".to_vec()).unwrap();
        first.flush().unwrap();
        drop(first);
        // As when there was no room for it.
        let unfinished = dir.path().join("snap.7FFFFFFFFFFFFFFF.generating");
        std::fs::write(&unfinished, [0; 4_096]).unwrap();
        let again = Sled::open_share(dir.path(), 1).unwrap();
        assert_eq!(again.get(b"key").unwrap(), Some(b"row".to_vec()));
        assert!(!unfinished.exists());
    }

    #[test]
    fn an_engine_that_panics_at_its_end_ends_nobody_else() {
        struct Full;
        impl Drop for Full {
            fn drop(&mut self) {
                panic!("no space left");
            }
        }
        end(Path::new("somewhere"), Some(Full));
    }

    #[test]
    fn commits_are_there_after_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let write = |key: &[u8], value: Option<&[u8]>| (key.to_vec(), value.map(<[u8]>::to_vec));
        {
            let store = Sled::open_share(dir.path(), 1).unwrap();
            store.commit(vec![write(b"a", Some(b"1")), write(b"b", Some(b"2"))]).unwrap();
            store.commit(vec![write(b"a", None), write(b"c", Some(b"3"))]).unwrap();
        }
        let store = Sled::open_share(dir.path(), 1).unwrap();
        let mut keys = Vec::new();
        store
            .range(b"a", b"z", &mut |key, _| {
                keys.push(key.to_vec());
                true
            })
            .unwrap();
        assert_eq!(keys, [b"b".to_vec(), b"c".to_vec()]);
    }
}
