//! A database on simulated files, which fail and lose data as disks do.

#[cfg(feature = "simulation")]
pub(crate) mod sim_files;
pub(super) mod volatile;

use std::path::Path;
use std::sync::Arc;

use doppel_model::Random;

#[cfg(test)]
use super::Database;
#[cfg(test)]
use super::handle::DatabaseHandle;
use super::open::DatabaseParts;
use super::{Inner, lock};
use crate::storage::files::simulated::{Failures, Forgotten, SimulatedDirectory};
use crate::storage::log::LogId;
use crate::storage::store::{RowCache, Store, StoreError};
use volatile::Volatile;

/// The files of a database, which outlive each process that opens it.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(super) rows: Arc<Volatile>,
    pub(super) log: SimulatedDirectory,
    pub(super) signatures: SimulatedDirectory,
    pub(super) segment_bytes: u32,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let (log, signatures) = (SimulatedDirectory::default(), SimulatedDirectory::default());
        Self { rows: Arc::default(), log, signatures, segment_bytes: 400 }
    }

    pub(super) fn open(&self) -> Result<Inner, StoreError> {
        self.open_as(None)
    }

    /// Opens the database as a replica of a shared log.
    #[cfg(test)]
    pub(crate) fn open_replica(&self, log: LogId) -> Result<Database, StoreError> {
        self.database(Some(log))
    }

    #[cfg(test)]
    pub(super) fn database(&self, copies: Option<LogId>) -> Result<Database, StoreError> {
        let disk = self.clone();
        Ok(Database { handle: Arc::new(DatabaseHandle::open(Box::new(move || disk.open_as(copies)))?) })
    }

    pub(super) fn open_as(&self, copies: Option<LogId>) -> Result<Inner, StoreError> {
        let rows: Arc<dyn Store> = Arc::clone(&self.rows) as Arc<dyn Store>;
        let parts = DatabaseParts {
            rows,
            row_cache: RowCache::new(1),
            copies,
            log: Some(Box::new(self.log.clone())),
            signatures: Box::new(self.signatures.clone()),
            segment_bytes: self.segment_bytes,
        };
        let inner = Inner::open(Path::new("simulated"), parts)?;
        if let Some(log) = &mut lock(&inner.commits).log {
            log.set_file_bytes(600);
        }
        Ok(inner)
    }

    /// Makes calls that change a file fail with the probability 1 / `one_in`; 0 means never. Failures of the
    /// kind `forgotten` are not reported.
    pub(crate) fn fail(&self, one_in: u64, seed: u64, forgotten: Option<Forgotten>) {
        for (files, number) in [(&self.log, 0), (&self.signatures, 1)] {
            let random = Random::of(seed, [number, 0, 0]);
            files.fail((one_in > 0).then_some(Failures { one_in, random, forgotten }));
        }
    }

    /// Returns the number of calls that have failed alone.
    pub(crate) fn failed(&self) -> u64 {
        self.log.failed() + self.signatures.failed()
    }

    /// Sets how many further calls of the log and of the signatures succeed; `None` for no limit.
    #[cfg(test)]
    pub(super) fn allow(&self, calls: Option<(u64, u64)>) {
        self.log.allow(calls.map(|(calls, _)| calls));
        self.signatures.allow(calls.map(|(_, calls)| calls));
    }

    /// Returns the files after a crash of the machine.
    pub(crate) fn crash(&self, random: &mut Random) -> Self {
        let rows = Arc::new(self.rows.crash(random));
        let (log, signatures) = (self.log.crash(random), self.signatures.crash(random));
        Self { rows, log, signatures, ..*self }
    }
}

impl Inner {
    /// Calls `each` for the rows of a range in the order of their keys.
    pub(super) fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let mut next = self.piece(from, to, each)?;
        while let Some(from) = next {
            next = self.piece(&from, to, each)?;
        }
        Ok(())
    }
}
