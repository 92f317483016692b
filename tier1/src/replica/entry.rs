//! An entry of a range's shared log: a record, or a part of one.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | mark, [`MARK`], with the version of the layout |
//! | 8 | 1 | kind of the payload |
//! | 9 | 8 | log: which range of which cluster |
//! | 17 | 8 | epoch |
//! | 25 | 8 | index |
//! | 33 | 4 | number of the part, from 0 |
//! | 37 | 4 | parts of the record |
//! | 41 | 16 | XXH3-128 of the whole entry before: the last part of the record before, or the part before |
//! | 57 | n | payload, or a part of it |
//! | 57 + n | 8 | XXH3-64 of all bytes before |
//!
//! Integers are little-endian. The payload of a commit has its [rows], those of signatures with the bytes of these; that of a
//! take-over a number of the process in 8 bytes and the name of the owner.

use bytes::Bytes;
use doppel_model::{stable_hash64, stable_hash128};

use crate::log::rows::{self, Fields};
use crate::log::{LogId, Position};
use crate::store::Write;

/// Begins every entry; the last byte is the version of the layout.
const MARK: [u8; 8] = *b"doplog\0\x01";

/// Bytes of payload in an entry: a message of the engine has at most 1 MB, unless it is told otherwise.
pub(super) const PART_BYTES: usize = 512 << 10;

/// A record in more parts is taken for damage.
const PARTS_MAX: u32 = 1 << 12;

const ROWS: u8 = 1;
const TAKE_OVER: u8 = 2;

/// The longest name of an owner, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// What is put where the log has lost an entry that did not count: no record, so it does not count either.
pub(super) const VOID: Bytes = Bytes::from_static(b"in place of an entry that was void");

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// The rows of a commit.
    Rows(Vec<Write>),
    /// This node owns the range from here on.
    TakeOver {
        /// Its name.
        owner: String,
        /// A number that no other life of a process has: two that have one name are not taken for each other.
        incarnation: u64,
    },
}

/// A record as entries, and its position.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    pub(crate) position: Position,
    pub(crate) parts: Vec<Bytes>,
}

/// An entry that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) kind: u8,
    pub(super) epoch: u64,
    pub(super) index: u64,
    pub(super) part: u32,
    pub(super) parts: u32,
    pub(super) previous: u128,
    pub(super) payload: Bytes,
    /// Of the whole entry.
    pub(super) hash: u128,
}

/// The entries of a record behind a position.
///
/// # Errors
/// When a row is too long.
pub(crate) fn encode(
    log: LogId,
    (previous, epoch): (Position, u64),
    said: &Said,
    part_bytes: usize,
) -> Result<Encoded, &'static str> {
    let mut payload = Vec::new();
    let kind = match said {
        Said::Rows(writes) => {
            rows::encode(&mut payload, writes)?;
            ROWS
        }
        Said::TakeOver { owner, incarnation } => {
            payload = taker(owner, *incarnation);
            TAKE_OVER
        }
    };
    let index = previous.index + 1;
    let parts = u32::try_from(payload.len().div_ceil(part_bytes).max(1)).unwrap_or(u32::MAX);
    if parts > PARTS_MAX {
        return Err("a commit is too long");
    }
    let (mut hash, mut encoded) = (previous.hash, Vec::with_capacity(parts as usize));
    let mut pieces = payload.chunks(part_bytes);
    for part in 0..parts {
        let piece = pieces.next().unwrap_or_default();
        let mut out = Vec::with_capacity(piece.len() + 80);
        out.extend(MARK);
        out.push(kind);
        out.extend(log.0.to_le_bytes());
        out.extend(epoch.to_le_bytes());
        out.extend(index.to_le_bytes());
        out.extend(part.to_le_bytes());
        out.extend(parts.to_le_bytes());
        out.extend(hash.to_le_bytes());
        out.extend(piece);
        out.extend(stable_hash64(&out).to_le_bytes());
        hash = stable_hash128(&out);
        encoded.push(Bytes::from(out));
    }
    Ok(Encoded { position: Position { epoch, index, hash }, parts: encoded })
}

/// Reads an entry of a log; none where it is not one, or damaged.
pub(super) fn decode(log: LogId, bytes: &Bytes) -> Option<Part> {
    let (body, sum) = bytes.split_last_chunk::<8>()?;
    if stable_hash64(body) != u64::from_le_bytes(*sum) {
        return None;
    }
    let mut fields = Fields(body);
    if fields.array::<8>()? != MARK {
        return None;
    }
    let [kind] = fields.array()?;
    if fields.u64()? != log.0 {
        return None;
    }
    let (epoch, index) = (fields.u64()?, fields.u64()?);
    let (part, parts) = (fields.u32()?, fields.u32()?);
    let previous = fields.u128()?;
    let payload = bytes.slice_ref(fields.0);
    let is_sound = part < parts && parts <= PARTS_MAX;
    is_sound.then(|| Part { kind, epoch, index, part, parts, previous, payload, hash: stable_hash128(bytes) })
}

/// The payload of a take-over.
pub(super) fn taker(owner: &str, incarnation: u64) -> Vec<u8> {
    let mut payload = incarnation.to_le_bytes().to_vec();
    payload.extend(owner.as_bytes().iter().take(NAME_BYTES_MAX));
    payload
}

/// What a take-over says that has this payload; none where that is damaged.
pub(super) fn said_by_taker(payload: &[u8]) -> Option<Said> {
    said(TAKE_OVER, payload)
}

/// What a whole record says; none where it is damaged.
pub(super) fn said(kind: u8, payload: &[u8]) -> Option<Said> {
    match kind {
        ROWS => rows::decode(payload).map(Said::Rows),
        TAKE_OVER => {
            let (incarnation, owner) = payload.split_first_chunk()?;
            let owner = String::from_utf8(owner.to_vec()).ok()?;
            Some(Said::TakeOver { owner, incarnation: u64::from_le_bytes(*incarnation) })
        }
        _ => None,
    }
}

/// What an entry says that is a record by itself.
#[cfg(feature = "simulation")]
pub(crate) fn whole(log: LogId, bytes: &Bytes) -> Option<Said> {
    let part = decode(log, bytes).filter(|part| part.parts == 1)?;
    said(part.kind, &part.payload)
}

/// Whether a record of this kind may be of a new epoch.
pub(super) fn begins(kind: u8) -> bool {
    kind == TAKE_OVER
}
