//! Writing and reading the bytes of a snapshot.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use doppel_model::StableHasher64;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::directories::{parent, sync_directory};
use crate::item::Item;

/// Bytes that are written and read at a time.
const CHUNK: usize = 1 << 20;

/// Bytes of the checksum.
const CHECKSUM: u64 = 8;

/// The most bytes of a block.
pub const BLOCK_MAX: usize = 64 << 20;

/// Why a file is not what was written.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not what was written.
    #[error("it is damaged")]
    Damaged,
    /// It is not of this kind, or of another version.
    #[error("it is of another version")]
    Version,
}

impl Unreadable {
    /// Whether there is no such file.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Writes a file.
pub struct Writer<W = File> {
    file: W,
    hash: StableHasher64,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file: `magic`, which names its kind and version, and `head` in JSON behind its length.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn new(file: W, magic: &[u8], head: &impl Serialize) -> io::Result<Self> {
        let mut this = Self { file, hash: StableHasher64::default(), buffer: Vec::with_capacity(CHUNK) };
        this.bytes(magic)?;
        this.block(&serde_json::to_vec(head)?)?;
        Ok(this)
    }

    /// Bytes behind their number, at most [`BLOCK_MAX`].
    ///
    /// # Errors
    /// When the file cannot be written, or there are too many.
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

    /// A number.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn number(&mut self, number: u64) -> io::Result<()> {
        self.bytes(&number.to_le_bytes())
    }

    /// A column.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn column<T: Item>(&mut self, items: &[T]) -> io::Result<()> {
        self.items(items.len(), items.iter().copied())
    }

    /// A column of so many items.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn items<T: Item>(&mut self, count: usize, mut items: impl Iterator<Item = T>) -> io::Result<()> {
        self.number(count as u64)?;
        let mut left = count;
        while left > 0 {
            let some = left.min(CHUNK / T::BYTES);
            let start = self.buffer.len();
            self.buffer.resize(start + some * T::BYTES, 0);
            let places = self.buffer[start..].chunks_exact_mut(T::BYTES);
            places.zip(&mut items).for_each(|(place, item)| item.write(place));
            left -= some;
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

    /// Writes the checksum. Nothing is synced yet.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_out()?;
        self.file.write_all(&self.hash.finish().to_le_bytes())?;
        Ok(self.file)
    }
}

/// Reads a file. Nothing may be relied on before [`finish`](Self::finish): numbers and lengths may be anything.
pub struct Reader<R = File> {
    file: R,
    hash: StableHasher64,
    /// Bytes before the checksum.
    left: u64,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens a file that begins with `magic`, and reads its head.
    ///
    /// # Errors
    /// When it cannot be read, is damaged as far as that shows already, or is of another kind.
    pub fn open<H: DeserializeOwned>(path: &Path, magic: &[u8]) -> Result<(Self, H), Unreadable> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Self::new(file, length, magic)
    }
}

impl<R: Read> Reader<R> {
    /// The same of a file that is open, of so many bytes.
    ///
    /// # Errors
    /// The same.
    pub fn new<H: DeserializeOwned>(file: R, length: u64, magic: &[u8]) -> Result<(Self, H), Unreadable> {
        let left = length.checked_sub(CHECKSUM).ok_or(Unreadable::Damaged)?;
        let mut this = Self { file, hash: StableHasher64::default(), left, buffer: Vec::new() };
        if this.next(magic.len())? != magic {
            return Err(Unreadable::Version);
        }
        let head = serde_json::from_slice(this.block()?).map_err(|_| Unreadable::Damaged)?;
        Ok((this, head))
    }

    /// Whether nothing but the checksum is left.
    pub fn is_at_end(&self) -> bool {
        self.left == 0
    }

    fn next(&mut self, bytes: usize) -> Result<&[u8], Unreadable> {
        self.left = self.left.checked_sub(bytes as u64).ok_or(Unreadable::Damaged)?;
        self.buffer.resize(bytes, 0);
        self.file.read_exact(&mut self.buffer)?;
        self.hash.update(&self.buffer);
        Ok(&self.buffer)
    }

