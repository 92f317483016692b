//! The log in files of one directory. Each file is named after the index of its first record.
//!
//! Invariants:
//! - An append returns only after its bytes are on disk, and appends do not overlap. So a crash leaves at
//!   most one partial record, at the end of the last file.
//! - The directory always has a file, so a log without any file is damaged.
//! - Files are removed oldest first, and only if none of their records is still needed.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::{AppendOutcome, Log, LogId, Origin, Payload, Position, SequencedPosition, SharedRecord, record};
use crate::storage::files::{Directory, File};
use crate::storage::store::StoreError;

/// Length in bytes at which a file gets no further record.
const FILE_BYTES: u64 = 16 << 20;

/// Maximum size, over all logs of a process, of records that the rows no longer need. Only a start of the
/// index or of the status table would read these records.
const KEPT_BYTES: u64 = 1 << 30;

/// Suffix of the names of log files.
const ENDING: &str = ".log";

/// The log of a range in files, open for appending.
pub(crate) struct FileLog {
    pub(super) directory: Box<dyn Directory>,
    pub(super) id: LogId,
    /// Files of the log, in the order of their records. Appends go to the last one.
    pub(super) files: VecDeque<LogFile>,
    pub(super) active: Arc<dyn File>,
    pub(super) last: Position,
    /// Sequence of the last record in the shared log; 0 before the first copy.
    pub(super) sequence: u64,
    file_bytes: u64,
    /// This log's share of [`KEPT_BYTES`].
    kept_bytes: u64,
    /// Bytes of the record that is being written.
    buffer: Vec<u8>,
    /// An append has failed, so the content of the last file is uncertain.
    failed: bool,
}

/// A file of the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogFile {
    /// Index of the first record.
    pub(super) first: u64,
    /// Length in bytes.
    pub(super) length: u64,
}

/// Returns the name of the file whose first record has index `first`.
pub(super) fn name(first: u64) -> String {
    format!("{first:016x}{ENDING}")
}

/// Returns the index of a file's first record, from its name. Returns `None` for other files.
pub(super) fn first_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(ENDING).filter(|number| number.len() == 16)?;
    u64::from_str_radix(number, 16).ok()
}

impl FileLog {
    /// Creates the log from files that were read. Appends go to the last file, `active`.
    pub(super) fn with_files(
        directory: Box<dyn Directory>,
        id: LogId,
        files: VecDeque<LogFile>,
        active: Arc<dyn File>,
        end: SequencedPosition,
    ) -> Self {
        Self {
            directory,
            id,
            files,
            active,
            last: end.position,
            sequence: end.sequence,
            file_bytes: FILE_BYTES,
            kept_bytes: KEPT_BYTES,
            buffer: Vec::new(),
            failed: false,
        }
    }

    /// Creates a log in an empty directory. Its first record will follow the given position.
    ///
    /// # Errors
    /// Fails if the first file cannot be created.
    pub(crate) fn begin(
        directory: Box<dyn Directory>,
        id: LogId,
        after: SequencedPosition,
    ) -> Result<Self, StoreError> {
        let first = after.position.index + 1;
        let active = create(&*directory, first)?;
        Ok(Self::with_files(directory, id, VecDeque::from([LogFile { first, length: 0 }]), active, after))
    }

    /// Sets the number of logs in this process that share the space for kept records.
    pub(crate) fn share(&mut self, logs: u16) {
        self.kept_bytes = KEPT_BYTES / u64::from(logs.max(1));
    }

    /// Sets the length at which a file gets no further record.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn set_file_bytes(&mut self, bytes: u64) {
        self.file_bytes = bytes;
    }

    /// Returns the id of the log.
    pub(crate) fn id(&self) -> LogId {
        self.id
    }

    /// Returns the sequence of the last record in the shared log; 0 before the first copy.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Appends a record after the last one.
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
        if self.files.back().is_none_or(|file| file.length >= self.file_bytes) {
            self.active = create(&*self.directory, position.index)?;
            self.files.push_back(LogFile { first: position.index, length: 0 });
        }
        if let Err(error) = self.write() {
            // Otherwise the next start could take an unacknowledged record for an acknowledged one. If
            // cutting fails here, the thread that reopens the log cuts again and checks.
            drop(self.cut_failed());
            return Err(StoreError::of_file("write the log", self.directory.path(), &error));
        }
        self.failed = false;
        self.last = position;
        Ok(position)
    }

    /// Cuts the partial record of a failed append off the file. The log still refuses further records.
    ///
    /// # Errors
    /// Fails if the file cannot be cut.
    pub(crate) fn cut_failed(&mut self) -> Result<(), StoreError> {
        let Some(LogFile { length, .. }) = self.files.back().filter(|_| self.failed) else { return Ok(()) };
        let cut = self.active.cut(*length).and_then(|()| self.active.sync());
        cut.map_err(|error| StoreError::of_file("cut the log", self.directory.path(), &error))
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Engine(
                "the log refuses further writes because an earlier write failed".to_owned(),
            ));
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(LogFile { length, .. }) = self.files.back_mut() else {
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

impl Log for FileLog {
    fn last(&self) -> Position {
        self.last
    }

    fn append(
        &mut self,
        expected: Position,
        epoch: u64,
        payload: &Payload<'_>,
    ) -> Result<AppendOutcome, StoreError> {
        self.check()?;
        if expected != self.last || epoch < expected.epoch {
            return Ok(AppendOutcome::Refused(self.last));
        }
        self.append_next(epoch, None, payload).map(AppendOutcome::Appended)
    }

    fn copy(&mut self, copied: &SharedRecord<'_>) -> Result<bool, StoreError> {
        self.check()?;
        let SharedRecord { position, previous, sequence, payload } = copied;
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
        while self.files.get(1).is_some_and(|next| {
            let last = next.first.saturating_sub(1);
            last <= through && (last <= kept || self.bytes() > self.kept_bytes)
        }) && let Some(LogFile { first, .. }) = self.files.front()
        {
            self.directory.remove(&name(*first)).map_err(failed)?;
            self.files.pop_front();
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.length).sum()
    }
}
