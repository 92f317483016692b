//! A node's tables on disk, so that a start reads them in bulk instead of going through all signatures.
//!
//! A snapshot has every serving partition as it is in memory, and for each range a moment: all orders of the range up to
//! then were applied. A start takes it up if the node still has the same partitions, and every range then feeds the node
//! what has changed since its moment. That the node had applied later orders, too, does no harm: what it is fed is
//! compared with what it has.
//!
//! Behind its [`Head`], the file has the partitions in the order of the head. A damaged one is reported and not used.
//!
//! A center that a snapshot names was a partner in an answer that tier 1 may have lost with the process. Then its page
//! is still to be searched for, and the pair is reported then.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread::JoinHandle;

use doppel_model::{PlanVersion, RangeId, stable_hash64};
use doppel_protocol::LogPosition;
use doppel_protocol::index_node::{HostedPartition, NodeError};
use doppel_snapshot::{Reader, Unreadable, Writer};
use doppel_threads::{GiveWay, give_way};
use serde::{Deserialize, Serialize};

use super::partition::Partition;
use super::tables::{Numbers, Tables};
use super::{Change, LocalNode, lock};

/// The name of the file.
pub(crate) const SNAPSHOT: &str = "snapshot.dat";

/// The name of one that is being written.
const UNFINISHED: &str = "snapshot.new";

/// "doppel", tier 2, and the version of the layout.
const MAGIC: [u8; 24] = *b"doppel tier2 snapshot 3\n";

/// The moment of each range.
pub(super) type Moments = BTreeMap<RangeId, LogPosition>;

/// What the partitions were made for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Basis {
    policy: u64,
    plan: PlanVersion,
    /// XXH3-64 of it, in JSON.
    lexicon: u64,
    partitions: Vec<HostedPartition>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    basis: Basis,
    /// Contents of all partitions.
    contents: u64,
    numbers: Numbers,
    moments: Vec<(RangeId, LogPosition)>,
    /// Bytes of the node's signature file, if it has one.
    own_bytes: Option<u64>,
}

/// Why a snapshot is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error(transparent)]
    File(#[from] Unreadable),
    #[error(transparent)]
    Lexicon(#[from] serde_json::Error),
    #[error("the partitions are other ones now")]
    OtherPlan,
    #[error("the signature file is shorter than it was")]
    OtherFile,
}

impl Unusable {
    /// Whether there is no snapshot.
    fn is_missing(&self) -> bool {
        matches!(self, Self::File(unreadable) if unreadable.is_missing())
    }
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

/// Snapshots of a node that are on disk or on their way there.
#[derive(Default)]
pub(super) struct Saved {
    pub(super) moments: Moments,
    /// Syncs the file and gives it its name; the moments, if that went well.
    finishing: Option<JoinHandle<Option<Moments>>>,
}

impl Basis {
    fn of(tables: &Tables, plan: PlanVersion) -> Result<Self, serde_json::Error> {
        let lexicon = serde_json::to_vec(tables.lexicon())?;
        let hosted = |one: &Partition| HostedPartition { id: one.id, bounds: one.bounds };
        Ok(Self {
            policy: stable_hash64(tables.policy.to_string().as_bytes()),
            plan,
            lexicon: stable_hash64(&lexicon),
            partitions: tables.serving().map(hosted).collect(),
        })
    }

    /// Whether they are the same. The order in which partitions have come to a node is not that in which it has them after a start.
    fn is_that_of(&self, other: Self) -> bool {
        let by_id = |basis: Self| {
            let mut partitions = basis.partitions;
            partitions.sort_unstable_by_key(|partition| partition.id);
            Self { partitions, ..basis }
        };
        by_id(self.clone()) == by_id(other)
    }
}

impl Saved {
    /// Takes note of a snapshot that is on disk by now; with `wait`, after it is.
    fn look(&mut self, wait: bool) {
        if let Some(finishing) = self.finishing.take_if(|finishing| wait || finishing.is_finished()) {
            match finishing.join() {
                Ok(Some(moments)) => self.moments = moments,
                Ok(None) => {}
                Err(_) => tracing::error!("the thread that finishes a snapshot ended in a panic"),
            }
        }
    }
}

impl LocalNode {
    /// The moment of a range in the last snapshot on disk.
    pub(super) fn saved_moment(&self, range: RangeId) -> Option<LogPosition> {
        let mut saved = lock(&self.saved);
        saved.look(false);
        saved.moments.get(&range).copied()
    }

    /// Waits until a snapshot that was written is on disk.
    pub(crate) fn finish_snapshot(&self) {
        lock(&self.saved).look(true);
    }

    /// Writes a snapshot, and has a thread sync it.
    pub(super) fn write_snapshot(&self, change: &Change, moments: Moments) -> Result<(), NodeError> {
        let failed =
            |error: io::Error| NodeError::Unavailable(format!("a snapshot cannot be written: {error}"));
        if self.is_changing(change) || self.read().tables.want_renewal() {
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
            let basis = Basis::of(&core.tables, plan).map_err(|error| failed(error.into()))?;
            let listed = moments.iter().map(|(range, moment)| (*range, *moment)).collect();
            let (contents, numbers) = (core.tables.len() as u64, core.tables.numbers());
            let head = Head { basis, contents, numbers, moments: listed, own_bytes };
            let new = self.config.dir.join(UNFINISHED);
            (write(&new, &head, &core.tables).map_err(failed)?, new)
        };
        let own = if own_bytes.is_some() { Some(self.config.dir.join(super::SIGNATURES)) } else { None };
        let path = self.config.dir.join(SNAPSHOT);
        let finish = move || {
            give_way(GiveWay::ToAll);
            match put(&file, own.as_deref(), &new, &path) {
                Ok(()) => Some(moments),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a snapshot is not on disk; the one before is used");
                    None
                }
            }
        };
        let thread = std::thread::Builder::new().name("tier2-snapshot".to_owned()).spawn(finish);
        lock(&self.saved).finishing = Some(thread.map_err(failed)?);
        Ok(())
    }

    /// Fills the partitions, which are empty, from the snapshot, if there is one for them.
    pub(super) fn take_up_snapshot(
        &self,
        tables: &mut Tables,
        plan: PlanVersion,
    ) -> Option<(Moments, Option<u64>)> {
        let path = self.config.dir.join(SNAPSHOT);
        // What a crash has left is of no use.
        drop(fs::remove_file(self.config.dir.join(UNFINISHED)));
        match read(&path, tables, plan, &self.config.dir.join(super::SIGNATURES)) {
            Ok(head) => {
                let moments: Moments = head.moments.into_iter().collect();
                lock(&self.saved).moments.clone_from(&moments);
                Some((moments, head.own_bytes))
            }
            Err(unusable) if unusable.is_missing() => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the snapshot is not used; signatures are gone through");
                None
            }
        }
    }
}

