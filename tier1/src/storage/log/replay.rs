//! Reading the log at a start. Checks every record after a position, and finds where to append.
//!
//! A partial record at the end of the last file was never acknowledged, and is cut off. Any other record that
//! does not continue the chain is damage: an undamaged record after it shows that more was acknowledged.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::file_log::{FileLog, LogFile, first_of, name};
use super::record::{HEAD_BYTES, MARK, RecordError, decode, length};
use super::{Log as _, LogId, Position, Record, SequencedPosition};
use crate::storage::files::{Directory, File};
use crate::storage::store::StoreError;

/// Called for each record in order.
pub(super) type RecordVisitor<'e> = dyn FnMut(Record) -> Result<(), StoreError> + 'e;

impl FileLog {
    /// Opens a log. Passes to `each`, in order, the records after the position that the rows have reached.
    /// Creates the log if no record was ever written.
    ///
    /// # Errors
    /// Fails if a file is missing or damaged, or if `each` fails.
    pub(crate) fn open(
        directory: Box<dyn Directory>,
        id: LogId,
        SequencedPosition { position: from, sequence }: SequencedPosition,
        each: &mut RecordVisitor<'_>,
    ) -> Result<Self, StoreError> {
        let names = directory.list();
        let names = names.map_err(|error| StoreError::of_file("read the log", directory.path(), &error))?;
        let mut files: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
        files.sort_unstable();
        let damaged = |what: String| StoreError::damaged_file(directory.path(), what);
        let Some(last) = files.last().copied() else {
            if from.index == 0 {
                return Self::begin(directory, id, SequencedPosition { position: from, sequence });
            }
            return Err(damaged("it has no file".to_owned()));
        };
        let begin = files.iter().rposition(|first| *first <= from.index + 1);
        let Some(begin) = begin else {
            return Err(damaged(format!("records {} to {} are missing", from.index + 1, files[0] - 1)));
        };
        let mut chain = ChainCheck { id, from, last: None, sequence, each };
        let mut log_files: VecDeque<LogFile> = VecDeque::new();
        for first in &files[..begin] {
            let length = directory.open(&name(*first)).and_then(|file| file.length());
            let failed = |error| StoreError::of_file("read the log", directory.path(), &error);
            log_files.push_back(LogFile { first: *first, length: length.map_err(failed)? });
        }
        let mut active = None;
        for first in &files[begin..] {
            if chain.last.is_some_and(|last| last.index + 1 != *first) {
                return Err(damaged(format!("the file before {} is missing or cut", name(*first))));
            }
            let file = directory.open(&name(*first));
            let file = file.map_err(|error| StoreError::of_file("read the log", directory.path(), &error))?;
            let length = file.length();
            let length =
                length.map_err(|error| StoreError::of_file("read the log", directory.path(), &error))?;
            let read = chain.read(&file, *first, length, *first == last);
            let sound = read.map_err(|error| error.of(directory.path(), *first))?;
            log_files.push_back(LogFile { first: *first, length: sound });
            active = Some(file);
        }
        let end = chain.last.map_or(files[begin] - 1, |last| last.index);
        if end < from.index {
            return Err(damaged(format!("it ends with record {end}, and the rows have {}", from.index)));
        }
        let last = chain.last.unwrap_or(from);
        let Some(active) = active else { return Err(damaged("it has no file".to_owned())) };
        let end = SequencedPosition { position: last, sequence: chain.sequence };
        let log = Self::with_files(directory, id, log_files, active, end);
        log.cut_and_sync(last.index > from.index)?;
        Ok(log)
    }

    /// Cuts off the partial record of a crash, and syncs the records that count. The process that wrote them
    /// may have died before its sync.
    ///
    /// If `rewrites` is set, the last file is also written again before the sync. If a sync of the earlier
    /// process failed, the operating system may consider the data written, and another sync alone would do
    /// nothing.
    fn cut_and_sync(&self, rewrites: bool) -> Result<(), StoreError> {
        let sound = self.files.back().map_or(0, |file| file.length);
        let cut = || {
            if self.active.length()? > sound {
                tracing::info!(log = %self.directory.path().display(), record = self.last().index + 1,
                    "cutting off a record that was never acknowledged");
                self.active.cut(sound)?;
            }
            if rewrites {
                let mut records = vec![0; usize::try_from(sound).map_err(io::Error::other)?];
                self.active.read(&mut records, 0)?;
                self.active.write(&records, 0)?;
            }
            self.active.sync()?;
            self.directory.sync()
        };
        cut().map_err(|error| StoreError::of_file("write the log", self.directory.path(), &error))
    }
}

pub(super) enum ReadError {
    Io(io::Error),
    /// Offset in the file, and a description of the damage.
    Damaged(u64, String),
    Store(StoreError),
}

