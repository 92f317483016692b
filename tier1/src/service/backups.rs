//! Backups while the service runs: those that this process makes, and its part in those of other processes.
//!
//! A backup copies the rows of every range, then every commit since the copy began ([`spill`]). It is
//! consistent because all ranges are cut while no message between them is under way ([`stream`]). The writer
//! of a range never waits for a backup: it appends its commits to a file, and a backup that cannot follow
//! fails.
//!
//! Invariant: a range of another process forgets a backup that it hears nothing of ([`peer_backups`]), so no
//! backup holds messages back for ever.

pub(in crate::service) mod peer_backups;
pub(in crate::service) mod range_source;
pub(in crate::service) mod spill;
pub(in crate::service) mod stream;

use std::path::PathBuf;
use std::sync::Arc;

use doppel_protocol::RangeMap;

use crate::service::ownership::OwnedRanges;
use crate::service::ownership::ranges::RangeRegistry;
use crate::service::ownership::refusals::Refusals;
use peer_backups::PeerBackups;

/// Makes backups of all ranges, and takes part in those that other processes make.
pub(in crate::service) struct Backups {
    map: RangeMap,
    ranges: Arc<RangeRegistry>,
    refusals: Arc<Refusals>,
    /// Directory of the files that keep commits during a backup. The files have no names.
    dir: PathBuf,
    /// Manifest of the data directory, which every backup contains.
    manifest: String,
    /// Parts of this process in backups of other processes.
    pub(in crate::service) of_peers: Arc<PeerBackups>,
}

impl Backups {
    /// Creates the backups of a process. Commits during a backup are kept in `dir`.
    pub(in crate::service) fn new(owned: &OwnedRanges, dir: PathBuf, manifest: String) -> Self {
        let (ranges, refusals) = (Arc::clone(&owned.ranges), Arc::clone(&owned.refusals));
        Self { map: owned.collection.map, ranges, refusals, dir, manifest, of_peers: Arc::default() }
    }
}