fn write(path: &Path, head: &Head, tables: &Tables) -> io::Result<File> {
    let write = || {
        let mut out = Writer::new(File::create(path)?, &MAGIC, head)?;
        tables.write(&mut out)?;
        out.finish()
    };
    // A disk that is full has no use for a part of it.
    write().inspect_err(|_| drop(fs::remove_file(path)))
}

/// Syncs a snapshot, after the signatures that it names, and gives it its name.
fn put(file: &File, own: Option<&Path>, new: &Path, path: &Path) -> io::Result<()> {
    let put = || {
        if let Some(own) = own {
            File::open(own)?.sync_all()?;
        }
        doppel_snapshot::put(file, new, path)
    };
    put().inspect_err(|_| drop(fs::remove_file(new)))
}

/// Reads a snapshot into tables whose partitions are empty. These stay so unless all of it is sound.
fn read(path: &Path, tables: &mut Tables, plan: PlanVersion, own: &Path) -> Result<Head, Unusable> {
    let (mut input, head): (Reader, Head) = Reader::open(path, &MAGIC)?;
    if !head.basis.is_that_of(Basis::of(tables, plan)?) {
        return Err(Unusable::OtherPlan);
    }
    if let Some(bytes) = head.own_bytes
        && fs::metadata(own)?.len() < bytes
    {
        return Err(Unusable::OtherFile);
    }
    let partitions = head.basis.partitions.iter().map(|hosted| Partition::read(*hosted, &mut input));
    let partitions = partitions.collect::<Result<Vec<_>, _>>()?;
    input.finish()?;
    tables.restore(head.numbers, partitions);
    Ok(head)
}

/// How many contents the snapshot of a node's directory has, or why it would not be used, as far as the file alone shows;
/// none where there is none.
pub(crate) fn contents(dir: &Path) -> io::Result<Option<Result<u64, String>>> {
    let head: Option<Result<Head, String>> = doppel_snapshot::verify(&dir.join(SNAPSHOT), &MAGIC)?;
    Ok(head.map(|head| head.map(|head| head.contents)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_cannot_take_its_place_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (new, path) = (dir.path().join(UNFINISHED), dir.path().join(SNAPSHOT));
        fs::create_dir(&path).unwrap();
        let file = File::create(&new).unwrap();
        put(&file, None, &new, &path).unwrap_err();
        assert!(!new.exists());
    }
}
