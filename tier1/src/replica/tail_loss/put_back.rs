//! What the log has lost is appended to it again, from what a replica has copied.
//!
//! Servers that acknowledge what is not on their disks lose the end of a stream with their power, and so do those that are put
//! back to an older copy of their directories. A record that counted goes back with the same bytes to the same place, and where
//! there were entries that did not count something is put that does not, either. So whoever has copied the lost records finds
//! them where they were, and of two replicas that do this at once one finds done what it was about to do.
//!
//! Invariant: nothing is appended but in the place behind what was read, and only what had that place in the chain. Where the log
//! has gone on in another way it is left alone.

use doppel_shared_log::{AppendError, Entry, LogError, Sequence, SharedLog, append_surely};

use crate::log::{LogId, Payload, SequencedPosition, SharedRecord};
use crate::replica::entry::{VOID, encode, said_by_taker};
use crate::replica::{Chain, Copies, Folded, READ_BYTES, Replica, ReplicaError, Said, State};

/// What a log has where a record is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    It,
    Another,
    /// The log ends before.
    Nothing,
}

/// Looks whether a log has a record in its place.
///
/// # Errors
/// When the log does not answer, or was trimmed up to there.
pub(crate) fn find(
    log: &dyn SharedLog,
    id: LogId,
    SequencedPosition { position, sequence }: SequencedPosition,
) -> Result<Found, LogError> {
    let Some(before) = sequence.checked_sub(1) else { return Ok(Found::It) };
    let entries = log.read(Sequence(before), 1)?;
    let is_it = |entry: &Entry| Chain::behind(id, position, Sequence(sequence)).is_last(&entry.bytes);
    Ok(match entries.first() {
        Some(entry) if is_it(entry) => Found::It,
        Some(_) => Found::Another,
        None => Found::Nothing,
    })
}

impl<D: Copies> Replica<D> {
    /// Appends what the log does not have any more of what was copied from it.
    ///
    /// # Errors
    /// When the log does not answer, or has gone on in another way; and when what is missing is not here any more.
    pub(in crate::replica) fn put_back(&self, state: &State) -> Result<(), ReplicaError> {
        let (end, copied) = (self.log.end()?, state.chain.last_at());
        if end >= copied {
            return Ok(());
        }
        let (range, end) = (self.range, end.0);
        tracing::warn!(
            range = range.0,
            end,
            copied = copied.0,
            "the log has lost its end, which is put back"
        );
        let mut again = Again { replica: self, chain: None, end, copied: copied.0 };
        let gone = self.database.each_copied_after(end, &mut |before, record| again.put(before, record))?;
        if let Some(why) = gone {
            return Err(again.not(why));
        }
        tracing::warn!(range = range.0, "the log has its end again");
        Ok(())
    }
}

/// Records on their way back.
struct Again<'r, D> {
    replica: &'r Replica<D>,
    /// What the log has; none before the first record.
    chain: Option<Chain>,
    end: u64,
    copied: u64,
}

impl<D: Copies> Again<'_, D> {
    fn not(&self, why: &'static str) -> ReplicaError {
        let Self { end, copied, .. } = *self;
        ReplicaError::NotPutBack { range: self.replica.range, copied, end, why }
    }

    fn contradicts(&self, at: u64) -> ReplicaError {
        ReplicaError::Contradicts { range: self.replica.range, at }
    }

    /// Puts a record where it was, which is behind another one.
    fn put(&mut self, before: SequencedPosition, record: SharedRecord<'static>) -> Result<(), ReplicaError> {
        let SharedRecord { position, sequence, payload, .. } = record;
        let mut chain = match self.chain.take() {
            Some(chain) => chain,
            None => self.begin(before)?,
        };
        let said = match payload {
            Payload::Rows(rows) => Some(Said::Rows(rows.into_owned())),
            Payload::TakeOver(said) => said_by_taker(&said),
        };
        let said = said.ok_or_else(|| self.not("an earlier release has copied it, which kept less"))?;
        let limits = &self.replica.limits;
        let encoded = encode(self.replica.id, (before.position, position.epoch), &said, limits.part_bytes);
        let encoded = encoded.ok().filter(|encoded| encoded.position == position);
        let encoded = encoded.ok_or_else(|| self.not("what this node has copied is not what was there"))?;
        while chain.last().index < position.index {
            if chain.last() != before.position {
                return Err(self.contradicts(chain.last_at().0));
            }
            let begun = chain.begun(&encoded.parts);
            let left = (encoded.parts.len() - begun) as u64;
            let entry = match sequence.checked_sub(chain.seen().0 + left) {
                Some(0) => encoded.parts[begun].clone(),
                Some(_) => VOID,
                None => return Err(self.not("other entries are in its place")),
            };
            self.replica.go_on()?;
            match append_surely(&*self.replica.log, chain.seen(), &entry, limits.append) {
                Ok(at) if at == chain.seen().next() => {
                    drop(chain.take(&Entry { sequence: at, bytes: entry }));
                }
                Ok(_) | Err(AppendError::Refused) => {
                    if !self.read(&mut chain)? {
                        let why = "it refuses an entry, and does not show why".to_owned();
                        let log = self.replica.range.to_string();
                        return Err(LogError::Unavailable { log, why }.into());
                    }
                }
                Err(AppendError::Unknown(error) | AppendError::Failed(error)) => return Err(error.into()),
            }
        }
        // Indices and places grow together, so this record is nowhere where one of a later index comes before its place.
        let is_another = chain.last().index == position.index && chain.last() != position;
        let is_past = chain.last().index > position.index && chain.last_at().0 < sequence;
        if is_another || is_past {
            return Err(self.contradicts(chain.last_at().0));
        }
        self.chain = Some(chain);
        Ok(())
    }

    /// What the log has behind the last record that it has not lost.
    fn begin(&self, before: SequencedPosition) -> Result<Chain, ReplicaError> {
        match find(&*self.replica.log, self.replica.id, before) {
            Ok(Found::It) => {}
            Ok(Found::Another) => return Err(self.contradicts(before.sequence)),
            // It loses more while this looks.
            Ok(Found::Nothing) => return Err(self.not("it becomes shorter still")),
            Err(LogError::Trimmed { .. }) => {
                return Err(self.not("the log does not have what it comes behind any more"));
            }
            Err(error) => return Err(error.into()),
        }
        let mut chain = Chain::behind(self.replica.id, before.position, Sequence(before.sequence));
        while self.read(&mut chain)? {}
        Ok(chain)
    }

    /// Reads some of what the log has; whether there was anything.
    fn read(&self, chain: &mut Chain) -> Result<bool, ReplicaError> {
        let entries = match self.replica.log.read(chain.seen(), READ_BYTES) {
            Err(LogError::Trimmed { .. }) => return Err(self.not("it is trimmed meanwhile")),
            read => read?,
        };
        for entry in &entries {
            let _: Folded = chain.take(entry);
        }
        Ok(!entries.is_empty())
    }
}
