//! A database whose log has copies of the records of a shared log, each with the position that it has there.

use std::borrow::Cow;

use super::{Database, Inner, failed_before, lock};
use crate::log::{Copied, Log as _, Payload, Position};
use crate::store::StoreError;

impl Database {
    /// The last record that was copied, and its place in the shared log; 0 before the first.
    pub(crate) fn copied(&self) -> (Position, u64) {
        self.inner.copied()
    }

    /// Copies a record, which is on disk on return. Its rows have the bytes of signatures.
    ///
    /// # Errors
    /// When it does not continue the last one, or cannot be written. Nothing more is written after an error.
    pub(crate) fn copy(&self, copied: Copied<'_>) -> Result<(), StoreError> {
        self.mover.make_room(&self.inner)?;
        if self.inner.copy(copied)? {
            self.mover.wake();
        }
        Ok(())
    }
}

impl Inner {
    pub(super) fn copied(&self) -> (Position, u64) {
        let commits = lock(&self.commits);
        (commits.last, commits.log.as_ref().map_or(0, crate::log::Local::sequence))
    }

    /// True when it is time to move rows.
    pub(super) fn copy(&self, copied: Copied<'_>) -> Result<bool, StoreError> {
        let mut commits = lock(&self.commits);
        if std::mem::replace(&mut commits.failed, true) {
            return Err(failed_before());
        }
        let Copied { position, previous, sequence, payload } = copied;
        let payload = match payload {
            Payload::Rows(rows) => {
                let mut rows = rows.into_owned();
                self.name_signatures(&mut rows)?;
                self.signatures.write(true)?;
                Payload::Rows(Cow::Owned(rows))
            }
            Payload::TakeOver => Payload::TakeOver,
        };
        let copied = Copied { position, previous, sequence, payload };
        let is_copied = match &mut commits.log {
            Some(log) => log.copy(&copied)?,
            None => false,
        };
        if !is_copied {
            let (last, index) = (commits.last.index, position.index);
            let what = format!("record {index} of the shared log does not continue record {last}");
            return Err(StoreError::damaged_file(&self.dir, what));
        }
        (commits.last, commits.epoch) = (position, position.epoch);
        commits.failed = false;
        let Payload::Rows(rows) = copied.payload else { return Ok(false) };
        let mut unmoved = self.unmoved_mut();
        unmoved.insert(rows.into_owned(), position);
        Ok(unmoved.is_large())
    }
}
