//! Compaction: rewriting segments without the signatures that no row names.
//!
//! Finding the used signatures takes a scan of all rows. So a compaction runs only when the segments have
//! grown by half since the last one. Then the cost of the scan is proportional to what was written meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::segment::Extent;
use super::{SignatureId, SignatureStore, lock, segment};
use crate::storage::store::StoreError;

/// Growth in bytes below which no compaction runs.
const BYTES_MIN: u64 = 64 << 20;

/// The signatures that rows name, by segment.
#[derive(Debug, Default)]
pub(crate) struct UsedSignatures(BTreeMap<u32, Vec<Extent>>);

impl UsedSignatures {
    /// Adds a signature that a row names.
    pub(crate) fn add(&mut self, id: SignatureId) {
        self.0.entry(id.segment).or_default().push(id.extent());
    }

    /// Removes a segment that no row names any more.
    pub(crate) fn forget(&mut self, segment: u32) {
        self.0.remove(&segment);
    }

    /// Removes and returns the used signatures of a segment, each once and in order.
    fn take(&mut self, segment: u32) -> Vec<Extent> {
        let mut used = self.0.remove(&segment).unwrap_or_default();
        used.sort_unstable();
        used.dedup();
        used
    }
}

/// Segments to which nothing is written any more: all segments before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClosedSegments {
    end: u32,
    /// Length of segment `end` when the earlier ones were closed.
    length: u32,
}

impl ClosedSegments {
    /// Returns whether segment `end` contained an unused signature when the earlier segments were closed.
    pub(crate) fn has_unused(&self, used: &UsedSignatures) -> bool {
        let mut of_last = used.0.get(&self.end).cloned().unwrap_or_default();
        of_last.retain(|extent| extent.offset < self.length);
        of_last.sort_unstable();
        of_last.dedup();
        of_last.iter().map(stored_bytes).sum::<u64>() + u64::from(segment::FIRST) < u64::from(self.length)
    }
}

/// Returns the length of a signature with its head, in bytes.
fn stored_bytes(Extent { bytes, .. }: &Extent) -> u64 {
    u64::from(*bytes) + u64::from(segment::HEAD_BYTES)
}

/// Called before each segment, so that the caller can do urgent work and remove the files replaced so far.
pub(crate) type BetweenSegments<'b> = dyn FnMut(&mut ReplacedFiles) -> Result<(), StoreError> + 'b;

/// Maximum number of small segments. If there are more, they are rewritten.
const SMALL_MAX: usize = 8;
/// A segment is small if its signatures are shorter than this fraction, 1 / `SMALL_PART`, of a full segment.
const SMALL_PART: u32 = 64;

impl SignatureStore {
    /// Returns whether the segments have grown enough for a compaction.
    pub(crate) fn wants_compaction(&self) -> bool {
        let before = self.compacted_bytes.load(Ordering::Relaxed);
        self.bytes() > before + BYTES_MIN.max(before / 2)
    }

    /// Returns the size of the segments in bytes after the last compaction, for the checkpoint.
    pub(crate) fn compacted_bytes(&self) -> u64 {
        self.compacted_bytes.load(Ordering::Relaxed)
    }

    /// Records that this many bytes of the segments are unused.
    pub(crate) fn note_unused(&self, bytes: u64) {
        self.compacted_bytes.store(self.bytes().saturating_sub(bytes), Ordering::Relaxed);
    }

    /// Closes all segments but the last one. Until [`compact`](Self::compact) ends, no new row gets an id in
    /// a closed segment. So the rows present now are all that will name a signature there. The caller must
    /// not have a commit under way.
    pub(crate) fn close_segments(&self) -> ClosedSegments {
        self.are_segments_closed.store(true, Ordering::SeqCst);
        let writing = lock(&self.writing);
        ClosedSegments {
            end: writing.segment.number(),
            length: writing.written + writing.buffer.len() as u32,
        }
    }

    /// Returns the small ones among the closed segments, if there are many.
    pub(crate) fn small_segments(&self, closed: &ClosedSegments) -> BTreeSet<u32> {
        let small_bytes = segment::FIRST + self.segment_bytes / SMALL_PART;
        let segments = self.segments();
        let small = segments.range(..closed.end).filter(|(_, segment)| segment.length() < small_bytes);
        let small: BTreeSet<u32> = small.map(|(number, _)| *number).collect();
        if small.len() > SMALL_MAX { small } else { BTreeSet::new() }
    }

