//! A record of the log as bytes.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | mark, [`MARK`], with the version of the layout |
//! | 8 | 4 | length of the payload |
//! | 12 | 1 | kind of the payload |
//! | 13 | 8 | id of the log |
//! | 21 | 8 | epoch |
//! | 29 | 8 | index |
//! | 37 | 16 | XXH3-128 of the whole record before; zero for the first record |
//! | 53 | n | payload |
//! | 53 + n | 8 | XXH3-64 of all bytes before |
//!
//! Integers are little-endian. The payload of a commit is its [rows](super::rows). If the record is a copy of
//! a record of a shared log, 24 bytes come before the rows: the hash of the original record and its sequence
//! in the shared log. That hash then takes the place of the hash of the copy's own bytes. The copy of a
//! take-over also contains the payload of the original; copies by earlier releases have an empty payload.

use std::borrow::Cow;

use doppel_model::{stable_hash64, stable_hash128};

use super::rows::{self, Fields};
use super::{LogId, Position};
use crate::storage::store::Write;

/// First bytes of every record. The last byte is the version of the layout.
pub(super) const MARK: [u8; 8] = *b"dlogrec\x01";

/// Number of bytes before the payload.
pub(super) const HEAD_BYTES: usize = 53;

/// Number of bytes of the checksum.
pub(super) const SUM_BYTES: usize = 8;

/// Maximum length of a payload in bytes. A greater length means damage. A commit is far smaller, because the
/// bytes of its signatures are stored elsewhere.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 28;

const ROWS: u8 = 1;
const TAKE_OVER: u8 = 2;

/// Added to the kind if the record is a copy.
const COPY: u8 = 16;

/// Content of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Payload<'r> {
    /// Rows that a commit wrote.
    Rows(Cow<'r, [Write]>),
    /// A new owner begins. In a copy, the bytes are the payload of the original record in the shared log.
    TakeOver(Cow<'r, [u8]>),
}

/// The original of a copied record in the shared log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Hash of the original's bytes.
    pub(crate) hash: u128,
    /// Sequence of the original in the shared log.
    pub(crate) sequence: u64,
}

/// A decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// Position of this record.
    pub(crate) position: Position,
    /// Hash of the record before this one.
    pub(crate) previous: u128,
    /// The original, if this record is a copy.
    pub(crate) origin: Option<Origin>,
    pub(crate) payload: Payload<'static>,
}

/// Reason why bytes are not a record of this log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordError {
    /// The bytes end too soon, or have changed since they were written.
    Damaged,
    /// The bytes are an undamaged record of another log.
    Foreign,
}

/// Appends the bytes of the record after `previous` to `out`. Returns the position of the record.
pub(super) fn encode(
    out: &mut Vec<u8>,
    log: LogId,
    (previous, epoch): (Position, u64),
    origin: Option<Origin>,
    payload: &Payload<'_>,
) -> Result<Position, &'static str> {
    let start = out.len();
    let kind = match payload {
        Payload::Rows(_) => ROWS,
        Payload::TakeOver(_) => TAKE_OVER,
    };
    let kind = if origin.is_some() { kind + COPY } else { kind };
    let index = previous.index + 1;
    out.extend(MARK);
    out.extend([0; 4]);
    out.push(kind);
    out.extend(log.0.to_le_bytes());
    out.extend(epoch.to_le_bytes());
    out.extend(index.to_le_bytes());
    out.extend(previous.hash.to_le_bytes());
    if let Some(Origin { hash, sequence }) = origin {
        out.extend(hash.to_le_bytes());
        out.extend(sequence.to_le_bytes());
    }
    match payload {
        Payload::Rows(writes) => rows::encode(out, writes)?,
        Payload::TakeOver(said) => out.extend_from_slice(said),
    }
    let length = out.len() - start - HEAD_BYTES;
    if length > PAYLOAD_BYTES_MAX {
        return Err("a commit is too long");
    }
    out[start + 8..start + 12].copy_from_slice(&(length as u32).to_le_bytes());
    out.extend(stable_hash64(&out[start..]).to_le_bytes());
    let hash = origin.map_or_else(|| stable_hash128(&out[start..]), |origin| origin.hash);
    Ok(Position { epoch, index, hash })
}

/// Returns the length of a record in bytes, from its first [`HEAD_BYTES`].
pub(super) fn length(head: &[u8; HEAD_BYTES]) -> Result<usize, RecordError> {
    let mut fields = Fields(head);
    if fields.array::<8>() != Some(MARK) {
        return Err(RecordError::Damaged);
    }
    let payload = fields.u32().ok_or(RecordError::Damaged)? as usize;
    if payload > PAYLOAD_BYTES_MAX {
        return Err(RecordError::Damaged);
    }
    Ok(HEAD_BYTES + payload + SUM_BYTES)
}

/// Decodes a record of the log `log`.
pub(super) fn decode(bytes: &[u8], log: LogId) -> Result<Record, RecordError> {
    let damaged = RecordError::Damaged;
    let (body, sum) = bytes.split_last_chunk::<SUM_BYTES>().ok_or(damaged)?;
    let (head, payload) = body.split_first_chunk::<HEAD_BYTES>().ok_or(damaged)?;
    if stable_hash64(body) != u64::from_le_bytes(*sum) || length(head)? != bytes.len() {
        return Err(damaged);
    }
    let mut fields = Fields(&head[12..]);
    let kind = fields.array::<1>().ok_or(damaged)?;
    if fields.u64() != Some(log.0) {
        return Err(RecordError::Foreign);
    }
    let (epoch, index) = (fields.u64().ok_or(damaged)?, fields.u64().ok_or(damaged)?);
    let previous = u128::from_le_bytes(fields.array().ok_or(damaged)?);
    let mut payload = Fields(payload);
    let [kind] = kind;
    let (kind, origin) = match kind.checked_sub(COPY) {
        Some(kind) => {
            let (hash, sequence) = (payload.u128().ok_or(damaged)?, payload.u64().ok_or(damaged)?);
            (kind, Some(Origin { hash, sequence }))
        }
        None => (kind, None),
    };
    let payload = match kind {
        ROWS => Payload::Rows(Cow::Owned(rows::decode(payload.0).ok_or(damaged)?)),
        TAKE_OVER => Payload::TakeOver(Cow::Owned(payload.0.to_vec())),
        _ => return Err(damaged),
    };
    let hash = origin.map_or_else(|| stable_hash128(bytes), |origin| origin.hash);
    Ok(Record { position: Position { epoch, index, hash }, previous, origin, payload })
}
