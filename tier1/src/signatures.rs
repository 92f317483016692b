//! The signatures of a range: each content once, in append-only segment files.
//!
//! A [`SignatureId`] names a signature for as long as a row does. It says where the signature was first written;
//! compaction moves the signature and keeps the id. Pages of the range with the same content share one, as far as the
//! table of contents knows it: what is not found there is written a second time, which costs its bytes and no more.
//!
//! | module | what |
//! |---|---|
//! | `segment` | a file of signatures |
//! | `contents` | which content has which id, in memory |
//! | `compaction` | segments of which less than half is used are written anew |
//!
//! Invariants: a signature is on disk before a row names it; a segment goes only after no row names what is in it; once a sync of the last
//! segment has failed, every further write fails, because the operating system may hold for written what it has given up.

mod compaction;
mod contents;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::files::Directory;
use crate::store::StoreError;
pub(crate) use compaction::{Closed, Replaced, Used};
use contents::Contents;
use segment::Segment;

/// A segment gets no further signature from this length on, unless a test wants shorter ones.
pub(crate) const SEGMENT_BYTES: u32 = 256 << 20;

/// Bytes of a signature that are needed to know its content.
const CONTENT_BYTES: std::ops::Range<usize> = 4..20;

/// Where a signature was first written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SignatureId {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    /// Its length.
    pub(crate) bytes: u32,
}

impl SignatureId {
    /// As a row has it.
    pub(crate) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.segment.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..].copy_from_slice(&self.bytes.to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (fields, rest) = bytes.as_chunks::<4>();
        let [segment, offset, bytes] = *fields else { return None };
        let [segment, offset, bytes] = [segment, offset, bytes].map(u32::from_be_bytes);
        rest.is_empty().then_some(Self { segment, offset, bytes })
    }
}

/// A segment as it was noted with the rows: it must be there, and at least so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) segment: u32,
    /// How often it was compacted.
    pub(crate) generation: u32,
    pub(crate) length: u32,
}

/// The signatures of a range.
pub(crate) struct Signatures {
    directory: Box<dyn Directory>,
    segment_bytes: u32,
    segments: RwLock<BTreeMap<u32, Arc<Segment>>>,
    /// The end of the last segment.
    writing: Mutex<Writing>,
    contents: Mutex<Contents>,
    /// Signatures in closed segments are not shared meanwhile: it is being found out what is used.
    closed: AtomicBool,
    /// Bytes after the last compaction.
    compacted: AtomicU64,
}

/// The end of the last segment.
struct Writing {
    segment: Arc<Segment>,
    /// Up to here it is known to be on disk.
    synced: u32,
    /// Where the buffer begins.
    written: u32,
    /// Bytes that were taken in and are not yet written.
    buffer: Vec<u8>,
    /// Whether a sync has failed.
    has_failed: bool,
}

impl Writing {
    /// At the end of a segment that is on disk.
    fn at(segment: Arc<Segment>) -> Self {
        let written = segment.length();
        Self { segment, synced: written, written, buffer: Vec::new(), has_failed: false }
    }

    fn check(&self, directory: &dyn Directory) -> Result<(), StoreError> {
        if self.has_failed {
            let what = format!("{}: signatures could not be synced before", directory.path().display());
            return Err(StoreError::Engine(what));
        }
        Ok(())
    }

