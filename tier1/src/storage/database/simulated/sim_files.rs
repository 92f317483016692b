//! A database without threads, for the simulation.

use std::collections::BTreeMap;

use doppel_model::Random;

use super::Disk;
use crate::storage::database::Inner;
pub use crate::storage::files::simulated::Forgotten;
use crate::storage::store::{StoreError, Write};

/// Maximum length of a segment of signatures in bytes.
const SEGMENT_BYTES: u32 = 20_000;

/// Used share of a segment below which it is compacted, in percent.
const USED_PERCENT: u64 = 50;

/// The database of a range on simulated files, which fail and lose data as disks do.
pub struct SimFiles {
    disk: Disk,
    inner: Option<Inner>,
}

impl SimFiles {
    /// Creates an empty database.
    ///
    /// # Errors
    /// Fails only if the simulated files fail, which they do not at first.
    pub fn new() -> Result<Self, StoreError> {
        let disk = Disk { segment_bytes: SEGMENT_BYTES, ..Disk::new() };
        let inner = Some(disk.open()?);
        Ok(Self { disk, inner })
    }

    /// Makes calls that change a file fail with the probability 1 / `one_in`; 0 means never.
    pub fn fail(&self, one_in: u64, seed: u64, forgotten: Option<Forgotten>) {
        self.disk.fail(one_in, seed, forgotten);
    }

    /// Returns the number of calls that have failed so far.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.disk.failed()
    }

    fn inner(&self) -> Result<&Inner, StoreError> {
        self.inner.as_ref().ok_or_else(|| StoreError::Engine("the database is not open".to_owned()))
    }

    /// Makes a commit, as a range does.
    ///
    /// # Errors
    /// Fails if a file fails, or has failed in an earlier commit.
    pub fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.inner()?.commit(writes).map(drop)
    }

    /// Moves rows from memory to the store of rows. With `compacts`, also compacts signatures.
    ///
    /// # Errors
    /// Fails if a file fails.
    pub fn tend(&self, compacts: bool) -> Result<(), StoreError> {
        let inner = self.inner()?;
        inner.move_rows()?;
        if compacts { inner.compact(USED_PERCENT).map(drop) } else { Ok(()) }
    }

    /// Ends the process and opens the database again, on files that no longer fail. With a seed, the machine
    /// crashes and its disk loses data that was not synced. Returns all rows.
    ///
    /// # Errors
    /// Fails if the files are damaged.
    pub fn restart(&mut self, crash: Option<u64>) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, StoreError> {
        self.inner = None;
        self.disk.fail(0, 0, None);
        if let Some(seed) = crash {
            self.disk = self.disk.crash(&mut Random::new(seed));
        }
        let inner = self.inner.insert(self.disk.open()?);
        let mut rows = BTreeMap::new();
        inner.range(&[], &[0xff; 8], &mut |key, row| {
            rows.insert(key.to_vec(), row.to_vec());
            true
        })?;
        Ok(rows)
    }
}
