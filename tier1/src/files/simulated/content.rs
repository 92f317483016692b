//! What is in a file of the simulated directory: as it is read, and as it is on the disk.

use doppel_model::Random;

/// A write at a place, or a cut.
pub(super) type Change = (u64, Option<Vec<u8>>);

#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    /// As it is read.
    pub(super) now: Vec<u8>,
    pub(super) synced: Vec<u8>,
    /// Changes since the last sync, and those whose sync has failed.
    pub(super) unsynced: Vec<Change>,
    pub(super) failed: Vec<Change>,
}

pub(super) fn apply(bytes: &mut Vec<u8>, offset: u64, write: Option<&[u8]>) {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    match write {
        None => bytes.resize(offset, 0),
        Some(write) => {
            let end = offset + write.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[offset..end].copy_from_slice(write);
        }
    }
}

/// What of a write is outside of a part of the file.
fn outside((offset, write): Change, from: u64, to: u64) -> Vec<Change> {
    let Some(bytes) = write else { return Vec::new() };
    let end = offset + bytes.len() as u64;
    let piece = |from: u64, to: u64| {
        let at = |place: u64| usize::try_from(place - offset).unwrap_or(usize::MAX);
        (from < to).then(|| (from, Some(bytes[at(from)..at(to)].to_vec())))
    };
    let (before, after) = (piece(offset, from.clamp(offset, end)), piece(to.clamp(offset, end), end));
    before.into_iter().chain(after).collect()
}

impl Content {
    pub(super) fn change(&mut self, offset: u64, write: Option<Vec<u8>>) {
        apply(&mut self.now, offset, write.as_deref());
        self.unsynced.push((offset, write));
    }

    pub(super) fn sync(&mut self) {
        for (offset, write) in self.unsynced.drain(..) {
            apply(&mut self.synced, offset, write.as_deref());
            let end = write.map_or(u64::MAX, |write| offset + write.len() as u64);
            let failed = std::mem::take(&mut self.failed);
            self.failed = failed.into_iter().flat_map(|change| outside(change, offset, end)).collect();
        }
    }

    /// What was written never comes to the disk. A cut does with the next sync, because a file system keeps lengths in its journal.
    pub(super) fn fail_sync(&mut self) {
        let (cuts, writes) =
            std::mem::take(&mut self.unsynced).into_iter().partition(|(_, write)| write.is_none());
        self.unsynced = cuts;
        self.failed.extend::<Vec<Change>>(writes);
    }

    /// What is left of it after a crash.
    pub(super) fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for (offset, write) in self.failed.iter().chain(&self.unsynced) {
            match (random.below(4), write.as_deref()) {
                (0, _) => {}
                // The file may be longer than what came into it.
                (1, Some(write)) => {
                    let end = usize::try_from(*offset).unwrap_or(usize::MAX) + write.len();
                    bytes.resize(bytes.len().max(end), 0);
                }
                (2, Some(write)) => {
                    let part = random.below(write.len() as u64 + 1) as usize;
                    apply(&mut bytes, *offset, Some(&write[..part]));
                }
                (_, write) => apply(&mut bytes, *offset, write),
            }
        }
        bytes
    }
}
