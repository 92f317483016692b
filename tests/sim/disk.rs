//! The files of an unreplicated range: the product's database over files that fail, and that lose what a disk
//! may lose. The database gets every commit of the range, and after every start it must have the rows of the
//! range.

use std::collections::BTreeMap;

use doppel_tier1::simulation::{Forgotten, SimFiles};
use doppel_tier1::{Memory, Store, StoreError, Write};

use super::random::Random;
use super::violation::{Checked, Violation};

/// The files of a range, and the expected state of their database.
pub(crate) struct Disk {
    files: SimFiles,
    random: Random,
    /// One in this many calls fails.
    one_in: u64,
    forgotten: Option<Forgotten>,
    is_calm: bool,
    /// Rows of a failed commit. Whether the commit counts is known after the next start.
    undecided: Option<Vec<Write>>,
    /// Whether a call has failed. If so, the range accepts no more commits.
    has_failed: bool,
}

fn violation(what: String) -> Violation {
    Violation { invariant: "the files have what was acknowledged", what }
}

/// All rows of a store.
fn all(rows: &Memory) -> Checked<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut all = BTreeMap::new();
    let read = rows.range(&[], &[0xff; 8], &mut |key, row| {
        all.insert(key.to_vec(), row.to_vec());
        true
    });
    read.map(|()| all).map_err(|error| violation(error.to_string()))
}

impl Disk {
    pub(crate) fn new(seed: u64, one_in: u64, forgotten: Option<Forgotten>) -> Self {
        let files = SimFiles::new().expect("empty files");
        let random = Random::new(seed);
        let mut this =
            Self { files, random, one_in, forgotten, is_calm: false, undecided: None, has_failed: false };
        this.fail();
        this
    }

    /// Lets calls fail from now on, unless `is_calm`.
    fn fail(&mut self) {
        let one_in = if self.is_calm { 0 } else { self.one_in };
        self.files.fail(one_in, self.random.next(), self.forgotten);
    }

    /// Stops the failures of calls, or lets calls fail again.
    pub(crate) fn calm(&mut self, is_calm: bool) {
        self.is_calm = is_calm;
        self.fail();
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Writes the rows with which a run begins.
    pub(crate) fn begin(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.files.fail(0, 0, None);
        let begun = self.files.commit(writes);
        self.fail();
        begun
    }

    /// Writes a commit.
    pub(crate) fn commit(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        if self.has_failed {
            return Err(StoreError::Engine("a file has failed before".to_owned()));
        }
        if let Err(error) = self.files.commit(writes.to_vec()) {
            (self.undecided, self.has_failed) = (Some(writes.to_vec()), true);
            return Err(error);
        }
        // Sometimes run the thread that moves rows. After its failure nothing may be written any more.
        if self.random.once_in(6) {
            let compacts = self.random.once_in(3);
            self.has_failed = self.files.tend(compacts).is_err();
        }
        Ok(())
    }

    /// Starts the range from its files. They must have the rows of `rows`, with or without the commit that
    /// failed. Returns that commit if it counts.
    pub(crate) fn start(&mut self, rows: &Memory) -> Checked<Option<Vec<Write>>> {
        // In one start of three only the process died, and the machine lived on.
        let crash = (!self.random.once_in(3)).then(|| self.random.next());
        let found = self.files.restart(crash).map_err(|error| violation(error.to_string()))?;
        self.has_failed = false;
        self.fail();
        let undecided = self.undecided.take();
        let mut expected = all(rows)?;
        if found == expected {
            return Ok(None);
        }
        for (key, row) in undecided.iter().flatten() {
            match row {
                Some(row) => drop(expected.insert(key.clone(), row.clone())),
                None => drop(expected.remove(key)),
            }
        }
        let lacks = || expected.iter().filter(|(key, row)| found.get(*key) != Some(row)).count();
        if found != expected {
            let what = format!(
                "the files have {} rows, {} rows are expected, and {} of the expected rows are missing or differ",
                found.len(),
                expected.len(),
                lacks()
            );
            return Err(violation(what));
        }
        Ok(undecided)
    }
}
