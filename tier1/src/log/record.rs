//! A record of the log as bytes.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | mark, [`MARK`], with the version of the layout |
//! | 8 | 4 | length of the payload |
//! | 12 | 1 | kind of the payload |
//! | 13 | 8 | log |
//! | 21 | 8 | epoch |
//! | 29 | 8 | index |
//! | 37 | 16 | XXH3-128 of the whole record before; zero for the first |
//! | 53 | n | payload |
//! | 53 + n | 8 | XXH3-64 of all bytes before |
//!
//! Integers are little-endian. The payload of a commit has its [rows](super::rows). A record that is a copy of one of a shared
//! log has 24 bytes before them: the hash of that one, in place of its own, and its sequence there. The copy of a take-over has
//! what that says besides; those of earlier releases have nothing there.

use std::borrow::Cow;

use doppel_model::{stable_hash64, stable_hash128};

use super::rows::{self, Fields};
use super::{LogId, Position};
use crate::store::Write;

/// Begins every record; the last byte is the version of the layout.
pub(super) const MARK: [u8; 8] = *b"dlogrec\x01";

/// Bytes of a record before its payload.
pub(super) const HEAD_BYTES: usize = 53;

/// Bytes of the checksum.
pub(super) const SUM_BYTES: usize = 8;

/// A longer payload is taken for damage. A commit is far below: its signatures are not in it.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 28;

const ROWS: u8 = 1;
const TAKE_OVER: u8 = 2;

/// Added to the kind of a copy.
const COPY: u8 = 16;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Payload<'r> {
    /// The rows of a commit.
    Rows(Cow<'r, [Write]>),
    /// A new owner begins; in the copy of a shared log's record, what that says besides.
    TakeOver(Cow<'r, [u8]>),
}

/// The record of a shared log of which one is a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Of its bytes there.
    pub(crate) hash: u128,
    /// Its place there.
    pub(crate) sequence: u64,
}

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its own.
    pub(crate) position: Position,
    /// The hash of the one before.
    pub(crate) previous: u128,
    /// Of a copy.
    pub(crate) origin: Option<Origin>,
    pub(crate) payload: Payload<'static>,
}

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// They end too soon, or are not what was written.
    Damaged,
    /// A sound record of another log.
    Foreign,
}

/// Appends the bytes of a record; its position.
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

/// The length of the record of which these are the first [`HEAD_BYTES`].
pub(super) fn length(head: &[u8; HEAD_BYTES]) -> Result<usize, Unreadable> {
    let mut fields = Fields(head);
    if fields.array::<8>() != Some(MARK) {
        return Err(Unreadable::Damaged);
    }
    let payload = fields.u32().ok_or(Unreadable::Damaged)? as usize;
    if payload > PAYLOAD_BYTES_MAX {
        return Err(Unreadable::Damaged);
    }
    Ok(HEAD_BYTES + payload + SUM_BYTES)
}

/// Reads the bytes of a record.
pub(super) fn decode(bytes: &[u8], log: LogId) -> Result<Record, Unreadable> {
    let damaged = Unreadable::Damaged;
    let (body, sum) = bytes.split_last_chunk::<SUM_BYTES>().ok_or(damaged)?;
    let (head, payload) = body.split_first_chunk::<HEAD_BYTES>().ok_or(damaged)?;
    if stable_hash64(body) != u64::from_le_bytes(*sum) || length(head)? != bytes.len() {
        return Err(damaged);
    }
    let mut fields = Fields(&head[12..]);
    let kind = fields.array::<1>().ok_or(damaged)?;
    if fields.u64() != Some(log.0) {
        return Err(Unreadable::Foreign);
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
