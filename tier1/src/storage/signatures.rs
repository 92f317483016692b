//! The signatures of a range, in append-only segment files. Each content is stored about once.
//!
//! A row names a signature by its [`SignatureId`], which says where the signature was first written.
//! Compaction moves a signature and keeps its id. Pages of the range with the same content share a signature
//! if the content table knows it. Otherwise the signature is written a second time, which costs only space.
//!
//! | module | responsibility |
//! |---|---|
//! | `segment` | a file of signatures |
//! | `opening` | opening all segments at a start |
//! | `content_table` | finding the id of a content, in memory |
//! | `compaction` | rewriting segments of which too little is used |
//! | `place` | the place of a signature among all ranges |
//!
//! Invariants:
//! - A signature is on disk before a row names it.
//! - A segment is removed only when no row names a signature in it.
//! - After a failed sync of the last segment every further write fails, because the operating system may
//!   consider data written that it has discarded.

mod compaction;
mod content_table;
mod opening;
mod place;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::storage::files::Directory;
use crate::storage::store::StoreError;
pub(crate) use compaction::{ClosedSegments, ReplacedFiles, UsedSignatures};
use content_table::ContentTable;
use segment::{Extent, Segment};

/// Maximum length of a segment in bytes.
pub(crate) const SEGMENT_BYTES: u32 = 256 << 20;

/// Position of the content hash in the bytes of a signature.
const CONTENT_BYTES: std::ops::Range<usize> = 4..20;

/// Names a signature by the place where it was first written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SignatureId {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    /// Length of the signature in bytes.
    pub(crate) bytes: u32,
}

impl SignatureId {
    /// Encodes the id as it is stored in a row.
    pub(crate) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.segment.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..].copy_from_slice(&self.bytes.to_be_bytes());
        bytes
    }

    /// Returns the part of its segment that the id names.
    fn extent(self) -> Extent {
        Extent { offset: self.offset, bytes: self.bytes }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (fields, rest) = bytes.as_chunks::<4>();
        let [segment, offset, bytes] = *fields else { return None };
        let [segment, offset, bytes] = [segment, offset, bytes].map(u32::from_be_bytes);
        rest.is_empty().then_some(Self { segment, offset, bytes })
    }
}

/// State of a segment at a checkpoint. At the next start the segment must exist and have at least this
/// length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentCheckpoint {
    pub(crate) segment: u32,
    /// Number of times that the segment was compacted.
    pub(crate) generation: u32,
    pub(crate) length: u32,
}

/// Stores the signatures of a range.
pub(crate) struct SignatureStore {
    directory: Box<dyn Directory>,
    segment_bytes: u32,
    segments: RwLock<BTreeMap<u32, Arc<Segment>>>,
    /// Writes to the last segment.
    writing: Mutex<SegmentWriter>,
    contents: Mutex<ContentTable>,
    /// Whether a compaction is finding out which signatures are used. Signatures in closed segments are not
    /// shared meanwhile.
    are_segments_closed: AtomicBool,
    /// Size of all segments in bytes after the last compaction.
    compacted_bytes: AtomicU64,
}

/// Appends to the last segment through a buffer.
struct SegmentWriter {
    segment: Arc<Segment>,
    /// Offset up to which the segment is known to be on disk.
    synced: u32,
    /// Offset in the segment at which the buffer begins.
    written: u32,
    /// Bytes that are not yet written to the file.
    buffer: Vec<u8>,
    /// Whether a sync has failed.
    has_failed: bool,
}

impl SegmentWriter {
    /// Creates a writer that appends to a segment whose bytes are all on disk.
    fn new(segment: Arc<Segment>) -> Self {
        let written = segment.length();
        Self { segment, synced: written, written, buffer: Vec::new(), has_failed: false }
    }

    fn check(&self, directory: &dyn Directory) -> Result<(), StoreError> {
        if self.has_failed {
            let what = format!(
                "{}: signatures cannot be written because an earlier sync failed",
                directory.path().display()
            );
            return Err(StoreError::Engine(what));
        }
        Ok(())
    }

