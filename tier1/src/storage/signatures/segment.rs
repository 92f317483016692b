//! A segment: a file of signatures.
//!
//! The file starts with [`MAGIC`]. Signatures follow, each after a head of [`HEAD_BYTES`]. The head has the
//! length of the signature and the offset of its id, 4 bytes each, little-endian. In a segment that was never
//! compacted, that offset is the place of the signature itself. A signature has its own checksum.
//!
//! Each compaction creates a file with another name, which contains the generation. The file is complete
//! before it gets that name, and the old file is removed later. So if two generations exist, the later one is
//! complete.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::{SegmentCheckpoint, SignatureId};
use crate::storage::files::{Directory, File};
use crate::storage::store::StoreError;

/// First bytes of every segment, with the version of the layout.
const MAGIC: [u8; 16] = *b"doppel sig v1\0\0\n";

/// Offset of the head of the first signature.
pub(super) const FIRST: u32 = MAGIC.len() as u32;

/// Number of bytes before each signature.
pub(super) const HEAD_BYTES: u32 = 8;

const SUFFIX: &str = ".sig";

/// Suffix of the name of an incomplete file.
pub(super) const UNFINISHED_SUFFIX: &str = ".new";

/// Receives the id, the offset and the bytes of a signature. Returns whether to continue.
type SignatureVisitor<'e> = dyn FnMut(SignatureId, u32, &[u8]) -> Result<bool, StoreError> + 'e;

/// The part of a segment that the id of a signature names. Ordered by offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extent {
    pub(super) offset: u32,
    /// Length of the signature.
    pub(super) bytes: u32,
}

/// The present place of a signature in a compacted segment.
#[derive(Debug, Clone, Copy)]
struct Relocation {
    /// Offset in the id of the signature.
    id_offset: u32,
    /// Present offset of the signature.
    offset: u32,
}

/// An open segment.
pub(super) struct Segment {
    number: u32,
    pub(super) generation: u32,
    file: Arc<dyn File>,
    length: AtomicU32,
    /// For a compacted segment, the present offsets of its signatures, ordered by their ids. Read when first
    /// needed.
    relocations: OnceLock<Vec<Relocation>>,
    /// Whether new rows must not name signatures in this segment. Set after a failed compaction, because the
    /// next start may use its file, which lacks the unused signatures.
    is_unshared: AtomicBool,
}

/// Returns the name of a segment's file.
pub(super) fn name(number: u32, generation: u32) -> String {
    if generation == 0 {
        format!("{number:08x}{SUFFIX}")
    } else {
        format!("{number:08x}-{generation:x}{SUFFIX}")
    }
}

pub(super) fn parse(name: &str) -> Option<(u32, u32)> {
    let stem = name.strip_suffix(SUFFIX)?;
    let (number, generation) = stem.split_once('-').unwrap_or((stem, "0"));
    Some((u32::from_str_radix(number, 16).ok()?, u32::from_str_radix(generation, 16).ok()?))
}

/// Appends a signature with its head to the bytes of a segment that end at offset `start`.
pub(super) fn append(out: &mut Vec<u8>, start: u32, signature: &[u8]) {
    append_with_id(out, start + HEAD_BYTES, signature);
}

fn append_with_id(out: &mut Vec<u8>, id_offset: u32, signature: &[u8]) {
    out.extend((signature.len() as u32).to_le_bytes());
    out.extend(id_offset.to_le_bytes());
    out.extend(signature);
}

impl Segment {
    /// Creates a segment. Its name is on disk on return.
    pub(super) fn create(directory: &dyn Directory, number: u32) -> Result<Self, StoreError> {
        let create = || {
            let file = directory.create(&name(number, 0))?;
            file.write(&MAGIC, 0)?;
            file.sync()?;
            directory.sync()?;
            Ok(file)
        };
        let segment = create().map(|file| Self::with_file(number, 0, file, FIRST));
        segment.map_err(|error| StoreError::of_file("write signatures", directory.path(), &error))
    }

    pub(super) fn open(directory: &dyn Directory, number: u32, generation: u32) -> Result<Self, StoreError> {
        let failed = |error| StoreError::of_file("read signatures", directory.path(), &error);
        let file = directory.open(&name(number, generation)).map_err(failed)?;
        let length = u32::try_from(file.length().map_err(failed)?).unwrap_or(u32::MAX);
        let mut magic = [0; MAGIC.len()];
        if length >= FIRST {
            file.read(&mut magic, 0).map_err(failed)?;
        }
        // If the process died while it created the segment, the magic bytes may be missing. Then no row names
        // anything in it.
        Ok(Self::with_file(number, generation, file, if magic == MAGIC { length } else { 0 }))
    }

