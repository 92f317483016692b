//! What tells a version of a file, or of an object in a store, from others.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use doppel_model::Timestamp;
use serde::{Deserialize, Serialize};

/// How old the last change of a file has to be, if the file system tells it in whole seconds, so that a later one is told apart.
const SETTLED: Duration = Duration::from_secs(2);

/// What tells a version of a file or object from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    bytes: u64,
    /// When it was written: seconds since 1970, and nanoseconds.
    modified: (i64, i64),
    /// When it or what is known of it was changed, which nobody can set. Of an object none.
    changed: Option<(i64, i64)>,
    /// What a store of objects calls it.
    tag: Option<String>,
}

impl Version {
    /// That of a file at a path which can be read several times; none of anything else.
    pub fn of(path: &Path) -> Option<Self> {
        let there = fs::metadata(path).ok().filter(Metadata::is_file)?;
        let (modified, changed) = ((there.mtime(), there.mtime_nsec()), (there.ctime(), there.ctime_nsec()));
        Some(Self { bytes: there.len(), modified, changed: Some(changed), tag: None })
    }

    /// That of an object.
    #[cfg(feature = "object-store")]
    pub fn of_object(bytes: u64, modified: Timestamp, tag: Option<String>) -> Self {
        let millis = modified.millis();
        let modified = (millis.div_euclid(1_000), millis.rem_euclid(1_000) * 1_000_000);
        Self { bytes, modified, changed: None, tag }
    }

    /// Whether the same was written at the same time, as far as can be told; a link or a permission may be another one.
    pub fn is_as_written(&self, other: &Self) -> bool {
        (self.bytes, self.modified, &self.tag) == (other.bytes, other.modified, &other.tag)
    }

    /// When it was written.
    pub fn modified(&self) -> Timestamp {
        let (seconds, nanos) = self.modified;
        Timestamp::from_millis(seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000))
    }

    /// Whether a change from now on gives another version, unless the file system told of it within the same tick of its clock.
    pub fn is_settled(&self) -> bool {
        let (seconds, nanos) = self.changed.unwrap_or(self.modified);
        let is_fine = nanos != 0 || self.tag.is_some();
        let changed =
            u64::try_from(seconds).map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        is_fine || changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > SETTLED))
    }
}
