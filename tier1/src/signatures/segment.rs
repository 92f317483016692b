//! A segment: a file of signatures.
//!
//! The file is [`MAGIC`], then signatures one after another, each behind a head of [`HEAD_BYTES`]: its length and the
//! offset of its id, 4 bytes each, little-endian. In a segment that was never compacted that offset is where the
//! signature is. A signature carries its own checksum.
//!
//! A segment that was compacted has another name, by its generation. The new file is complete before it gets that name,
//! and the old one goes after, so of two generations the later one is whole.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Noted, SignatureId};
use crate::files::{Directory, File};
use crate::store::StoreError;

/// "doppel", signatures, and the version of the layout.
const MAGIC: [u8; 16] = *b"doppel sig v1\0\0\n";

/// Where the first signature's head is.
pub(super) const FIRST: u32 = MAGIC.len() as u32;

/// Bytes before a signature.
pub(super) const HEAD_BYTES: u32 = 8;

const ENDING: &str = ".sig";

/// What a file is called before it is complete.
pub(super) const UNFINISHED: &str = ".new";

/// Takes the id, the place and the bytes of a signature, and says whether to go on.
type Each<'e> = dyn FnMut(SignatureId, u32, &[u8]) -> Result<bool, StoreError> + 'e;

/// An open segment.
pub(super) struct Segment {
    number: u32,
    generation: u32,
    file: Arc<dyn File>,
    length: AtomicU32,
    /// Of a compacted segment: where each signature is, by the offset of its id. Read when it is first needed.
    moved: OnceLock<Vec<(u32, u32)>>,
    /// A compaction has failed, and the next start may take its file, which lacks unused signatures: new rows must not name those.
    is_unshared: AtomicBool,
}

/// The name of a segment's file.
fn name(number: u32, generation: u32) -> String {
    if generation == 0 {
        format!("{number:08x}{ENDING}")
    } else {
        format!("{number:08x}-{generation:x}{ENDING}")
    }
}

fn parse(name: &str) -> Option<(u32, u32)> {
    let stem = name.strip_suffix(ENDING)?;
    let (number, generation) = stem.split_once('-').unwrap_or((stem, "0"));
    Some((u32::from_str_radix(number, 16).ok()?, u32::from_str_radix(generation, 16).ok()?))
}

/// Appends a signature with its head to what is written at `start`.
pub(super) fn append(out: &mut Vec<u8>, start: u32, signature: &[u8]) {
    append_moved(out, start + HEAD_BYTES, signature);
}

fn append_moved(out: &mut Vec<u8>, id_offset: u32, signature: &[u8]) {
    out.extend((signature.len() as u32).to_le_bytes());
    out.extend(id_offset.to_le_bytes());
    out.extend(signature);
}

/// Opens the segments of a directory, the latest generation of each; see [`Signatures::open`](super::Signatures::open).
pub(super) fn open_all(
    directory: &dyn Directory,
    noted: &[Noted],
    last: Option<SignatureId>,
) -> Result<BTreeMap<u32, Arc<Segment>>, StoreError> {
    let failed = |error| StoreError::of_file("read signatures", directory.path(), &error);
    let mut latest: BTreeMap<u32, u32> = BTreeMap::new();
    let mut superseded = Vec::new();
    for entry in directory.list().map_err(failed)? {
        if entry.ends_with(UNFINISHED) {
            superseded.push(entry);
        } else if let Some((number, generation)) = parse(&entry) {
            match latest.get(&number).copied() {
                Some(other) if other >= generation => superseded.push(entry),
                other => {
                    superseded.extend(other.map(|other| name(number, other)));
                    latest.insert(number, generation);
                }
            }
        }
    }
    let damaged = |what| StoreError::damaged_file(directory.path(), what);
    let mut segments = BTreeMap::new();
    for (number, generation) in latest {
        let segment = Segment::open(directory, number, generation)?;
        segments.insert(number, Arc::new(segment));
    }
    for one in noted {
        let Some(segment) = segments.get(&one.segment) else {
            return Err(damaged(format!("{} is missing", name(one.segment, one.generation))));
        };
        let is_later = segment.generation > one.generation;
        if segment.generation < one.generation || !is_later && segment.length() < one.length {
            return Err(damaged(format!("{} is missing or cut", name(one.segment, one.generation))));
        }
    }
    if let Some(last) = last
        && segments.get(&last.segment).is_none_or(|segment| {
            segment.generation == 0
                && u64::from(segment.length()) < u64::from(last.offset) + u64::from(last.bytes)
        })
    {
        return Err(damaged(format!("{} is missing or cut", name(last.segment, 0))));
    }
    // What is behind the end was never named: it may be there in part. The end may be before a segment that could not be
    // begun.
    for (number, segment) in segments.iter().rev().take_while(|(_, segment)| segment.generation == 0) {
        let noted = noted.iter().find(|one| one.segment == *number).map_or(FIRST, |one| one.length);
        let named =
            last.filter(|last| last.segment == *number).map_or(FIRST, |last| last.offset + last.bytes);
        segment.cut(directory, noted.max(named))?;
        if segment.length() > FIRST {
            break;
        }
    }
    // The process that wrote the rest may have died before it was on disk. If a segment was not noted, not even its head may be.
    for (number, segment) in &segments {
        let noted = noted.iter().find(|one| one.segment == *number).map_or(0, |one| one.length);
        if segment.is_compacted() {
            segment.sync(directory)?;
        } else if noted < segment.length() {
            segment.write_again(directory, noted)?;
        }
    }
    directory.sync().map_err(failed)?;
    for entry in superseded {
        directory.remove(&entry).map_err(failed)?;
    }
    Ok(segments)
}