    /// Ends a compaction, also if the used signatures could not be determined.
    pub(crate) fn end_compaction(&self) {
        self.are_segments_closed.store(false, Ordering::SeqCst);
    }

    /// Compacts the closed segments of which less than `share` percent is used. Returns the old files. The
    /// caller removes them once no row on disk names a signature in them.
    ///
    /// The second value is an error if a file is damaged or cannot be written, so that a segment was not
    /// compacted. No signature is lost then.
    pub(crate) fn compact(
        &self,
        closed: ClosedSegments,
        used: UsedSignatures,
        share: u64,
        between: &mut BetweenSegments<'_>,
    ) -> (ReplacedFiles, Result<(), StoreError>) {
        let mut replaced = ReplacedFiles::default();
        let compacted = self.compact_closed(closed, used, share, &mut replaced, between);
        self.compacted_bytes.store(self.bytes(), Ordering::Relaxed);
        self.end_compaction();
        (replaced, compacted)
    }

    fn compact_closed(
        &self,
        ClosedSegments { end, .. }: ClosedSegments,
        mut used: UsedSignatures,
        share: u64,
        replaced: &mut ReplacedFiles,
        between: &mut BetweenSegments<'_>,
    ) -> Result<(), StoreError> {
        let closed: Vec<_> = self.segments().range(..end).map(|(_, one)| Arc::clone(one)).collect();
        let mut failed = Ok(());
        for segment in closed {
            between(replaced)?;
            let (number, used) = (segment.number(), used.take(segment.number()));
            let (length, in_use) = (u64::from(segment.length()), used.iter().map(stored_bytes).sum::<u64>());
            if in_use * 100 >= length.saturating_sub(u64::from(segment::FIRST)) * share {
                continue;
            }
            let keep = |offset| used.binary_search_by_key(&offset, |extent| extent.offset).is_ok();
            if used.is_empty() {
                self.segments_mut().remove(&number);
            } else {
                match segment.compact(&*self.directory, &used) {
                    Ok(compacted) => drop(self.segments_mut().insert(number, Arc::new(compacted))),
                    // Continue with the other segments.
                    Err(error) => {
                        // The new file may have its name all the same, and then the next start uses it. So
                        // new rows must not name signatures that the file lacks, and contents that are
                        // learned later are not shared either.
                        segment.end_sharing();
                        lock(&self.contents).retain(number, keep);
                        failed = failed.and(Err(error));
                        continue;
                    }
                }
            }
            lock(&self.contents).retain(number, keep);
            tracing::debug!(number, length, in_use, "compacted a segment of signatures");
            replaced.0.push(segment);
        }
        failed
    }

    /// Removes replaced files. A file that cannot be removed stays in the list, and does no harm.
    pub(crate) fn remove(&self, replaced: &mut ReplacedFiles) {
        replaced.0.retain(|segment| match segment.remove(&*self.directory) {
            Ok(()) => false,
            Err(error) => {
                tracing::warn!(%error, "cannot remove a file of unused signatures");
                true
            }
        });
    }

    /// Syncs the directory, so that removed files do not come back after a crash.
    pub(crate) fn sync_removed(&self) -> Result<(), StoreError> {
        let synced = self.directory.sync();
        synced.map_err(|error| StoreError::of_file("sync the directory", self.directory.path(), &error))
    }

    /// Adds signatures from before this start to the content table, so that pages can share them. Reads the
    /// segment after number `learned`. Returns whether there are more segments.
    ///
    /// # Errors
    /// Fails if the segment is damaged.
    pub(crate) fn learn_contents(&self, learned: &mut Option<u32>) -> Result<bool, StoreError> {
        let next = learned.map_or(0, |number| number + 1);
        let segment = self.segments().range(next..).next().map(|(_, segment)| Arc::clone(segment));
        let Some(segment) = segment else { return Ok(false) };
        *learned = Some(segment.number());
        segment.scan(&*self.directory, &mut |id, _, signature| {
            let content = signature.get(super::CONTENT_BYTES).unwrap_or_default();
            let mut contents = lock(&self.contents);
            // If a compaction fails meanwhile, it removes the entries that were inserted before.
            if segment.is_shared() {
                contents.insert_known(content, id);
            }
            Ok(true)
        })?;
        Ok(true)
    }
}

/// Old files of compacted segments.
#[derive(Default)]
pub(crate) struct ReplacedFiles(Vec<Arc<segment::Segment>>);

impl ReplacedFiles {
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
