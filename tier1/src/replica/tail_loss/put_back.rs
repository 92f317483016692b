//! Puts lost records back into the log: appends them again, from the copies of a replica.
//!
//! Each record goes back with the same bytes to the same sequence number. A filler entry, which is void as
//! well, takes the place of each lost void entry. Other replicas that have copied the lost records
//! therefore find them where they were. If two replicas put records back at the same time, one of them finds
//! entries that the other has already appended.
//!
//! Invariant: the replica appends only after the last entry that it has read, and only the record that the
//! chain had at that position. If the log has continued differently since, the replica leaves it alone.

use doppel_shared_log::{AppendError, LogEntry, LogError, Sequence, SharedLog, append_surely};

use crate::replica::entry::{VOID, decode_take_over, encode};
use crate::replica::{
    Chain, FoldedEntry, READ_BYTES, RecordBody, Replica, ReplicaError, ReplicaState, ReplicaStore,
};
use crate::storage::log::{LogId, Payload, SequencedPosition, SharedRecord};

/// What a log contains at the position of a copied record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordLookup {
    /// The copied record.
    Same,
    /// Another entry.
    Different,
    /// The log ends before this position.
    PastEnd,
}

/// Looks up a copied record in a log, by the sequence number of its last part.
///
/// # Errors
/// If the log does not answer, or the record was trimmed.
pub(crate) fn look_up_record(
    log: &dyn SharedLog,
    id: LogId,
    SequencedPosition { position, sequence }: SequencedPosition,
) -> Result<RecordLookup, LogError> {
    let Some(before) = sequence.checked_sub(1) else { return Ok(RecordLookup::Same) };
    let entries = log.read(Sequence(before), 1)?;
    let is_same =
        |entry: &LogEntry| Chain::after(id, position, Sequence(sequence)).is_end_of_last_record(&entry.bytes);
    Ok(match entries.first() {
        Some(entry) if is_same(entry) => RecordLookup::Same,
        Some(_) => RecordLookup::Different,
        None => RecordLookup::PastEnd,
    })
}

impl<D: ReplicaStore> Replica<D> {
    /// Appends the copied records that the log has lost.
    ///
    /// # Errors
    /// If the log does not answer or has continued differently, or if this node no longer keeps a lost
    /// record.
    pub(in crate::replica) fn put_back(&self, state: &ReplicaState) -> Result<(), ReplicaError> {
        let (end, copied) = (self.log.end()?, state.chain.last_sequence());
        if end >= copied {
            return Ok(());
        }
        let (range, end) = (self.range, end.0);
        tracing::warn!(
            range = range.0,
            end,
            copied = copied.0,
            "the log has lost its last entries; this node appends its copies of them"
        );
        let mut writer = TailWriter { replica: self, chain: None, end, copied: copied.0 };
        let reason = self.database.records_after(end, &mut |before, record| writer.put(before, record))?;
        if let Some(why) = reason {
            return Err(writer.cannot_put_back(why));
        }
        tracing::warn!(range = range.0, "the log has the lost entries again");
        Ok(())
    }
}

/// Appends copied records to a log that has lost them.
struct TailWriter<'r, D> {
    replica: &'r Replica<D>,
    /// The chain of the log as it is now. `None` before the first record is put back.
    chain: Option<Chain>,
    /// Sequence number of the log's last entry when the loss was noticed.
    end: u64,
    /// Sequence number of the last copied record.
    copied: u64,
}

