//! Writes and reads the bytes of a snapshot file. See the crate documentation for the format.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use doppel_model::StableHasher64;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::directories::{parent, sync_directory};
use crate::item::SnapshotItem;

/// Number of buffered bytes that triggers a write, and number of bytes of a column that one read takes.
const CHUNK: usize = 1 << 20;

/// Length of the checksum in bytes.
const CHECKSUM: u64 = 8;

/// Maximum length of a block in bytes.
pub const BLOCK_MAX: usize = 64 << 20;

/// Why a snapshot file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The checksum, a length, or the head does not match the rest of the file.
    #[error("it is damaged")]
    Damaged,
    /// The magic bytes name another kind of file, or another version of the format.
    #[error("it is another kind of file, or has another version of the format")]
    Version,
}

impl SnapshotError {
    /// Whether the error says that the file does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Writes a snapshot file through a buffer and hashes what it writes.
pub struct SnapshotWriter<W = File> {
    file: W,
    hash: StableHasher64,
    buffer: Vec<u8>,
}

impl<W: Write> SnapshotWriter<W> {
    /// Begins a file: writes `magic`, which names the kind and version of the file, and then `head` in JSON
    /// as a block.
    ///
    /// # Errors
    /// If the file cannot be written, or the head is longer than [`BLOCK_MAX`].
    pub fn new(file: W, magic: &[u8], head: &impl Serialize) -> io::Result<Self> {
        let mut this = Self { file, hash: StableHasher64::default(), buffer: Vec::with_capacity(CHUNK) };
        this.bytes(magic)?;
        this.block(&serde_json::to_vec(head)?)?;
        Ok(this)
    }

    /// Writes the length of `bytes`, followed by `bytes`.
    ///
    /// # Errors
    /// If the file cannot be written, or `bytes` is longer than [`BLOCK_MAX`].
    pub fn block(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > BLOCK_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.number(bytes.len() as u64)?;
        self.bytes(bytes)
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK { self.write_out() } else { Ok(()) }
    }

    /// Writes one number as 8 bytes, little-endian.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn number(&mut self, number: u64) -> io::Result<()> {
        self.bytes(&number.to_le_bytes())
    }

    /// Writes a column: the number of items, followed by the items.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn column<T: SnapshotItem>(&mut self, items: &[T]) -> io::Result<()> {
        self.items(items.len(), items.iter().copied())
    }

    /// Like [`column`](Self::column), but takes the items from an iterator. The caller must pass exactly
    /// `count` items.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn items<T: SnapshotItem>(
        &mut self,
        count: usize,
        mut items: impl Iterator<Item = T>,
    ) -> io::Result<()> {
        self.number(count as u64)?;
        let mut remaining = count;
        while remaining > 0 {
            let batch = remaining.min(CHUNK / T::BYTES);
            let start = self.buffer.len();
            self.buffer.resize(start + batch * T::BYTES, 0);
            let slots = self.buffer[start..].chunks_exact_mut(T::BYTES);
            slots.zip(&mut items).for_each(|(slot, item)| item.write(slot));
            remaining -= batch;
            if self.buffer.len() >= CHUNK {
                self.write_out()?;
            }
        }
        Ok(())
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.hash.update(&self.buffer);
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the bytes that are still buffered, and then the checksum of the file. Does not sync the file;
    /// [`put`] does.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_out()?;
        self.file.write_all(&self.hash.finish().to_le_bytes())?;
        Ok(self.file)
    }
}

/// Reads a snapshot file. Numbers and lengths may be wrong until [`finish`](Self::finish) succeeds, so
/// callers must not rely on them before that.
pub struct SnapshotReader<R = File> {
    file: R,
    hash: StableHasher64,
    /// Unread bytes before the checksum.
    remaining: u64,
    buffer: Vec<u8>,
}

impl SnapshotReader {
    /// Opens a file that begins with `magic`, and reads its head.
    ///
    /// # Errors
    /// If the file cannot be read, has other magic bytes, or is already visibly damaged.
    pub fn open<H: DeserializeOwned>(path: &Path, magic: &[u8]) -> Result<(Self, H), SnapshotError> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Self::new(file, length, magic)
    }
}

