//! A database without threads, for the simulation.

use std::collections::BTreeMap;

use doppel_model::Random;

use super::Disk;
use crate::database::Inner;
pub use crate::files::simulated::Forgotten;
use crate::store::{StoreError, Write};

/// Bytes of a segment of signatures.
const SEGMENT_BYTES: u32 = 20_000;

/// Used share of a segment below which it is compacted, in percent.
const USED_PERCENT: u64 = 50;

/// The database of a range, over files in memory that fail and lose what disks lose.
pub struct SimFiles {
    disk: Disk,
    inner: Option<Inner>,
}

impl SimFiles {
    /// An empty database.
    ///
    /// # Errors
    /// None that is known.
    pub fn new() -> Result<Self, StoreError> {
        let disk = Disk { segment_bytes: SEGMENT_BYTES, ..Disk::new() };
        let inner = Some(disk.open()?);
        Ok(Self { disk, inner })
    }

    /// Calls that change something fail with this probability from here on, one in so many; none does with 0.
    pub fn fail(&self, one_in: u64, seed: u64, forgotten: Option<Forgotten>) {
        self.disk.fail(one_in, seed, forgotten);
    }

    /// How many calls have failed so far.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.disk.failed()
    }

    fn inner(&self) -> Result<&Inner, StoreError> {
        self.inner.as_ref().ok_or_else(|| StoreError::Engine("the database is not open".to_owned()))
    }

    /// Makes a commit.
    ///
    /// # Errors
    /// When a file fails, or has failed in an earlier commit.
    pub fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.inner()?.commit(writes).map(drop)
    }

    /// Moves rows from memory to the store of rows, and may compact signatures.
    ///
    /// # Errors
    /// When a file fails.
    pub fn tend(&self, compacts: bool) -> Result<(), StoreError> {
        let inner = self.inner()?;
        inner.move_rows()?;
        if compacts { inner.compact(USED_PERCENT).map(drop) } else { Ok(()) }
    }

    /// The process ends, and with a seed the machine, too: then its disk loses what was not synced. The database is opened again over
    /// files that do not fail. Gives all rows.
    ///
    /// # Errors
    /// When the files are not what the database has written.
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