    /// Bytes behind their number.
    ///
    /// # Errors
    /// When they cannot be read, or are more than [`BLOCK_MAX`].
    pub fn block(&mut self) -> Result<&[u8], Unreadable> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= BLOCK_MAX);
        self.next(count.ok_or(Unreadable::Damaged)?)
    }

    /// Passes over everything up to the checksum.
    fn skip(&mut self) -> Result<(), Unreadable> {
        while self.left > 0 {
            self.next(self.left.min(CHUNK as u64) as usize)?;
        }
        Ok(())
    }

    /// A number.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn number(&mut self) -> Result<u64, Unreadable> {
        Ok(u64::read(self.next(8)?))
    }

    /// A column.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn column<T: Item>(&mut self) -> Result<Vec<T>, Unreadable> {
        let count = self.number()?;
        if count > self.left / T::BYTES as u64 {
            return Err(Unreadable::Damaged);
        }
        let count = count as usize;
        let mut items = Vec::with_capacity(count);
        while items.len() < count {
            let some = (count - items.len()).min(CHUNK / T::BYTES);
            items.extend(self.next(some * T::BYTES)?.chunks_exact(T::BYTES).map(T::read));
        }
        Ok(items)
    }

    /// Reads what is left.
    ///
    /// # Errors
    /// When the file, all of it, is not what was written.
    pub fn finish(mut self) -> Result<(), Unreadable> {
        self.skip()?;
        let mut checksum = [0; CHECKSUM as usize];
        self.file.read_exact(&mut checksum)?;
        let sound = self.left == 0 && u64::from_le_bytes(checksum) == self.hash.finish();
        if sound { Ok(()) } else { Err(Unreadable::Damaged) }
    }
}

/// Gives a written file its name, in the place of one that had it: after a crash, also of the machine, there is that one
/// or this one.
///
/// # Errors
/// When the file or its directory cannot be synced, or the name not be given.
pub fn put(file: &File, written: &Path, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    fs::rename(written, path)?;
    sync_name(path)
}

/// Returns when the name of a file, or that there is no file of this name, is on disk.
///
/// # Errors
/// When its directory cannot be synced.
pub fn sync_name(path: &Path) -> io::Result<()> {
    sync_directory(parent(path))
}

/// The head of a snapshot, or why it would not be used, as far as the file alone shows; none where there is none.
///
/// # Errors
/// When it cannot be read.
pub fn verify<H: DeserializeOwned>(path: &Path, magic: &[u8]) -> io::Result<Option<Result<H, String>>> {
    let read = || {
        let (reader, head) = Reader::open(path, magic)?;
        reader.finish().map(|()| head)
    };
    match read() {
        Ok(head) => Ok(Some(Ok(head))),
        Err(unreadable) if unreadable.is_missing() => Ok(None),
        Err(Unreadable::Io(error)) if error.kind() == io::ErrorKind::IsADirectory => {
            Ok(Some(Err("it is a directory, not a file".to_owned())))
        }
        Err(Unreadable::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        Err(unreadable) => Ok(Some(Err(unreadable.to_string()))),
    }
}

/// Why a snapshot would not be used, as far as the file alone shows; none where there is none, or it is sound.
///
/// # Errors
/// When it cannot be read.
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
        fn columns_are_read_as_they_were_written_and_any_change_is_noticed(
            bytes in prop::collection::vec(any::<u8>(), 0..300), numbers in prop::collection::vec(any::<u64>(), 0..300),
            at in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            let read = || -> Result<_, Unreadable> {
                let (mut reader, head) = Reader::open::<u64>(&path, b"kind 1")?;
                let read = (head, reader.column::<u8>()?, reader.column::<u64>()?);
                let is_at_end = reader.is_at_end();
                reader.finish()?;
                // A length that was changed may leave something, which is damage all the same.
                assert!(is_at_end);
                Ok(read)
            };
            let mut writer = Writer::new(File::create(&path).unwrap(), b"kind 1", &7).unwrap();
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

    /// Takes so many bytes, and then fails once, as a disk does.
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
    fn a_write_that_fails_at_any_place_gives_no_snapshot() {
        let write = |to: &mut Failing| {
            let mut writer = Writer::new(to, b"kind 1", &7)?;
            // More than is written at a time.
            (0..3).try_for_each(|_| writer.column(&vec![5_u8; CHUNK]))?;
            writer.finish().map(drop)
        };
        let mut whole = Failing(Vec::new(), usize::MAX);
        write(&mut whole).unwrap();
        let length = whole.0.len();
        for left in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 100, length - 9, length - 8, length - 1] {
            let mut failing = Failing(Vec::new(), left);
            assert!(write(&mut failing).is_err(), "{left} bytes");
            let read = Reader::new::<u64>(&*failing.0, failing.0.len() as u64, b"kind 1");
            assert!(read.and_then(|(reader, _)| reader.finish()).is_err(), "{left} bytes");
        }
    }

    #[test]
    fn a_directory_in_its_place_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        assert!(damage(dir.path(), b"kind 1").unwrap().is_some());
        assert_eq!(damage(&dir.path().join("none"), b"kind 1").unwrap(), None);
    }
}