impl<R: Read> SnapshotReader<R> {
    /// Like [`open`](Self::open), but takes an open file and its length in bytes.
    ///
    /// # Errors
    /// If the file cannot be read, has other magic bytes, or is already visibly damaged.
    pub fn new<H: DeserializeOwned>(file: R, length: u64, magic: &[u8]) -> Result<(Self, H), SnapshotError> {
        let remaining = length.checked_sub(CHECKSUM).ok_or(SnapshotError::Damaged)?;
        let mut this = Self { file, hash: StableHasher64::default(), remaining, buffer: Vec::new() };
        if this.next(magic.len())? != magic {
            return Err(SnapshotError::Version);
        }
        let head = serde_json::from_slice(this.block()?).map_err(|_| SnapshotError::Damaged)?;
        Ok((this, head))
    }

    /// Whether only the checksum is left to read.
    pub fn is_at_end(&self) -> bool {
        self.remaining == 0
    }

    fn next(&mut self, bytes: usize) -> Result<&[u8], SnapshotError> {
        self.remaining = self.remaining.checked_sub(bytes as u64).ok_or(SnapshotError::Damaged)?;
        self.buffer.resize(bytes, 0);
        self.file.read_exact(&mut self.buffer)?;
        self.hash.update(&self.buffer);
        Ok(&self.buffer)
    }

    /// Reads a block: a length, followed by that number of bytes.
    ///
    /// # Errors
    /// If the file cannot be read, is too short, or the length is greater than [`BLOCK_MAX`].
    pub fn block(&mut self) -> Result<&[u8], SnapshotError> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= BLOCK_MAX);
        self.next(count.ok_or(SnapshotError::Damaged)?)
    }

    /// Reads everything up to the checksum, for the hash only.
    fn skip(&mut self) -> Result<(), SnapshotError> {
        while self.remaining > 0 {
            self.next(self.remaining.min(CHUNK as u64) as usize)?;
        }
        Ok(())
    }

    /// Reads one number of 8 bytes, little-endian.
    ///
    /// # Errors
    /// If the file cannot be read or is too short.
    pub fn number(&mut self) -> Result<u64, SnapshotError> {
        Ok(u64::read(self.next(8)?))
    }

    /// Reads a column of items.
    ///
    /// # Errors
    /// If the file cannot be read, or is too short for the number of items.
    pub fn column<T: SnapshotItem>(&mut self) -> Result<Vec<T>, SnapshotError> {
        let count = self.number()?;
        if count > self.remaining / T::BYTES as u64 {
            return Err(SnapshotError::Damaged);
        }
        let count = count as usize;
        let mut items = Vec::with_capacity(count);
        while items.len() < count {
            let batch = (count - items.len()).min(CHUNK / T::BYTES);
            items.extend(self.next(batch * T::BYTES)?.chunks_exact(T::BYTES).map(T::read));
        }
        Ok(items)
    }

    /// Reads the rest of the file and verifies the checksum over the whole file.
    ///
    /// # Errors
    /// If the file cannot be read, or the checksum does not match.
    pub fn finish(mut self) -> Result<(), SnapshotError> {
        self.skip()?;
        let mut checksum = [0; CHECKSUM as usize];
        self.file.read_exact(&mut checksum)?;
        let is_sound = self.remaining == 0 && u64::from_le_bytes(checksum) == self.hash.finish();
        if is_sound { Ok(()) } else { Err(SnapshotError::Damaged) }
    }
}

/// Syncs a written file and renames it from `written` to `path`, replacing any earlier file. After a crash of
/// the process or the machine, `path` is either the earlier file or the new one.
///
/// # Errors
/// If the file or its directory cannot be synced, or the file cannot be renamed.
pub fn put(file: &File, written: &Path, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    fs::rename(written, path)?;
    sync_name(path)
}

/// Syncs the directory of `path`. Afterwards, a crash of the machine cannot undo the creation, renaming, or
/// removal of the file.
///
/// # Errors
/// If the directory cannot be opened or synced.
pub fn sync_name(path: &Path) -> io::Result<()> {
    sync_directory(parent(path))
}

