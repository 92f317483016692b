//! Versions of files and of objects in stores. Equal versions mean an unchanged file, except for two changes within one tick of
//! the clock of the file system.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use doppel_model::Timestamp;
use serde::{Deserialize, Serialize};

/// Least age of the last change of a file whose file system stores whole seconds. If the last change is
/// younger, a later change may get the same timestamp.
const SETTLED: Duration = Duration::from_secs(2);

/// Version of a file or object. A change of the content replaces the version, unless the change follows another within one tick
/// of the clock (see `is_settled`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    bytes: u64,
    /// Time of the last write: seconds since 1970, and nanoseconds.
    modified: (i64, i64),
    /// Time of the last change of content or metadata, which users cannot set. `None` for an object.
    changed: Option<(i64, i64)>,
    /// Entity tag of an object. `None` for a file, and if the store has no tags.
    tag: Option<String>,
}

impl Version {
    /// Version of the regular file at `path`. `None` for anything else, such as a pipe.
    pub fn of(path: &Path) -> Option<Self> {
        let there = fs::metadata(path).ok().filter(Metadata::is_file)?;
        let (modified, changed) = ((there.mtime(), there.mtime_nsec()), (there.ctime(), there.ctime_nsec()));
        Some(Self { bytes: there.len(), modified, changed: Some(changed), tag: None })
    }

    /// Version of an object in a store.
    #[cfg(feature = "object-store")]
    pub fn of_object(bytes: u64, modified: Timestamp, tag: Option<String>) -> Self {
        let millis = modified.millis();
        let modified = (millis.div_euclid(1_000), millis.rem_euclid(1_000) * 1_000_000);
        Self { bytes, modified, changed: None, tag }
    }

    /// Whether both versions have the same size, time of the last write, and tag. Ignores changes of
    /// metadata, such as links or permissions.
    pub fn is_as_written(&self, other: &Self) -> bool {
        (self.bytes, self.modified, &self.tag) == (other.bytes, other.modified, &other.tag)
    }

    /// Time of the last write to the content.
    pub fn modified(&self) -> Timestamp {
        let (seconds, nanos) = self.modified;
        Timestamp::from_millis(seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000))
    }

    /// Whether every change from now on produces another version. False for a recent change on a file system
    /// that stores whole seconds. Two changes within one tick of the file system's clock still have the same
    /// version.
    pub fn is_settled(&self) -> bool {
        let (seconds, nanos) = self.changed.unwrap_or(self.modified);
        let is_fine = nanos != 0 || self.tag.is_some();
        let changed =
            u64::try_from(seconds).map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        is_fine || changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > SETTLED))
    }
}
