//! Directories of the databases below a data directory: each range has a database of its own.

use std::path::{Path, PathBuf};

use doppel_model::RangeId;
use doppel_protocol::RangeMap;

/// The directory of every range's database.
pub(crate) fn directories(dir: &Path, map: RangeMap) -> Vec<(RangeId, PathBuf)> {
    map.ranges().map(|range| (range, directory(dir, range))).collect()
}

/// The directory of one range's database.
pub(crate) fn directory(dir: &Path, range: RangeId) -> PathBuf {
    dir.join(format!("range-{}", range.0))
}