    fn with_file(number: u32, generation: u32, file: Arc<dyn File>, length: u32) -> Self {
        let (length, relocations, is_unshared) =
            (AtomicU32::new(length), OnceLock::new(), AtomicBool::new(false));
        Self { number, generation, file, length, relocations, is_unshared }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn length(&self) -> u32 {
        self.length.load(Ordering::Acquire)
    }

    pub(super) fn is_compacted(&self) -> bool {
        self.generation > 0
    }

    /// Returns whether new rows may name signatures in this segment.
    pub(super) fn is_shared(&self) -> bool {
        !self.is_unshared.load(Ordering::SeqCst)
    }

    pub(super) fn end_sharing(&self) {
        self.is_unshared.store(true, Ordering::SeqCst);
    }

    pub(super) fn checkpoint(&self) -> SegmentCheckpoint {
        SegmentCheckpoint { segment: self.number, generation: self.generation, length: self.length() }
    }

    pub(super) fn write(&self, directory: &dyn Directory, at: u32, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.write(bytes, u64::from(at));
        written.map_err(|error| StoreError::of_file("write signatures", directory.path(), &error))?;
        self.length.store(at + bytes.len() as u32, Ordering::Release);
        Ok(())
    }

    pub(super) fn sync(&self, directory: &dyn Directory) -> Result<(), StoreError> {
        let synced = self.file.sync();
        synced.map_err(|error| StoreError::of_file("write signatures", directory.path(), &error))
    }

    /// Writes the bytes after an offset again, and syncs them. If a sync of an earlier process failed, the
    /// operating system may consider these bytes written, and a sync alone would do nothing.
    pub(super) fn rewrite(&self, directory: &dyn Directory, from: u32) -> Result<(), StoreError> {
        let write = || {
            let (mut at, mut bytes) = (from, Vec::new());
            while at < self.length() {
                bytes.resize((self.length() - at).min(CHUNK_BYTES as u32) as usize, 0);
                self.file.read(&mut bytes, u64::from(at))?;
                self.file.write(&bytes, u64::from(at))?;
                at += bytes.len() as u32;
            }
            self.file.sync()
        };
        write().map_err(|error| StoreError::of_file("write signatures", directory.path(), &error))
    }

    /// Cuts the segment at offset `end`, and writes the magic bytes in case they are missing.
    ///
    /// Always syncs the file. An earlier start may have cut it without a successful sync, and the next
    /// segment may start before anything is written to this one.
    pub(super) fn cut(&self, directory: &dyn Directory, end: u32) -> Result<(), StoreError> {
        let cut = || {
            if self.length() != end {
                self.file.cut(u64::from(end))?;
                self.file.write(&MAGIC, 0)?;
            }
            self.file.sync()
        };
        cut().map_err(|error| StoreError::of_file("write signatures", directory.path(), &error))?;
        self.length.store(end, Ordering::Release);
        Ok(())
    }

    /// Reads the bytes of a signature into a buffer.
    pub(super) fn read(
        &self,
        directory: &dyn Directory,
        id: SignatureId,
        buffer: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let damaged = |what: String| {
            let what = format!("{}: {what}", name(self.number, self.generation));
            StoreError::damaged_file(directory.path(), what)
        };
        let offset = if self.generation == 0 {
            id.offset
        } else {
            let relocations = self.relocations(directory)?;
            let at = relocations.binary_search_by_key(&id.offset, |relocation| relocation.id_offset);
            at.map(|at| relocations[at].offset).map_err(|_| damaged(format!("no signature {}", id.offset)))?
        };
        if u64::from(offset) + u64::from(id.bytes) > u64::from(self.length()) {
            return Err(damaged(format!("the signature at byte {offset} ends after the file does")));
        }
        buffer.resize(id.bytes as usize, 0);
        let read = self.file.read(buffer, u64::from(offset));
        read.map_err(|error| StoreError::of_file("read signatures", directory.path(), &error))
    }

    fn relocations(&self, directory: &dyn Directory) -> Result<&[Relocation], StoreError> {
        if self.relocations.get().is_none() {
            let mut relocations = Vec::new();
            self.scan(directory, &mut |id, at, _| {
                relocations.push(Relocation { id_offset: id.offset, offset: at });
                Ok(true)
            })?;
            // Another reader may have set it first.
            let _ = self.relocations.set(relocations);
        }
        Ok(self.relocations.get().map_or(&[], Vec::as_slice))
    }

    /// Calls `each` for every signature in the order of the file, until it returns `false`. Returns whether
    /// all signatures were passed on.
    pub(super) fn scan(
        &self,
        directory: &dyn Directory,
        visit: &mut SignatureVisitor<'_>,
    ) -> Result<bool, StoreError> {
        let failed = |error| StoreError::of_file("read signatures", directory.path(), &error);
        let damaged = |at: u32| {
            let what = format!("{} at byte {at}: no signature", name(self.number, self.generation));
            StoreError::damaged_file(directory.path(), what)
        };
        let mut chunks =
            ChunkReader { file: &*self.file, end: self.length(), start: FIRST, bytes: Vec::new() };
        let mut at = FIRST;
        while at < chunks.end {
            let head = chunks.get(at, HEAD_BYTES).map_err(failed)?.ok_or_else(|| damaged(at))?;
            let (fields, _) = head.as_chunks::<4>();
            let [bytes, offset] = [fields[0], fields[1]].map(u32::from_le_bytes);
            let place = at + HEAD_BYTES;
            let signature = chunks.get(place, bytes).map_err(failed)?.ok_or_else(|| damaged(at))?;
            if !visit(SignatureId { segment: self.number, offset, bytes }, place, signature)? {
                return Ok(false);
            }
            at = place + bytes;
        }
        Ok(true)
    }

    /// Writes the next generation of the segment, with only the used signatures. `used` is ordered.
    ///
    /// # Errors
    /// Fails if the file cannot be written. Also fails if a used signature is not found: then the segment is
    /// damaged, and stays as it is.
    pub(super) fn compact(&self, directory: &dyn Directory, used: &[Extent]) -> Result<Self, StoreError> {
        let generation = self.generation + 1;
        let unfinished = name(self.number, generation) + UNFINISHED_SUFFIX;
        self.write_compacted(directory, generation, &unfinished, used).inspect_err(|_| {
            // If this fails, the next start removes the file.
            let _ = directory.remove(&unfinished);
        })
    }

    fn write_compacted(
        &self,
        directory: &dyn Directory,
        generation: u32,
        unfinished: &str,
        used: &[Extent],
    ) -> Result<Self, StoreError> {
        let failed = |error| StoreError::of_file("compact signatures", directory.path(), &error);
        let file = directory.create(unfinished).map_err(failed)?;
        let (mut buffer, mut written, mut relocations) = (MAGIC.to_vec(), 0_u64, Vec::new());
        self.scan(directory, &mut |id, _, signature| {
            if used.binary_search(&id.extent()).is_ok() {
                let offset = (written + buffer.len() as u64) as u32 + HEAD_BYTES;
                relocations.push(Relocation { id_offset: id.offset, offset });
                append_with_id(&mut buffer, id.offset, signature);
                if buffer.len() >= CHUNK_BYTES {
                    file.write(&buffer, written).map_err(failed)?;
                    written += buffer.len() as u64;
                    buffer.clear();
                }
            }
            Ok(true)
        })?;
        if !relocations
            .iter()
            .map(|relocation| relocation.id_offset)
            .eq(used.iter().map(|extent| extent.offset))
        {
            let what = format!("{} lacks signatures that rows name", name(self.number, self.generation));
            return Err(StoreError::damaged_file(directory.path(), what));
        }
        let finish = || {
            file.write(&buffer, written)?;
            file.sync()?;
            directory.rename(unfinished, &name(self.number, generation))?;
            directory.sync()
        };
        finish().map_err(failed)?;
        let length = (written + buffer.len() as u64) as u32;
        Ok(Self {
            relocations: OnceLock::from(relocations),
            ..Self::with_file(self.number, generation, file, length)
        })
    }

    /// Removes the file of the segment.
    pub(super) fn remove(&self, directory: &dyn Directory) -> Result<(), StoreError> {
        let removed = match directory.remove(&name(self.number, self.generation)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        removed.map_err(|error| StoreError::of_file("remove signatures", directory.path(), &error))
    }
}

/// Number of bytes to read from a file at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Reads a file from beginning to end in chunks.
struct ChunkReader<'f> {
    file: &'f dyn File,
    end: u32,
    /// Offset in the file at which `bytes` begin.
    start: u32,
    bytes: Vec<u8>,
}

impl ChunkReader<'_> {
    /// Returns bytes of the file; `None` if the file ends before.
    fn get(&mut self, at: u32, bytes: u32) -> std::io::Result<Option<&[u8]>> {
        let end = u64::from(at) + u64::from(bytes);
        if end > u64::from(self.end) {
            return Ok(None);
        }
        if end > u64::from(self.start) + self.bytes.len() as u64 {
            let wanted = (bytes as usize).max(CHUNK_BYTES).min((self.end - at) as usize);
            self.bytes.resize(wanted, 0);
            self.start = at;
            self.file.read(&mut self.bytes, u64::from(at))?;
        }
        let start = (at - self.start) as usize;
        Ok(self.bytes.get(start..start + bytes as usize))
    }
}
