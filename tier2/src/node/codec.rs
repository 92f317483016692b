//! Columns as bytes: little-endian, each behind the number of its items, the file under one checksum at its end.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use doppel_model::{ContentHash, PageId, StableHasher64};

/// Bytes that are written and read at a time.
const CHUNK: usize = 1 << 20;

/// Bytes of the checksum.
const CHECKSUM: u64 = 8;

/// Why a file is not what was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is damaged")]
    Damaged,
}

/// What a column has.
pub(crate) trait Item: Copy {
    /// Its length in the file.
    const BYTES: usize;
    fn write(self, to: &mut [u8]);
    fn read(from: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Item for $number {
            const BYTES: usize = size_of::<Self>();
            #[inline]
            fn write(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn read(from: &[u8]) -> Self {
                from.first_chunk().map_or(0, |bytes| Self::from_le_bytes(*bytes))
            }
        }
    )*};
}

numbers!(u8, u32, u64);

impl Item for ContentHash {
    const BYTES: usize = 16;
    #[inline]
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(&self.0);
    }
    #[inline]
    fn read(from: &[u8]) -> Self {
        Self(from.first_chunk().copied().unwrap_or_default())
    }
}

impl Item for PageId {
    const BYTES: usize = 16;
    #[inline]
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(self.bytes());
    }
    #[inline]
    fn read(from: &[u8]) -> Self {
        Self::from_bytes(from.first_chunk().copied().unwrap_or_default())
    }
}

/// Writes a file.
pub(crate) struct Writer {
    file: File,
    hash: StableHasher64,
    buffer: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(file: File) -> Self {
        Self { file, hash: StableHasher64::default(), buffer: Vec::with_capacity(CHUNK) }
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK { self.write_out() } else { Ok(()) }
    }

    pub(crate) fn number(&mut self, number: u64) -> io::Result<()> {
        self.bytes(&number.to_le_bytes())
    }

    pub(crate) fn column<T: Item>(&mut self, items: &[T]) -> io::Result<()> {
        self.items(items.len(), items.iter().copied())
    }

    /// A column of so many items.
    pub(crate) fn items<T: Item>(
        &mut self,
        count: usize,
        mut items: impl Iterator<Item = T>,
    ) -> io::Result<()> {
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
    pub(crate) fn finish(mut self) -> io::Result<File> {
        self.write_out()?;
        self.file.write_all(&self.hash.finish().to_le_bytes())?;
        Ok(self.file)
    }
}

/// Reads a file. Nothing may be relied on before [`finish`](Self::finish): numbers and lengths may be anything.
pub(crate) struct Reader {
    file: File,
    hash: StableHasher64,
    /// Bytes before the checksum.
    left: u64,
    buffer: Vec<u8>,
}

impl Reader {
    pub(crate) fn new(file: File) -> Result<Self, Unreadable> {
        let left = file.metadata()?.len().checked_sub(CHECKSUM).ok_or(Unreadable::Damaged)?;
        Ok(Self { file, hash: StableHasher64::default(), left, buffer: Vec::new() })
    }

    fn next(&mut self, bytes: usize) -> Result<&[u8], Unreadable> {
        self.left = self.left.checked_sub(bytes as u64).ok_or(Unreadable::Damaged)?;
        self.buffer.resize(bytes, 0);
        self.file.read_exact(&mut self.buffer)?;
        self.hash.update(&self.buffer);
        Ok(&self.buffer)
    }

    /// Bytes as they are, at most 64 chunks.
    pub(crate) fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Unreadable> {
        let count = usize::try_from(count).ok().filter(|count| *count <= 64 * CHUNK);
        Ok(self.next(count.ok_or(Unreadable::Damaged)?)?.to_vec())
    }

    /// Passes over everything up to the checksum.
    pub(crate) fn skip(&mut self) -> Result<(), Unreadable> {
        while self.left > 0 {
            self.next(self.left.min(CHUNK as u64) as usize)?;
        }
        Ok(())
    }

    pub(crate) fn number(&mut self) -> Result<u64, Unreadable> {
        Ok(u64::read(self.next(8)?))
    }

    pub(crate) fn column<T: Item>(&mut self) -> Result<Vec<T>, Unreadable> {
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

    /// Whether all of the file is what was written.
    pub(crate) fn finish(mut self) -> Result<(), Unreadable> {
        let mut checksum = [0; CHECKSUM as usize];
        self.file.read_exact(&mut checksum)?;
        let sound = self.left == 0 && u64::from_le_bytes(checksum) == self.hash.finish();
        if sound { Ok(()) } else { Err(Unreadable::Damaged) }
    }
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
                let mut reader = Reader::new(File::open(&path)?)?;
                let read = (reader.number()?, reader.column::<u8>()?, reader.column::<u64>()?);
                reader.finish()?;
                Ok(read)
            };
            let mut writer = Writer::new(File::create(&path).unwrap());
            writer.number(7).unwrap();
            writer.column(&bytes).unwrap();
            writer.items(numbers.len(), numbers.iter().copied()).unwrap();
            writer.finish().unwrap();
            prop_assert_eq!(read().unwrap(), (7, bytes, numbers));
            let sound = fs::read(&path).unwrap();
            let mut changed = sound.clone();
            changed[at.index(sound.len())] ^= 1;
            fs::write(&path, &changed).unwrap();
            prop_assert!(read().is_err());
            fs::write(&path, &sound[..cut.index(sound.len())]).unwrap();
            prop_assert!(read().is_err());
        }
    }
}