impl Segment {
    /// Makes a new one, whose name is on disk then.
    pub(super) fn create(directory: &dyn Directory, number: u32) -> Result<Self, StoreError> {
        let create = || {
            let file = directory.create(&name(number, 0))?;
            file.write(&MAGIC, 0)?;
            file.sync()?;
            directory.sync()?;
            Ok(file)
        };
        let segment = create().map(|file| Self::over(number, 0, file, FIRST));
        segment.map_err(|error| StoreError::of_file("write signatures", directory.path(), &error))
    }

    fn open(directory: &dyn Directory, number: u32, generation: u32) -> Result<Self, StoreError> {
        let failed = |error| StoreError::of_file("read signatures", directory.path(), &error);
        let file = directory.open(&name(number, generation)).map_err(failed)?;
        let length = u32::try_from(file.length().map_err(failed)?).unwrap_or(u32::MAX);
        let mut magic = [0; MAGIC.len()];
        if length >= FIRST {
            file.read(&mut magic, 0).map_err(failed)?;
        }
        // One that was being made when the process died may not have its head; then nothing names it either.
        Ok(Self::over(number, generation, file, if magic == MAGIC { length } else { 0 }))
    }

    fn over(number: u32, generation: u32, file: Arc<dyn File>, length: u32) -> Self {
        let (length, moved, is_unshared) = (AtomicU32::new(length), OnceLock::new(), AtomicBool::new(false));
        Self { number, generation, file, length, moved, is_unshared }
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

    /// Whether new rows may name what is in it.
    pub(super) fn is_shared(&self) -> bool {
        !self.is_unshared.load(Ordering::SeqCst)
    }

    pub(super) fn end_sharing(&self) {
        self.is_unshared.store(true, Ordering::SeqCst);
    }

    pub(super) fn noted(&self) -> Noted {
        Noted { segment: self.number, generation: self.generation, length: self.length() }
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

    /// Writes once more what is behind a place, and syncs it. When a sync of the process that wrote it has failed, the operating system may hold
    /// it for written, and a sync alone would do nothing.
    fn write_again(&self, directory: &dyn Directory, from: u32) -> Result<(), StoreError> {
        let write = || {
            let (mut at, mut bytes) = (from, Vec::new());
            while at < self.length() {
                bytes.resize((self.length() - at).min(PIECE_BYTES as u32) as usize, 0);
                self.file.read(&mut bytes, u64::from(at))?;
                self.file.write(&bytes, u64::from(at))?;
                at += bytes.len() as u32;
            }
            self.file.sync()
        };
        write().map_err(|error| StoreError::of_file("write signatures", directory.path(), &error))
    }

    /// Cuts off what is behind the end, and writes the head where even that is not there. Always syncs the file: an earlier start may have
    /// cut it and failed to sync it, and the next segment may begin before anything is written to this one.
    fn cut(&self, directory: &dyn Directory, end: u32) -> Result<(), StoreError> {
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
            let moved = self.moved(directory)?;
            let at = moved.binary_search_by_key(&id.offset, |(offset, _)| *offset);
            at.map(|at| moved[at].1).map_err(|_| damaged(format!("no signature {}", id.offset)))?
        };
        if u64::from(offset) + u64::from(id.bytes) > u64::from(self.length()) {
            return Err(damaged(format!("the signature at byte {offset} is behind its end")));
        }
        buffer.resize(id.bytes as usize, 0);
        let read = self.file.read(buffer, u64::from(offset));
        read.map_err(|error| StoreError::of_file("read signatures", directory.path(), &error))
    }

    fn moved(&self, directory: &dyn Directory) -> Result<&[(u32, u32)], StoreError> {
        if self.moved.get().is_none() {
            let mut moved = Vec::new();
            self.each(directory, &mut |id, at, _| {
                moved.push((id.offset, at));
                Ok(true)
            })?;
            // Another reader may have been first.
            let _ = self.moved.set(moved);
        }
        Ok(self.moved.get().map_or(&[], Vec::as_slice))
    }

    /// Calls `each` with the id, the place and the bytes of every signature, in the order of the file, until it
    /// returns false. Whether it never did.
    pub(super) fn each(&self, directory: &dyn Directory, each: &mut Each<'_>) -> Result<bool, StoreError> {
        let failed = |error| StoreError::of_file("read signatures", directory.path(), &error);
        let damaged = |at: u32| {
            let what = format!("{} at byte {at}: no signature", name(self.number, self.generation));
            StoreError::damaged_file(directory.path(), what)
        };
        let mut pieces = Pieces { file: &*self.file, end: self.length(), start: FIRST, bytes: Vec::new() };
        let mut at = FIRST;
        while at < pieces.end {
            let head = pieces.get(at, HEAD_BYTES).map_err(failed)?.ok_or_else(|| damaged(at))?;
            let (fields, _) = head.as_chunks::<4>();
            let [bytes, offset] = [fields[0], fields[1]].map(u32::from_le_bytes);
            let place = at + HEAD_BYTES;
            let signature = pieces.get(place, bytes).map_err(failed)?.ok_or_else(|| damaged(at))?;
            if !each(SignatureId { segment: self.number, offset, bytes }, place, signature)? {
                return Ok(false);
            }
            at = place + bytes;
        }
        Ok(true)
    }

    /// Writes the next generation of the segment with the signatures that are used: their offsets and lengths, in order.
    ///
    /// # Errors
    /// When it cannot be written, or not all of them are found: then the segment is damaged, and stays as it is.
    pub(super) fn compacted(
        &self,
        directory: &dyn Directory,
        used: &[(u32, u32)],
    ) -> Result<Self, StoreError> {
        let generation = self.generation + 1;
        let unfinished = name(self.number, generation) + UNFINISHED;
        self.write_compacted(directory, generation, &unfinished, used).inspect_err(|_| {
            // The next start removes it at the latest.
            let _ = directory.remove(&unfinished);
        })
    }

    fn write_compacted(
        &self,
        directory: &dyn Directory,
        generation: u32,
        unfinished: &str,
        used: &[(u32, u32)],
    ) -> Result<Self, StoreError> {
        let failed = |error| StoreError::of_file("compact signatures", directory.path(), &error);
        let file = directory.create(unfinished).map_err(failed)?;
        let (mut buffer, mut written, mut moved) = (MAGIC.to_vec(), 0_u64, Vec::new());
        self.each(directory, &mut |id, _, signature| {
            if used.binary_search(&(id.offset, id.bytes)).is_ok() {
                moved.push((id.offset, (written + buffer.len() as u64) as u32 + HEAD_BYTES));
                append_moved(&mut buffer, id.offset, signature);
                if buffer.len() >= PIECE_BYTES {
                    file.write(&buffer, written).map_err(failed)?;
                    written += buffer.len() as u64;
                    buffer.clear();
                }
            }
            Ok(true)
        })?;
        if !moved.iter().map(|(offset, _)| offset).eq(used.iter().map(|(offset, _)| offset)) {
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
        Ok(Self { moved: OnceLock::from(moved), ..Self::over(self.number, generation, file, length) })
    }

    /// Removes the file.
    pub(super) fn remove(&self, directory: &dyn Directory) -> Result<(), StoreError> {
        let removed = match directory.remove(&name(self.number, self.generation)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        removed.map_err(|error| StoreError::of_file("remove signatures", directory.path(), &error))
    }
}

/// What is read of a file at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Reads a file from its beginning to its end.
struct Pieces<'f> {
    file: &'f dyn File,
    end: u32,
    /// Where `bytes` begin.
    start: u32,
    bytes: Vec<u8>,
}

impl Pieces<'_> {
    /// Bytes of the file; none where it ends before.
    fn get(&mut self, at: u32, bytes: u32) -> std::io::Result<Option<&[u8]>> {
        let end = u64::from(at) + u64::from(bytes);
        if end > u64::from(self.end) {
            return Ok(None);
        }
        if end > u64::from(self.start) + self.bytes.len() as u64 {
            let wanted = (bytes as usize).max(PIECE_BYTES).min((self.end - at) as usize);
            self.bytes.resize(wanted, 0);
            self.start = at;
            self.file.read(&mut self.bytes, u64::from(at))?;
        }
        let start = (at - self.start) as usize;
        Ok(self.bytes.get(start..start + bytes as usize))
    }
}
