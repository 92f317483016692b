//! Snapshots: the tables of a node on disk, so that a start reads them in bulk instead of reading all
//! signatures.
//!
//! A snapshot contains every serving partition as it is in memory, and a moment of each range. All orders of
//! the range before that moment were applied. A start restores the snapshot if the node still has the same
//! partitions. Every range then feeds the node what has changed since its moment. The node may have applied
//! later orders too. This does no harm, because it compares what it is fed with what it has.
//!
//! The file has a [`SnapshotHeader`], followed by the partitions in the order of the header. A damaged
//! snapshot is reported and not used.
//!
//! A center in a snapshot was a partner in an answer. Tier 1 may have lost that answer when the process
//! ended. It then still owes a search of the page, which reports the pair again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread::JoinHandle;

use doppel_model::{PlanVersion, RangeId, stable_hash64};
use doppel_protocol::LogPosition;
use doppel_protocol::index_node::{HostedPartition, NodeError};
use doppel_snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};
use doppel_threads::{LoweredPriority, lower_priority};
use serde::{Deserialize, Serialize};

use super::partition::Partition;
use super::tables::{IndexTables, TableNumbers};
use super::{ChangeState, LocalNode, lock};

/// Name of the snapshot file.
pub(crate) const SNAPSHOT: &str = "snapshot.dat";

/// Name of the file while it is being written.
const UNFINISHED: &str = "snapshot.new";

/// "doppel", tier 2, and the version of the layout.
const MAGIC: [u8; 24] = *b"doppel tier2 snapshot 6\n";

/// The moment of each range.
pub(super) type SnapshotMoments = BTreeMap<RangeId, LogPosition>;

/// What the tables depend on. A snapshot fits only tables with the same basis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SnapshotBasis {
    policy: u64,
    plan: PlanVersion,
    /// XXH3-64 of the lexicon in JSON.
    lexicon: u64,
    partitions: Vec<HostedPartition>,
}

/// The header of a snapshot.
#[derive(Serialize, Deserialize)]
struct SnapshotHeader {
    basis: SnapshotBasis,
    /// Number of contents in all partitions.
    contents: u64,
    numbers: TableNumbers,
    moments: Vec<(RangeId, LogPosition)>,
    /// Size of the node's signature file in bytes, if the node has one.
    own_bytes: Option<u64>,
}

