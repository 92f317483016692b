//! The content of a simulated file: as read, and as on the disk.

use doppel_model::Random;

/// An offset with the bytes written there, or with `None` if the file was cut there.
pub(super) type FileChange = (u64, Option<Vec<u8>>);

#[derive(Debug, Clone, Default)]
pub(super) struct FileContent {
    /// Content that readers get.
    pub(super) now: Vec<u8>,
    pub(super) synced: Vec<u8>,
    /// FileChanges since the last sync.
    pub(super) unsynced: Vec<FileChange>,
    /// Writes whose sync has failed.
    pub(super) failed: Vec<FileChange>,
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

/// Returns the parts of a write that lie outside of `from .. to`. Returns nothing for a cut.
fn outside((offset, write): FileChange, from: u64, to: u64) -> Vec<FileChange> {
    let Some(bytes) = write else { return Vec::new() };
    let end = offset + bytes.len() as u64;
    let piece = |from: u64, to: u64| {
        let at = |place: u64| usize::try_from(place - offset).unwrap_or(usize::MAX);
        (from < to).then(|| (from, Some(bytes[at(from)..at(to)].to_vec())))
    };
    let (before, after) = (piece(offset, from.clamp(offset, end)), piece(to.clamp(offset, end), end));
    before.into_iter().chain(after).collect()
}

impl FileContent {
    /// Applies a write or a cut, without syncing it.
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

    /// Notes that a sync has failed. Its writes never reach the disk. Its cuts do with the next sync, because
    /// a file system keeps lengths in its journal.
    pub(super) fn fail_sync(&mut self) {
        let (cuts, writes) =
            std::mem::take(&mut self.unsynced).into_iter().partition(|(_, write)| write.is_none());
        self.unsynced = cuts;
        self.failed.extend::<Vec<FileChange>>(writes);
    }

    /// Returns the content of the file after a crash.
    pub(super) fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for (offset, write) in self.failed.iter().chain(&self.unsynced) {
            match (random.below(4), write.as_deref()) {
                (0, _) => {}
                // The file may have its new length without the new bytes.
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
