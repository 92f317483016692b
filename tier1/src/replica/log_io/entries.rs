//! Appending to the log, reading from the log, and copying records into the database. A replica appends an
//! entry only after the last entry that it has read.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use doppel_model::Epoch;
use doppel_shared_log::{AppendError, LogEntry, LogError, append_surely};

use crate::replica::entry::encode_take_over;
use crate::replica::{
    FoldedEntry, LastOwner, READ_BYTES, RecordBody, Replica, ReplicaError, ReplicaState, ReplicaStore, lock,
};
use crate::storage::log::{Payload, SharedRecord};
use crate::storage::store::StoreError;

impl<D: ReplicaStore> Replica<D> {
    /// Appends an entry after the last entry that was read, and folds it into the chain. If other entries are
    /// there, folds those instead. The caller compares the chain before and after the call to see whether its
    /// entry was appended.
    ///
    /// # Errors
    /// The inner error is transient: the log has not taken the entry, or a later read will find it. The outer
    /// error is final.
    pub(in crate::replica) fn append(
        &self,
        state: &mut ReplicaState,
        entry: &Bytes,
    ) -> Result<Result<(), ReplicaError>, ReplicaError> {
        loop {
            self.ensure_running()?;
            let sent = Instant::now();
            let (begun, seen) = (state.chain.last(), state.chain.last_read());
            let parts = state.chain.unfinished_parts();
            let has_changed =
                |state: &ReplicaState| state.chain.last() != begun || state.chain.unfinished_parts() != parts;
            if state.is_doubtful || !self.has_contact(self.limits.trusted_for) {
                // Another node may have written an entry in the place of one that the log has lost. An entry
                // appended after that one would be void.
                match self.read_to_end(state) {
                    Err(error) if self.is_transient(&error) => return Ok(Err(error)),
                    other => other?,
                }
                // The entry was encoded for the previous chain, so it would be void now.
                if has_changed(state) {
                    return Ok(Ok(()));
                }
            }
            match append_surely(&*self.log, state.chain.last_read(), entry, self.limits.append_retry) {
                Ok(sequence) if sequence == state.chain.last_read().next() => {
                    self.note_contact(sent);
                    self.take(state, &LogEntry { sequence, bytes: entry.clone() })?;
                    // The entry follows everything that this replica has, so the replica is complete.
                    self.note_complete_as_of(sent);
                    return Ok(Ok(()));
                }
                // The entry does not follow the last read entry, so other entries are in between. Read them.
                Ok(_) | Err(AppendError::Refused) => {
                    match self.read_to_end(state) {
                        Err(error) if self.is_transient(&error) => {
                            state.is_doubtful = true;
                            return Ok(Err(error));
                        }
                        other => other?,
                    }
                    if has_changed(state) {
                        return Ok(Ok(()));
                    }
                    if state.chain.last_read() == seen {
                        state.is_doubtful = true;
                        let log = self.range.to_string();
                        let why = "it refuses an entry, but has no newer entry to read".to_owned();
                        return Ok(Err(LogError::Unavailable { log, why }.into()));
                    }
                }
                Err(AppendError::Unknown(error) | AppendError::Failed(error)) => {
                    if let LogError::Full { .. } = error {
                        // A leader of the log that has lost its followers also reports `Full`, so the answer
                        // counts as contact only if the leader also reports its end.
                        let asked = Instant::now();
                        if self.log.end().is_ok_and(|end| end == state.chain.last_read()) {
                            self.note_contact(asked);
                        }
                    } else {
                        state.is_doubtful = true;
                    }
                    let error = ReplicaError::from(error);
                    return if self.is_transient(&error) { Ok(Err(error)) } else { Err(error) };
                }
            }
        }
    }

    /// Reads to the end of the log after verifying that the log has the last copied record.
    fn read_to_end(&self, state: &mut ReplicaState) -> Result<(), ReplicaError> {
        self.ensure_intact(state)?;
        while self.read_more(state)? {}
        Ok(())
    }

    /// Whether an owner may succeed later after this error. A missing tail may reappear, because a log leader
    /// that lags behind its followers does not show it. Meanwhile the owner must not answer questions on the
    /// word of this leader.
    fn is_transient(&self, error: &ReplicaError) -> bool {
        match error {
            // An owner never trims entries that it has not read, so another node owns the range.
            ReplicaError::Log(LogError::Trimmed { .. }) => false,
            ReplicaError::Log(_) => true,
            ReplicaError::LostTail { .. } | ReplicaError::NotPutBack { .. } => true,
            _ => false,
        }
    }

    /// Reads the next entries of the log and copies their records. Returns false at the end of the log.
    ///
    /// # Errors
    /// If the log does not answer or was trimmed too far, the database fails, or this process stops.
    pub(in crate::replica) fn read_more(&self, state: &mut ReplicaState) -> Result<bool, ReplicaError> {
        self.ensure_running()?;
        if state.database_failed {
            return Err(StoreError::Engine(
                "the replica copies no records after its database has failed".to_owned(),
            )
            .into());
        }
        let entries = self.log.read(state.chain.last_read(), READ_BYTES)?;
        for entry in &entries {
            let folded = state.chain.fold(entry);
            // The entry is void here, but it may have counted if the log had other entries before it.
            state.is_doubtful |= folded == FoldedEntry::Void && entry.sequence > state.verified_through;
            self.copy(state, folded)?;
        }
        Ok(!entries.is_empty())
    }

    /// Folds an entry into the chain, and copies its record if one counts.
    pub(in crate::replica) fn take(
        &self,
        state: &mut ReplicaState,
        entry: &LogEntry,
    ) -> Result<(), ReplicaError> {
        let folded = state.chain.fold(entry);
        self.copy(state, folded)
    }

    /// Copies the record of a folded entry into the database, if the entry completes a record.
    pub(in crate::replica) fn copy(
        &self,
        state: &mut ReplicaState,
        folded: FoldedEntry,
    ) -> Result<(), ReplicaError> {
        let FoldedEntry::Record(record) = folded else { return Ok(()) };
        let (payload, owner) = match record.body {
            RecordBody::Rows(rows) => (Payload::Rows(Cow::Owned(rows)), None),
            RecordBody::TakeOver { owner, incarnation } => {
                (Payload::TakeOver(Cow::Owned(encode_take_over(&owner, incarnation))), Some(owner))
            }
        };
        let (position, previous, sequence) = (record.position, record.previous, record.sequence.0);
        state.database_failed = true;
        self.database.copy(SharedRecord { position, previous, sequence, payload }).inspect_err(|error| {
            if matches!(error, StoreError::DiskFull) {
                self.note_full_disk();
            }
        })?;
        state.database_failed = false;
        self.index.store(position.index, Ordering::Relaxed);
        self.sequence.store(sequence, Ordering::Relaxed);
        if let Some(owner) = owner {
            // Any take-over ends the previous ownership. `take_over` sets `own_last` again if it is its own.
            state.own_last = None;
            let take_over = Some((owner, Instant::now()));
            *lock(&self.last_owner) = LastOwner { epoch: Epoch(position.epoch), take_over };
        }
        Ok(())
    }

    /// Records that the log has answered a request that was sent at `sent`.
    pub(in crate::replica) fn note_contact(&self, sent: Instant) {
        let mut contact = lock(&self.last_contact);
        *contact = (*contact).max(Some(sent));
    }

    /// Fails if this process stops.
    pub(in crate::replica) fn ensure_running(&self) -> Result<(), StoreError> {
        if self.is_stopping.load(Ordering::Relaxed) {
            return Err(StoreError::Deposed(self.range));
        }
        Ok(())
    }
}
