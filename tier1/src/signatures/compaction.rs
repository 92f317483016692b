//! Segments of which less than half is used are written anew, without what no row names.
//!
//! What is used is found out by going through the rows, which costs time in proportion to them. So that is done only when
//! the segments have grown by half since the last time: then the work is paid by what was written meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{SignatureId, Signatures, lock, segment};
use crate::store::StoreError;

/// By less growth nothing is compacted, unless a test wants it.
const BYTES_MIN: u64 = 64 << 20;

/// What rows name, by segment: offsets and lengths.
#[derive(Debug, Default)]
pub(crate) struct Used(BTreeMap<u32, Vec<(u32, u32)>>);

impl Used {
    /// A row names a signature.
    pub(crate) fn add(&mut self, id: SignatureId) {
        self.0.entry(id.segment).or_default().push((id.offset, id.bytes));
    }

    /// No row names anything in a segment any more.
    pub(crate) fn forget(&mut self, segment: u32) {
        self.0.remove(&segment);
    }

    /// What is used of a segment, each signature once, in order.
    fn take(&mut self, segment: u32) -> Vec<(u32, u32)> {
        let mut used = self.0.remove(&segment).unwrap_or_default();
        used.sort_unstable();
        used.dedup();
        used
    }
}

/// The segments before this one are closed: nothing is written to them any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed {
    end: u32,
    /// Bytes that this one had then.
    length: u32,
}

impl Closed {
    /// Whether rows do not name all that was in the last segment when those before it were closed.
    pub(crate) fn has_unused(&self, used: &Used) -> bool {
        let mut of_last = used.0.get(&self.end).cloned().unwrap_or_default();
        of_last.retain(|(offset, _)| *offset < self.length);
        of_last.sort_unstable();
        of_last.dedup();
        of_last.iter().map(whole).sum::<u64>() + u64::from(segment::FIRST) < u64::from(self.length)
    }
}

/// The bytes of a signature with its head.
fn whole((_, bytes): &(u32, u32)) -> u64 {
    u64::from(*bytes) + u64::from(segment::HEAD_BYTES)
}

/// Lets the caller do what cannot wait, and take what was replaced so far.
pub(crate) type Between<'b> = dyn FnMut(&mut Replaced) -> Result<(), StoreError> + 'b;

/// So many segments may be small, by a part of the length that others have.
const SMALL_MAX: usize = 8;
const SMALL_PART: u32 = 64;

impl Signatures {
    /// Whether so much was written that it is worth going through the rows.
    pub(crate) fn wants_compaction(&self) -> bool {
        let before = self.compacted.load(Ordering::Relaxed);
        self.bytes() > before + BYTES_MIN.max(before / 2)
    }

    /// Bytes after the last compaction, to be noted for the next start.
    pub(crate) fn compacted_bytes(&self) -> u64 {
        self.compacted.load(Ordering::Relaxed)
    }

    /// So many bytes of what is there are not used.
    pub(crate) fn note_unused(&self, bytes: u64) {
        self.compacted.store(self.bytes().saturating_sub(bytes), Ordering::Relaxed);
    }

    /// From here on no row gets the id of a signature in a segment that is closed now, until [`compact`](Self::compact)
    /// ends. What rows name after this is all that they will name of these. The caller has no commit under way.
    pub(crate) fn close(&self) -> Closed {
        self.closed.store(true, Ordering::SeqCst);
        let writing = lock(&self.writing);
        Closed { end: writing.segment.number(), length: writing.written + writing.buffer.len() as u32 }
    }

    /// The closed segments that are small, if there are many.
    pub(crate) fn small(&self, closed: &Closed) -> BTreeSet<u32> {
        let small_bytes = segment::FIRST + self.segment_bytes / SMALL_PART;
        let segments = self.segments();
        let small = segments.range(..closed.end).filter(|(_, segment)| segment.length() < small_bytes);
        let small: BTreeSet<u32> = small.map(|(number, _)| *number).collect();
        if small.len() > SMALL_MAX { small } else { BTreeSet::new() }
    }

    /// It could not be found out what is used.
    pub(crate) fn reopen(&self) {
        self.closed.store(false, Ordering::SeqCst);
    }

