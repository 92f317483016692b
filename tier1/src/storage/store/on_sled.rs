//! The store on disk. No other module uses sled.
//!
//! sled 0.34.7 acknowledges a write long before it is on disk. The log has everything that a crash takes from
//! sled, so this module flushes only when a caller asks for it. A batch is atomic within one tree, and there
//! is only one tree.
//!
//! Some damaged files make sled panic instead of returning an error, when it opens them or reads the damaged
//! place later. This module converts such a panic to [`StoreError::Corrupt`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use doppel_snapshot::create_directories;

use super::{Store, StoreError, Write, is_full};
use crate::storage::files::sync_directory;

/// Size of sled's page cache in bytes, over all databases of a process. sled uses about three times this
/// memory.
const CACHE_BYTES: u64 = 128 << 20;

/// Minimum size of the page cache of one database.
const CACHE_BYTES_MIN: u64 = 4 << 20;

/// How long to retry opening a database that sled's threads of this process may still hold, and the pause
/// between two attempts.
const CLOSING_TIME_MAX: Duration = Duration::from_millis(500);
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// sled's file of rows.
const FILE: &str = "db";

/// Content of sled's configuration file in every database of this program. A checksum follows, which sled
/// does not verify.
const CONFIGURATION: &[u8] = b"segment_size: 524288\nuse_compression: false\nversion: 0.34\n";
const CHECKSUM_BYTES: usize = 4;

/// Name of sled's configuration file.
const CONFIGURATION_FILE: &str = "conf";

/// A sled database with one tree.
#[derive(Debug)]
pub(crate) struct Sled {
    /// `None` only while the database is dropped.
    db: Option<sled::Db>,
    dir: PathBuf,
}

impl Drop for Sled {
    /// Closes the database. sled writes and syncs its buffers then, and panics if that fails.
    fn drop(&mut self) {
        close(&self.dir, self.db.take());
    }
}

impl Sled {
    /// Opens or creates the database in `dir`. It is one of `databases` in this process that share the memory
    /// for caches.
    ///
    /// # Errors
    /// Fails if another process uses the directory, or if its files are damaged.
    pub(crate) fn open_share(dir: &Path, databases: u16) -> Result<Self, StoreError> {
        Self::open(dir, (CACHE_BYTES / u64::from(databases.max(1))).max(CACHE_BYTES_MIN))
    }

    /// Like [`open_share`](Self::open_share), for a database whose rows are only written, once and in order.
    /// It has the smallest cache.
    ///
    /// # Errors
    /// Like [`open_share`](Self::open_share).
    pub(crate) fn open_to_fill(dir: &Path) -> Result<Self, StoreError> {
        Self::open(dir, CACHE_BYTES_MIN)
    }

    fn open(dir: &Path, cache: u64) -> Result<Self, StoreError> {
        // sled would create the directory without syncing its parent.
        create_directories(dir).map_err(|error| StoreError::of_file("create a directory", dir, &error))?;
        let config = sled::Config::new()
            .path(dir)
            .cache_capacity(cache)
            .mode(sled::Mode::HighThroughput)
            .flush_every_ms(None);
        let deadline = Instant::now() + CLOSING_TIME_MAX;
        let mut may_mend = true;
        loop {
            let error = match catching_panics(dir, "opening", || config.open())? {
                Ok(db) => return Ok(Self { db: Some(db), dir: dir.to_owned() }),
                Err(error) => error,
            };
            // An I/O error says nothing about the configuration file, so the file must not be removed.
            let is_of_system = matches!(error, sled::Error::Io(_));
            match store_error(dir, error) {
                StoreError::InUse if Instant::now() < deadline => thread::sleep(RETRY_PAUSE),
                error if is_of_system && !matches!(error, StoreError::Corrupt { .. }) => return Err(error),
                // sled reads this file before it locks the database. Removing it does not disturb another
                // process that has the database open, because that process does not read it again.
                _ if may_mend && remove_unfinished_configuration(dir) => may_mend = false,
                error => match configuration_damage(dir) {
                    Some(damaged) => return Err(damaged),
                    // sled held the lock, so no other process is writing the files that are removed here.
                    None if matches!(error, StoreError::Corrupt { .. })
                        && remove_unfinished_snapshots(dir) => {}
                    None => return Err(error),
                },
            }
        }
    }

    /// Writes a row outside of any batch. Several threads may do so at the same time.
    ///
    /// # Errors
    /// Fails if the engine fails.
    pub(crate) fn put(&self, key: Vec<u8>, row: Vec<u8>) -> Result<(), StoreError> {
        let db = self.db()?;
        let put = catching_panics(&self.dir, "writing", || db.insert(key, row))?;
        put.map(drop).map_err(|error| store_error(&self.dir, error))
    }

    fn db(&self) -> Result<&sled::Db, StoreError> {
        self.db.as_ref().ok_or_else(|| StoreError::Engine("the database is closed".to_owned()))
    }

