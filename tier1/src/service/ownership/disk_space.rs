//! Checks whether a file system has room for a range whose disk was full.
//!
//! A range stops when a write fails because no space is free. It continues only when much more space is free,
//! so that it does not stop again at once. The numbers of the file system are not enough, because a quota or
//! a storage pool behind it may have less. The check therefore also writes a file.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rustix::fs::{FallocateFlags, StatVfs};
use rustix::io::Errno;

use crate::storage::store::StoreError;

/// Bytes that must be free before a range continues: what the engine may write while it opens a database and
/// takes in the log, with a reserve. Ranges that share a file system continue one after another, and each
/// asks for this amount.
const ROOM_BYTES: u64 = 256 << 20;

/// On a small file system, one part in this many must be free, if that is less than [`ROOM_BYTES`].
const ROOM_SHARE: u64 = 10;

/// Number of files that must still be possible. A database opens no more than that.
const ROOM_FILES: u64 = 16;

/// Free bytes that optional files leave to the ranges. On a small file system they leave one part in
/// [`SPARED_SHARE`], if that is less.
const SPARED_BYTES: u64 = 64 << 20;
const SPARED_SHARE: u64 = 40;

/// Why an optional file is not written.
pub(in crate::service) const LOW_SPACE: &str =
    "the disk has little room left, which is kept for new pages; free some room on it";

/// Bytes that the check writes, unless less must be free, and the size of each piece.
const TRIED_BYTES: u64 = 4 << 20;
const PIECE_BYTES: u64 = 64 << 10;

/// Whether the file system of `file` has room for `bytes` more, besides what is left to the ranges. A file
/// system that does not say how much is free counts as having room.
pub(in crate::service) fn has_spare(file: &File, bytes: u64) -> bool {
    rustix::fs::fstatvfs(file).map_or(true, |system| has_spare_room(&system, bytes))
}

fn has_spare_room(system: &StatVfs, bytes: u64) -> bool {
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let all = system.f_blocks.saturating_mul(system.f_frsize);
    // A file system without a fixed size reports a size of 0.
    all == 0 || free >= SPARED_BYTES.min(all / SPARED_SHARE).saturating_add(bytes)
}

/// Ensures that the file system of a directory has room for a range to continue.
///
/// # Errors
///
/// [`StoreError::DiskFull`] if it has too little room, and another error if no file can be written there. If
/// the file system does not say how much is free, the check only writes the file.
pub(in crate::service) fn ensure_room(dir: &Path) -> Result<(), StoreError> {
    let wanted = match rustix::fs::statvfs(dir) {
        Ok(system) => required_bytes(&system).ok_or(StoreError::DiskFull)?,
        Err(_) => ROOM_BYTES,
    };
    try_to_write(dir, wanted.min(TRIED_BYTES))
        .map_err(|error| StoreError::of_file("write a file", dir, &error))
}

/// The number of bytes that must be free. `None` if fewer are free, or if too few files are possible.
fn required_bytes(system: &StatVfs) -> Option<u64> {
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let all = system.f_blocks.saturating_mul(system.f_frsize);
    let wanted = ROOM_BYTES.min(all / ROOM_SHARE);
    // A file system without a fixed number of files reports 0 files.
    let has_files = system.f_files == 0 || system.f_favail >= ROOM_FILES.min(system.f_files / ROOM_SHARE);
    (free >= wanted && has_files).then_some(wanted)
}

/// Writes `bytes` to the disk, in a file without a name. The file disappears when it is closed.
fn try_to_write(dir: &Path, bytes: u64) -> std::io::Result<()> {
    let mut file = tempfile::tempfile_in(dir)?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes.max(1)) {
        // Some file systems do not support it.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    file.seek(SeekFrom::Start(0))?;
    // Zeros could become a hole that takes no space.
    let piece = [0x55; PIECE_BYTES as usize];
    for _ in 0..bytes.div_ceil(PIECE_BYTES) {
        file.write_all(&piece)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(free: u64, all: u64, files: (u64, u64)) -> StatVfs {
        let dir = tempfile::tempdir().unwrap();
        let (f_favail, f_files) = files;
        let system = rustix::fs::statvfs(dir.path()).unwrap();
        StatVfs {
            f_frsize: 4_096,
            f_bavail: free / 4_096,
            f_blocks: all / 4_096,
            f_favail,
            f_files,
            ..system
        }
    }

    #[test]
    fn room_needs_free_bytes_and_free_files() {
        let (mib, many) = (1 << 20, (1_000, 10_000));
        let wanted = |free, all, files| required_bytes(&system(free * mib, all * mib, files));
        assert_eq!(wanted(256, 10_000, many), Some(256 * mib));
        assert_eq!(wanted(255, 10_000, many), None);
        assert_eq!(wanted(16, 160, many), Some(16 * mib));
        assert_eq!(wanted(15, 160, many), None);
        // First no more files are possible. Then the file system creates files as they are needed.
        assert_eq!(wanted(256, 10_000, (0, 10_000)), None);
        assert_eq!(wanted(256, 10_000, (15, 10_000)), None);
        assert_eq!(wanted(256, 10_000, (0, 0)), Some(256 * mib));
    }

    #[test]
    fn optional_files_leave_free_room() {
        let mib = 1 << 20;
        let has_spare = |free, all| has_spare_room(&system(free * mib, all * mib, (1, 1)), mib);
        assert!(has_spare(65, 10_000) && !has_spare(64, 10_000));
        assert!(has_spare(5, 160) && !has_spare(4, 160));
        assert!(has_spare(0, 0));
    }

    #[test]
    fn a_trial_write_leaves_no_file_and_reports_failures() {
        let dir = tempfile::tempdir().unwrap();
        try_to_write(dir.path(), 100_000).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let missing = dir.path().join("missing");
        assert!(matches!(ensure_room(&missing), Err(StoreError::Engine(why)) if why.contains("missing")));
    }
}