    /// Compacts closed segments of which less than `share` percent is in `used`. Gives the old files, to be removed when
    /// the rows that are on disk name nothing in them any more; and why not all were compacted, if that is so: a file is
    /// damaged or cannot be written. Nothing is lost then.
    pub(crate) fn compact(
        &self,
        closed: Closed,
        used: Used,
        share: u64,
        between: &mut Between<'_>,
    ) -> (Replaced, Result<(), StoreError>) {
        let mut replaced = Replaced::default();
        let compacted = self.compact_closed(closed, used, share, &mut replaced, between);
        self.compacted.store(self.bytes(), Ordering::Relaxed);
        self.reopen();
        (replaced, compacted)
    }

    fn compact_closed(
        &self,
        Closed { end, .. }: Closed,
        mut used: Used,
        share: u64,
        replaced: &mut Replaced,
        between: &mut Between<'_>,
    ) -> Result<(), StoreError> {
        let closed: Vec<_> = self.segments().range(..end).map(|(_, one)| Arc::clone(one)).collect();
        let mut failed = Ok(());
        for segment in closed {
            between(replaced)?;
            let (number, used) = (segment.number(), used.take(segment.number()));
            let (length, in_use) = (u64::from(segment.length()), used.iter().map(whole).sum::<u64>());
            if in_use * 100 >= length.saturating_sub(u64::from(segment::FIRST)) * share {
                continue;
            }
            let keep = |offset| used.binary_search_by_key(&offset, |(offset, _)| *offset).is_ok();
            if used.is_empty() {
                self.segments_mut().remove(&number);
            } else {
                match segment.compacted(&*self.directory, &used) {
                    Ok(compacted) => drop(self.segments_mut().insert(number, Arc::new(compacted))),
                    // The others are done nevertheless.
                    Err(error) => {
                        // The new file may have its name all the same, and then the next start takes it: a new row must not name what it
                        // does not have. Contents of it that are learned later are not shared either.
                        segment.end_sharing();
                        lock(&self.contents).retain(number, keep);
                        failed = failed.and(Err(error));
                        continue;
                    }
                }
            }
            lock(&self.contents).retain(number, keep);
            tracing::debug!(number, length, in_use, "a segment of signatures was compacted");
            replaced.0.push(segment);
        }
        failed
    }

    /// Removes files whose signatures are elsewhere or not used. One that cannot be removed stays named, and does no harm.
    pub(crate) fn remove(&self, replaced: &mut Replaced) {
        replaced.0.retain(|segment| match segment.remove(&*self.directory) {
            Ok(()) => false,
            Err(error) => {
                tracing::warn!(%error, "a file of signatures that nobody uses cannot be removed");
                true
            }
        });
    }

    /// Returns when files that were removed do not come back after a crash.
    pub(crate) fn sync_removed(&self) -> Result<(), StoreError> {
        let synced = self.directory.sync();
        synced.map_err(|error| StoreError::of_file("sync the directory", self.directory.path(), &error))
    }

    /// Lets pages share signatures that were written before this start: those of the next segment after `learned`.
    /// Whether there are more.
    ///
    /// # Errors
    /// When the segment is damaged.
    pub(crate) fn learn_contents(&self, learned: &mut Option<u32>) -> Result<bool, StoreError> {
        let next = learned.map_or(0, |number| number + 1);
        let segment = self.segments().range(next..).next().map(|(_, segment)| Arc::clone(segment));
        let Some(segment) = segment else { return Ok(false) };
        *learned = Some(segment.number());
        segment.each(&*self.directory, &mut |id, _, signature| {
            let content = signature.get(super::CONTENT_BYTES).unwrap_or_default();
            let mut contents = lock(&self.contents);
            // A compaction that fails meanwhile removes what was inserted before it got this lock.
            if segment.is_shared() {
                contents.insert_known(content, id);
            }
            Ok(true)
        })?;
        Ok(true)
    }
}

/// Files that were compacted.
#[derive(Default)]
pub(crate) struct Replaced(Vec<Arc<segment::Segment>>);

impl Replaced {
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|segment| u64::from(segment.length())).sum()
    }
}
