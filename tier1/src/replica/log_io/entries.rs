//! Entries to the log, each behind the last one that was read, and from it.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use doppel_model::Epoch;
use doppel_shared_log::{AppendError, Entry, LogError, append_surely};

use crate::log::{Payload, SharedRecord};
use crate::replica::entry::taker;
use crate::replica::{Copies, Folded, Ownership, READ_BYTES, Replica, ReplicaError, Said, State, lock};
use crate::store::StoreError;

impl<D: Copies> Replica<D> {
    /// Appends an entry behind what was read, and takes it; what others have put there is taken first. The inner error is
    /// one that may pass; the entry is nowhere then, or will be found there the next time.
    pub(in crate::replica) fn append(
        &self,
        state: &mut State,
        entry: &Bytes,
    ) -> Result<Result<(), ReplicaError>, ReplicaError> {
        loop {
            self.go_on()?;
            let sent = Instant::now();
            let (begun, seen) = (state.chain.last(), state.chain.seen());
            let parts = state.chain.unfinished();
            let has_changed =
                |state: &State| state.chain.last() != begun || state.chain.unfinished() != parts;
            if state.is_doubtful || !self.has_contact(self.limits.trusted) {
                // An entry of somebody else may have the place of one that the log has lost: what is appended behind it is void.
                match self.ensure_read(state) {
                    Err(error) if self.may_pass(&error) => return Ok(Err(error)),
                    other => other?,
                }
                // Behind something else it would be void.
                if has_changed(state) {
                    return Ok(Ok(()));
                }
            }
            match append_surely(&*self.log, state.chain.seen(), entry, self.limits.append) {
                Ok(sequence) if sequence == state.chain.seen().next() => {
                    self.note_contact(sent);
                    self.take(state, &Entry { sequence, bytes: entry.clone() })?;
                    // It has the place behind all that is here.
                    self.note_complete(sent);
                    return Ok(Ok(()));
                }
                // One that is said to be elsewhere is not behind what was read: what is there is read, too.
                Ok(_) | Err(AppendError::Refused) => {
                    match self.ensure_read(state) {
                        Err(error) if self.may_pass(&error) => {
                            state.is_doubtful = true;
                            return Ok(Err(error));
                        }
                        other => other?,
                    }
                    if has_changed(state) {
                        return Ok(Ok(()));
                    }
                    if state.chain.seen() == seen {
                        state.is_doubtful = true;
                        let (log, why) =
                            (self.range.to_string(), "it refuses an entry, and does not show why".to_owned());
                        return Ok(Err(LogError::Unavailable { log, why }.into()));
                    }
                }
                Err(AppendError::Unknown(error) | AppendError::Failed(error)) => {
                    if let LogError::Full { .. } = error {
                        // A leader of nobody says so, too.
                        let asked = Instant::now();
                        if self.log.end().is_ok_and(|end| end == state.chain.seen()) {
                            self.note_contact(asked);
                        }
                    } else {
                        state.is_doubtful = true;
                    }
                    let error = ReplicaError::from(error);
                    return if self.may_pass(&error) { Ok(Err(error)) } else { Err(error) };
                }
            }
        }
    }

    /// Reads to the end, of a log that has what was copied from it.
    fn ensure_read(&self, state: &mut State) -> Result<(), ReplicaError> {
        self.ensure(state)?;
        while self.read_more(state)? {}
        Ok(())
    }

    /// Whether what an owner waits for may go on later. A tail that is missing may come back: a leader that lags behind its
    /// followers does not show it, and meanwhile its word is none that allows to answer.
    fn may_pass(&self, error: &ReplicaError) -> bool {
        match error {
            // An owner does not trim what it has not read, so another node owns the range.
            ReplicaError::Log(LogError::Trimmed { .. }) => false,
            ReplicaError::Log(_) => true,
            ReplicaError::LostTail { .. } | ReplicaError::NotPutBack { .. } => true,
            _ => false,
        }
    }

    /// Reads and takes some of what is behind; false at the end.
    pub(in crate::replica) fn read_more(&self, state: &mut State) -> Result<bool, ReplicaError> {
        self.go_on()?;
        if state.failed {
            return Err(StoreError::Engine("nothing is copied after a failure".to_owned()).into());
        }
        let entries = self.log.read(state.chain.seen(), READ_BYTES)?;
        for entry in &entries {
            let folded = state.chain.take(entry);
            // One that does not count here may count for those that read another log in its time.
            state.is_doubtful |= folded == Folded::Void && entry.sequence > state.verified;
            self.copy(state, folded)?;
        }
        Ok(!entries.is_empty())
    }

    /// Takes an entry: copies it where it counts.
    pub(in crate::replica) fn take(&self, state: &mut State, entry: &Entry) -> Result<(), ReplicaError> {
        let folded = state.chain.take(entry);
        self.copy(state, folded)
    }

    pub(in crate::replica) fn copy(&self, state: &mut State, folded: Folded) -> Result<(), ReplicaError> {
        let Folded::Record(record) = folded else { return Ok(()) };
        let (payload, owner) = match record.said {
            Said::Rows(rows) => (Payload::Rows(Cow::Owned(rows)), None),
            Said::TakeOver { owner, incarnation } => {
                (Payload::TakeOver(Cow::Owned(taker(&owner, incarnation))), Some(owner))
            }
        };
        let (position, previous, sequence) = (record.position, record.previous, record.sequence.0);
        state.failed = true;
        self.database.copy(SharedRecord { position, previous, sequence, payload }).inspect_err(|error| {
            if matches!(error, StoreError::DiskFull) {
                self.disk_is_full();
            }
        })?;
        state.failed = false;
        self.index.store(position.index, Ordering::Relaxed);
        self.sequence.store(sequence, Ordering::Relaxed);
        if let Some(owner) = owner {
            // Whoever has said so himself notes it when he has read it.
            state.own = None;
            let taken = Some((owner, Instant::now()));
            *lock(&self.owner) = Ownership { epoch: Epoch(position.epoch), taken };
        }
        Ok(())
    }

    pub(in crate::replica) fn note_contact(&self, sent: Instant) {
        let mut contact = lock(&self.contact);
        *contact = (*contact).max(Some(sent));
    }

    pub(in crate::replica) fn go_on(&self) -> Result<(), StoreError> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(StoreError::Deposed(self.range));
        }
        Ok(())
    }
}
