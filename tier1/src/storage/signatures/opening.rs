//! Opening the segments of a directory at a start. Cuts off what no row names, and syncs the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::segment::{FIRST, Segment, UNFINISHED_SUFFIX, name, parse};
use super::{SegmentCheckpoint, SignatureId};
use crate::storage::files::Directory;
use crate::storage::store::StoreError;

/// Opens the latest generation of each segment in a directory. See
/// [`SignatureStore::open`](super::SignatureStore::open).
pub(super) fn open_all(
    directory: &dyn Directory,
    checkpoints: &[SegmentCheckpoint],
    last: Option<SignatureId>,
) -> Result<BTreeMap<u32, Arc<Segment>>, StoreError> {
    let failed = |error| StoreError::of_file("read signatures", directory.path(), &error);
    let mut latest: BTreeMap<u32, u32> = BTreeMap::new();
    let mut superseded = Vec::new();
    for entry in directory.list().map_err(failed)? {
        if entry.ends_with(UNFINISHED_SUFFIX) {
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
    for checkpoint in checkpoints {
        let Some(segment) = segments.get(&checkpoint.segment) else {
            return Err(damaged(format!("{} is missing", name(checkpoint.segment, checkpoint.generation))));
        };
        let is_later = segment.generation > checkpoint.generation;
        if segment.generation < checkpoint.generation || !is_later && segment.length() < checkpoint.length {
            return Err(damaged(format!(
                "{} is missing or cut",
                name(checkpoint.segment, checkpoint.generation)
            )));
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
    // No row ever named a signature after the end, so these bytes may be incomplete. The end may be in an
    // earlier segment than the last one, if the last one could not be started.
    for (number, segment) in segments.iter().rev().take_while(|(_, segment)| segment.generation == 0) {
        let covered = checkpoints.iter().find(|one| one.segment == *number).map_or(FIRST, |one| one.length);
        let named =
            last.filter(|last| last.segment == *number).map_or(FIRST, |last| last.offset + last.bytes);
        segment.cut(directory, covered.max(named))?;
        if segment.length() > FIRST {
            break;
        }
    }
    // The process that wrote the bytes after the checkpoint may have died before they were on disk. For a
    // segment without a checkpoint, this includes the magic bytes.
    for (number, segment) in &segments {
        let covered = checkpoints.iter().find(|one| one.segment == *number).map_or(0, |one| one.length);
        if segment.is_compacted() {
            segment.sync(directory)?;
        } else if covered < segment.length() {
            segment.rewrite(directory, covered)?;
        }
    }
    directory.sync().map_err(failed)?;
    for entry in superseded {
        directory.remove(&entry).map_err(failed)?;
    }
    Ok(segments)
}