    /// Writes the buffer to the file.
    fn write_out(&mut self, directory: &dyn Directory) -> Result<(), StoreError> {
        self.check(directory)?;
        if !self.buffer.is_empty() {
            self.segment.write(directory, self.written, &self.buffer)?;
            self.written += self.buffer.len() as u32;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Returns when all written bytes are on disk, even if another thread wrote them.
    fn sync(&mut self, directory: &dyn Directory) -> Result<(), StoreError> {
        self.check(directory)?;
        if self.synced < self.written {
            let synced = self.segment.sync(directory);
            self.note_synced(self.written, synced)?;
        }
        Ok(())
    }

    /// Records the result of a sync of the segment up to offset `written`.
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

impl SignatureStore {
    /// Opens the segments. `compacted_bytes` is their size in bytes after the last compaction.
    ///
    /// The segments in `checkpoints` must exist. `last` is the greatest id that a row names and that the
    /// checkpoints do not cover. No row ever named the rest of the last segment, so the rest is cut off.
    ///
    /// # Errors
    /// Fails if a segment is missing, cut or damaged, or cannot be opened.
    pub(crate) fn open(
        directory: Box<dyn Directory>,
        checkpoints: &[SegmentCheckpoint],
        compacted_bytes: u64,
        last: Option<SignatureId>,
        segment_bytes: u32,
    ) -> Result<Self, StoreError> {
        let mut segments = opening::open_all(&*directory, checkpoints, last)?;
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
            writing: Mutex::new(SegmentWriter::new(last)),
            contents: Mutex::default(),
            are_segments_closed: AtomicBool::new(false),
            compacted_bytes: AtomicU64::new(compacted_bytes),
        })
    }

    /// Adds a signature, unless it is already stored. It can be read after the next [`write`](Self::write).
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

    /// Like [`add`](Self::add), for a signature that the caller knows to be new. Later pages will not share
    /// it.
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
        writing: &mut SegmentWriter,
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

    /// Starts a new segment for all later signatures, unless the last segment is empty.
    pub(crate) fn begin_segment(&self) -> Result<(), StoreError> {
        let mut writing = lock(&self.writing);
        let end = writing.written + writing.buffer.len() as u32;
        if end > segment::FIRST { self.begin_next(&mut writing) } else { Ok(()) }
    }

    fn begin_next(&self, writing: &mut SegmentWriter) -> Result<(), StoreError> {
        writing.write_out(&*self.directory)?;
        // The segment is complete on disk before the next one exists. Only the last segment may end in a
        // partial write after a crash.
        writing.sync(&*self.directory)?;
        let number = writing.segment.number() + 1;
        let segment = Arc::new(Segment::create(&*self.directory, number)?);
        self.segments_mut().insert(number, Arc::clone(&segment));
        let buffer = std::mem::take(&mut writing.buffer);
        *writing = SegmentWriter { buffer, ..SegmentWriter::new(segment) };
        Ok(())
    }

    /// Returns whether the stored signature `id` has these bytes.
    fn is_same(&self, writing: &SegmentWriter, id: SignatureId, signature: &[u8]) -> bool {
        if id.segment == writing.segment.number() {
            if let Some(start) = id.offset.checked_sub(writing.written) {
                let start = start as usize;
                return writing.buffer.get(start..start + signature.len()) == Some(signature);
            }
        } else if self.are_segments_closed.load(Ordering::SeqCst) {
            return false;
        }
        // A signature that cannot be read is written again.
        self.read(id).is_ok_and(|bytes| bytes == signature)
    }

    /// Writes the buffered signatures. With `sync`, all signatures are on disk on return.
    ///
    /// # Errors
    /// Fails if the buffer cannot be written, or if this sync or an earlier one failed.
    pub(crate) fn write(&self, sync: bool) -> Result<(), StoreError> {
        let mut writing = lock(&self.writing);
        writing.write_out(&*self.directory)?;
        if sync { writing.sync(&*self.directory) } else { Ok(()) }
    }

    /// Syncs the written part of the last segment, while other threads add signatures.
    ///
    /// # Errors
    /// Fails if this sync or an earlier one failed.
    pub(crate) fn sync_written(&self) -> Result<(), StoreError> {
        let (segment, written) = {
            let writing = lock(&self.writing);
            writing.check(&*self.directory)?;
            (Arc::clone(&writing.segment), writing.written)
        };
        let synced = segment.sync(&*self.directory);
        let mut writing = lock(&self.writing);
        // If another segment has begun meanwhile, the earlier one was synced completely before.
        let is_last = segment.number() == writing.segment.number();
        writing.note_synced(if is_last { written } else { 0 }, synced)
    }

    /// Returns the bytes of a signature, without verifying them.
    ///
    /// # Errors
    /// Fails if the signature no longer exists or cannot be read.
    pub(crate) fn read(&self, id: SignatureId) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        self.read_into(id, &mut bytes)?;
        Ok(bytes)
    }

    /// Like [`read`](Self::read), but replaces the content of a buffer.
    pub(crate) fn read_into(&self, id: SignatureId, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
        let segment = self.segments().get(&id.segment).cloned();
        let segment = segment.ok_or_else(|| {
            let what = format!("segment {} is missing", id.segment);
            StoreError::damaged_file(self.directory.path(), what)
        })?;
        segment.read(&*self.directory, id, buffer)
    }

    /// Returns the segments that must exist at the next start. For the last segment, only the length that is
    /// known to be on disk counts, because a sync may have failed.
    pub(crate) fn checkpoints(&self) -> Vec<SegmentCheckpoint> {
        let (last, synced) = {
            let writing = lock(&self.writing);
            (writing.segment.number(), writing.synced)
        };
        let checkpoint = |segment: &Arc<Segment>| {
            let found = segment.checkpoint();
            if found.segment == last {
                SegmentCheckpoint { length: found.length.min(synced), ..found }
            } else {
                found
            }
        };
        self.segments().values().map(checkpoint).collect()
    }

    /// Calls `each` for every written signature until it returns `false`. Unused signatures are included.
    ///
    /// # Errors
    /// Fails if a segment is damaged, after passing on the signatures before it.
    pub(crate) fn for_each(
        &self,
        each: &mut dyn FnMut(SignatureId, &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let all: Vec<_> = self.segments().values().cloned().collect();
        let mut one = |id, _, bytes: &[u8]| Ok(each(id, bytes));
        for segment in all {
            if !segment.scan(&*self.directory, &mut one)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the size of all segments in bytes.
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
