//! Compaction of signatures: finding the signatures that rows name, and removing the files without them.
//!
//! Invariant: no file is removed before a checkpoint is on disk after which no row names a signature in it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::checkpoint::Checkpoint;
use super::mover::BATCH_ROWS;
use super::{Inner, earlier_failure, is_signature, lock, signature_id_of};
use crate::storage::signatures::{ClosedSegments, ReplacedFiles, UsedSignatures};
use crate::storage::store::{StoreError, Write};

/// Used share of a segment below which it is compacted, in percent.
const USED_PERCENT: u64 = 50;

/// Size in bytes of replaced files from which they are removed during a compaction.
const REPLACED_BYTES: u64 = 256 << 20;

/// Maximum number of rows whose signatures are moved out of small segments at a time.
const REWRITTEN_ROWS_MAX: usize = 20_000;

/// Number of rows that a compaction reads between two checks whether rows must be moved.
const ROWS_BETWEEN_CHECKS: u32 = 10_000;

/// A key after all keys.
const END: &[u8] = &[0xff; 8];

impl Inner {
    /// Compacts segments if they have grown enough.
    pub(super) fn compact_if_worth(&self) -> Result<(), StoreError> {
        if self.signatures.wants_compaction() { self.compact(USED_PERCENT).map(drop) } else { Ok(()) }
    }

    /// Compacts segments of which less than `percent` percent is used. Returns whether the last segment, to
    /// which commits write, has unused signatures.
    pub(super) fn compact(&self, percent: u64) -> Result<bool, StoreError> {
        let closed = {
            // With this lock no commit is under way that has the id of a signature in a closed segment but
            // has not yet published its rows.
            let _commits = lock(&self.commits);
            self.signatures.close_segments()
        };
        // A start reads the log after the moved rows and needs the segments that these records name. So move
        // rows until no later record names a segment that the compaction removes.
        let moved = self.move_set_aside().and_then(|()| self.move_rows());
        let used = match moved.and_then(|()| self.find_used(&closed)) {
            Ok(used) => used,
            Err(error) => {
                self.signatures.end_compaction();
                // Otherwise the next move would try to compact again.
                self.signatures.note_unused(0);
                return Err(error);
            }
        };
        let has_unused = closed.has_unused(&used);
        let mut between = |replaced: &mut ReplacedFiles| {
            if replaced.bytes() >= REPLACED_BYTES {
                self.remove_after_checkpoint(std::mem::take(replaced))?;
            }
            self.make_way()
        };
        let (replaced, compacted) = self.signatures.compact(closed, used, percent, &mut between);
        self.remove_after_checkpoint(replaced)?;
        compacted.map(|()| has_unused)
    }

    /// Moves the rows of a failed move. The rows of later commits are moved after them.
    fn move_set_aside(&self) -> Result<(), StoreError> {
        if self.memtable().has_set_aside() { self.move_rows() } else { Ok(()) }
    }

    /// Finds the signatures that rows name. If there are many small segments, also writes their used
    /// signatures to the last segment.
    fn find_used(&self, closed: &ClosedSegments) -> Result<UsedSignatures, StoreError> {
        let (mut used, mut rows) = (UsedSignatures::default(), 0_u32);
        let small = self.signatures.small_segments(closed);
        let mut in_small: Vec<Vec<u8>> = Vec::new();
        self.raw_range(&[], END, &mut |key, row| {
            if is_signature(key) {
                let id = signature_id_of(key, row)?;
                if small.contains(&id.segment) && in_small.len() <= REWRITTEN_ROWS_MAX {
                    in_small.push(key.to_owned());
                }
                used.add(id);
            }
            rows = rows.wrapping_add(1);
            if rows.is_multiple_of(ROWS_BETWEEN_CHECKS) {
                self.make_way()?;
            }
            Ok(true)
        })?;
        if !small.is_empty() && in_small.len() <= REWRITTEN_ROWS_MAX {
            self.rewrite(&in_small, &small)?;
            // From here on no row on disk names a signature in the small segments.
            self.move_rows()?;
            small.iter().for_each(|segment| used.forget(*segment));
        }
        Ok(used)
    }

    /// Writes the signatures in some closed segments again, for the rows that still name them. The log does
    /// not record this, because other replicas have other segments.
    fn rewrite(&self, keys: &[Vec<u8>], segments: &BTreeSet<u32>) -> Result<(), StoreError> {
        let mut rewritten = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            if at % BATCH_ROWS == 0 {
                self.make_way()?;
            }
            let id = self.row(key, false)?.map(|row| signature_id_of(key, &row)).transpose()?;
            if let Some(id) = id.filter(|id| segments.contains(&id.segment)) {
                rewritten.push((key, id, self.signatures.add(&self.signatures.read(id)?)?));
            }
        }
        if rewritten.is_empty() {
            return Ok(());
        }
        self.signatures.write(true)?;
        // A start cuts off signatures that neither the checkpoint nor the log names. So store a checkpoint
        // before a row names them.
        self.remove_after_checkpoint(ReplacedFiles::default())?;
        for some in rewritten.chunks(BATCH_ROWS) {
            // With this lock no commit changes these rows meanwhile.
            let commits = lock(&self.commits);
            if commits.failed {
                return Err(earlier_failure());
            }
            let mut writes: Vec<Write> = Vec::new();
            for (key, old, new) in some {
                let now = self.row(key, false)?.map(|row| signature_id_of(key, &row)).transpose()?;
                if now == Some(*old) {
                    writes.push(((*key).clone(), Some(new.to_bytes().to_vec())));
                }
            }
            self.memtable_mut().insert(writes, commits.sequenced_position());
        }
        Ok(())
    }

    /// Removes replaced files after another checkpoint.
    fn remove_after_checkpoint(&self, replaced: ReplacedFiles) -> Result<(), StoreError> {
        let mut moving = lock(&self.moving);
        let signatures = {
            // With this lock no commit is under way whose signatures are not yet on disk.
            let commits = lock(&self.commits);
            if commits.failed {
                return Err(earlier_failure());
            }
            self.signatures.checkpoints()
        };
        // Rows that are moved later name no signature in the removed files.
        let compacted_bytes = self.signatures.compacted_bytes();
        let checkpoint = Checkpoint { signatures, compacted_bytes, ..moving.checkpoint.clone() };
        moving.replaced.extend(replaced);
        self.store_checkpoint(&mut moving, checkpoint)
    }

    /// Moves rows if commits would otherwise have to wait. Fails if the process is stopping.
    fn make_way(&self) -> Result<(), StoreError> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(StoreError::Engine("the process is stopping".to_owned()));
        }
        self.move_if_large()
    }

    /// Moves rows if commits would otherwise have to wait.
    fn move_if_large(&self) -> Result<(), StoreError> {
        if self.memtable().is_large() { self.move_rows() } else { Ok(()) }
    }
}
