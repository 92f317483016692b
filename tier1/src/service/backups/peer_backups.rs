//! The part of this process in backups that other processes make.
//!
//! A backup without a call for some time is forgotten. Messages that it holds back leave earlier, so an
//! abandoned backup stops nothing for long.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use doppel_model::RangeId;
use doppel_protocol::range_owner::{BackupId, PeerError};
use doppel_protocol::{BACKUP_PIECE_BYTES, BackupError, Tier1Error};

use crate::service::backups::Backups;
use crate::service::backups::range_source::LocalSource;

/// A backup without a call for this long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// Longest time for which a backup may hold messages back.
const HELD: Duration = Duration::from_secs(30);

/// The backups of other processes that are under way.
#[derive(Default)]
pub(in crate::service) struct PeerBackups(Mutex<HashMap<(RangeId, BackupId), Arc<PeerBackup>>>);

struct PeerBackup {
    source: LocalSource,
    state: Mutex<PeerBackupState>,
}

struct PeerBackupState {
    /// When messages began to be held back. `None` if they may leave.
    held: Option<Instant>,
    used: Instant,
}

impl PeerBackup {
    fn state(&self) -> MutexGuard<'_, PeerBackupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets messages leave again. Returns whether they were held back.
    fn release(&self) -> bool {
        let was_held = self.state().held.take().is_some();
        if was_held {
            self.source.release();
        }
        was_held
    }
}

impl Drop for PeerBackup {
    fn drop(&mut self) {
        self.release();
    }
}

fn refused(error: BackupError) -> PeerError {
    match error {
        BackupError::Tier1Error(refused) => refused.into(),
        other => Tier1Error::Unavailable(other.to_string()).into(),
    }
}

impl PeerBackups {
    fn lock(&self) -> MutexGuard<'_, HashMap<(RangeId, BackupId), Arc<PeerBackup>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, range: RangeId, backup: BackupId) -> Result<Arc<PeerBackup>, PeerError> {
        let found = self.lock().get(&(range, backup)).cloned();
        let unknown =
            || Tier1Error::Unavailable(format!("range {range} has forgotten this backup; begin a new one"));
        let found = found.ok_or_else(unknown)?;
        found.state().used = Instant::now();
        Ok(found)
    }

    /// Forgets all backups of a range whose owner ends. The next call of each fails.
    pub(in crate::service) fn forget_all_of(&self, range: RangeId) {
        let forgotten: Vec<_> = self.lock().extract_if(|(of, _), _| *of == range).collect();
        // Dropping a backup takes other locks.
        drop(forgotten);
    }

    /// Forgets backups without calls, and lets messages leave that were held back for too long.
    pub(in crate::service) fn tend(&self) {
        let all: Vec<Arc<PeerBackup>> = self.lock().values().cloned().collect();
        if all.is_empty() {
            return;
        }
        for backup in all {
            if backup.state().held.is_some_and(|since| since.elapsed() >= HELD) {
                tracing::warn!(
                    range = backup.source.owner.id.0,
                    "a backup has held messages back for too long; they leave now, and the backup will fail"
                );
                backup.release();
            }
        }
        let forgotten: Vec<_> =
            self.lock().extract_if(|_, backup| backup.state().used.elapsed() >= FORGOTTEN).collect();
        // Dropping a backup takes other locks.
        drop(forgotten);
    }
}

impl Backups {
    pub(in crate::service) fn follow(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        let source = LocalSource::begin(&self.ranges.answering_owner(range)?, &self.dir).map_err(refused)?;
        let state = Mutex::new(PeerBackupState { held: None, used: Instant::now() });
        // A repeated call finds the backup of the first call, which goes on.
        let unused = {
            let mut backups = self.of_peers.lock();
            let new = Arc::new(PeerBackup { source, state });
            match backups.entry((range, backup)) {
                Entry::Occupied(_) => Some(new),
                Entry::Vacant(place) => {
                    place.insert(new);
                    None
                }
            }
        };
        drop(unused);
        Ok(())
    }

    pub(in crate::service) fn hold(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        let found = self.of_peers.get(range, backup)?;
        let is_repeated = found.state().held.replace(Instant::now()).is_some();
        let held = found.source.hold();
        // A repeated call waits like the first one, but holds messages back only once.
        if is_repeated {
            found.source.release();
        }
        Ok(held?)
    }

    pub(in crate::service) fn cut(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        Ok(self.of_peers.get(range, backup)?.source.cut()?)
    }

    pub(in crate::service) fn release_held(
        &self,
        range: RangeId,
        backup: BackupId,
    ) -> Result<bool, PeerError> {
        Ok(self.of_peers.get(range, backup)?.release())
    }

    pub(in crate::service) fn read_spill(
        &self,
        range: RangeId,
        backup: BackupId,
        from: u64,
    ) -> Result<Vec<u8>, PeerError> {
        let changes = &self.of_peers.get(range, backup)?.source.changes;
        changes.check(&self.dir).map_err(refused)?;
        let read = changes.read_at(from, BACKUP_PIECE_BYTES);
        read.map_err(|source| refused(BackupError::Spill { dir: self.dir.clone(), source }))
    }

    pub(in crate::service) fn forget(&self, range: RangeId, backup: BackupId) {
        let forgotten = self.of_peers.lock().remove(&(range, backup));
        drop(forgotten);
    }
}
