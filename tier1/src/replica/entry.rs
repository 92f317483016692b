//! Encoding of an entry of a range's shared log. An entry contains one record, or one part of a record.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | [`MARK`], with the version of the layout |
//! | 8 | 1 | kind of the payload |
//! | 9 | 8 | id of the log, which depends on the cluster and the range |
//! | 17 | 8 | epoch |
//! | 25 | 8 | index |
//! | 33 | 4 | number of the part, counted from 0 |
//! | 37 | 4 | number of parts of the record |
//! | 41 | 16 | XXH3-128 of the whole previous entry: the previous part, or the last part of the previous record |
//! | 57 | n | payload, or a part of the payload |
//! | 57 + n | 8 | XXH3-64 of all preceding bytes |
//!
//! Integers are little-endian. The payload of a commit contains its [rows]. Rows of signatures contain the
//! bytes of the signatures. The payload of a take-over contains the incarnation of the owner's process in 8
//! bytes, then the name of the owner.

use bytes::Bytes;
use doppel_model::{stable_hash64, stable_hash128};

use crate::storage::log::rows::{self, Fields};
use crate::storage::log::{LogId, Position};
use crate::storage::store::Write;

/// First bytes of every entry. The last byte is the version of the layout.
const MARK: [u8; 8] = *b"doplog\0\x01";

/// Bytes of payload in an entry. A message of NATS has at most 1 MB, unless its servers are configured
/// otherwise.
pub(super) const PART_BYTES: usize = 512 << 10;

/// Maximum number of parts of a record. An entry that claims more is treated as damaged.
const PARTS_MAX: u32 = 1 << 12;

const ROWS: u8 = 1;
const TAKE_OVER: u8 = 2;

/// Maximum length of an owner's name in bytes. Longer names are cut.
const NAME_BYTES_MAX: usize = 256;

/// Entry that takes the place of a void entry that the log has lost. It is not a record, so it is void, too.
pub(super) const VOID: Bytes = Bytes::from_static(b"in place of an entry that was void");

/// Decoded contents of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordBody {
    /// The rows of a commit.
    Rows(Vec<Write>),
    /// A node owns the range from this record on.
    TakeOver {
        /// Name of the node.
        owner: String,
        /// Random number of the owner's process. It distinguishes two processes with one node name.
        incarnation: u64,
    },
}

/// A record as log entries, and its position.
#[derive(Debug, Clone)]
pub(crate) struct EncodedRecord {
    pub(crate) position: Position,
    pub(crate) parts: Vec<Bytes>,
}

/// Decoded fields of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordPart {
    pub(super) kind: u8,
    pub(super) epoch: u64,
    pub(super) index: u64,
    pub(super) part: u32,
    pub(super) parts: u32,
    pub(super) previous: u128,
    pub(super) payload: Bytes,
    /// Hash of the whole entry.
    pub(super) hash: u128,
}

/// Encodes a record of `epoch` that follows the record at `previous`, with at most `part_bytes` bytes of
/// payload in each entry.
///
/// # Errors
/// If a row or the whole commit is too long.
pub(crate) fn encode(
    log: LogId,
    (previous, epoch): (Position, u64),
    body: &RecordBody,
    part_bytes: usize,
) -> Result<EncodedRecord, &'static str> {
    let mut payload = Vec::new();
    let kind = match body {
        RecordBody::Rows(writes) => {
            rows::encode(&mut payload, writes)?;
            ROWS
        }
        RecordBody::TakeOver { owner, incarnation } => {
            payload = encode_take_over(owner, *incarnation);
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
    Ok(EncodedRecord { position: Position { epoch, index, hash }, parts: encoded })
}

/// Decodes an entry of a log. `None` if the entry is damaged, or belongs to another log.
pub(super) fn decode(log: LogId, bytes: &Bytes) -> Option<RecordPart> {
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
    is_sound.then(|| RecordPart {
        kind,
        epoch,
        index,
        part,
        parts,
        previous,
        payload,
        hash: stable_hash128(bytes),
    })
}

/// Encodes the payload of a take-over.
pub(super) fn encode_take_over(owner: &str, incarnation: u64) -> Vec<u8> {
    let mut payload = incarnation.to_le_bytes().to_vec();
    payload.extend(owner.as_bytes().iter().take(NAME_BYTES_MAX));
    payload
}

/// Decodes the payload of a take-over. `None` if the payload is damaged.
pub(super) fn decode_take_over(payload: &[u8]) -> Option<RecordBody> {
    decode_body(TAKE_OVER, payload)
}

/// Decodes the payload of a whole record. `None` if the payload is damaged or the kind is unknown.
pub(super) fn decode_body(kind: u8, payload: &[u8]) -> Option<RecordBody> {
    match kind {
        ROWS => rows::decode(payload).map(RecordBody::Rows),
        TAKE_OVER => {
            let (incarnation, owner) = payload.split_first_chunk()?;
            let owner = String::from_utf8(owner.to_vec()).ok()?;
            Some(RecordBody::TakeOver { owner, incarnation: u64::from_le_bytes(*incarnation) })
        }
        _ => None,
    }
}

/// Decodes an entry that contains a whole record. `None` for a part of a longer record, and for a damaged
/// entry.
#[cfg(feature = "simulation")]
pub(crate) fn decode_single_part(log: LogId, bytes: &Bytes) -> Option<RecordBody> {
    let part = decode(log, bytes).filter(|part| part.parts == 1)?;
    decode_body(part.kind, &part.payload)
}

/// Whether a record of this kind may begin a new epoch.
pub(super) fn may_begin_epoch(kind: u8) -> bool {
    kind == TAKE_OVER
}