    /// Writes the buffer.
    fn write_out(&mut self, directory: &dyn Directory) -> Result<(), StoreError> {
        self.check(directory)?;
        if !self.buffer.is_empty() {
            self.segment.write(directory, self.written, &self.buffer)?;
            self.written += self.buffer.len() as u32;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Returns when all that was written is on disk, whoever wrote it.
    fn sync(&mut self, directory: &dyn Directory) -> Result<(), StoreError> {
        self.check(directory)?;
        if self.synced < self.written {
            let synced = self.segment.sync(directory);
            self.note_synced(self.written, synced)?;
        }
        Ok(())
    }

    /// Notes how a sync of the segment up to `written` has ended.
    fn note_synced(&mut self, written: u32, synced: Result<(), StoreError>) -> Result<(), StoreError> {
        match synced {
            Ok(()) => self.synced = self.synced.max(written),
            Err(_) => self.has_failed = true,
        }
        synced
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Signatures {
    /// Opens the segments, of which there were so many bytes after the last compaction. Those that were noted must be
    /// there. `last` is the greatest id that a row names and that was not noted: what is behind it in the last segment
    /// was never named, and is cut off.
    ///
    /// # Errors
    /// When a segment is missing, cut or damaged, or cannot be opened.
    pub(crate) fn open(
        directory: Box<dyn Directory>,
        (noted, compacted): (&[Noted], u64),
        last: Option<SignatureId>,
        segment_bytes: u32,
    ) -> Result<Self, StoreError> {
        let mut segments = segment::open_all(&*directory, noted, last)?;
        let last = match segments.last_key_value() {
            Some((_, last)) if !last.is_compacted() => Arc::clone(last),
            newest => {
                let number = newest.map_or(0, |(number, _)| number + 1);
                let segment = Arc::new(Segment::create(&*directory, number)?);
                segments.insert(number, Arc::clone(&segment));
                segment
            }
        };
        Ok(Self {
            directory,
            segment_bytes,
            segments: RwLock::new(segments),
            writing: Mutex::new(Writing::at(last)),
            contents: Mutex::default(),
            closed: AtomicBool::new(false),
            compacted: AtomicU64::new(compacted),
        })
    }

    /// Takes a signature in; it can be read after [`write`](Self::write).
    pub(crate) fn add(&self, signature: &[u8]) -> Result<SignatureId, StoreError> {
        let bytes = self.length_of(signature)?;
        let mut writing = lock(&self.writing);
        let content = signature.get(CONTENT_BYTES).unwrap_or_default();
        let known: Vec<SignatureId> = lock(&self.contents).find(content, bytes).collect();
        for id in known {
            if self.is_same(&writing, id, signature) {
                return Ok(id);
            }
        }
        let id = self.append_to(&mut writing, signature, bytes)?;
        lock(&self.contents).insert(content, id);
        Ok(id)
    }

    /// The same for one that the caller knows is not there. It is not shared with others after it.
    pub(crate) fn append(&self, signature: &[u8]) -> Result<SignatureId, StoreError> {
        let bytes = self.length_of(signature)?;
        self.append_to(&mut lock(&self.writing), signature, bytes)
    }

    fn length_of(&self, signature: &[u8]) -> Result<u32, StoreError> {
        let bytes = u32::try_from(signature.len()).ok();
        let bytes = bytes.filter(|bytes| *bytes < self.segment_bytes.max(1 << 26));
        bytes.ok_or_else(|| StoreError::Unencodable("a signature is too long".to_owned()))
    }

    fn append_to(
        &self,
        writing: &mut Writing,
        signature: &[u8],
        bytes: u32,
    ) -> Result<SignatureId, StoreError> {
        let end = writing.written + writing.buffer.len() as u32;
        if end.saturating_add(bytes) > self.segment_bytes && end > segment::FIRST {
            self.begin_next(writing)?;
        }
        let start = writing.written + writing.buffer.len() as u32;
        segment::append(&mut writing.buffer, start, signature);
        let offset = start + segment::HEAD_BYTES;
        Ok(SignatureId { segment: writing.segment.number(), offset, bytes })
    }

    /// Has what is written from here on go to a new segment, unless the last one is empty.
    pub(crate) fn begin_segment(&self) -> Result<(), StoreError> {
        let mut writing = lock(&self.writing);
        let end = writing.written + writing.buffer.len() as u32;
        if end > segment::FIRST { self.begin_next(&mut writing) } else { Ok(()) }
    }

    fn begin_next(&self, writing: &mut Writing) -> Result<(), StoreError> {
        writing.write_out(&*self.directory)?;
        // It is whole before there is another: only the last segment may end in what a crash has left.
        writing.sync(&*self.directory)?;
        let number = writing.segment.number() + 1;
        let segment = Arc::new(Segment::create(&*self.directory, number)?);
        self.segments_mut().insert(number, Arc::clone(&segment));
        let buffer = std::mem::take(&mut writing.buffer);
        *writing = Writing { buffer, ..Writing::at(segment) };
        Ok(())
    }

    /// Whether a signature that is there is this one.
    fn is_same(&self, writing: &Writing, id: SignatureId, signature: &[u8]) -> bool {
        if id.segment == writing.segment.number() {
            if let Some(start) = id.offset.checked_sub(writing.written) {
                let start = start as usize;
                return writing.buffer.get(start..start + signature.len()) == Some(signature);
            }
        } else if self.closed.load(Ordering::SeqCst) {
            return false;
        }
        // What cannot be read is written again.
        self.read(id).is_ok_and(|bytes| bytes == signature)
    }

    /// Writes what was taken in. With `sync`, all that was taken in so far is on disk then.
    ///
    /// # Errors
    /// When it cannot be written, or a sync fails or has failed before.
    pub(crate) fn write(&self, sync: bool) -> Result<(), StoreError> {
        let mut writing = lock(&self.writing);
        writing.write_out(&*self.directory)?;
        if sync { writing.sync(&*self.directory) } else { Ok(()) }
    }

    /// Syncs what was written to the last segment, while more is taken in.
    ///
    /// # Errors
    /// When the sync fails, or one has failed before.
    pub(crate) fn sync_written(&self) -> Result<(), StoreError> {
        let (segment, written) = {
            let writing = lock(&self.writing);
            writing.check(&*self.directory)?;
            (Arc::clone(&writing.segment), writing.written)
        };
        let synced = segment.sync(&*self.directory);
        let mut writing = lock(&self.writing);
        // Up to the end of a segment that is not the last one any more, all was synced before the next one began.
        let is_last = segment.number() == writing.segment.number();
        writing.note_synced(if is_last { written } else { 0 }, synced)
    }

    /// The bytes of a signature.
    ///
    /// # Errors
    /// When it is not there any more, or cannot be read. The bytes are not checked.
    pub(crate) fn read(&self, id: SignatureId) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        self.read_into(id, &mut bytes)?;
        Ok(bytes)
    }

    /// The same, in place of what a buffer holds.
    pub(crate) fn read_into(&self, id: SignatureId, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
        let segment = self.segments().get(&id.segment).cloned();
        let segment = segment.ok_or_else(|| {
            let what = format!("segment {} is missing", id.segment);
            StoreError::damaged_file(self.directory.path(), what)
        })?;
        segment.read(&*self.directory, id, buffer)
    }

    /// What must be there at the next start. Of the last segment, that is what is known to be on disk: a sync may have failed.
    pub(crate) fn noted(&self) -> Vec<Noted> {
        let (last, synced) = {
            let writing = lock(&self.writing);
            (writing.segment.number(), writing.synced)
        };
        let noted = |segment: &Arc<Segment>| {
            let noted = segment.noted();
            if noted.segment == last { Noted { length: noted.length.min(synced), ..noted } } else { noted }
        };
        self.segments().values().map(noted).collect()
    }

    /// Calls `each` for every signature that was written, those that no row names among them, until it returns false.
    ///
    /// # Errors
    /// When a segment is damaged; those before it were given.
    pub(crate) fn each(&self, each: &mut dyn FnMut(SignatureId, &[u8]) -> bool) -> Result<(), StoreError> {
        let all: Vec<_> = self.segments().values().cloned().collect();
        let mut one = |id, _, bytes: &[u8]| Ok(each(id, bytes));
        for segment in all {
            if !segment.each(&*self.directory, &mut one)? {
                break;
            }
        }
        Ok(())
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments().values().map(|segment| u64::from(segment.length())).sum()
    }

    fn segments(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<u32, Arc<Segment>>> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn segments_mut(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<u32, Arc<Segment>>> {
        self.segments.write().unwrap_or_else(PoisonError::into_inner)
    }
}