    /// Returns whether `dir` contains a database.
    pub(crate) fn is_in(dir: &Path) -> bool {
        dir.join(FILE).is_file()
    }
}

impl Store for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let db = self.db()?;
        let value = catching_panics(&self.dir, "reading", || db.get(key))?;
        Ok(value.map_err(|error| store_error(&self.dir, error))?.map(|value| value.to_vec()))
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let mut rows = self.db()?.range(from..to);
        while let Some(row) = catching_panics(&self.dir, "reading", || rows.next())? {
            let (key, value) = row.map_err(|error| store_error(&self.dir, error))?;
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
        let applied = catching_panics(&self.dir, "writing", || db.apply_batch(batch))?;
        applied.map_err(|error| store_error(&self.dir, error))
    }

    fn flush(&self) -> Result<(), StoreError> {
        let db = self.db()?;
        let flushed = catching_panics(&self.dir, "flushing", || db.flush())?;
        flushed.map_err(|error| store_error(&self.dir, error))?;
        // sled syncs the bytes of the file but not its metadata, such as its length.
        let path = self.dir.join(FILE);
        let synced = std::fs::File::open(&path).and_then(|file| file.sync_all());
        synced.map_err(|error| StoreError::of_file("sync a file", &path, &error))?;
        // sled stores long rows as files and does not sync their names.
        let blobs = self.dir.join("blobs");
        if blobs.is_dir() { sync_directory(&blobs) } else { Ok(()) }
    }

    fn bytes_on_disk(&self) -> u64 {
        self.db.as_ref().and_then(|db| db.size_on_disk().ok()).unwrap_or(0)
    }
}

/// Removes an incomplete configuration file. Returns whether there was one.
///
/// sled writes this file in place and in two steps, before any row. If the process is killed between the
/// steps, a part of the file remains. The content is the same for every database, so sled can create it
/// again.
fn remove_unfinished_configuration(dir: &Path) -> bool {
    let path = dir.join(CONFIGURATION_FILE);
    let is_unfinished = |bytes: Vec<u8>| match bytes.strip_prefix(CONFIGURATION) {
        Some(checksum) => checksum.len() < CHECKSUM_BYTES,
        None => CONFIGURATION.starts_with(&bytes),
    };
    std::fs::read(&path).is_ok_and(is_unfinished) && std::fs::remove_file(&path).is_ok()
}

/// Removes incomplete snapshots of sled. Returns whether there were any.
///
/// If the disk was full or the process was killed, sled leaves an incomplete snapshot. The next start would
/// take it for the newest snapshot, and report it as damaged.
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

fn store_error(dir: &Path, error: sled::Error) -> StoreError {
    match error {
        sled::Error::Io(io) if is_full(&io) => StoreError::DiskFull,
        // Another process holds the lock. sled says so only in the text of the error.
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

/// Calls sled. A panic becomes an error.
fn catching_panics<T>(dir: &Path, doing: &str, call: impl FnOnce() -> T) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(call))
        .map_err(|_| corrupt(dir, format!("the engine panicked on {doing} it")))
}

/// Drops open parts of sled. Catches a panic, so that the thread goes on; the files stay as they are.
fn close<T>(dir: &Path, open: T) {
    if catch_unwind(AssertUnwindSafe(|| drop(open))).is_err() {
        let dir = dir.display();
        tracing::error!(%dir, "the engine panicked while closing a database; the next start restores missing rows from the log");
    }
}

/// Returns an error if sled's configuration file is damaged and so prevented opening the database.
fn configuration_damage(dir: &Path) -> Option<StoreError> {
    let path = dir.join(CONFIGURATION_FILE);
    let is_whole = match std::fs::read(&path) {
        Ok(bytes) => bytes.starts_with(CONFIGURATION),
        // sled creates a new one.
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
    fn opening_a_database_twice_fails_as_in_use() {
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
    fn an_incomplete_configuration_file_does_not_prevent_opening() {
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
    fn an_incomplete_snapshot_does_not_prevent_opening() {
        let dir = tempfile::tempdir().unwrap();
        let first = Sled::open_share(dir.path(), 1).unwrap();
        first.put(b"key".to_vec(), b"row".to_vec()).unwrap();
        first.flush().unwrap();
        drop(first);
        // sled leaves such a file if the disk is full.
        let unfinished = dir.path().join("snap.7FFFFFFFFFFFFFFF.generating");
        std::fs::write(&unfinished, [0; 4_096]).unwrap();
        let again = Sled::open_share(dir.path(), 1).unwrap();
        assert_eq!(again.get(b"key").unwrap(), Some(b"row".to_vec()));
        assert!(!unfinished.exists());
    }

    #[test]
    fn a_panic_while_closing_does_not_end_the_thread() {
        struct Full;
        impl Drop for Full {
            fn drop(&mut self) {
                panic!("no space left");
            }
        }
        close(Path::new("somewhere"), Some(Full));
    }

    #[test]
    fn commits_survive_reopening() {
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