impl<D: ReplicaStore> TailWriter<'_, D> {
    fn cannot_put_back(&self, why: &'static str) -> ReplicaError {
        let Self { end, copied, .. } = *self;
        ReplicaError::NotPutBack { range: self.replica.range, copied, end, why }
    }

    fn contradiction(&self, at: u64) -> ReplicaError {
        ReplicaError::Contradiction { range: self.replica.range, at }
    }

    /// Puts `record` back to its sequence number. The previous record is at `before`.
    fn put(&mut self, before: SequencedPosition, record: SharedRecord<'static>) -> Result<(), ReplicaError> {
        let SharedRecord { position, sequence, payload, .. } = record;
        let mut chain = match self.chain.take() {
            Some(chain) => chain,
            None => self.begin(before)?,
        };
        let body = match payload {
            Payload::Rows(rows) => Some(RecordBody::Rows(rows.into_owned())),
            Payload::TakeOver(body) => decode_take_over(&body),
        };
        let body =
            body.ok_or_else(|| self.cannot_put_back("an earlier release copied it and kept less of it"))?;
        let limits = &self.replica.limits;
        let encoded = encode(self.replica.id, (before.position, position.epoch), &body, limits.part_bytes);
        let encoded = encoded.ok().filter(|encoded| encoded.position == position);
        let encoded =
            encoded.ok_or_else(|| self.cannot_put_back("this node's copy encodes to other bytes"))?;
        while chain.last().index < position.index {
            if chain.last() != before.position {
                return Err(self.contradiction(chain.last_sequence().0));
            }
            let begun = chain.parts_read(&encoded.parts);
            let left = (encoded.parts.len() - begun) as u64;
            let entry = match sequence.checked_sub(chain.last_read().0 + left) {
                Some(0) => encoded.parts[begun].clone(),
                Some(_) => VOID,
                None => return Err(self.cannot_put_back("other entries are at its position")),
            };
            self.replica.ensure_running()?;
            match append_surely(&*self.replica.log, chain.last_read(), &entry, limits.append_retry) {
                Ok(at) if at == chain.last_read().next() => {
                    drop(chain.fold(&LogEntry { sequence: at, bytes: entry }));
                }
                Ok(_) | Err(AppendError::Refused) => {
                    if !self.read(&mut chain)? {
                        let why = "it refuses an entry, but has no newer entry to read".to_owned();
                        let log = self.replica.range.to_string();
                        return Err(LogError::Unavailable { log, why }.into());
                    }
                }
                Err(AppendError::Unknown(error) | AppendError::Failed(error)) => return Err(error.into()),
            }
        }
        // Indices and sequence numbers grow together. A record with a later index at an earlier sequence
        // number proves that the log does not have this record.
        let is_another = chain.last().index == position.index && chain.last() != position;
        let is_past = chain.last().index > position.index && chain.last_sequence().0 < sequence;
        if is_another || is_past {
            return Err(self.contradiction(chain.last_sequence().0));
        }
        self.chain = Some(chain);
        Ok(())
    }

    /// Reads what the log contains after the last record that it has not lost, which is at `before`.
    fn begin(&self, before: SequencedPosition) -> Result<Chain, ReplicaError> {
        match look_up_record(&*self.replica.log, self.replica.id, before) {
            Ok(RecordLookup::Same) => {}
            Ok(RecordLookup::Different) => return Err(self.contradiction(before.sequence)),
            // The log has lost more entries since its end was read.
            Ok(RecordLookup::PastEnd) => {
                return Err(self.cannot_put_back("the log still loses entries"));
            }
            Err(LogError::Trimmed { .. }) => {
                return Err(self.cannot_put_back("the log no longer has the record before it"));
            }
            Err(error) => return Err(error.into()),
        }
        let mut chain = Chain::after(self.replica.id, before.position, Sequence(before.sequence));
        while self.read(&mut chain)? {}
        Ok(chain)
    }

    /// Reads the next entries of the log into `chain`. Returns false at the end of the log.
    fn read(&self, chain: &mut Chain) -> Result<bool, ReplicaError> {
        let entries = match self.replica.log.read(chain.last_read(), READ_BYTES) {
            Err(LogError::Trimmed { .. }) => {
                return Err(self.cannot_put_back("the log was trimmed in the meantime"));
            }
            read => read?,
        };
        for entry in &entries {
            let _: FoldedEntry = chain.fold(entry);
        }
        Ok(!entries.is_empty())
    }
}
