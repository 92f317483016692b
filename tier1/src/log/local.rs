//! The log in files of one directory, each named by the index of its first record.
//!
//! Invariants:
//! - an append returns after its bytes are on disk, and one is under way at a time, so that a crash leaves at most one
//!   record in part, at the end of the last file;
//! - there is always a last file, so that a log without any file has lost it;
//! - files are removed oldest first, and only when all of their records are not needed any more.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::{Appended, Copied, Log, LogId, Origin, Payload, Position, Reached, record};
use crate::files::{Directory, File};
use crate::store::StoreError;

/// A file gets no further record from this length on, unless a test wants shorter ones.
const FILE_BYTES: u64 = 16 << 20;

/// The most that all logs of a process keep of records that only a start of the index or of the status table would read.
const KEPT_BYTES: u64 = 1 << 30;

/// The ending of a file's name.
const ENDING: &str = ".log";

/// The log.
pub(crate) struct Local {
    pub(super) directory: Box<dyn Directory>,
    pub(super) id: LogId,
    /// Index of the first record of each file, and its bytes.
    pub(super) files: VecDeque<(u64, u64)>,
    pub(super) active: Arc<dyn File>,
    pub(super) last: Position,
    /// Where the last record is in the shared log; 0 before the first copy.
    pub(super) sequence: u64,
    file_bytes: u64,
    /// Its share of [`KEPT_BYTES`].
    kept_bytes: u64,
    /// What is being written.
    buffer: Vec<u8>,
    /// An append failed: what is in the file is not known.
    failed: bool,
}

/// The name of the file that begins with a record.
pub(super) fn name(first: u64) -> String {
    format!("{first:016x}{ENDING}")
}

/// The first record of a file.
pub(super) fn first_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(ENDING).filter(|number| number.len() == 16)?;
    u64::from_str_radix(number, 16).ok()
}

impl Local {
    /// Over the files that were read; the last of them goes on.
    pub(super) fn over(
        directory: Box<dyn Directory>,
        id: LogId,
        files: VecDeque<(u64, u64)>,
        active: Arc<dyn File>,
        (last, sequence): (Position, u64),
    ) -> Self {
        let (file_bytes, kept_bytes, buffer) = (FILE_BYTES, KEPT_BYTES, Vec::new());
        Self { directory, id, files, active, last, sequence, file_bytes, kept_bytes, buffer, failed: false }
    }

    /// Begins a log whose first record comes behind another one.
    pub(crate) fn begin(
        directory: Box<dyn Directory>,
        id: LogId,
        Reached { position, sequence }: Reached,
    ) -> Result<Self, StoreError> {
        let first = position.index + 1;
        let active = create(&*directory, first)?;
        Ok(Self::over(directory, id, VecDeque::from([(first, 0)]), active, (position, sequence)))
    }

    /// It is one of so many logs of the process.
    pub(crate) fn share(&mut self, logs: u16) {
        self.kept_bytes = KEPT_BYTES / u64::from(logs.max(1));
    }

    /// With files of another length.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn set_file_bytes(&mut self, bytes: u64) {
        self.file_bytes = bytes;
    }

    /// Which log it is.
    pub(crate) fn id(&self) -> LogId {
        self.id
    }

    /// Where the last record is in the shared log of which these are copies; 0 before the first.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Appends a record behind the last one.
    fn append_next(
        &mut self,
        epoch: u64,
        origin: Option<Origin>,
        payload: &Payload<'_>,
    ) -> Result<Position, StoreError> {
        self.buffer.clear();
        let position = record::encode(&mut self.buffer, self.id, (self.last, epoch), origin, payload)
            .map_err(|reason| StoreError::Unencodable(reason.to_owned()))?;
        self.failed = true;
        if self.files.back().is_none_or(|(_, length)| *length >= self.file_bytes) {
            self.active = create(&*self.directory, position.index)?;
            self.files.push_back((position.index, 0));
        }
        if let Err(error) = self.write() {
            // Else a start could take a record for acknowledged that was not. Whoever goes on here makes sure of it.
            drop(self.cut_failed());
            return Err(StoreError::of_file("write the log", self.directory.path(), &error));
        }
        self.failed = false;
        self.last = position;
        Ok(position)
    }

    /// Removes what a failed append has left of its record. The log takes nothing more all the same.
    ///
    /// # Errors
    /// When the file cannot be cut.
    pub(crate) fn cut_failed(&mut self) -> Result<(), StoreError> {
        let Some((_, length)) = self.files.back().filter(|_| self.failed) else { return Ok(()) };
        let cut = self.active.cut(*length).and_then(|()| self.active.sync());
        cut.map_err(|error| StoreError::of_file("cut the log", self.directory.path(), &error))
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Engine("the log takes nothing more after a failed write".to_owned()));
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let Some((_, length)) = self.files.back_mut() else {
            return Err(io::Error::other("the log has no file"));
        };
        self.active.write(&self.buffer, *length)?;
        self.active.sync()?;
        *length += self.buffer.len() as u64;
        Ok(())
    }
}

fn create(directory: &dyn Directory, first: u64) -> Result<Arc<dyn File>, StoreError> {
    let create = || {
        let file = directory.create(&name(first))?;
        file.sync()?;
        directory.sync()?;
        Ok(file)
    };
    create().map_err(|error| StoreError::of_file("write the log", directory.path(), &error))
}

impl Log for Local {
    fn last(&self) -> Position {
        self.last
    }

    fn append(
        &mut self,
        expected: Position,
        epoch: u64,
        payload: &Payload<'_>,
    ) -> Result<Appended, StoreError> {
        self.check()?;
        if expected != self.last || epoch < expected.epoch {
            return Ok(Appended::Refused(self.last));
        }
        self.append_next(epoch, None, payload).map(Appended::Done)
    }

    fn copy(&mut self, copied: &Copied<'_>) -> Result<bool, StoreError> {
        self.check()?;
        let Copied { position, previous, sequence, payload } = copied;
        let continues = *previous == self.last.hash
            && position.index == self.last.index + 1
            && position.epoch >= self.last.epoch
            && *sequence > self.sequence;
        if continues {
            let origin = Origin { hash: position.hash, sequence: *sequence };
            self.append_next(position.epoch, Some(origin), payload)?;
            self.sequence = *sequence;
        }
        Ok(continues)
    }

    fn trim(&mut self, through: u64, kept: u64) -> Result<(), StoreError> {
        let failed = |error| StoreError::of_file("trim the log", self.directory.path(), &error);
        while self.files.get(1).is_some_and(|(next, _)| {
            let last = next.saturating_sub(1);
            last <= through && (last <= kept || self.bytes() > self.kept_bytes)
        }) && let Some((first, _)) = self.files.front()
        {
            self.directory.remove(&name(*first)).map_err(failed)?;
            self.files.pop_front();
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, length)| length).sum()
    }
}