impl ReadError {
    /// Converts the error, for the file whose first record has index `first`.
    pub(super) fn of(self, directory: &Path, first: u64) -> StoreError {
        match self {
            Self::Io(error) => StoreError::of_file("read the log", directory, &error),
            Self::Damaged(at, what) => {
                StoreError::damaged_file(directory, format!("{} at byte {at}: {what}", name(first)))
            }
            Self::Store(error) => error,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Checks that records continue each other, and passes them on.
pub(super) struct ChainCheck<'e, 'f> {
    pub(super) id: LogId,
    /// Records up to this position are checked but not passed on.
    pub(super) from: Position,
    pub(super) last: Option<Position>,
    /// Sequence of the last record in the shared log; 0 if that record is no copy.
    pub(super) sequence: u64,
    pub(super) each: &'e mut RecordVisitor<'f>,
}

impl ChainCheck<'_, '_> {
    /// Reads the records of a file up to offset `length`. Returns the number of undamaged bytes. That number
    /// can be less than `length` only if the file is the last one.
    pub(super) fn read(
        &mut self,
        file: &Arc<dyn File>,
        first: u64,
        length: u64,
        is_last: bool,
    ) -> Result<u64, ReadError> {
        let mut at = 0;
        while at < length {
            match record_at(file, at, length, self.id)? {
                Ok((record, bytes)) => {
                    self.take(record, first).map_err(|problem| match problem {
                        ChainError::Damaged(what) => ReadError::Damaged(at, what),
                        ChainError::Store(error) => ReadError::Store(error),
                    })?;
                    at += bytes;
                }
                Err(RecordError::Foreign) => {
                    return Err(ReadError::Damaged(at, "a record of another log".to_owned()));
                }
                Err(RecordError::Damaged) => {
                    let what = match self.later_record(file, at, length)? {
                        Some(later) => format!("a damaged record, and undamaged record {later} after it"),
                        None if is_last => return Ok(at),
                        None => "a damaged record".to_owned(),
                    };
                    return Err(ReadError::Damaged(at, what));
                }
            }
        }
        Ok(at)
    }

    /// Returns the index of an undamaged record of this log after a damaged one, if there is any.
    fn later_record(&self, file: &Arc<dyn File>, damaged: u64, length: u64) -> io::Result<Option<u64>> {
        let mut rest = vec![0; usize::try_from(length - damaged).unwrap_or(0)];
        file.read(&mut rest, damaged)?;
        let expected = self.last.unwrap_or(self.from).index + 1;
        for start in (1..rest.len()).filter(|start| rest[*start..].starts_with(&MARK)) {
            if let Ok(Ok((record, _))) = record_at(file, damaged + start as u64, length, self.id)
                && record.position.index > expected
            {
                return Ok(Some(record.position.index));
            }
        }
        Ok(None)
    }

    fn take(&mut self, record: Record, first: u64) -> Result<(), ChainError> {
        let Position { epoch, index, hash } = record.position;
        let expected = self.last.map_or(first, |last| last.index + 1);
        if index != expected {
            return Err(ChainError::Damaged(format!("found record {index}, expected record {expected}")));
        }
        let before = self.last.or((index == self.from.index + 1).then_some(self.from));
        if before.is_some_and(|before| before.hash != record.previous || before.epoch > epoch) {
            return Err(ChainError::Damaged(format!("record {index} does not continue the one before it")));
        }
        if index == self.from.index && hash != self.from.hash {
            return Err(ChainError::Damaged(format!("record {index} has another hash than the rows say")));
        }
        self.last = Some(record.position);
        self.sequence = record.origin.map_or(0, |origin| origin.sequence);
        if index > self.from.index { (self.each)(record).map_err(ChainError::Store) } else { Ok(()) }
    }
}

enum ChainError {
    Damaged(String),
    Store(StoreError),
}

/// Reads the record at an offset. Returns the record and its length in bytes.
pub(super) fn record_at(
    file: &Arc<dyn File>,
    at: u64,
    length_of_file: u64,
    id: LogId,
) -> io::Result<Result<(Record, u64), RecordError>> {
    let left = length_of_file - at;
    let mut head = [0; HEAD_BYTES];
    if left < head.len() as u64 {
        return Ok(Err(RecordError::Damaged));
    }
    file.read(&mut head, at)?;
    let bytes = match length(&head) {
        Ok(bytes) if bytes as u64 <= left => bytes,
        Ok(_) => return Ok(Err(RecordError::Damaged)),
        Err(unreadable) => return Ok(Err(unreadable)),
    };
    let mut record = vec![0; bytes];
    file.read(&mut record, at)?;
    Ok(decode(&record, id).map(|record| (record, bytes as u64)))
}
