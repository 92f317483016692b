//! Segments of which less than half is used are written anew, without what no row names.
//!
//! What is used is found out by going through the rows, which costs time in proportion to them. So that is done only when
//! the segments have doubled since the last time: then the work is paid by what was written meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{SignatureId, Signatures, lock, segment};
use crate::store::StoreError;

/// Below this nothing is compacted, unless a test wants it.
const BYTES_MIN: u64 = 64 << 20;

/// What rows name, by segment: the offsets, ascending, and their bytes with heads.
#[derive(Debug, Default)]
pub(crate) struct Used {
    offsets: BTreeMap<u32, Vec<u32>>,
    bytes: BTreeMap<u32, u64>,
}

impl Used {
    /// A row names a signature.
    pub(crate) fn add(&mut self, id: SignatureId) {
        self.offsets.entry(id.segment).or_default().push(id.offset);
        *self.bytes.entry(id.segment).or_default() += u64::from(id.bytes) + u64::from(segment::HEAD_BYTES);
    }
}

impl Signatures {
    /// Whether so much was written that it is worth going through the rows.
    pub(crate) fn wants_compaction(&self) -> bool {
        let bytes = self.bytes();
        bytes > BYTES_MIN && bytes > 2 * self.used.load(Ordering::Relaxed)
    }

    /// From here on no row gets the id of a signature in a closed segment, until [`compact`](Self::compact) ends. What
    /// rows name after this is all that they will name of closed segments. The caller has no commit under way.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// It could not be found out what is used.
    pub(crate) fn reopen(&self) {
        self.closed.store(false, Ordering::SeqCst);
    }

    /// Compacts closed segments of which less than `share` percent is in `used`. Gives the old files, to be removed when
    /// the rows that are on disk name nothing in them any more.
    ///
    /// # Errors
    /// When a file is damaged or cannot be written; nothing is lost then.
    pub(crate) fn compact(&self, mut used: Used, share: u64) -> Result<Replaced, StoreError> {
        let compacted = self.compact_closed(&mut used, share);
        // After a failure it is tried again when there is twice as much.
        let in_use = if compacted.is_ok() { used.bytes.values().sum() } else { self.bytes() };
        self.used.store(in_use, Ordering::Relaxed);
        self.reopen();
        compacted
    }

    fn compact_closed(&self, used: &mut Used, share: u64) -> Result<Replaced, StoreError> {
        let writing = lock(&self.writing).segment.number();
        let closed: Vec<_> = self.segments().range(..writing).map(|(_, one)| Arc::clone(one)).collect();
        let mut replaced = Replaced(Vec::new());
        for segment in closed {
            let number = segment.number();
            let (whole, in_use) =
                (u64::from(segment.length()), used.bytes.get(&number).copied().unwrap_or_default());
            if in_use * 100 >= whole.saturating_sub(u64::from(segment::FIRST)) * share {
                continue;
            }
            let mut offsets = used.offsets.remove(&number).unwrap_or_default();
            offsets.sort_unstable();
            let keep = |offset| offsets.binary_search(&offset).is_ok();
            if offsets.is_empty() {
                self.segments_mut().remove(&number);
            } else {
                let compacted = Arc::new(segment.compacted(&*self.directory, &keep)?);
                self.segments_mut().insert(number, compacted);
            }
            lock(&self.contents).retain(number, keep);
            tracing::debug!(number, whole, in_use, "a segment of signatures was compacted");
            replaced.0.push(segment);
        }
        Ok(replaced)
    }

    /// Removes files whose signatures are elsewhere or not used.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub(crate) fn remove(&self, replaced: &Replaced) -> Result<(), StoreError> {
        replaced.0.iter().try_for_each(|segment| segment.remove(&*self.directory))
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
            lock(&self.contents).insert_known(content, id);
            Ok(())
        })?;
        Ok(true)
    }
}

/// Files that were compacted.
pub(crate) struct Replaced(Vec<Arc<segment::Segment>>);