/// Why a snapshot is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableSnapshotError {
    #[error(transparent)]
    File(#[from] SnapshotError),
    #[error(transparent)]
    Lexicon(#[from] serde_json::Error),
    #[error("it is for other partitions than the node has now")]
    OtherPlan,
    #[error("the signature file is shorter than when the snapshot was written")]
    OtherFile,
}

impl TableSnapshotError {
    /// Whether there is no snapshot.
    fn is_missing(&self) -> bool {
        matches!(self, Self::File(unreadable) if unreadable.is_missing())
    }
}

impl From<io::Error> for TableSnapshotError {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

/// The snapshots of a node: the last one on disk, and one that is being synced.
#[derive(Default)]
pub(super) struct SnapshotStatus {
    pub(super) moments: SnapshotMoments,
    /// Thread that syncs the file and renames it. Returns the moments if it succeeds.
    finishing: Option<JoinHandle<io::Result<SnapshotMoments>>>,
    /// Why the last snapshot is not on disk.
    failure: Option<String>,
}

impl SnapshotBasis {
    fn of(tables: &IndexTables, plan: PlanVersion) -> Result<Self, serde_json::Error> {
        let lexicon = serde_json::to_vec(tables.lexicon())?;
        let hosted = |one: &Partition| HostedPartition { id: one.id, bounds: one.bounds };
        Ok(Self {
            policy: stable_hash64(tables.policy.to_string().as_bytes()),
            plan,
            lexicon: stable_hash64(&lexicon),
            partitions: tables.serving().map(hosted).collect(),
        })
    }

    /// Whether both are the same, apart from the order of partitions. A node may have its partitions in
    /// another order after a start.
    fn is_same(&self, other: Self) -> bool {
        let by_id = |basis: Self| {
            let mut partitions = basis.partitions;
            partitions.sort_unstable_by_key(|partition| partition.id);
            Self { partitions, ..basis }
        };
        by_id(self.clone()) == by_id(other)
    }
}

impl SnapshotStatus {
    /// Notes whether the snapshot that is being synced is on disk by now. If `wait`, waits for it.
    fn update(&mut self, wait: bool) {
        if let Some(finishing) = self.finishing.take_if(|finishing| wait || finishing.is_finished()) {
            self.failure = match finishing.join() {
                Ok(Ok(moments)) => {
                    self.moments = moments;
                    None
                }
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => {
                    tracing::error!("the thread that syncs a snapshot ended in a panic");
                    Some("the thread that syncs it ended in a panic".to_owned())
                }
            }
        }
    }
}

impl LocalNode {
    /// The moment of a range in the last snapshot on disk.
    pub(super) fn saved_moment(&self, range: RangeId) -> Option<LogPosition> {
        let mut saved = lock(&self.saved);
        saved.update(false);
        saved.moments.get(&range).copied()
    }

    /// Waits until a written snapshot is on disk.
    pub(crate) fn finish_snapshot(&self) {
        lock(&self.saved).update(true);
    }

    /// Waits until a written snapshot is on disk, and returns why it is not.
    pub(crate) fn snapshot_failure(&self) -> Option<String> {
        let mut saved = lock(&self.saved);
        saved.update(true);
        saved.failure.clone()
    }

    /// Writes a snapshot, and starts a thread that syncs it.
    pub(super) fn write_snapshot(
        &self,
        change: &ChangeState,
        moments: SnapshotMoments,
    ) -> Result<(), NodeError> {
        let failed = |error: io::Error| NodeError::Unavailable(format!("cannot write a snapshot: {error}"));
        if self.is_changing(change) || self.read().tables.is_renewal_due() {
            return Err(NodeError::Unavailable("its partitions are changing".to_owned()));
        }
        self.finish_snapshot();
        let own_bytes = {
            let mut core = self.write();
            core.signatures.own_mut().map(|file| {
                file.flush();
                file.bytes()
            })
        };
        let (file, new) = {
            let core = self.read();
            let plan = self.hosted().plan.unwrap_or_default();
            let basis = SnapshotBasis::of(&core.tables, plan).map_err(|error| failed(error.into()))?;
            let listed = moments.iter().map(|(range, moment)| (*range, *moment)).collect();
            let (contents, numbers) = (core.tables.len() as u64, core.tables.numbers());
            let head = SnapshotHeader { basis, contents, numbers, moments: listed, own_bytes };
            let new = self.config.dir.join(UNFINISHED);
            (write(&new, &head, &core.tables).map_err(failed)?, new)
        };
        let own = if own_bytes.is_some() { Some(self.config.dir.join(super::SIGNATURES)) } else { None };
        let path = self.config.dir.join(SNAPSHOT);
        let finish = move || {
            lower_priority(LoweredPriority::BelowAll);
            let put = put(&file, own.as_deref(), &new, &path).inspect_err(|error| {
                tracing::warn!(
                    path = %path.display(),
                    %error,
                    "cannot sync a snapshot; the next start uses the previous one"
                );
            });
            put.map(|()| moments)
        };
        let thread = std::thread::Builder::new().name("tier2-snapshot".to_owned()).spawn(finish);
        lock(&self.saved).finishing = Some(thread.map_err(failed)?);
        Ok(())
    }

    /// Restores the empty partitions from the snapshot, if there is one for these partitions. Returns its
    /// moments and the size of the signature file.
    pub(super) fn restore_snapshot(
        &self,
        tables: &mut IndexTables,
        plan: PlanVersion,
    ) -> Option<(SnapshotMoments, Option<u64>)> {
        let path = self.config.dir.join(SNAPSHOT);
        // An unfinished file of a crashed process is useless.
        drop(fs::remove_file(self.config.dir.join(UNFINISHED)));
        match read(&path, tables, plan, &self.config.dir.join(super::SIGNATURES)) {
            Ok(head) => {
                let moments: SnapshotMoments = head.moments.into_iter().collect();
                lock(&self.saved).moments.clone_from(&moments);
                Some((moments, head.own_bytes))
            }
            Err(unusable) if unusable.is_missing() => None,
            Err(error) => {
                tracing::warn!(
                    path = %path.display(),
                    %error,
                    "cannot use the snapshot; reading all signatures instead"
                );
                None
            }
        }
    }
}

fn write(path: &Path, head: &SnapshotHeader, tables: &IndexTables) -> io::Result<File> {
    let write = || {
        let mut out = SnapshotWriter::new(File::create(path)?, &MAGIC, head)?;
        tables.write(&mut out)?;
        out.finish()
    };
    // A partial file would only take space on a disk that may be full.
    write().inspect_err(|_| drop(fs::remove_file(path)))
}

/// Syncs a snapshot and renames it. First syncs the signature file that it refers to.
fn put(file: &File, own: Option<&Path>, new: &Path, path: &Path) -> io::Result<()> {
    let put = || {
        if let Some(own) = own {
            File::open(own)?.sync_all()?;
        }
        doppel_snapshot::put(file, new, path)
    };
    put().inspect_err(|_| drop(fs::remove_file(new)))
}

/// Reads a snapshot into tables whose partitions are empty. They stay empty unless the whole snapshot is
/// sound.
fn read(
    path: &Path,
    tables: &mut IndexTables,
    plan: PlanVersion,
    own: &Path,
) -> Result<SnapshotHeader, TableSnapshotError> {
    let (mut input, head): (SnapshotReader, SnapshotHeader) = SnapshotReader::open(path, &MAGIC)?;
    if !head.basis.is_same(SnapshotBasis::of(tables, plan)?) {
        return Err(TableSnapshotError::OtherPlan);
    }
    if let Some(bytes) = head.own_bytes
        && fs::metadata(own)?.len() < bytes
    {
        return Err(TableSnapshotError::OtherFile);
    }
    let partitions = head.basis.partitions.iter().map(|hosted| Partition::read(*hosted, &mut input));
    let partitions = partitions.collect::<Result<Vec<_>, _>>()?;
    input.finish()?;
    tables.restore(head.numbers, partitions);
    Ok(head)
}

/// Number of contents in the snapshot in `dir`, or why it would not be used. Looks only at the file itself.
/// `None` if there is no snapshot.
pub(crate) fn contents(dir: &Path) -> io::Result<Option<Result<u64, String>>> {
    let head: Option<Result<SnapshotHeader, String>> = doppel_snapshot::verify(&dir.join(SNAPSHOT), &MAGIC)?;
    Ok(head.map(|head| head.map(|head| head.contents)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_cannot_be_renamed_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let (new, path) = (dir.path().join(UNFINISHED), dir.path().join(SNAPSHOT));
        fs::create_dir(&path).unwrap();
        let file = File::create(&new).unwrap();
        put(&file, None, &new, &path).unwrap_err();
        assert!(!new.exists());
    }
}