/// Checks a snapshot file on its own, without the data that it was derived from. Returns the head of a sound
/// file, or the reason why a starting process would not use the file. `None` if the file does not exist.
///
/// # Errors
/// If the operating system cannot read the file.
pub fn verify<H: DeserializeOwned>(path: &Path, magic: &[u8]) -> io::Result<Option<Result<H, String>>> {
    let read = || {
        let (reader, head) = SnapshotReader::open(path, magic)?;
        reader.finish().map(|()| head)
    };
    match read() {
        Ok(head) => Ok(Some(Ok(head))),
        Err(unreadable) if unreadable.is_missing() => Ok(None),
        Err(SnapshotError::Io(error)) if error.kind() == io::ErrorKind::IsADirectory => {
            Ok(Some(Err("it is a directory, not a file".to_owned())))
        }
        Err(SnapshotError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        Err(unreadable) => Ok(Some(Err(unreadable.to_string()))),
    }
}

/// Like [`verify`], but returns only the reason why a starting process would not use the file. `None` if the
/// file is sound or does not exist.
///
/// # Errors
/// If the operating system cannot read the file.
pub fn damage(path: &Path, magic: &[u8]) -> io::Result<Option<String>> {
    Ok(verify::<IgnoredAny>(path, magic)?.and_then(Result::err))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn columns_are_read_as_written_and_any_change_is_detected(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            numbers in prop::collection::vec(any::<u64>(), 0..300),
            at in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            let read = || -> Result<_, SnapshotError> {
                let (mut reader, head) = SnapshotReader::open::<u64>(&path, b"kind 1")?;
                let read = (head, reader.column::<u8>()?, reader.column::<u64>()?);
                let is_at_end = reader.is_at_end();
                reader.finish()?;
                // A changed length may leave unread bytes. `finish` reports that as damage, so it never
                // reaches this line.
                assert!(is_at_end);
                Ok(read)
            };
            let mut writer = SnapshotWriter::new(File::create(&path).unwrap(), b"kind 1", &7).unwrap();
            writer.column(&bytes).unwrap();
            writer.items(numbers.len(), numbers.iter().copied()).unwrap();
            writer.finish().unwrap();
            prop_assert_eq!(read().unwrap(), (7, bytes, numbers));
            prop_assert_eq!(damage(&path, b"kind 1").unwrap(), None);
            prop_assert_eq!(verify(&path, b"kind 1").unwrap(), Some(Ok(7)));
            prop_assert!(damage(&path, b"kind 2").unwrap().is_some());
            let sound = fs::read(&path).unwrap();
            let mut changed = sound.clone();
            changed[at.index(sound.len())] ^= 1;
            fs::write(&path, &changed).unwrap();
            prop_assert!(read().is_err());
            prop_assert!(damage(&path, b"kind 1").unwrap().is_some());
            fs::write(&path, &sound[..cut.index(sound.len())]).unwrap();
            prop_assert!(read().is_err());
        }
    }

    /// Accepts `self.1` bytes and then fails once, like a full disk.
    struct Failing(Vec<u8>, usize);

    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1 == 0 {
                self.1 = usize::MAX;
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.1);
            self.0.extend(&bytes[..taken]);
            self.1 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_failed_write_at_any_byte_never_leaves_a_valid_snapshot() {
        let write = |to: &mut Failing| {
            let mut writer = SnapshotWriter::new(to, b"kind 1", &7)?;
            // More than one buffer, so that several writes can fail.
            (0..3).try_for_each(|_| writer.column(&vec![5_u8; CHUNK]))?;
            writer.finish().map(drop)
        };
        let mut whole = Failing(Vec::new(), usize::MAX);
        write(&mut whole).unwrap();
        let length = whole.0.len();
        for remaining in
            [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 100, length - 9, length - 8, length - 1]
        {
            let mut failing = Failing(Vec::new(), remaining);
            assert!(write(&mut failing).is_err(), "the write succeeded on a disk of {remaining} bytes");
            let read = SnapshotReader::new::<u64>(&*failing.0, failing.0.len() as u64, b"kind 1");
            assert!(
                read.and_then(|(reader, _)| reader.finish()).is_err(),
                "a file of {remaining} bytes passed for a snapshot"
            );
        }
    }

    #[test]
    fn a_directory_at_the_path_of_a_snapshot_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        assert!(damage(dir.path(), b"kind 1").unwrap().is_some());
        assert_eq!(damage(&dir.path().join("none"), b"kind 1").unwrap(), None);
    }
}
